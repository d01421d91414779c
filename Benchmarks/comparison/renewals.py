"""A store that renews subscriptions on several connections, as fast as possible or at a fixed rate."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .background_load import HTTPClient, renew, renewal
from .figures import Sample, percentile, rounded

CONNECTIONS = 8
CUSTOMERS = 2_000
#: Events of each customer before the first round; a round adds some.
MONTHS_BEFORE = 12


class Renewals:
    """Renews one customer after the other, with one thread per connection."""

    def __init__(self, port: int) -> None:
        self.clients = [HTTPClient(port) for _ in range(CONNECTIONS)]
        self.failure: Exception | None = None
        self.began = self.seconds = 0.0

    def make_history(self) -> None:
        """Posts renewals of earlier months, so that each customer has the events of a year."""
        for months_ago in range(MONTHS_BEFORE, 0, -1):
            self._renew(lambda number: number < CUSTOMERS, months_ago)
        self._check()

    def measure(self, seconds: float) -> Sample:
        """Renews as fast as possible."""
        self._begin()
        self._renew(lambda _: time.perf_counter() < self.began + seconds)
        self._check()
        times = self._milliseconds()
        return {
            "per_second": rounded(len(times) / (time.perf_counter() - self.began)),
            "p50_ms": rounded(percentile(times, 50)),
            "p99_ms": rounded(percentile(times, 99)),
            "messages": len(times),
        }

    @contextmanager
    def at_rate(self, rate: float) -> Iterator[None]:
        """Renews at a fixed rate for the duration of the block."""
        self._begin()
        over = threading.Event()

        def is_due(number: int) -> bool:
            return not over.wait(max(0.0, self.began + number / rate - time.perf_counter()))

        thread = threading.Thread(target=self._renew, args=(is_due,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.seconds = time.perf_counter() - self.began
            over.set()
            thread.join(30)
        self._check()

    def figures(self) -> Sample:
        times = self._milliseconds()
        return {
            "events_per_second": rounded(len(times) / self.seconds),
            "event_p50_ms": rounded(percentile(times, 50)),
            "event_p99_ms": rounded(percentile(times, 99)),
        }

    def _begin(self) -> None:
        for client in self.clients:
            client.milliseconds.clear()
        self.began = time.perf_counter()

    def _milliseconds(self) -> list[float]:
        return [value for client in self.clients for value in client.milliseconds]

    def _check(self) -> None:
        if self.failure:
            raise self.failure

    def _renew(self, is_due: Callable[[int], bool], months_ago: int = 0) -> None:
        """Runs one thread per connection until the last number is done."""
        numbers = itertools.count()

        def work(client: HTTPClient) -> None:
            try:
                while is_due(number := next(numbers)):
                    renew(client, renewal(number, number % CUSTOMERS, months_ago))
            except Exception as failure:
                self.failure = failure

        threads = [threading.Thread(target=work, args=(client,), daemon=True) for client in self.clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def close(self) -> None:
        for client in self.clients:
            client.close()
