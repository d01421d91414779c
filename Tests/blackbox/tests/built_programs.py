"""script/server and script/demo run a program that is built already: that of HEADROOM_BINARY, or of a release in dist/. Whoever changes
a source runs what is built of it. The archives and the clone are made here, and the compiler is a stub that fails, so nothing is built."""

import hashlib
import io
import os
import platform
import re
import shutil
import signal
import subprocess
import tarfile
import unittest
from pathlib import Path

from support import clones, processes, settings
from support.printed import ROOT
from support.service import environment
from support.waiting import wait_until

VERSION = re.search(r'current = "(.*)"', Path(ROOT, "Sources/Engine/Schema/Version.swift").read_text())[1]
USER = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
SYSTEM = f"linux-{platform.machine()}"
ARCHIVE = f"headroom-{VERSION}-{SYSTEM}.tar.gz"
CHAT = f"chat-backend-{VERSION}-{SYSTEM}.tar.gz"


class BuiltPrograms(unittest.TestCase):
    def setUp(self):
        self.clone = clones.make()
        self.dist = self.clone / "dist"
        self.dist.mkdir()
        (self.clone / "README.md").write_text("A page.\n")
        self.git("init", "--quiet")
        self.commit = self.committed()
        self.stubs = Path(processes.directory(0o755))
        self.write(self.stubs / "swift", f"#!/bin/sh\necho called >> {self.stubs}/calls\nexit 1\n")
        self.environment = environment(PATH=f"{self.stubs}{os.pathsep}{os.environ['PATH']}")

    def git(self, *arguments):
        own = ["git", "-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgSign=false"]
        return processes.completed([*own, *arguments], cwd=self.clone, check=True).stdout.strip()

    def committed(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "A change")
        return self.git("rev-parse", "--short=12", "HEAD")

    def write(self, path, text, mode=0o755):
        path.write_text(text)
        path.chmod(mode)
        return path

    def program(self, version=None):
        """A program that says this, and otherwise does what the tests' build does."""
        version = version or f"{VERSION} ({self.commit})"
        return f'#!/bin/sh\nif [ "$1" = --version ]; then echo "{version}"; else exec "{settings.binary}" "$@"; fi\n'

    def pack(self, archive, program):
        product, folder = archive.split(f"-{VERSION}")[0], archive.removesuffix(".tar.gz")
        with tarfile.open(self.dist / archive, "w:gz") as file:
            member = tarfile.TarInfo(f"{folder}/bin/{product}")
            member.size, member.mode = len(program), 0o755
            file.addfile(member, io.BytesIO(program.encode()))
        self.sum()

    def sum(self):
        digests = [(hashlib.sha256(path.read_bytes()).hexdigest(), path.name) for path in sorted(self.dist.glob("*.tar.gz"))]
        (self.dist / "SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for digest, name in digests))

    def find(self, *arguments, **variables):
        """Runs script/program; its status, the path that it prints, and its line on standard error."""
        done = processes.completed([self.clone / "script/program", *arguments], cwd=self.clone, env={**self.environment, **variables})
        (line,) = done.stderr.splitlines()
        self.assertTrue(line.startswith("program: "), line)
        return done.returncode, done.stdout.strip(), line.removeprefix("program: ")

    def assert_refused(self, pattern, **variables):
        status, path, line = self.find(**variables)
        self.assertEqual((status, path), (1, ""), line)
        self.assertRegex(line, pattern)

    def assert_built(self, reason, *arguments):
        status, path, line = self.find(*arguments)
        self.assertEqual((status, path, line), (0, "", f"built here, because {reason}"))

    def assert_released(self, *arguments):
        status, path, line = self.find(*arguments)
        self.assertEqual((status, line), (0, f"dist/{ARCHIVE}, which has the sources of this checkout (commit {self.commit})"))
        self.assertRegex(path, rf"^{re.escape(str(self.clone))}/\.build/programs/[0-9a-f]{{16}}/bin/headroom$")
        return Path(path)

    def assert_serves(self, line, **variables):
        """script/server gets ready, prints the line, and script/headroom gets an answer."""
        log, output = self.clone / "log", self.clone / "output"
        with open(output, "w") as out, open(log, "w") as errors:
            server = processes.start(
                [self.clone / "script/server", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"], cwd=self.clone, stdout=out,
                stderr=errors, stdin=subprocess.DEVNULL, env={**self.environment, **variables},
            )  # fmt: skip
        self.addCleanup(processes.stop, server)
        wait_until(lambda: "ready " in output.read_text() or server.poll() is not None, lambda: "it serves: " + log.read_text())
        ready = re.match(r"ready listen=(\S+) http=\S+\n", output.read_text())
        self.assertTrue(ready, log.read_text())
        self.assertEqual(log.read_text().splitlines()[0], f"program: {line}")
        asked = processes.completed(
            [self.clone / "script/headroom", "ask", "--target", ready[1], f"CONSUME {USER}"], cwd=self.clone, env=self.environment
        )
        self.assertTrue(asked.stdout.startswith(f"+ALLOWED user={USER} "), asked.stderr)
        self.assertEqual(processes.stop(server, stop_signal=signal.SIGINT), 0, log.read_text())
        self.assertFalse((self.stubs / "calls").exists(), "nothing asks for Swift")

    def test_the_server_runs_a_release_or_the_named_program_without_swift(self):
        self.pack(ARCHIVE, self.program())
        self.assert_serves(f"dist/{ARCHIVE}, which has the sources of this checkout (commit {self.commit})")
        path = self.write(self.clone / "a program", self.program())
        self.assert_serves("HEADROOM_BINARY=./a program", HEADROOM_BINARY="./a program")
        self.assertEqual(self.find(HEADROOM_BINARY=str(path)), (0, str(path), f"HEADROOM_BINARY={path}"))

    def test_a_changed_source_is_built(self):
        """Also if the archive is right, and the change is committed, or in a new file. A page is no source."""
        self.pack(ARCHIVE, self.program())
        (self.clone / "README.md").write_text("Another page.\n")
        self.committed()
        self.assert_released()
        source, new = self.clone / "Package.swift", self.clone / "sql/new.sql"
        text = source.read_text()
        reason = f"dist/{ARCHIVE} is of other sources: {{}} is not as in its commit {self.commit}"
        source.write_text(text + "// A change.\n")
        self.assert_built(reason.format("Package.swift"))
        self.committed()
        self.assert_built(reason.format("Package.swift"))
        source.write_text(text)
        self.assert_released()
        new.write_text("select 1;\n")
        self.assert_built(reason.format("sql/new.sql"))
        server = processes.completed([self.clone / "script/server"], env=self.environment)
        self.assertEqual((server.returncode, (self.stubs / "calls").read_text()), (1, "called\n"), server.stderr)
        named = str(self.write(self.clone / "named", self.program()))
        line = f"HEADROOM_BINARY={named}, though sql/new.sql is not as in its commit {self.commit}"
        self.assertEqual(self.find(HEADROOM_BINARY=named), (0, named, line))

    def test_a_program_of_unknown_sources_is_built(self):
        self.assert_built(f"dist/ has no {ARCHIVE}")
        self.pack(ARCHIVE, self.program(VERSION))
        self.assert_built(f"dist/{ARCHIVE} is of other sources: it does not say of which commit it is")
        self.pack(ARCHIVE, self.program(f"{VERSION} ({self.commit}-changed)"))
        self.assert_built(f"dist/{ARCHIVE} is of other sources: its commit {self.commit}-changed is not in this clone")
        shutil.rmtree(self.clone / ".git")
        self.pack(ARCHIVE, self.program())
        _, path, line = self.find()
        self.assertEqual(path, "")
        self.assertRegex(line, rf"its commit {self.commit} is not in this clone \(fatal: not a git repository")

    def test_an_archive_without_its_sum_or_version_is_never_run(self):
        ran = self.clone / "ran"
        self.pack(ARCHIVE, f"#!/bin/sh\ntouch {ran}\necho '{VERSION} ({self.commit})'\n")
        sums = self.dist / "SHA256SUMS"
        sums.write_text("")
        self.assert_refused(rf"^dist/{ARCHIVE} has no sum in dist/SHA256SUMS; get it again with SHA256SUMS, or remove it$")
        sums.unlink()
        self.assert_refused(r"has no sum in dist/SHA256SUMS")
        sums.write_text(f"{'0' * 64}  {ARCHIVE}\n")
        self.assert_refused(rf"^dist/{ARCHIVE} has another sum than in dist/SHA256SUMS; get it again")
        self.assertFalse(ran.exists() or (self.clone / ".build/programs").exists(), "it is not even unpacked")
        self.sum()
        self.assert_released()
        self.assertTrue(ran.exists())
        self.pack(ARCHIVE, self.program("0.0.1 (abcdef)"))
        self.assert_refused(rf"^dist/{ARCHIVE} is version 0\.0\.1, and this checkout is {re.escape(VERSION)}; get it again")

    def test_an_archive_is_unpacked_once_and_again_when_it_changes(self):
        unpacked = self.stubs / "unpacked"
        self.write(self.stubs / "tar", f'#!/bin/sh\necho called >> {unpacked}\nexec {shutil.which("tar")} "$@"\n')
        self.pack(ARCHIVE, self.program())
        first = self.assert_released()
        self.assertEqual((self.assert_released(), unpacked.read_text()), (first, "called\n"))
        self.pack(ARCHIVE, self.program() + "# Another one.\n")
        second = self.assert_released()
        self.assertEqual(second.read_text(), self.program() + "# Another one.\n")
        self.assertFalse(first.exists(), "the older one is removed")
        self.assertEqual([path.name for path in (self.clone / ".build").iterdir()], ["programs"])

    def test_the_demo_also_needs_the_chat_of_the_release(self):
        self.pack(ARCHIVE, self.program())
        self.assert_built(f"dist/ has no {CHAT}", "chat-backend")
        self.pack(CHAT, "#!/bin/sh\n")
        path = self.assert_released("chat-backend")
        self.assertTrue(os.access(path.parent / "chat-backend", os.X_OK))
        self.assertEqual(self.assert_released(), path, "both scripts use one folder")
        named = str(self.write(self.clone / "named", self.program()))
        status, _, line = self.find("chat-backend", HEADROOM_BINARY=named)
        self.assertEqual((status, line.split("; ")[0]), (1, f"HEADROOM_BINARY={named} has no chat-backend beside it"))

    def test_a_named_program_that_cannot_run_here_is_an_error(self):
        path = self.clone / "named"
        cure = "; .*unset HEADROOM_BINARY"
        self.assert_refused(f"^HEADROOM_BINARY={path} is no file{cure}", HEADROOM_BINARY=str(path))
        self.write(path, self.program(), 0o644)
        self.assert_refused(r"named is not executable; make it so with chmod \+x, or name another one", HEADROOM_BINARY=str(path))
        self.write(path, self.program("99.0.0 (abcdef)"))
        expected = rf"is version 99\.0\.0, and this checkout is {re.escape(VERSION)}{cure}"
        self.assert_refused(expected, HEADROOM_BINARY=str(path))
        # The header names no machine, or a library that is nowhere.
        program = Path("/bin/true").resolve().read_bytes()
        path.write_bytes(program[:18] + b"\xff\xff" + program[20:])
        self.assert_refused(rf"does not run on this machine \(\w+ \w+\){cure}: .*Exec format error", HEADROOM_BINARY=str(path))
        path.write_bytes(program.replace(b"libc.so.6", b"libn.so.6"))
        self.assert_refused(rf"does not run on this machine.*{cure}: .*libn\.so\.6", HEADROOM_BINARY=str(path))

    def test_on_macos_neither_swift_nor_a_build_is_needed(self):
        self.write(self.stubs / "uname", "#!/bin/sh\necho Darwin\n")
        self.write(self.stubs / "brew", f'#!/bin/sh\nif [ "$1" = --prefix ]; then echo {self.stubs}; fi\n')
        named = str(self.write(self.clone / "named", self.program()))
        done = processes.completed([self.clone / "script/program"], env={**self.environment, "HEADROOM_BINARY": named})
        self.assertEqual((done.returncode, done.stdout), (0, named + "\n"), done.stderr)
        self.assertIn("bootstrap: installing libpq", done.stderr, "with the stub of brew")
        self.assertFalse((self.stubs / "calls").exists())
