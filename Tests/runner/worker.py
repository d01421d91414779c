"""Runs classes of Python tests, whose names it reads from standard input; writes a line of JSON to standard output for each
test, and one at the end of each class. Output of tests goes to standard error.

    worker --seed N BINARY [WORD …]     only tests whose class or sentence contains one of the words
    worker --list BINARY [WORD …]       prints the classes instead
    worker --distributed …              only tests that hold in a distributed database, and those that need one
    worker --left-out [--distributed]   prints which tests neither runs, and why
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import sys
import time
import traceback
import unittest
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support import processes, settings
from support.case import Case
from support.nightly import IS_LONG

TESTS = Path(__file__).resolve().parent.parent
TEST_LIMIT_SECONDS = 800
"""More than `wait_until` waits at most, which says what it waits for."""


class TestTookTooLong(Exception):
    """Raised inside a test that does not end, so that its failure shows where it waits. No OSError, which a test may expect."""


def limit_test() -> None:
    """Gives the test that begins now its time; what cleans up after it gets a minute more."""
    signal.setitimer(signal.ITIMER_REAL, TEST_LIMIT_SECONDS, 60)


def end_test(*_: Any) -> None:
    raise TestTookTooLong(f"the test took longer than {TEST_LIMIT_SECONDS} s")


class Recorder(unittest.TestResult):
    """Writes the result of each test. A test with several failed subtests fails once."""

    def __init__(self, write: Any) -> None:
        super().__init__()
        self.write = write
        self.traces: list[str] = []
        self.is_skipped = False

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        limit_test()
        self.traces, self.is_skipped = [], False
        self.started_at = time.monotonic()

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        failure = "\n".join(self.traces) or None
        self.write(name=sentence(test), seconds=time.monotonic() - self.started_at, failure=failure, is_skipped=self.is_skipped)

    def _note(self, test: Any, err: Any, title: str = "") -> None:
        trace = title + "".join(traceback.format_exception(*err))
        if isinstance(test, unittest.TestCase):
            self.traces.append(trace)
        else:
            # An error in setUpClass or tearDownClass.
            self.write(name=str(test), seconds=0, failure=trace)

    def addFailure(self, test: Any, err: Any) -> None:
        self._note(test, err)

    def addError(self, test: Any, err: Any) -> None:
        self._note(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self._note(test, err, f"{subtest._subDescription()}\n")

    def addSkip(self, test: Any, reason: str) -> None:
        # In continuous integration everything should be installed, so a skipped test is a failure.
        is_failure = os.environ.get("CI") == "true"
        if not isinstance(test, unittest.TestCase):
            failure = f"skipped under CI: {reason}" if is_failure else None
            self.write(name=str(test), seconds=0, failure=failure, is_skipped=not is_failure)
        elif is_failure:
            self.traces.append(f"skipped under CI: {reason}")
        else:
            print(f"skipped: {sentence(test)}: {reason}", file=sys.stderr, flush=True)
            self.is_skipped = True


def sentence(test: unittest.TestCase) -> str:
    return test._testMethodName.removeprefix("test_").replace("_", " ")


def name_of(kind: type) -> str:
    return f"{kind.__module__.removeprefix('tests.')}.{kind.__name__}"


def each(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test


def reason_for_one_machine(test: unittest.TestCase) -> str | None:
    """Why a test does not run in a distributed database; None if it does, empty if it has nothing to do with databases."""
    if not isinstance(test, Case):
        # A file that cannot be imported fails in every run.
        return None if isinstance(test, unittest.loader._FailedTest) else ""
    if not test.MIGRATED:
        return "it begins with an empty database, and only a migrated one can be distributed"
    marked = getattr(getattr(test, test._testMethodName), "one_machine_reason", "") or test.one_machine_reason
    return marked or None


def reason_for_the_night(test: unittest.TestCase) -> str | None:
    """What is run instead of a test that only a long run includes; None for the others."""
    return getattr(getattr(test, test._testMethodName), "nightly_instead", None) or getattr(test, "nightly_instead", None)


def left_out_lines(is_distributed: bool) -> list[str]:
    """A line for each class and reason for which tests are left out, with the number of these tests."""
    reason_of = reason_for_one_machine if is_distributed else reason_for_the_night
    counts = Counter((name, reason) for name, tests in by_class().items() for test in tests if (reason := reason_of(test)))
    return [f"{name}: {reason} ({count} {'test' if count == 1 else 'tests'})" for (name, reason), count in counts.items()]


def by_class() -> dict[str, list[unittest.TestCase]]:
    """All tests. A file that cannot be imported is a class with one failing test."""
    modules = [f"tests.{file.stem}" for file in sorted(TESTS.glob("blackbox/tests/*.py")) if file.stem != "__init__"]
    # Unit tests: the checker of faults, the figures of the benchmarks, this runner.
    modules += [file.stem for file in sorted(TESTS.glob("*/test_*.py"))]
    classes: dict[str, list[unittest.TestCase]] = {}
    for test in each(unittest.defaultTestLoader.loadTestsFromNames(modules)):
        classes.setdefault(name_of(type(test)), []).append(test)
    return classes


def chosen(words: list[str], is_distributed: bool = False, is_long: bool = IS_LONG) -> dict[str, list[unittest.TestCase]]:
    """The tests of this run, by class."""

    def is_chosen(name: str, test: unittest.TestCase) -> bool:
        if is_distributed and reason_for_one_machine(test) is not None:
            return False
        if not is_distributed and getattr(test, "NEEDS_CITUS", False):
            return False
        if not is_long and reason_for_the_night(test):
            return False
        return not words or any(word in f"{name}: {sentence(test)}" for word in words)

    classes = {name: [test for test in tests if is_chosen(name, test)] for name, tests in by_class().items()}
    return {name: tests for name, tests in classes.items() if tests}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--distributed", action="store_true")
    parser.add_argument("--left-out", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("binary")
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    if arguments.left_out:
        print("\n".join(left_out_lines(arguments.distributed)))
        return
    classes = chosen(arguments.words, arguments.distributed)
    if arguments.list:
        print(json.dumps(list(classes)))
        return
    # Accidental output of a test must not reach standard output.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def write(**record: Any) -> None:
        print(json.dumps(record), file=answers, flush=True)

    settings.binary, settings.seed = os.path.abspath(arguments.binary), arguments.seed
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8_192) if hard > 0 else 8_192, hard))
    # As an exception, so that everything is stopped; KeyboardInterrupt, because unittest treats others as a failure of the
    # running test.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGALRM, end_test)
    try:
        for line in sys.stdin:
            name = line.strip()
            # So that a class does not depend on the classes before it.
            random.seed(f"{arguments.seed}/{name}")
            limit_test()
            unittest.TestSuite(classes[name]).run(Recorder(write))
            signal.setitimer(signal.ITIMER_REAL, 0)
            write(end=name)
    except KeyboardInterrupt:
        sys.exit(1)
    finally:
        processes.stop_all()


if __name__ == "__main__":
    main()
