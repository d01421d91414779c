"""The command line: pipes, suggestions, terminals, completion, error messages."""

import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import unittest

from support import processes, settings
from support.case import Case
from support.printed import blocks
from support.service import environment
from support.waiting import TIMEOUT_SECONDS, wait_until
from support.wire import LineConnection

USER = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"


def run(*arguments, **options):
    """Runs a command with only the settings in `env`."""
    variables = options.pop("env", {})
    options = {"capture_output": True, "cwd": "/", **options}
    return subprocess.run(
        [settings.binary, *arguments], text=True, timeout=TIMEOUT_SECONDS, env=environment(**variables), stdin=subprocess.DEVNULL, **options
    )


class Pipes(Case):
    # The tests create tokens. With the default `auto`, every command would then need one.
    FLAGS = ("--authentication", "off")

    def commands(self):
        target, database = ("--target", f"127.0.0.1:{self.service.port}"), ("--database-url", self.database_url)
        for name in ("status", "report", "top"):
            yield (name, *target)
            yield (name, "--json", *target)
        yield from [("top", "--once", *target), ("user", self.user(), *target), ("ping", target[1]), ("roles",)]
        yield ("bench", *target, "--requests", "1", "--warmup", "0", "--verb", "check", "--quiet", "--connections", "1")
        for words in (("token", "list"), ("token", "create", "piped", "--scope", "chat"), ("product", "list"), ("migrate",),
                      ("migrate", "--status"), ("migrate", "--plan"), ("prune",)):  # fmt: skip
            yield (*words, *database)

    def test_head_ends_top_as_it_ends_other_programs(self):
        for flags in ("", "--json"):
            with self.subTest(flags=flags):
                script = f'"$0" top {flags} --target 127.0.0.1:{self.service.port} | head -2; echo "${{PIPESTATUS[0]}}"'
                ran = processes.completed(["bash", "-c", script, settings.binary], env=environment())
                lines = ran.stdout.splitlines()
                self.assertEqual((len(lines), lines[-1], ran.stderr), (3, str(128 + signal.SIGPIPE), ""))

    def test_a_closed_reader_ends_every_command_quietly(self):
        for arguments in self.commands():
            with self.subTest(arguments=arguments):
                reader, writer = os.pipe()
                os.close(reader)
                ran = run(*arguments, capture_output=False, stdout=writer, stderr=subprocess.PIPE)
                os.close(writer)
                self.assertEqual(ran.returncode, -signal.SIGPIPE, ran.stderr)
                self.assertRegex(ran.stderr, r"\A(the token was not printed.*\n|token \d.*\n|from now on.*\n)*\Z")

    def test_a_closed_reader_gives_status_1_if_sigpipe_is_ignored(self):
        script = f"""trap '' PIPE; "$0" top --target 127.0.0.1:{self.service.port} | head -1; echo "${{PIPESTATUS[0]}}" """
        ran = processes.completed(["bash", "-c", script, settings.binary], env=environment())
        self.assertEqual((ran.stdout.splitlines()[-1], ran.stderr), ("1", ""))

    def test_a_full_disk_is_reported(self):
        for arguments in self.commands():
            with self.subTest(arguments=arguments), open("/dev/full", "w") as full:
                ran = run(*arguments, capture_output=False, stdout=full, stderr=subprocess.PIPE)
                self.assertEqual(ran.returncode, 1, ran.stderr)
                self.assertRegex(ran.stderr, "(?m)^Error: standard output cannot be written: No space left on device; ")
                if "create" in arguments:
                    self.assertRegex(ran.stderr, r"the token was not printed and cannot be used: headroom token revoke \d+, ")

    def test_a_service_continues_without_a_reader_of_its_log(self):
        port = processes.free_port()
        reader, writer = os.pipe()
        os.close(reader)
        service = processes.start(
            [settings.binary, "serve", "--listen", f"127.0.0.1:{port}", "--http", "off", "--authentication", "off",
             "--log-level", "trace"],
            stdin=subprocess.DEVNULL, stdout=writer, stderr=writer, cwd="/", env=environment(DATABASE_URL=self.database_url),
        )  # fmt: skip
        os.close(writer)

        def answers():
            self.assertIsNone(service.poll())
            try:
                with LineConnection(port) as connection:
                    return connection.send_command("PING") == "+PONG"
            except OSError:
                return False

        wait_until(answers, "it serves")
        self.assertEqual(processes.stop(service), 0)


