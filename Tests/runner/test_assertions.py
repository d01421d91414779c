"""Tests of script/lint-assertions: it finds tests that cannot fail, and nothing in those that can."""

from __future__ import annotations

import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "script/lint-assertions"

BAD_PYTHON = """\
class A:
    def test_nothing(self):
        self.calls(1)
    def test_something(self):
        self.assertEqual(reply[:1], "-BADARG")
        self.assertTrue(len(reply), 3)
        self.assertIn("", reply)
        self.assertEqual(reply, reply)
        self.assertGreaterEqual(len(reply), 0)
        self.assertTrue((reply, 3))
        assert reply.startswith("")
        assert reply[2:4] == "abc"
"""
GOOD_PYTHON = """\
class B:
    def check(self):
        self.assertEqual(1, self.one)
    def test_something(self):
        self.check()
        self.assertEqual(reply[:1], "-")
        self.assertEqual(reply[0], "-BADARG")
        self.assertTrue(reply, "a reply")
        self.assertEqual(next(replies), next(replies))
        self.assertGreaterEqual(len(reply), 1)
"""
BAD_SWIFT = """\
    @Test("nothing")
    func nothing() throws {
        print("{}")
    }

    @Test("something", arguments: [1])
    func something(x: Int) throws {
        #expect(true)
        #expect(x == x)
        #expect(list.count >= 0)
        #expect(text.hasPrefix(""))
    }
"""
GOOD_SWIFT = """\
    @Test("something")
    func something() throws {
        func inner() {}
        try check(inner)
    }

    private func check(_ x: Int) {
        #expect(x == y && list.count >= 1 && text.hasPrefix("a"))
    }
"""


class Assertions(unittest.TestCase):
    def findings(self, python: str, swift: str) -> tuple[int, list[str]]:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "a.py").write_text(python, encoding="utf-8")
            (Path(folder) / "b.swift").write_text(swift, encoding="utf-8")
            ran = subprocess.run(["python3", SCRIPT, folder], capture_output=True, text=True)
        return ran.returncode, [line.split("/")[-1].rsplit(":", 1)[0] for line in ran.stdout.splitlines()]

    def test_every_assertion_that_cannot_fail_is_found(self) -> None:
        python = [f"a.py:{line}" for line in (2, 5, 6, 7, 8, 9, 10, 11, 12)]
        swift = [f"b.swift:{line}" for line in (2, 8, 9, 10, 11)]
        self.assertEqual(self.findings(BAD_PYTHON, BAD_SWIFT), (1, python + swift))

    def test_assertions_that_can_fail_are_not_found(self) -> None:
        self.assertEqual(self.findings(GOOD_PYTHON, GOOD_SWIFT), (0, []))
