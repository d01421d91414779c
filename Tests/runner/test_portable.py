"""Tests of script/lint-portable, and of script/bootstrap where uname says macOS."""

from __future__ import annotations

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINT = ROOT / "script/lint-portable"

GUARDED = """\
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif
/// With SOCK_CLOEXEC, and /proc.
func wait() {
    #if os(Linux)
    let descriptor = eventfd(0, 0)  // as epoll_wait
    let name = "/proc/self/exe"
    #else
    let ends = pipe()
    #endif
    #if !os(Linux)
    return
    #else
    prctl(1)
    #endif
    // macOS has none: nil.
    let text = read("/proc/self/stat"), environment = 1, word = "TCP_KEEPIDLE"
    #if DEBUG
    assert(true)
    #endif
}
"""
PLANTED = {
    "let a = eventfd(0, 0)": "eventfd",
    "let a = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue": "SOCK_CLOEXEC",
    'let a = "/proc/a", b = eventfd(0, 0)': "eventfd",
    "let a = __rlimit_resource_t(1)": "__rlimit_resource_t",
    "var entry = environ": "environ",
    'let a = read("/proc/self/stat")': '"/proc/self/stat"',
    'let a = "/sys/fs/cgroup/memory.max" // of a group': '"/sys/fs/cgroup/memory.max"',
    "send(1, MSG_NOSIGNAL)": "MSG_NOSIGNAL",
    "sched_setaffinity(0)": "sched_setaffinity",
    "let a = SO_PEERCRED": "SO_PEERCRED",
    "import FoundationNetworking": "import FoundationNetworking",
    "#if os(macOS)\nprctl(1)\n#endif": "prctl",
    "#if os(Linux)\n#else\naccept4(1)\n#endif": "accept4",
    "#if DEBUG\npipe2(a)\n#else\n#endif": "pipe2",
    "#if DEBUG\n#else\nmemfd_create(a)\n#endif": "memfd_create",
    "#if os(macOS) || os(Linux)\nsignalfd(1)\n#endif": "signalfd",
    "#if os(Linux) && DEBUG\n#elseif canImport(Darwin)\ntimerfd_create(1)\n#endif": "timerfd_create",
    "#if os(Linux)\n#endif\nepoll_create1(0)": "epoll_create1",
    "#if canImport(Glibc)\nimport Glibc\n#endif": "imports Glibc, but not Darwin",
    "import Glibc": "import Glibc",
    "let a = Glibc.read(1)": "Glibc.read",
    "let a = eventfd(eventfd(0, 0), 0)": "eventfd",
    'let a = read("/proc/self/stat") + read("/proc/self/stat")': '"/proc/self/stat"',
}
TWO = {"let a = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue", 'let a = "/proc/a", b = eventfd(0, 0)'}
"""Lines with two names."""


