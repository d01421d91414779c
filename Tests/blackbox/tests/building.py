"""Builds show their progress, and say nothing when nothing is to do. The compiler is a stub, so they take no time."""

import os
import re
import signal
import subprocess
import unittest
from pathlib import Path

from support import clones, processes
from support.printed import ROOT
from support.service import environment
from support.waiting import TIMEOUT_SECONDS, wait_until

# Writes the lines of a build, waits until the pipe is opened for writing, and ends with the status that is written to it.
STUB = """\
#!/bin/sh
echo "$@" >> "$STUB/calls"
echo "$SWIFT_DETERMINISTIC_HASHING" > "$STUB/hashing"
echo 'Fetching https://github.com/apple/swift-nio.git'
echo '[7/20] Compiling Engine Lane.swift'
echo "warning: 'swift-nio': found 1 file(s) which are unhandled"
echo '    /CMakeLists.txt'
read -r status < "$STUB/status"
exit "$status"
"""


class Building(unittest.TestCase):
    def setUp(self):
        self.clone = clones.make()
        (self.clone / ".build/release").mkdir()
        self.stub = Path(processes.directory())
        (self.stub / "swift").write_text(STUB)
        (self.stub / "swift").chmod(0o755)
        os.mkfifo(self.stub / "status")
        (self.stub / "calls").touch()

    def start(self, interval, *command):
        path = os.pathsep.join([str(self.stub), os.environ["PATH"]])
        self.errors = self.stub / "errors"
        with open(self.errors, "w") as errors:
            return processes.start(
                command, cwd=self.clone, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
                env=environment(PATH=path, STUB=str(self.stub), HEADROOM_PROGRESS_SECONDS=str(interval)),
            )  # fmt: skip

    def end(self, build, status):
        """Lets the compiler end with this status; returns the build's own, and what it printed."""
        (self.stub / "status").write_text(f"{status}\n")
        printed, _ = build.communicate(timeout=TIMEOUT_SECONDS)
        return build.returncode, printed

    def calls(self):
        return (self.stub / "calls").read_text().splitlines()

    def wait_for_progress(self, name):
        line = rf"(?m)^{name}: \d+ s, step 7 of 20: Compiling Engine Lane\.swift$"
        wait_until(lambda: re.search(line, self.errors.read_text()), "a line with the step")

    def test_a_build_shows_its_progress_on_standard_error(self):
        served = self.clone / ".build/program"
        served.write_text("/of/an/older/release")
        build = self.start(0.05, "script/build")
        self.wait_for_progress("build")
        self.assertEqual(self.end(build, 0), (0, f"{self.clone}/.build/release\n"))
        self.assertEqual(len(self.calls()), 1)
        self.assertFalse(served.exists(), "script/headroom runs what was built")
        self.assertEqual((self.stub / "hashing").read_text(), "1\n", "another build is planned in the same order")

    def test_a_quick_build_says_nothing_and_one_without_changes_starts_no_compiler(self):
        for _ in range(2):
            build = self.start(86_400, "script/build")
            if not self.calls():
                wait_until(self.calls, "the compiler's start")
                status, printed = self.end(build, 0)
            else:
                printed, _ = build.communicate(timeout=TIMEOUT_SECONDS)
                status = build.returncode
            self.assertEqual((status, printed, self.errors.read_text()), (0, f"{self.clone}/.build/release\n", ""))
        self.assertEqual(len(self.calls()), 1)

    def test_a_second_build_waits_for_the_first_and_then_starts_no_compiler(self):
        first = self.start(86_400, "script/build")
        wait_until(self.calls, "the compiler's start")
        second = self.start(86_400, "script/build")
        wait_until(lambda: "waiting for another build" in self.errors.read_text(), "it says that it waits")
        self.assertEqual(self.end(first, 0), (0, f"{self.clone}/.build/release\n"))
        printed, _ = second.communicate(timeout=TIMEOUT_SECONDS)
        self.assertEqual((second.returncode, printed), (0, f"{self.clone}/.build/release\n"))
        self.assertEqual(len(self.calls()), 1)

    def test_a_failed_build_shows_the_compilers_output(self):
        build = self.start(86_400, "script/build", "--product", "headroom")
        self.assertEqual(self.end(build, 3), (1, ""))
        self.assertRegex(self.errors.read_text(), r"\[7/20\] Compiling Engine Lane\.swift\n.*\n.*\nbuild: failed\n\Z")

    def test_an_interrupted_build_leaves_no_process(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number.name):
                build = self.start(0.05, "script/build")
                self.wait_for_progress("build")
                os.killpg(build.pid, number)
                self.assertNotEqual(build.wait(TIMEOUT_SECONDS), 0)
                build.stdout.close()
                wait_until(lambda group=build.pid: not self.group_exists(group), "the end of all processes")

    def group_exists(self, group):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        return True

    def test_progress_ends_with_the_commands_status(self):
        build = self.start(0.05, "script/progress", "fuzz", ".build/log", "swift", "build")
        self.wait_for_progress("fuzz")
        self.assertEqual(self.end(build, 7), (7, ""))
        self.assertEqual(self.start(1, "script/progress", "fuzz", ".build/log").wait(TIMEOUT_SECONDS), 2)

    def test_every_script_that_builds_shows_its_progress(self):
        """`script/microbench --times` shows the output of `swift package` itself."""
        files = [path for path in (Path(ROOT) / "script").iterdir() if path.is_file()]
        builds = [path for path in files if re.search(r'(?m)^[^#\n]*(swift build -|"swift", "build")', path.read_text())]
        self.assertEqual({path.name for path in builds}, {"build", "fuzz"})
        for path in [*builds, Path(ROOT) / "Tests/support/client_dependent.py"]:
            self.assertIn("script/progress", path.read_text(), path.name)
