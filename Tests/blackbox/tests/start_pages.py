"""docs/start-….md, from the first program to the refusal that each of them ends with, as they are printed."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from support import processes, settings
from support.case import Case
from support.nightly import nightly
from support.printed import ROOT, blocks, pattern
from support.service import environment
from support.users import new_user
from support.waiting import wait_until

ROOT = Path(ROOT).resolve()
USER = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
PROGRAM = re.compile(r"^`([\w./]+)`:\n\n```\w+\n(.*?\n)```$", re.S | re.M)
ASKED_TO_WAIT = "I couldn't check your usage right now. Let's try again in a moment."
# What TypeScript 4.8 of Debian lacks without the types of Node.js.
NODE_TYPES = "declare const process: { env: Record<string, string | undefined> };\n"


class StartPage(Case):
    """A page whose programs are saved in a folder of its own, and whose commands are run with free ports and new users."""

    PAGE = ""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.directory = Path(processes.directory())
        cls.programs = dict(PROGRAM.findall((ROOT / cls.PAGE).read_text()))
        for file, text in cls.programs.items():
            (cls.directory / file).parent.mkdir(parents=True, exist_ok=True)
            (cls.directory / file).write_text(cls.with_own_ports(text))

    @classmethod
    def with_own_ports(cls, text):
        text = text.replace("127.0.0.1:6747", f"127.0.0.1:{cls.service.port}")
        return text.replace("127.0.0.1:6748", f"127.0.0.1:{cls.service.http_port}")

    def shell_blocks(self):
        """Each block of commands, with the output that is printed after it or None."""
        code = blocks(self.PAGE)
        for block, after in zip(code, [*code[1:], None]):
            if block.language == "sh":
                yield block.text, after.text if after is not None and after.language == "text" else None

    def shell(self, script, environment=None):
        done = processes.completed(["bash", "-euc", script], cwd=self.directory, env=environment or os.environ)
        self.assertEqual(done.returncode, 0, f"{script}\n{done.stdout}{done.stderr}")
        return done.stdout

    def assert_every_block_is_run(self, languages, programs=None):
        """No block of another language is on the page, and each program has its file's name before it."""
        found = [block.language for block in blocks(self.PAGE) if block.language not in ("sh", "text")]
        self.assertEqual(sorted(found), sorted(languages), "a program that is not run")
        expected = len(found) if programs is None else programs
        self.assertEqual(len(self.programs), expected, "a program without the name of its file")


@nightly("`Http` and `Swift` run their pages")
class ChatPage(StartPage):
    """A page with a chat backend that answers over HTTP."""

    SHARED = True
    SERVER = ""
    """The command that starts it."""
    PRINTED_PORT = PATH = ""

    def start_backend(self, arguments, **variables):
        """Starts the printed program on a free port, and returns its address."""
        port = processes.free_port()
        self.log = self.directory / "log"
        process = processes.start(
            [argument.format(port=port) for argument in arguments], cwd=self.directory, log=str(self.log),
            env={**os.environ, **{name: value.format(port=port) for name, value in variables.items()}},
        )  # fmt: skip
        self.addCleanup(processes.stop, process)

        def answers():
            self.assertIsNone(process.poll(), self.log.read_text())
            return subprocess.run(["curl", "--silent", f"http://127.0.0.1:{port}/"], capture_output=True).returncode in (0, 52)

        wait_until(answers, "the backend listens")
        return port

    def run_page(self, install):
        port, users = None, {}
        seen = []
        for commands, output in self.shell_blocks():
            if commands == self.SERVER + "\n":
                port = self.backend()
                for file, text in self.programs.items():
                    text = self.with_own_ports(USER.sub(lambda user: users.setdefault(user[0], new_user()), text))
                    (self.directory / file).write_text(text.replace(f"127.0.0.1:{self.PRINTED_PORT}", f"127.0.0.1:{port}"))
            elif output is None:
                self.assertEqual(commands, install)
            else:
                commands = USER.sub(lambda user: users.setdefault(user[0], new_user()), commands)
                self.assertEqual(self.shell(self.with_own_ports(commands)), output, self.log.read_text())
            seen.append(output is not None)
        self.assertEqual(seen, [False, False, True], "install, start, and try it")
        self.assertRegex(output, r'"banner":"You\'ve used your trial sessions — ready to continue\?"\}\n429\n$')
        (user,) = users.values()
        self.assertEqual(self.count(user), 100)
        return port

    def asking(self, port, user, message, text="is it on"):
        body = json.dumps({"user": user, "id": message, "text": text})
        asked = ["curl", "--silent", "--no-buffer", "--write-out", "\n%{http_code}", "-H", "Content-Type: application/json"]
        return [*asked, "--data", body, f"http://127.0.0.1:{port}{self.PATH}"]

    def ask(self, port, user, message):
        """The answer's status, and the objects in its lines."""
        done = processes.completed(self.asking(port, user, message))
        *lines, status = done.stdout.split("\n")
        return int(status), [json.loads(line) for line in lines if line]

    def check_other_outcomes(self, port):
        """What the table of start-python.md says of a Stop, of its id and of the time while Headroom is away."""
        user = new_user()
        # Long enough that the stream is cut before the last of these pieces, also on a slow machine.
        stopped = processes.start(self.asking(port, user, "stopped", " ".join(["word"] * 10_000)), stdout=subprocess.PIPE, text=True)
        self.assertEqual(json.loads(stopped.stdout.readline()), {"piece": "word "})
        self.assertIn(" held=1", self.send_command(f"USAGE {user}"))
        processes.stop(stopped)
        stopped.stdout.close()
        wait_until(lambda: " held=" not in self.send_command(f"USAGE {user}"), "the stopped message is given back")
        self.assertEqual(self.count(user), 0)
        self.assertEqual(self.ask(port, user, "stopped"), (409, [{"banner": "Please send it as a new message."}]))
        status, lines = self.ask(port, user, "again")
        self.assertEqual((status, list(lines[-1]), self.count(user)), (200, ["banner"], 1))

    def check_away(self, port):
        self.assertEqual(self.ask(port, new_user(), "message-1"), (503, [{"banner": ASKED_TO_WAIT}]))