class Suggestions(unittest.TestCase):
    def test_a_mistyped_command_gets_a_suggestion(self):
        for words, meant in (
            (["statsu"], "headroom status"), (["reprot"], "headroom report"), (["token", "lst"], "headroom token list"),
            (["events", "reply"], "headroom events replay"), (["mig"], "headroom migrate"),
        ):  # fmt: skip
            with self.subTest(words=words):
                ran = run(*words)
                self.assertEqual((ran.returncode, ran.stdout), (64, ""))
                above = " ".join(["headroom", *words[:-1]])
                self.assertEqual(
                    ran.stderr,
                    f"Error: unknown command {above} {words[-1]}; did you mean {meant}? {above} --help lists the commands\n",
                )

    def test_an_unknown_command_gets_no_suggestion(self):
        for word in ("consume", USER, "\x1b[2Jx"):
            ran = run(word)
            self.assertEqual(ran.returncode, 64)
            self.assertNotIn("mean", ran.stderr)
            self.assertNotIn("\x1b", ran.stderr)
            self.assertIn("headroom --help lists the commands", ran.stderr)

    def test_help_works_at_every_level(self):
        for arguments in (["--help"], ["help"], ["help", "status"], ["status", "--help"], ["token", "--help"], ["help", "token"]):
            with self.subTest(arguments=arguments):
                ran = run(*arguments)
                self.assertEqual((ran.returncode, ran.stderr), (0, ""))
                self.assertIn("USAGE: headroom", ran.stdout)


