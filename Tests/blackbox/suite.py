"""Runs the black-box tests: one line per test, failures in full at the end, and as the last line "N passed, N failed"."""

import os
import random
import resource
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from support import processes, settings  # noqa: E402

FILES = [
    "first_answer",
    "tiers",
    "states",
    "time_passing",
    "plans_in_rows",
    "sql_functions",
    "granting_and_forgetting",
    "one_truth",
    "adoption",
    "racing",
    "client_libraries",
    "client_documents",
    "dashboards",
    "subscriptions",
    "bad_input",
    "connection_limits",
    "row_locks",
    "starting",
    "stopping",
    "outages",
    "lost_replies",
    "private_server",
    "roles",
    "commands",
    "operations",
    "authentication",
    "tls",
    "protected_mode",
    "load",
    "client_access",
    "database_tls",
    "hostile_peers",
    "secrets",
    "http_port",
    "http_api",
    "http_metrics",
    "http_description",
    "dashboard_pages",
    "http_monitoring",
    "webhooks",
    "webhook_requests",
    "store_commands",
    "dashboard_access",
    "demo",
    "chat_pages",
    "chat_flow",
    "chat_scripts",
]


class Report(unittest.TestResult):
    """Names each test as the sentence that it is."""

    def startTest(self, test):
        super().startTest(test)
        self.started_at = time.monotonic()

    def say(self, outcome, test):
        seconds = time.monotonic() - self.started_at
        print(f"{outcome}  {seconds:5.1f}s  {sentence(test)}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.say("ok  ", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.say("FAIL", test)

    def addError(self, test, err):
        super().addError(test, err)
        if hasattr(self, "started_at"):
            self.say("FAIL", test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.say("FAIL", subtest)

    def addSkip(self, test, reason):
        # A test that did not run shows nothing; on a machine that is meant to have everything it is a failure.
        if os.environ.get("CI") == "true":
            self.failures.append((test, f"skipped under CI: {reason}"))
            self.say("FAIL", test)
        else:
            super().addSkip(test, reason)
            print(f"skip          {sentence(test)}: {reason}", flush=True)


def sentence(test):
    if hasattr(test, "test_case"):
        return f"{sentence(test.test_case)} {test._subDescription()}"
    if not isinstance(test, unittest.TestCase):
        return str(test)
    name = test._testMethodName
    return f"{type(test).__module__.split('.')[-1]}: {name.removeprefix('test_').replace('_', ' ')}"


def chosen(words):
    def each(suite):
        for test in suite:
            if isinstance(test, unittest.TestSuite):
                yield from each(test)
            else:
                yield test

    loader = unittest.defaultTestLoader
    tests = each(loader.loadTestsFromNames([f"tests.{file}" for file in FILES]))
    return unittest.TestSuite(t for t in tests if not words or any(word in sentence(t) for word in words))


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: run BINARY [WORD …]")
    settings.binary = os.path.abspath(sys.argv[1])
    if not os.access(settings.binary, os.X_OK):
        sys.exit(f"{sys.argv[1]} is not a program; build it first: swift build --product headroom")
    settings.seed = int(os.environ.get("HEADROOM_TEST_SEED") or random.randrange(1 << 32))
    print(f"seed {settings.seed} (HEADROOM_TEST_SEED runs the same again)", flush=True)
    random.seed(settings.seed)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8_192) if hard > 0 else 8_192, hard))
    # As an exception, so that everything is stopped on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    report = Report()
    began = time.monotonic()
    try:
        chosen(sys.argv[2:]).run(report)
    finally:
        processes.stop_all()
    for test, trace in report.failures + report.errors:
        print(f"\n{'=' * 100}\nFAIL: {sentence(test)}\n{trace}")
    # A test fails once, however many of its subtests do; an error while a class is set up counts once for the class.
    failed = len({getattr(test, "test_case", test) for test, _ in report.failures + report.errors})
    passed = report.testsRun - len(report.skipped) - failed
    print(f"\n{time.monotonic() - began:.0f} s" + (f", {len(report.skipped)} skipped" if report.skipped else ""))
    print(f"{max(0, passed)} passed, {failed} failed", flush=True)
    sys.exit(0 if failed == 0 and passed > 0 else 1)


if __name__ == "__main__":
    main()