class Python(ChatPage):
    PAGE = "docs/start-python.md"
    SERVER = "uvicorn chat:app --port 8000"
    PRINTED_PORT, PATH = "8000", "/messages"

    def setUp(self):
        super().setUp()
        if importlib.util.find_spec("fastapi") is None or importlib.util.find_spec("uvicorn") is None:
            self.skipTest("fastapi is not installed; script/bootstrap --test does it")

    def backend(self, url=None):
        url = url or f"headroom://127.0.0.1:{self.service.port}"
        path = os.pathsep.join([str(ROOT / "clients/python"), os.environ.get("PYTHONPATH", "")])
        arguments = [sys.executable, "-m", *self.SERVER.replace("8000", "{port}").split()]
        return self.start_backend(arguments, HEADROOM_URL=url, PYTHONPATH=path)

    def test_the_page_from_the_program_to_the_refusal(self):
        self.assert_every_block_is_run(["python", "bash"])
        port = self.run_page("python3 -m venv .venv\n. .venv/bin/activate\npip install ../headroom/clients/python fastapi uvicorn\n")
        self.check_other_outcomes(port)

    def test_while_headroom_is_away_nothing_is_asked_of_the_model(self):
        self.check_away(self.backend(f"headroom://127.0.0.1:{processes.free_port()}"))


class NodeAndNext(ChatPage):
    PAGE = "docs/start-node.md"
    SERVER = "node server.js"
    PRINTED_PORT, PATH = "3000", "/api/messages"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.directory / "package.json").write_text('{"type": "module"}')
        (cls.directory / "node_modules").mkdir()
        (cls.directory / "node_modules/headroom-client").symlink_to(ROOT / "clients/node")

    def setUp(self):
        super().setUp()
        if shutil.which("node") is None:
            self.skipTest("node is not installed; script/bootstrap --test installs it on Debian")

    def backend(self, url=None):
        return self.start_backend(self.SERVER.split(), HEADROOM_URL=url or self.service.address, PORT="{port}")

    def test_the_page_from_the_route_to_the_refusal(self):
        self.assert_every_block_is_run(["js", "js", "bash"])
        port = self.run_page("npm init --yes\nnpm pkg set type=module\nnpm install ../headroom/clients/node\n")
        self.check_other_outcomes(port)

    def test_while_headroom_is_away_nothing_is_asked_of_the_model(self):
        self.check_away(self.backend(f"http://127.0.0.1:{processes.free_port()}"))

    def test_the_route_has_the_types_of_the_package(self):
        if shutil.which("tsc") is None:
            self.skipTest("tsc is not installed (node-typescript); script/bootstrap --test installs it on Debian")
        (self.directory / "node.d.ts").write_text(NODE_TYPES)
        check = "tsc --noEmit --allowJs --checkJs --strict --noImplicitAny false --target es2022"
        check += " --module nodenext --moduleResolution nodenext node.d.ts app/api/messages/route.js"
        self.shell(check)
        route = self.directory / "app/api/messages/route.js"
        printed = route.read_text()
        self.addCleanup(route.write_text, printed)
        route.write_text(printed.replace("ttl: 120", 'ttl: "120"'))
        with self.assertRaisesRegex(AssertionError, "not assignable to type 'number'"):
            self.shell(check)