def on_terminal(columns, *arguments, **variables):
    """The lines that a command prints on a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = processes.start(
        [settings.binary, *arguments], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE, env=environment(**variables)
    )
    os.close(theirs)
    seen = b""
    # Reading fails once the last writer has closed the terminal.
    with contextlib.suppress(OSError):
        while chunk := os.read(ours, 65_536):
            seen += chunk
    os.close(ours)
    _, errors = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 0, errors
    return seen.decode().replace("\r\n", "\n").splitlines()


class Screen:
    """`headroom top` on a terminal of a given size."""

    def __init__(self, port, columns, rows=40, **variables):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = processes.start(
            [settings.binary, "top", "--target", f"127.0.0.1:{port}"],
            stdin=theirs, stdout=theirs, stderr=theirs, env=environment(**variables), start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self.seen = ""

    def read(self):
        while select.select([self.ours], [], [], 0)[0]:
            try:
                self.seen += os.read(self.ours, 65_536).decode(errors="replace")
            except OSError:
                break
        return self.seen

    def pictures(self):
        """The complete screens, as they were drawn."""
        return [part.split("\x1b[J")[0] for part in self.read().split("\x1b[H")[1:] if "\x1b[J" in part]

    def close(self, end=b"q"):
        os.write(self.ours, end)
        status = self.process.wait(TIMEOUT_SECONDS)
        self.read()
        os.close(self.ours)
        return status


class Terminals(Case):
    def setUp(self):
        super().setUp()
        self.blocked = self.subscriber("paid", used=800)

    def picture(self, columns, **variables):
        """A screen with the busiest user, without line ends."""
        screen = Screen(self.service.port, columns, **variables)
        found = wait_until(
            lambda: [picture for picture in screen.pictures() if self.blocked[:8] in picture], "a picture with the busiest user"
        )
        self.assertEqual(screen.close(), 0)
        return [line.removesuffix("\x1b[K") for line in re.split("\r+\n", found[-1])]

    def test_eighty_columns_show_everything_and_lines_fit_fewer_columns(self):
        for columns in (120, 80, 60, 40):
            with self.subTest(columns=columns):
                lines = [re.sub(r"\x1b\[\d*m", "", line) for line in self.picture(columns, TERM="xterm")]
                self.assertLessEqual(max(map(len, lines)), columns)
                self.assertEqual(lines[-1].strip(), "q quits")
                text = " ".join(lines)
                for words in ("connections", "waiting", "since start", "prominent", "errors", self.blocked[:8], "blocked"):
                    self.assertIn(words, text)
                if columns >= 80:
                    self.assertIn(self.blocked, text)
                    self.assertTrue(any(line.startswith("tier") and "outcome" in line for line in lines))

    def test_commands_wrap_their_lines_to_the_terminal(self):
        self.psql.run("set headroom.reason = 'the outage of the night before, ticket 4711'")
        self.psql.run(f"select reset_usage('{self.blocked}')")
        target, database = ["--target", f"127.0.0.1:{self.service.port}"], {"DATABASE_URL": self.database_url}
        for arguments in (["status", *target], ["user", self.blocked, *target], ["audit", self.blocked]):
            with self.subTest(arguments=arguments):
                # Except in a pipe, where programs read lines.
                whole = run(*arguments, env=database).stdout
                self.assertGreater(max(map(len, whole.splitlines())), 60)
                for columns in (60, 120):
                    lines = on_terminal(columns, *arguments, **database)
                    self.assertLessEqual(max(map(len, lines)), columns)
                    for word in set(re.findall(r"[a-z_]{4,}", whole)) - {"detail"}:
                        self.assertIn(word, "\n".join(lines))

    def test_colours_are_shown_unless_they_are_disabled(self):
        coloured = self.picture(100, TERM="xterm-256color")
        self.assertTrue(any(line.startswith(f"\x1b[31m{self.blocked}") and line.endswith("\x1b[0m") for line in coloured), coloured)
        self.assertIn("\x1b[2mq quits\x1b[0m", coloured)
        plain = "".join(self.picture(100, TERM="xterm-256color", NO_COLOR="1"))
        self.assertNotIn("\x1b", plain)
        self.assertIn("\x1b[31m", "".join(self.picture(100, TERM="xterm", NO_COLOR="")), "an empty NO_COLOR is none")

    def test_a_dumb_terminal_is_not_drawn_on(self):
        screen = Screen(self.service.port, 100, TERM="dumb")
        wait_until(lambda: screen.read().count("\n") >= 3, "a header and two lines")
        screen.process.send_signal(signal.SIGINT)
        self.assertEqual(screen.process.wait(TIMEOUT_SECONDS), 0)
        os.close(screen.ours)
        self.assertNotIn("\x1b", screen.seen)
        self.assertRegex(screen.seen, r"time +a second")


class Targets(Case):
    SHARED = True

    def test_headroom_target_applies_to_reading_commands_and_not_to_bench(self):
        named = {"HEADROOM_TARGET": f"127.0.0.1:{self.service.port}"}
        for arguments in (["status"], ["report"], ["top", "--once"], ["ping"], ["user", self.user()]):
            with self.subTest(arguments=arguments):
                ran = run(*arguments, env=named)
                self.assertIn(ran.returncode, (0, 1))
                self.assertNotIn("cannot be reached", ran.stderr)
        other = f"127.0.0.1:{processes.free_port()}"
        ran = run("status", "--target", other, env=named)
        self.assertEqual(ran.returncode, 69)
        self.assertIn(other, ran.stderr)
        self.assertIn("127.0.0.1:6747", run("bench", "--help", env=named).stdout)
        for arguments in (["status"], ["ping"]):
            ran = run(*arguments, env={"HEADROOM_TARGET": "nowhere"})
            self.assertEqual(ran.returncode, 64)
            self.assertIn("HEADROOM_TARGET", ran.stderr)


class ErrorMessages(unittest.TestCase):
    """Each names the address, setting or file, and what to do; none has a framework's text."""

    RAW = re.compile(r"errno|error set|NIO|SocketAddressError|IOError|Domain=|bind\(|couldn.t be completed|could not be completed")

    def check(self, status, words, *arguments, **variables):
        with self.subTest(arguments=arguments, variables=variables):
            ran = run(*arguments, env=variables)
            self.assertEqual((ran.returncode, ran.stdout), (status, ""), ran.stderr)
            for word in words:
                self.assertIn(word, ran.stderr)
            self.assertNotRegex(ran.stderr, self.RAW)
            self.assertNotIn("swordfish", ran.stderr)

    def test_a_service_that_is_down_or_whose_host_is_unknown_is_reported(self):
        unused = f"127.0.0.1:{processes.free_port()}"
        alternatives = ("headroom serve", "--target", "HEADROOM_TARGET")
        for arguments in (["status"], ["user", USER], ["report"], ["top"], ["top", "--once"]):
            self.check(69, (f"the service at {unused} ", "nothing listens there", *alternatives), *arguments, "--target", unused)
        unknown = ("the service at nosuch.invalid:6747 ", "the host name cannot be resolved", *alternatives)
        self.check(69, unknown, "status", "--target", "nosuch.invalid:6747")
        self.check(1, (f"the service at {unused} ", "nothing listens there", *alternatives), "ping", unused)
        self.check(1, unknown, "ping", "nosuch.invalid:6747")
        self.check(1, (f"{unused}: ", "nothing listens there", "--target"), "bench", "--quiet", "--target", unused)
        self.check(
            1, ("nosuch.invalid:6747: ", "the host name cannot be resolved", "--target"), "bench", "--quiet", "--target",
            "nosuch.invalid:6747",
        )  # fmt: skip

    def test_a_database_that_is_down_or_wrong_is_reported(self):
        for name, url in (
            ("refused", "postgres://x:swordfish@127.0.0.1:1/y"), ("socket", "host=/nowhere dbname=x"),
            ("name", "host=nosuch.invalid password=swordfish dbname=x"), ("syntax", "host=x password=swordfish nosuch=1"),
        ):  # fmt: skip
            for arguments in (["audit", USER], ["token", "list"], ["product", "list"], ["events", "list"], ["migrate"], ["prune"]):
                with self.subTest(name=name):
                    self.check(69, ("the database cannot be reached: ", "--database-url", "DATABASE_URL"), *arguments, DATABASE_URL=url)

    def test_an_unusable_data_directory_is_reported(self):
        directory = processes.directory()
        with open(directory + "/file", "w"):
            pass
        for path in (directory + "/file", directory + "/file/below", "/proc/x"):
            self.check(1, (path, "data-dir"), "serve", "--data-dir", path, "--listen", "127.0.0.1:0", "--http", "off")
        self.check(1, ("data-dir", "without quotes"), "serve", "--data-dir", '/tmp/"x', "--listen", "127.0.0.1:0", "--http", "off")

    def test_unreadable_files_are_reported(self):
        for arguments, words in (
            (["status", "--token-file", "/nope/token"], ("/nope/token", "token file", "--token-file")),
            (["status", "--tls-ca", "/nope/ca.pem"], ("/nope/ca.pem", "No such file")),
            (["status", "--tls-certificate", "/nope/c.pem", "--tls-key", "/nope/k.pem"], ("/nope/c.pem", "No such file")),
            (["bench", "--quiet", "--token-file", "/nope/token"], ("/nope/token", "--token-file")),
        ):  # fmt: skip
            self.check(64, words, *arguments)
        serve = ["serve", "--listen", "127.0.0.1:0", "--http", "off", "--data-dir", processes.directory() + "/data"]
        for flags, words in (
            (["--tls-certificate", "/nope/c.pem", "--tls-key", "/nope/k.pem"], ("/nope/c.pem", "No such file")),
            (["--revenuecat-authorization-file", "/nope/s"], ("/nope/s", "revenuecat-authorization-file")),
            (["--stripe-signing-secret-file", "/nope/s"], ("/nope/s", "stripe-signing-secret-file")),
        ):  # fmt: skip
            self.check(1, words, *serve, *flags)

    def test_a_setting_out_of_range(self):
        for name, value in (("lanes", "swordfish"), ("listen", "swordfish"), ("log-level", "loud"), ("unknown-users", "swordfish")):
            variable = "HEADROOM_" + name.replace("-", "_").upper()
            self.check(64, (name, variable, "must be"), "serve", f"--{name}", value)
            self.check(64, (name, variable, "must be"), "serve", **{variable: value})


