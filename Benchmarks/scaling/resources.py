"""What events wait for: a clock, the cores of a server, and its flushes."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

Action = Callable[..., None]


class Clock:
    """Events in the order of their times; those of one time in the order in which they were added."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Action, tuple[Any, ...]]] = []
        self._added = 0

    def at(self, time: float, action: Action, *arguments: Any) -> None:
        self._added += 1
        heapq.heappush(self._events, (time, self._added, action, arguments))

    def after(self, seconds: float, action: Action, *arguments: Any) -> None:
        self.at(self.now + seconds, action, *arguments)

    def run(self, until: float) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, action, arguments = heapq.heappop(self._events)
            action(*arguments)
        self.now = until


class SharedCores:
    """Cores that all processes share equally, as an operating system lets them: none gets more than one core."""

    def __init__(self, clock: Clock, cores: int) -> None:
        self._clock, self._cores = clock, cores
        self._jobs: list[tuple[float, int, Action]] = []
        """By the work of each process at which the job is done."""
        self._added = 0
        self._work = 0.0
        """What each process that runs all the time has been given, in seconds of a core."""
        self._since = 0.0
        self._expected = 0
        self.busy = 0.0
        """Seconds of cores that were used."""

    def execute(self, seconds: float, done: Action) -> None:
        self._advance()
        self._added += 1
        heapq.heappush(self._jobs, (self._work + seconds, self._added, done))
        self._expect()

    def _rate(self) -> float:
        return min(1.0, self._cores / len(self._jobs)) if self._jobs else 0.0

    def _advance(self) -> None:
        passed = self._clock.now - self._since
        self._work += passed * self._rate()
        self.busy += passed * min(self._cores, len(self._jobs))
        self._since = self._clock.now

    def _expect(self) -> None:
        """The first job will be done, unless another comes before."""
        self._expected += 1
        if self._jobs:
            left = max(0.0, self._jobs[0][0] - self._work)
            self._clock.after(left / self._rate(), self._finish, self._expected)

    def _finish(self, expected: int) -> None:
        if expected != self._expected:
            return
        self._advance()
        _, _, done = heapq.heappop(self._jobs)
        self._expect()
        done()


class GroupCommit:
    """One flush at a time. All commits that come during a flush share the next one."""

    def __init__(self, clock: Clock, flush: float) -> None:
        self._clock, self._flush = clock, flush
        self._waiting: list[Action] = []
        self._is_flushing = False
        self.busy = 0.0
        self.flushes = 0

    def commit(self, done: Action) -> None:
        self._waiting.append(done)
        if not self._is_flushing:
            self._begin()

    def _begin(self) -> None:
        self._is_flushing = True
        self.flushes += 1
        self.busy += self._flush
        served, self._waiting = self._waiting, []
        self._clock.after(self._flush, self._end, served)

    def _end(self, served: list[Action]) -> None:
        self._is_flushing = False
        if self._waiting:
            self._begin()
        for done in served:
            done()