class Http(StartPage):
    """curl; the last commands create a token, so the service is the page's own."""

    PAGE = "docs/start-http.md"

    def test_the_page_from_the_first_message_to_the_one_with_a_token(self):
        self.assert_every_block_is_run([])
        (self.directory / "headroom").symlink_to(settings.binary)
        path = os.pathsep.join([str(self.directory), os.environ["PATH"]])
        users = {}
        texts = [
            [USER.sub(lambda user: users.setdefault(user[0], new_user()), text or "") for text in pair] for pair in self.shell_blocks()
        ]
        # In one shell, as in a reader's terminal: later blocks use what earlier ones define.
        script = "printf '\\f\\n'\n".join(self.with_own_ports(commands) for commands, _ in texts)
        printed = self.shell(script, environment(PATH=path, DATABASE_URL=self.database_url)).split("\f\n")
        self.assertEqual(len(printed), len(texts))
        for text, (commands, output) in zip(printed, texts):
            self.assertRegex(text, f"^{pattern(output)}$", commands)
        self.assertIn('"allowed":false', printed[2])
        self.assertEqual([self.count(user) for user in users.values()], [100, 2])


class Swift(StartPage):
    """Snippets/StartSwift.swift, which every build compiles; DocumentationTests compares it with the page."""

    PAGE = "docs/start-swift.md"
    SHARED = True

    def test_the_program_prints_what_the_page_says(self):
        self.assert_every_block_is_run(["indented", "swift", "indented"], programs=1)
        program = Path(settings.binary).parent / "StartSwift"
        if not program.exists():
            self.skipTest("the snippet is not built; script/build does it")
        (output,) = (block.text for block in blocks(self.PAGE) if block.language == "text")
        self.assertEqual(self.shell(f"{program} 127.0.0.1:{self.service.port}"), output)


class Troubleshooting(Case):
    SHARED = True
    PAGE = "docs/troubleshooting.md"

    def test_the_page_has_a_row_for_each_error_code(self):
        source = (ROOT / "Sources/LineProtocol/Replies/ReplyError.swift").read_text()
        codes = re.findall(r'(?m)^        case `?\w+`? = "([A-Z]+)"$', source)
        self.assertEqual(re.findall(r"(?m)^\| `-([A-Z]+)` \|", (ROOT / self.PAGE).read_text()), codes)
        self.assertIn("UNKNOWN", codes)

    def test_the_first_commands_say_how_the_service_is(self):
        (commands,) = (block.text for block in blocks(self.PAGE))
        directory = Path(processes.directory())
        (directory / "headroom").symlink_to(settings.binary)
        variables = environment(
            PATH=os.pathsep.join([str(directory), os.environ["PATH"]]), HEADROOM_TARGET=f"127.0.0.1:{self.service.port}"
        )
        commands = commands.replace("127.0.0.1:6748", f"127.0.0.1:{self.service.http_port}")
        done = processes.completed(["bash", "-euc", commands], env=variables)
        self.assertRegex(done.stdout, r'(?s)^service .*\ndatabase +up,.*"ready":true')


class Sizing(unittest.TestCase):
    def test_the_worked_example_is_computed_correctly(self):
        page = (ROOT / "docs/sizing.md").read_text()
        rows = re.findall(r"(?m)^\| [^|]+ \| ([\d,.]+(?: [×/] [\d,.]+)+) \| ([\d,.]+) \|$", page)
        self.assertGreaterEqual(len(rows), 8)
        for computation, result in rows:
            first, *rest = computation.replace(",", "").split(" ")
            value = float(first)
            for operator, operand in zip(rest[::2], rest[1::2]):
                value = value * float(operand) if operator == "×" else value / float(operand)
            digits = len(result.partition(".")[2])
            self.assertEqual(f"{value:,.{digits}f}", result, computation)
