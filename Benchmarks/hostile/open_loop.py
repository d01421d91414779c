"""Sends messages at a fixed rate: `python3 -m hostile.open_loop PORT RATE SECONDS CONNECTIONS`.

Prints the latency by kind of reply, because under overload that of the allowed messages matters. `headroom bench` has
percentiles of all replies only. The latency begins when a message is due, also if it is sent later.
"""

from __future__ import annotations

import json
import random
import selectors
import socket
import sys
import time
from collections import defaultdict, deque
from typing import Any

from comparison.figures import percentile, rounded
from support.users import numbered_user

USERS = 10_000
#: Messages due within this time are sent together.
TICK_SECONDS = 0.005
#: How long to wait for replies after the last message.
PATIENCE_SECONDS = 10.0


class Connection:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.due: deque[float] = deque()
        self.unsent = bytearray()
        self.received = b""


class Run:
    def __init__(self, port: int, rate: float, seconds: float, connections: int) -> None:
        self.rate, self.seconds = rate, seconds
        self.selector = selectors.DefaultSelector()
        self.connections = [Connection(port) for _ in range(connections)]
        for connection in self.connections:
            self.selector.register(connection.socket, selectors.EVENT_READ, connection)
        #: Latencies in milliseconds, by the status of the reply.
        self.waits: dict[str, list[float]] = defaultdict(list)
        self.sent = 0

    def flush(self, connection: Connection) -> None:
        try:
            count = connection.socket.send(connection.unsent)
            del connection.unsent[:count]
        except BlockingIOError:
            pass
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.unsent else 0)
        self.selector.modify(connection.socket, events, connection)

    def read(self, connection: Connection) -> None:
        data = connection.socket.recv(1 << 18)
        if not data:
            raise SystemExit("the service closed a connection")
        now = time.monotonic()
        *lines, connection.received = (connection.received + data).split(b"\n")
        for line in lines:
            self.waits[line[:12].split(b" ", 1)[0].decode()].append((now - connection.due.popleft()) * 1000)

    def run(self) -> dict[str, Any]:
        start = time.monotonic()
        end, turn = start + self.seconds, 0
        while True:
            now = time.monotonic()
            if now < end:
                for index in range(self.sent, int((now - start) * self.rate)):
                    connection = self.connections[turn % len(self.connections)]
                    turn += 1
                    connection.due.append(start + index / self.rate)
                    connection.unsent += b"CONSUME %s\n" % numbered_user(random.randrange(USERS)).encode()
                    self.sent += 1
                for connection in self.connections:
                    if connection.unsent:
                        self.flush(connection)
            elif now > end + PATIENCE_SECONDS or not any(connection.due for connection in self.connections):
                break
            for key, events in self.selector.select(TICK_SECONDS):
                if events & selectors.EVENT_READ:
                    self.read(key.data)
                if events & selectors.EVENT_WRITE:
                    self.flush(key.data)
            rest = TICK_SECONDS - (time.monotonic() - now)
            if rest > 0:
                time.sleep(rest)
        return self.report()

    def report(self) -> dict[str, Any]:
        replies = {
            status: {
                "per_second": rounded(len(waits) / self.seconds),
                "p50_ms": rounded(percentile(waits, 50)),
                "p99_ms": rounded(percentile(waits, 99)),
                "max_ms": rounded(max(waits)),
            }
            for status, waits in sorted(self.waits.items())
        }
        return {"sent": self.sent, "unanswered": sum(len(each.due) for each in self.connections), "replies": replies}


def main() -> None:
    port, rate, seconds, connections = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    random.seed(1)
    print(json.dumps(Run(port=port, rate=rate, seconds=seconds, connections=connections).run()))


if __name__ == "__main__":
    main()