class Lint(unittest.TestCase):
    def lint(self, text: str) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "Source.swift").write_text(text)
            result = subprocess.run([LINT, folder], capture_output=True, text=True, timeout=600)
        self.assertEqual(result.stderr, "")
        return result.returncode, result.stdout

    def test_it_finds_each_planted_line(self) -> None:
        for text, found in PLANTED.items():
            with self.subTest(text):
                status, output = self.lint("import Foundation\n" + text + "\n")
                self.assertEqual(status, 1)
                self.assertIn(found, output)
                self.assertEqual(len(output.splitlines()), 2 if text in TWO else 1, "each finding once: " + output)
                self.assertRegex(output, r"Source\.swift:\d+: ")

    def test_it_names_the_line_of_an_import_without_darwin(self) -> None:
        _, output = self.lint("let a = 1\n#if canImport(Glibc)\nimport Glibc\n#endif\n")
        self.assertIn("Source.swift:3: imports Glibc", output)

    def test_it_reads_a_file_of_two_folders_once(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "inner").mkdir()
            Path(folder, "inner/Source.swift").write_text("let a = eventfd(0, 0)\n")
            result = subprocess.run([LINT, folder, f"{folder}/inner"], capture_output=True, text=True, timeout=600)
        self.assertEqual(result.stdout.count("eventfd does not exist"), 1, result.stdout)

    def test_it_accepts_what_a_condition_or_a_comment_deals_with(self) -> None:
        self.assertEqual(self.lint(GUARDED), (0, ""))

    def test_it_finds_what_the_bash_of_macos_lacks(self) -> None:
        namespace: dict = {"__name__": "lint", "__file__": str(LINT)}
        exec(compile(LINT.read_text(), LINT, "exec"), namespace)
        for line in ("mapfile -t a < <(b)", "declare -A a", "local -n a=b", "find . -printf '%p'", "echo ${a,,}", "sort -V", "stat -c %s a",
                     "realpath -m a", "flock 9", "a |& b", "sed -i s/a/b/ c", "wait -n"):  # fmt: skip
            with self.subTest(line):
                self.assertEqual([number for number, _ in namespace["findings_in_script"](f"a\n{line}\n")], [2])
                self.assertEqual(list(namespace["findings_in_script"](f"{line} # Linux\n# {line}\n")), [])


class Bootstrap(unittest.TestCase):
    """script/bootstrap with stand-ins for what a Mac has."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.program("uname", "echo Darwin")
        self.program("swift", "echo 'swift-driver version: 1.127'; echo 'Apple Swift version 6.2.1 (swiftlang-6.2.1.4 clang-1700.4)'")
        self.program("brew", f"if [[ $1 == --prefix ]]; then echo {self.folder}/brew; else echo \"brew $*\"; fi")

    def program(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def bootstrap(self, *flags: str) -> tuple[int, str]:
        # Without the directories of this machine's PostgreSQL.
        environment = {**os.environ, "PATH": f"{self.folder}/bin:/usr/bin:/bin"}
        environment.pop("HEADROOM_POSTGRES_BIN", None)
        result = subprocess.run(
            [ROOT / "script/bootstrap", *flags], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=environment, timeout=600,
        )  # fmt: skip
        return result.returncode, result.stdout

    def test_it_installs_both_formulas_once(self) -> None:
        status, output = self.bootstrap()
        self.assertEqual((status, output.splitlines()[0]), (0, "bootstrap: installing libpq"))
        self.assertIn("brew install --quiet libpq\n", output)
        self.assertIn("brew install --quiet postgresql@16\n", output)
        for path in ("libpq/lib/pkgconfig/libpq.pc", "postgresql@17/bin/initdb", "postgresql@17/bin/postgres"):
            file = self.folder / "brew/opt" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("")
            file.chmod(0o755)
        self.assertEqual(self.bootstrap(), (0, ""))

    def test_it_says_what_is_missing(self) -> None:
        self.program("brew", f"if [[ $1 == --prefix ]]; then echo {self.folder}/brew; else exit 1; fi")
        self.assertEqual(self.bootstrap(), (1, "bootstrap: installing libpq\nbootstrap: brew could not install libpq\n"))
        (self.folder / "bin/brew").unlink()
        status, output = self.bootstrap()
        self.assertEqual(status, 1)
        self.assertIn("there is no Homebrew in PATH", output)
        for version, status in (("6.1.9", 1), ("5.10", 1), ("6.10", 1), ("10.0", 1)):
            self.program("swift", f"echo 'Apple Swift version {version} (swiftlang)'")
            found, output = self.bootstrap()
            self.assertEqual(found, status)
            is_too_old = version in ("6.1.9", "5.10")
            self.assertEqual(f"swift is {version}" in output, is_too_old, version)

    def test_flags_for_linux_are_refused(self) -> None:
        for flag in ("--test", "--lint", "--bench", "--microbench", "--cluster"):
            status, output = self.bootstrap(flag)
            self.assertEqual(status, 2)
            self.assertIn(f"{flag} is for Linux", output)


if __name__ == "__main__":
    unittest.main()