class Completion(unittest.TestCase):
    SHELLS = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}
    # The typed words before the Tab key, and the completed last word.
    COMPLETED = (("headroom stat", "status"), ("headroom token cre", "create"), ("headroom status --targ", "--target"))

    def test_there_is_a_script_for_each_shell_that_the_shell_reads(self):
        for shell, check in self.SHELLS.items():
            with self.subTest(shell=shell):
                outcome = run("--generate-completion-script", shell)
                self.assertEqual((outcome.returncode, outcome.stderr), (0, ""))
                self.assertIn("status", outcome.stdout)
                if shutil.which(shell) is None:
                    continue
                path = processes.directory() + "/script"
                with open(path, "w") as file:
                    file.write(outcome.stdout)
                read = processes.completed([*check, path])
                self.assertEqual((read.returncode, read.stderr), (0, ""))

    def test_the_documented_commands_install_the_completion_scripts(self):
        home = processes.directory()
        path = os.pathsep.join([os.path.dirname(settings.binary), os.environ["PATH"]])
        printed = [block for block in blocks("docs/reference/commands.md") if block.heading == "## Completion"]
        self.assertEqual([block.language for block in printed], ["sh"] * len(self.SHELLS))
        for block in printed:
            ran = processes.completed(["bash", "-euo", "pipefail", "-c", block.text], env=environment(HOME=home, PATH=path))
            self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""), block.text)
        for place in (".local/share/bash-completion/completions/headroom", ".zfunc/_headroom", ".config/fish/completions/headroom.fish"):
            with open(f"{home}/{place}") as file:
                self.assertIn("status", file.read())

    def test_bash_completes_commands_and_options(self):
        # As bash calls it for the Tab key.
        script = """
            source <("$0" --generate-completion-script bash)
            COMP_WORDS=("${@}") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
            function_name=$(complete -p headroom | sed -E 's/.* -F ([^ ]+) .*/\\1/')
            "$function_name" headroom "${@: -1}" "${@: -2:1}"
            printf '%s\\n' "${COMPREPLY[@]}"
        """
        for line, offered in self.COMPLETED:
            words = line.split()
            with self.subTest(words=words):
                ran = processes.completed(["bash", "-c", script, settings.binary, *words], env=environment())
                self.assertEqual(ran.stdout.split(), [offered], ran.stderr)

    def place(self, shell, name):
        """A directory with the shell's script, and a PATH with `headroom`."""
        if shutil.which(shell) is None:
            self.skipTest(f"{shell} is not installed; script/bootstrap --test installs it")
        home = processes.directory()
        with open(os.path.join(home, name), "w") as file:
            file.write(run("--generate-completion-script", shell).stdout)
        return home, os.pathsep.join([os.path.dirname(settings.binary), os.environ["PATH"]])

    def test_fish_completes_commands_and_options(self):
        home, path = self.place("fish", "headroom.fish")
        for line, offered in self.COMPLETED:
            with self.subTest(line=line):
                ran = processes.completed(
                    ["fish", "--no-config", "-c", f"source {home}/headroom.fish; complete -C '{line}'"],
                    env=environment(HOME=home, PATH=path),
                )  # fmt: skip
                # A word and its description.
                self.assertEqual([found.split("\t")[0] for found in ran.stdout.split("\n") if found], [offered], ran.stderr)

    def test_zsh_completes_commands_and_options(self):
        home, path = self.place("zsh", "_headroom")
        with open(f"{home}/.zshrc", "w") as file:
            file.write(
                f"fpath=({home} $fpath)\nautoload -U compinit && compinit -u -D\n"
                # zsh completes only in its line editor; Ctrl-T prints its contents.
                'show() { print -r -- "<<$BUFFER>>"; BUFFER=; zle accept-line }\nzle -N show\nbindkey "^T" show\n'
                "PROMPT='ready> '\n"
            )
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        # On a narrow terminal zsh scrolls the edited line, and draws only a part of it.
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
        shell = processes.start(
            ["zsh", "-d", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env=environment(HOME=home, ZDOTDIR=home, PATH=path, TERM="dumb"),
        )  # fmt: skip
        os.close(theirs)
        seen = ""

        def has(text):
            nonlocal seen
            while text not in seen and select.select([ours], [], [], 0)[0]:
                seen += os.read(ours, 65_536).decode(errors="replace")
            return text in seen

        wait_until(lambda: has("ready> "), "zsh's prompt")
        for line, offered in self.COMPLETED:
            with self.subTest(line=line):
                os.write(ours, line.encode() + b"\t\x14")
                completed = " ".join([*line.split()[:-1], offered])
                wait_until(lambda: has("<<") and has(">>"), "what is in the line")
                self.assertEqual(re.search("<<(.*?)>>", seen)[1].rstrip(), completed)
                seen = ""
        os.write(ours, b"exit 0\n")
        self.assertEqual(shell.wait(TIMEOUT_SECONDS), 0)
