"""A light load on a live cluster, and what became of it."""

from __future__ import annotations

import io
import time
from collections import Counter
from typing import Any

from recorder import Recorder

# Shorter times between two allowed messages are the load's own.
LEAST_GAP = 0.5


class Gaps:
    """Times without an allowed message."""

    def __init__(self) -> None:
        self.last = time.monotonic()
        self._longest = 0.0

    def allowed(self) -> None:
        self._longest = self.longest
        self.last = time.monotonic()

    @property
    def present(self) -> float:
        return time.monotonic() - self.last

    @property
    def longest(self) -> float:
        return max(self._longest, self.present)

    def forget(self) -> None:
        """Begins anew; a gap that has begun stays."""
        self._longest = 0.0


class LiveRecorder(Recorder):
    """Counts what the clients of a workload are answered, and keeps no history."""

    def __init__(self, instances: int) -> None:
        super().__init__(io.StringIO())
        self.allowed: Counter[int | None] = Counter()
        self.errors: Counter[str] = Counter()
        self.gaps = [Gaps() for _ in range(instances)]
        self.overall = Gaps()

    def write(self, **entry: Any) -> None:
        """Keeps nothing."""

    def reply(self, op: int, status: str, code: str | None = None, fields: dict[str, str] | None = None) -> None:
        instance = self.open[op][0]
        super().reply(op, status, code, fields)
        if status in ("ALLOWED", "HELD"):
            self.allowed[instance] += 1
            self.overall.allowed()
            if instance is not None:
                self.gaps[instance].allowed()
        elif status in ("CLOSED", "SILENT"):
            self.errors[status] += 1
        elif code in ("UNAVAILABLE", "OVERLOADED", "DRAINING", "UNKNOWN", "INTERNAL"):
            # Other codes, such as CONFLICT, are what the load asked for.
            self.errors[code] += 1

    def forget_gaps(self) -> None:
        for gaps in (self.overall, *self.gaps):
            gaps.forget()
