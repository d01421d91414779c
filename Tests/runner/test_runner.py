"""Tests of the runner: every kind of failure is counted and shown."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import unittest
from typing import Any
from unittest import mock

from runner import worker
from runner.python_tests import Schedule, report_missing
from runner.results import Report, Result
from runner.swift_tests import EventReader
from runner.worker import Recorder
from support import processes
from support.nightly import nightly


def quietly(action: Any) -> tuple[Any, str]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        return action(), out.getvalue()


class Counting(unittest.TestCase):
    def report(self, *results: Result) -> Report:
        report = Report()
        for result in results:
            quietly(lambda result=result: report.add(result))
        return report

    def test_the_last_line_counts_and_the_status_says_whether_all_passed(self):
        passed = Result(part="Swift", group="A", name="one", seconds=1)
        failed = Result(part="Swift", group="A", name="two", seconds=1, failure="expected 3")
        skipped = Result(part="Python", group="B", name="three", seconds=0, is_skipped=True)
        for results, line, status in (
            ([passed], "1 passed, 0 failed", 0),
            ([passed, skipped], "1 passed, 0 failed", 0),
            ([passed, failed], "1 passed, 1 failed", 1),
            ([skipped], "0 passed, 1 failed", 1),
            ([], "0 passed, 1 failed", 1),
        ):
            found, output = quietly(self.report(*results).finish)
            self.assertEqual((output.splitlines()[-1], found), (line, status))

    def test_a_failure_is_shown_in_full_and_named_again_at_the_end(self):
        report = Report()
        _, shown = quietly(lambda: report.add(Result(part="Python", group="B", name="two", seconds=1, failure="expected 3\ngot 4")))
        self.assertIn("expected 3\ngot 4", shown)
        self.assertIn("failed: Python: B: two", quietly(report.finish)[1])

    def test_the_slowest_classes_come_first(self):
        report = self.report(*(Result(part="Swift", group=f"C{number}", name="t", seconds=number) for number in range(12)))
        _, output = quietly(report.print_slowest)
        rows = [line for line in output.splitlines() if line.startswith("| Swift")]
        self.assertEqual((len(rows), rows[0]), (10, "| Swift: C11 | 1 | 11.0 |"))


class SwiftEvents(unittest.TestCase):
    def setUp(self):
        self.report = Report()
        self.reader = EventReader(self.report, jobs=2)
        for name in ("first", "second", "third", "fourth"):
            self.read(
                "test", id=f"M.Suite/{name}()/F.swift:1:1", kind="function", name=f"{name}()", displayName=name,
                isParameterized=name in ("first", "second"),
            )  # fmt: skip

    def read(self, record: str, **payload: Any) -> None:
        self.reader.read(json.dumps({"kind": record, "payload": payload, "version": 0}))

    def event(self, kind: str, name: str, at: float = 0, **more: Any) -> None:
        test = f"M.Suite/{name}()/F.swift:1:1"
        self.read("event", kind=kind, testID=test, instant={"absolute": at}, messages=[{"text": "Expectation failed"}], **more)

    def run_test(self, name: str, *issues: dict[str, Any]) -> None:
        self.event("testStarted", name)
        for at in (1, 3):
            self.event("testCaseStarted", name, at)
            self.event("testCaseEnded", name, at + 1)
        for issue in issues:
            self.event("issueRecorded", name, issue=issue)
        self.event("testEnded", name)

    def finish(self, status: int = 0) -> list[Result]:
        quietly(lambda: self.reader.finish(status))
        return self.report.results

    def test_a_test_is_one_result_however_many_cases_it_has(self):
        self.run_test("first")
        self.read("event", kind="runEnded", instant={"absolute": 9}, messages=[])
        self.assertEqual(self.finish(), [Result(part="Swift", group="M.Suite", name="first", seconds=2)])

    def test_a_test_without_arguments_takes_as_long_as_it_ran_not_as_long_as_it_waited(self):
        self.event("testStarted", "first", 0)
        self.event("testCaseStarted", "first", 0)
        self.event("testStarted", "third", 0)
        self.event("testStarted", "fourth", 0)
        self.event("testStarted", "second", 0)
        self.event("testEnded", "third", 5)
        # A slot was free at 5, and this case came before the fourth in the queue.
        self.event("testCaseStarted", "second", 5.1)
        self.event("testCaseEnded", "second", 7)
        self.event("testEnded", "second", 7)
        self.event("testEnded", "fourth", 10)
        self.event("testCaseEnded", "first", 10)
        self.event("testEnded", "first", 10)
        seconds = {result.name: round(result.seconds, 3) for result in self.report.results}
        self.assertEqual(seconds, {"third": 5, "second": 1.9, "fourth": 3, "first": 10})

    def test_its_issues_fail_it_unless_they_are_known(self):
        place = {"fileID": "M/F.swift", "line": 7}
        quietly(lambda: self.run_test("first", {"isKnown": False, "sourceLocation": place}))
        self.run_test("second", {"isKnown": True, "sourceLocation": place})
        self.read("event", kind="runEnded", instant={"absolute": 9}, messages=[])
        first, second = self.finish(1)
        self.assertEqual((first.failure, second.failure), ("M/F.swift:7: Expectation failed", None))

    def test_a_process_that_dies_is_a_failure_that_names_what_ran(self):
        self.run_test("first")
        self.event("testStarted", "second")
        died = self.finish(-4)[-1]
        self.assertIn("status -4", died.failure)
        self.assertIn("second", died.failure)
        self.assertNotIn("first", died.failure)

    def test_a_bad_status_without_a_failed_test_is_a_failure(self):
        self.read("event", kind="runEnded", instant={"absolute": 9}, messages=[])
        self.assertIn("status 1", self.finish(1)[0].failure)


class Examples(unittest.TestCase):
    """Instantiated by `Recording`; never run by themselves."""

    def passes(self):
        pass

    def fails_twice(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertEqual(number, 1)

    def raises(self):
        raise OSError("no such thing")

    def takes_too_long(self):
        self.assertGreater(signal.getitimer(signal.ITIMER_REAL)[0], 0)
        signal.raise_signal(signal.SIGALRM)

    def skips(self):
        self.skipTest("not installed")


class BrokenSetUp(Examples):
    @classmethod
    def setUpClass(cls):
        raise OSError("no server")


class Recording(unittest.TestCase):
    def record(self, test: unittest.TestCase, **environment: str) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = []
        with mock.patch.dict(os.environ, {"CI": "", **environment}), contextlib.redirect_stderr(io.StringIO()):
            unittest.TestSuite([test]).run(Recorder(lambda **record: records.append(record)))
        return records

    def test_each_test_is_one_record(self):
        (passed,), (failed,), (raised,) = (self.record(Examples(name)) for name in ("passes", "fails_twice", "raises"))
        self.assertIsNone(passed["failure"])
        self.assertIn("(number=0)", failed["failure"])
        self.assertIn("(number=2)", failed["failure"])
        self.assertIn("no such thing", raised["failure"])

    def test_a_test_that_does_not_end_fails_with_the_place_where_it_waits(self):
        (failed,) = self.record(Examples("takes_too_long"))
        self.assertIn("raise_signal", failed["failure"])
        self.assertIn("longer than 800 s", failed["failure"])

    def test_a_skipped_test_fails_under_ci(self):
        (skipped,), (failed,) = self.record(Examples("skips")), self.record(Examples("skips"), CI="true")
        self.assertEqual((skipped["failure"], skipped["is_skipped"]), (None, True))
        self.assertIn("not installed", failed["failure"])

    def test_a_class_that_cannot_be_set_up_fails(self):
        (failed,) = self.record(BrokenSetUp("passes"))
        self.assertIn("no server", failed["failure"])


class Choosing(unittest.TestCase):
    class Partly(unittest.TestCase):
        def test_a(self):
            self.fail("it is only listed")

        @nightly("a")
        def test_b(self):
            self.fail("it is only listed")

    def setUp(self):
        tests = {"m.Partly": [self.Partly("test_a"), self.Partly("test_b")], "m.Long": [nightly("m.Partly")(self.Whole)("test_c")]}
        mock.patch.object(worker, "by_class", lambda: tests).start()
        self.addCleanup(mock.patch.stopall)

    class Whole(unittest.TestCase):
        def test_c(self):
            self.fail("it is only listed")

    def test_tests_for_the_night_run_only_where_they_are_asked_for(self):
        names = lambda **options: [worker.sentence(test) for tests in worker.chosen([], **options).values() for test in tests]
        self.assertEqual((names(is_long=False), names(is_long=True)), (["a"], ["a", "b", "c"]))

    def test_each_says_what_every_run_has_instead(self):
        self.assertEqual(worker.left_out_lines(False), ["m.Partly: a (1 test)", "m.Long: m.Partly (1 test)"])


class Ports(unittest.TestCase):
    def test_a_port_is_given_once(self):
        # So many random ones would be the same ones now and then.
        ports = [processes.free_port() for _ in range(1_000)]
        self.assertEqual(len(set(ports)), 1_000)


class Scheduling(unittest.TestCase):
    def test_unmeasured_classes_begin_first_then_the_longest(self):
        schedule = Schedule(["short", "new", "long"], {"short": 1, "long": 9})
        self.assertEqual([schedule.next() for _ in range(4)], ["new", "long", "short", None])

    def test_a_class_that_was_lost_is_a_failure(self):
        schedule, report = Schedule(["done", "lost"], {}), Report()
        schedule.seconds["done"] = 1
        quietly(lambda: report_missing(["done", "lost"], schedule, report))
        self.assertEqual([failure.group for failure in report.failures], ["lost"])
