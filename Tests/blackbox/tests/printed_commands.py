"""Runs every command of README.md, of docs/tour.md and of the pages for operators as printed; operations.py runs the recipes. A line
that is neither run nor listed here with a reason fails."""

import os
import re
import shutil
import subprocess
import sys
import unittest

from support import clones, processes, settings
from support.case import Case
from support.network import OwnNetwork
from support.nightly import nightly
from support.printed import blocks, pattern
from support.reference import documented
from support.service import environment
from support.waiting import wait_until

SERVING = re.compile(r"(\w+=\S+ )*script/server")


class NewClone(unittest.TestCase):
    """Runs the blocks of a page in order, as in a new clone, except that script/build uses the tests' build."""

    NOT_RUN = {}
    """The blocks that are not run, by their first lines, with the reasons."""

    @classmethod
    def setUpClass(cls):
        for program in ("curl", "redis-cli", "openssl"):
            if shutil.which(program) is None:
                raise unittest.SkipTest(f"{program} is not installed; script/bootstrap --test does it")
        cls.network = OwnNetwork()
        cls.addClassCleanup(cls.network.close)

    def setUp(self):
        self.clone = str(clones.make())
        os.symlink(os.path.dirname(settings.binary), self.clone + "/.build/release")
        with open(self.clone + "/script/build", "w") as file:
            file.write(f'#!/bin/sh\necho "{os.path.dirname(settings.binary)}"\n')
        self.exports = []
        self.service = None
        self.addCleanup(lambda: self.stop())
        # `python3` is the tests' own, which has the package redis.
        path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
        self.environment = environment(PATH=path, TERM="dumb")

    def bash(self, script):
        script = "\n".join([*self.exports, script])
        return [*self.network.inside, "bash", "-euo", "pipefail", "-c", script]

    def shell(self, script, **options):
        ran = processes.completed(self.bash(script), cwd=self.clone, env=self.environment, **options)
        self.assertEqual(ran.returncode, 0, f"{script}\n{ran.stdout}{ran.stderr}")
        return ran.stdout

    def stop(self):
        if self.service is not None:
            processes.stop(self.service)
        self.service = None

    def serve(self, line):
        self.stop()
        self.output, self.log = self.clone + "/output", self.clone + "/log"
        with open(self.output, "w") as output, open(self.log, "w") as log:
            before, _, command = line.rpartition("script/server")
            self.service = processes.start(
                self.bash(f"{before} exec script/server{command}"), cwd=self.clone, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=output, stderr=log,
            )  # fmt: skip

        def is_ready():
            self.assertIsNone(self.service.poll(), self.read(self.log))
            return self.read(self.output).startswith("ready ")

        wait_until(is_ready, "the ready line")

    def read(self, path):
        with open(path) as file:
            return file.read()

    def after(self, words):
        """The text that the service printed after these words."""
        return re.search(rf"(?m)^{re.escape(words)} *(.*)$", self.read(self.log))[1]

    def run_block(self, block):
        lines = block.lines
        if lines[0].startswith(">>> "):
            return self.converse(lines)
        if any(line.startswith("$ ") for line in lines):
            return self.session(lines)
        if re.match("(insert|select|update) ", lines[0]):
            return self.statements(block.text)
        for line in lines:
            if SERVING.fullmatch(line):
                self.serve(line)
            else:
                self.assertRegex(line, r"^(export|install|openssl|headroom|script/headroom) ", "the test does not know this command")
                self.shell(line)
                if line.startswith("export "):
                    self.exports.append(line)

    def session(self, lines):
        """Commands after a dollar sign, with their output."""
        commands = []
        for line in lines:
            if line.startswith("$ "):
                commands.append((line[2:], []))
            else:
                commands[-1][1].append(line)
        for command, printed in commands:
            # A line that is only `…` stands for any number of lines. curl prints JSON without a line end.
            expected = "\n".join(r"(?s:.*)" if line == "…" else pattern(line) for line in printed) + "\n?"
            if "AUTH" in command:
                # A running service reads a new token within two seconds.
                wait_until(lambda: re.fullmatch(expected, self.shell(command)), f"{command} prints {printed}")
            else:
                self.assertRegex(self.shell(command), rf"\A{expected}\Z")

    def converse(self, lines):
        """A block with Python's prompt."""
        statements = [line[4:] for line in lines if line.startswith(">>> ")]
        expected = [line for line in lines if not line.startswith(">>> ")]
        printed = self.shell("python3 -i -q 2>errors", input="\n".join(statements) + "\n")
        self.assertRegex(printed, "^" + "\n".join(map(pattern, expected)) + "\n$", self.read(self.clone + "/errors"))

    def statements(self, text):
        with open(self.clone + "/block.sql", "w") as file:
            file.write(text)
        self.shell(f"{self.after('open the data:')} -X -v ON_ERROR_STOP=1 -P pager=off -f block.sql")

    def run_page(self, page):
        found = blocks(page)
        self.assertEqual({block.language for block in found}, {"indented"})
        first_lines = [block.lines[0] for block in found]
        for listed in self.NOT_RUN:
            self.assertIn(listed, first_lines, "it is listed, and not on the page")
        for block in found:
            if block.lines[0] in self.NOT_RUN:
                continue
            with self.subTest(block=block.text):
                self.run_block(block)


