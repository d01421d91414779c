"""deploy/systemd: systemd takes the units, the service's is hardened, and the service runs with the system calls that it allows."""

import os
import re
import shutil
import subprocess

from support import processes, settings
from support.case import Case
from support.printed import ROOT

UNIT = ROOT + "/deploy/systemd/headroom.service"
# Of 10. Of this, 0.9 are the network.
EXPOSURE_MAXIMUM = 1.5


class SystemdUnit(Case):
    FLAGS = None

    def setUp(self):
        super().setUp()
        for program in ("systemd-analyze", "strace"):
            if shutil.which(program) is None:
                self.skipTest(f"{program} is not installed; script/bootstrap --test does it")
        with open(UNIT) as file:
            self.unit = file.read()

    def analyze(self, *arguments):
        ran = processes.completed(["systemd-analyze", *arguments])
        self.assertEqual((ran.returncode, ran.stderr), (0, ""), arguments)
        return ran.stdout

    def installed(self):
        """A copy that names the tested program."""
        path = processes.directory() + "/headroom.service"
        with open(path, "w") as file:
            file.write(self.unit.replace("/usr/local/bin/headroom ", settings.binary + " "))
        return path

    def test_systemd_takes_it_and_calls_it_hardened(self):
        path = self.installed()
        socket = shutil.copy(UNIT.replace(".service", ".socket"), os.path.dirname(path))
        self.analyze("verify", "--man=no", path, socket)
        report = self.analyze("security", "--offline=true", path)
        exposure = re.search(r"exposure level for headroom\.service: (\d+\.\d)", report)[1]
        self.assertLessEqual(float(exposure), EXPOSURE_MAXIMUM)

    def allowed(self):
        """The system calls that its filters leave: each adds groups, or removes them after a `~`."""
        names = set()
        for words in re.findall(r"(?m)^SystemCallFilter=(.*)$", self.unit):
            for group in words.removeprefix("~").split():
                members = self.members(group)
                names = names - members if words.startswith("~") else names | members
        return names

    def members(self, name):
        if not name.startswith("@"):
            return {name}
        lines = [line.strip() for line in self.analyze("syscall-filter", name).splitlines()[1:]]
        return {member for line in lines if line and not line.startswith("#") for member in self.members(line)}

    def test_the_service_needs_no_other_system_call_from_its_start_to_its_end(self):
        directory = processes.directory()
        binary = directory + "/headroom"
        with open(binary, "w") as file:
            file.write(f'#!/bin/sh\nexec strace -D -f -qq -e signal=none -o {directory}/trace "{settings.binary}" "$@"\n')
        subprocess.run(["chmod", "755", binary], check=True)
        service = self.serve(binary=binary)
        self.assertIn("+ALLOWED ", service.send_command(f"CONSUME {self.user()}"))
        self.assertEqual(service.http("GET", "/metrics").status, 200)
        service.send_command("REPORT")
        self.assertEqual(service.stop(), 0)
        with open(directory + "/trace") as file:
            used = set(re.findall(r"(?m)^\d+ +(\w+)\(", file.read()))
        self.assertIn("execve", used)
        self.assertEqual(used - self.allowed(), set())
