"""Results of tests, and their output."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass

PROGRESS_SECONDS = 30


@dataclass(frozen=True)
class Result:
    part: str
    """Swift or Python."""
    group: str
    """The suite or class."""
    name: str
    seconds: float
    failure: str | None = None
    """The failure's text; None if the test passed."""
    is_skipped: bool = False

    @property
    def title(self) -> str:
        return f"{self.part}: {self.group}: {self.name}"


class Report:
    """Takes results from several threads; prints each failure in full at once and passing tests as numbers."""

    def __init__(self) -> None:
        self.results: list[Result] = []
        self.is_stopped = False
        """Set when no further test may begin."""
        self.started_at = time.monotonic()
        self._printed_at = self.started_at
        self._lock = threading.Lock()

    def add(self, result: Result) -> None:
        with self._lock:
            self.results.append(result)
            if result.failure is not None:
                print(f"\n{'=' * 100}\nFAIL: {result.title}\n{result.failure.rstrip()}\n", flush=True)
            if time.monotonic() > self._printed_at + PROGRESS_SECONDS:
                self._printed_at = time.monotonic()
                self._print_progress()

    def print_line(self, text: str) -> None:
        with self._lock:
            print(f"test: {text}", flush=True)

    def _print_progress(self) -> None:
        by_part = Counter(result.part for result in self.results if result.failure is None and not result.is_skipped)
        counts = ", ".join(f"{number} {part}" for part, number in sorted(by_part.items()))
        print(f"test: after {time.monotonic() - self.started_at:.0f} s: passed {counts}; {len(self.failures)} failed", flush=True)

    @property
    def failures(self) -> list[Result]:
        return [result for result in self.results if result.failure is not None]

    def print_slowest(self, count: int = 10) -> None:
        """Seconds are the sum over the class's tests, also if they ran concurrently."""
        seconds: dict[tuple[str, str], float] = defaultdict(float)
        tests: Counter[tuple[str, str]] = Counter()
        for result in self.results:
            seconds[result.part, result.group] += result.seconds
            tests[result.part, result.group] += 1
        print(f"\n| the {count} slowest classes | tests | seconds |\n|---|---|---|")
        for (part, group), sum_of_seconds in sorted(seconds.items(), key=lambda entry: -entry[1])[:count]:
            print(f"| {part}: {group} | {tests[part, group]} | {sum_of_seconds:.1f} |")

    def finish(self) -> int:
        """Prints the end of the run; returns the exit status."""
        passed = sum(result.failure is None and not result.is_skipped for result in self.results)
        skipped = sum(result.is_skipped for result in self.results)
        failed = len(self.failures)
        if passed + failed == 0:
            print("test: no test ran")
            failed = 1
        elif passed + failed > 10:
            self.print_slowest()
        print(f"\ntest: {time.monotonic() - self.started_at:.0f} s" + (f", {skipped} skipped" if skipped else ""))
        # Often only the end of a long log is shown, so failures are listed again there.
        for result in self.failures:
            print(f"failed: {result.title}")
        print(f"{passed} passed, {failed} failed")
        sys.stdout.flush()
        return 1 if failed else 0