class Readme(NewClone):
    NOT_RUN = {"script/demo": "demo.py runs it"}

    def test_every_block_does_what_is_printed(self):
        self.run_page("README.md")
        self.assertEqual(self.read(self.output), "ready listen=127.0.0.1:6747 http=127.0.0.1:6748\n")
        self.assertEqual(self.after("dashboard:"), "http://127.0.0.1:6748/dashboard")
        printed = self.after("server: for the headroom command in another terminal:")
        self.assertEqual(printed, f"export PATH={self.clone}/script:$PATH")
        self.shell("script/headroom plan set 7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11 daily20")


@nightly("`Readme` runs the commands of README.md")
class Tour(NewClone):
    def test_every_step_does_what_is_printed(self):
        self.run_page("docs/tour.md")
        secret = self.read(self.clone + "/.headroom/revenuecat-authorization").strip()
        status = self.shell("python3 -c '" + WEBHOOK + f"' {secret}; python3 -c '" + WEBHOOK + "' wrong")
        self.assertEqual(status.split(), ["200", "401"], "the webhook takes the secret that was printed")
        self.assertIn("com.example.premium.monthly", self.shell("headroom product list"))
        self.stop()
        self.assertEqual(self.shell("headroom token list").count("backend"), 1, "without a service, too")


WEBHOOK = """
import json, sys, urllib.error, urllib.request
event = {"api_version": "1.0", "event": {"id": "7", "type": "TEST", "event_timestamp_ms": 1774000000000, "environment": "PRODUCTION"}}
request = urllib.request.Request("http://127.0.0.1:6748/webhooks/revenuecat", json.dumps(event).encode(),
    {"Authorization": sys.argv[1], "Content-Type": "application/json"})
try:
    print(urllib.request.urlopen(request).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""


class OperationsPage(Case):
    """The commands of the pages for operators outside their recipes."""

    FLAGS = None
    PAGES = ("docs/operations.md", "docs/running.md", "docs/monitoring.md", "docs/database.md")

    NOT_RUN = {
        "headroom ping --tls --token-file token headroom.example:6747": "no machine has that name; tls.py runs it with another one",
        "REDISCLI_AUTH=$(cat token) redis-cli -h headroom.example -p 6747 --tls --cacert /etc/ssl/certs/ca-certificates.crt"
        " --user backend PING": "the same",
        "certbot renew --deploy-hook 'systemctl kill --signal=HUP headroom'": "needs a domain, certbot and systemd",
    }
    """Lines that are not run, with the reasons."""
    LANGUAGES = {"sql", "sh", "ini", "yaml", "text"}

    def outside(self, language):
        return [block for block in self.blocks() if block.language == language and not block.heading.startswith("### ")]

    def blocks(self):
        return [block for page in self.PAGES for block in blocks(page)]

    def test_every_block_has_a_language(self):
        for block in [*self.blocks(), *blocks("docs/adopt-a-table.md")]:
            self.assertIn(block.language, self.LANGUAGES, block.text)

    def test_every_line_outside_the_recipes_is_run_or_listed_with_a_reason(self):
        lines = [line for block in self.outside("sh") for line in block.lines]
        for listed in self.NOT_RUN:
            self.assertIn(listed, lines, "it is listed, and not on the page")
        directory = processes.directory()
        path = os.pathsep.join([os.path.dirname(settings.binary), os.environ["PATH"]])
        for line in lines:
            if line in self.NOT_RUN:
                continue
            with self.subTest(line=line):
                ran = processes.completed(
                    ["bash", "-euo", "pipefail", "-c", line], cwd=directory, env=environment(PATH=path, DATABASE_URL=self.database_url)
                )
                self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def settings(self):
        lines = [line for block in self.outside("ini") for line in block.lines]
        return dict(line.split("=", 1) for line in lines)

    def test_every_setting_outside_the_recipes_exists(self):
        known = documented("setting")
        for name in self.settings():
            if name != "DATABASE_URL":
                self.assertIn(name.removeprefix("HEADROOM_").lower().replace("_", "-"), known)
