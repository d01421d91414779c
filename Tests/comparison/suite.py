"""Runs the comparison's tests: what failed in full, and as the last line "N passed, N failed"."""

import sys
import unittest
from pathlib import Path


def main():
    tests = unittest.defaultTestLoader.discover(str(Path(__file__).parent))
    report = unittest.TextTestRunner(stream=sys.stdout, verbosity=0).run(tests)
    # A test fails once, however many of its subtests do.
    failed = len({getattr(test, "test_case", test) for test, _ in report.failures + report.errors})
    print(f"{report.testsRun - len(report.skipped) - failed} passed, {failed} failed", flush=True)
    sys.exit(0 if failed == 0 and report.testsRun > 0 else 1)


if __name__ == "__main__":
    main()
