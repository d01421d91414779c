"""HTTP requests to the service while messages are counted: a scrape of the metrics each second, an open dashboard, and the
events of a store.

Threads of this process write prepared bytes to sockets, so that nearly all of the processor time is the service's.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from support.processes import Failure
from support.users import numbered_user

from .figures import Sample, rounded
from .peers import Headroom

AUTHORIZATION = "Bearer of-the-benchmark"
EVENTS_PER_SECOND = 200
MONTH_MILLISECONDS = 30 * 86_400_000
PRODUCT = "bench_monthly"


class HTTPClient:
    """An open connection, and the times of its answers."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.socket: socket.socket | None = None
        self.received = b""
        self.milliseconds: list[float] = []

    def send(self, request: bytes) -> bytes:
        """Sends a request and returns the answer's body; a status other than 200 fails the run."""
        began = time.perf_counter()
        if self.socket is None:
            self.socket = socket.create_connection(("127.0.0.1", self.port), 30)
        self.socket.sendall(request)
        while b"\r\n\r\n" not in self.received:
            self._receive()
        head, _, self.received = self.received.partition(b"\r\n\r\n")
        status, *fields = head.decode().split("\r\n")
        length = next(int(field.split(":")[1]) for field in fields if field.lower().startswith("content-length:"))
        while len(self.received) < length:
            self._receive()
        body, self.received = self.received[:length], self.received[length:]
        self.milliseconds.append((time.perf_counter() - began) * 1000)
        if " 200 " not in status:
            raise Failure(f"the HTTP server answered {status}: {body[:500].decode(errors='replace')}")
        return body

    def _receive(self) -> None:
        assert self.socket is not None
        chunk = self.socket.recv(65_536)
        if not chunk:
            raise Failure("the HTTP server closed a connection")
        self.received += chunk

    def close(self) -> None:
        if self.socket:
            self.socket.close()

    def percentile(self, percent: float) -> float:
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def renewal(number: int, user: int, months_ago: int = 0) -> bytes:
    """An event that renews a subscription for a month."""
    now = int(time.time() * 1000) - months_ago * MONTH_MILLISECONDS
    event = {
        "id": f"bench-{now}-{number}",
        "type": "RENEWAL",
        "event_timestamp_ms": now,
        "app_user_id": numbered_user(user),
        "original_app_user_id": numbered_user(user),
        "aliases": [numbered_user(user)],
        "product_id": PRODUCT,
        "period_type": "NORMAL",
        "purchased_at_ms": now,
        "expiration_at_ms": now + MONTH_MILLISECONDS,
        "environment": "PRODUCTION",
        "store": "APP_STORE",
        "transaction_id": f"{user}-{now}",
        "original_transaction_id": f"bench-{user}",
    }
    body = json.dumps({"api_version": "1.0", "event": event}).encode()
    head = (
        "POST /webhooks/revenuecat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: {AUTHORIZATION}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def renew(store: HTTPClient, request: bytes) -> None:
    answer = json.loads(store.send(request))
    if answer.get("outcome") != "applied":
        raise Failure(f"an event was not applied: {answer}")


class BackgroundLoad:
    """Sends all of these requests for the duration of the block."""

    def __init__(self, service: Headroom, users: int) -> None:
        self.service, self.users = service, users
        self.scraper, self.page, self.store = (HTTPClient(service.http_port) for _ in range(3))
        self.stream = 0
        self.events = 0
        self.failure: Exception | None = None
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), daemon=True)
            for work in (self._scrape, self._load_dashboard, self._read_live_numbers, self._post_events)
        ]

    def __enter__(self) -> BackgroundLoad:
        self.began = time.perf_counter()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self.began
        self._over.set()
        for thread in self._threads:
            thread.join(30)
        for client in (self.scraper, self.page, self.store):
            client.close()
        if self.failure:
            raise self.failure

    def figures(self) -> Sample:
        return {
            "events_per_second": rounded(self.events / self.seconds),
            "event_p50_ms": rounded(self.store.percentile(50)),
            "event_p99_ms": rounded(self.store.percentile(99)),
            "scrape_p50_ms": rounded(self.scraper.percentile(50)),
            "page_p50_ms": rounded(self.page.percentile(50)),
        }

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as failure:
            self.failure = failure

    def _every(self, seconds: float, call: Callable[[int], Any]) -> None:
        """Calls at fixed intervals, and catches up after a delay."""
        number = 0
        while True:
            due = self.began + number * seconds
            if self._over.wait(max(0, due - time.perf_counter())):
                return
            call(number)
            number += 1

    def _scrape(self) -> None:
        self._every(1, lambda _: self.scraper.send(get("/metrics")))

    def _load_dashboard(self) -> None:
        self._every(5, lambda _: self.page.send(get("/dashboard")))

    def _read_live_numbers(self) -> None:
        """Reads the stream from which the dashboard updates its numbers."""
        with socket.create_connection(("127.0.0.1", self.service.http_port), 30) as stream:
            stream.sendall(get("/dashboard/live"))
            stream.settimeout(0.5)
            while not self._over.is_set():
                try:
                    chunk = stream.recv(65_536)
                except TimeoutError:
                    continue
                if not chunk:
                    raise Failure("the dashboard's live numbers ended")
                self.stream += len(chunk)
        if not self.stream:
            raise Failure("the dashboard's stream had no live numbers")

    def _post_events(self) -> None:
        def post_event(number: int) -> None:
            renew(self.store, renewal(number, number % self.users))
            self.events += 1

        self._every(1 / EVENTS_PER_SECOND, post_event)
