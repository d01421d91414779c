"""Peers that post bodies which take long to parse to the HTTP port: `python3 -m hostile.bodies PORT COUNT` runs until it is
ended.

Each peer has one connection at a time, and posts again as soon as it is answered. The peers know the webhook's secret, so
all bodies reach the parser.
"""

from __future__ import annotations

import errno
import gzip
import json
import random
import selectors
import signal
import socket
import sys
from collections import Counter

AUTHORIZATION = "Bearer a-secret-of-the-attackers"
#: The maximum size of a body (http-body-maximum-bytes).
BYTES_MAXIMUM = 262_144
PATHS = ("/webhooks/revenuecat", "/v1/billing-events")
JSON_TYPE = "Content-Type: application/json"


def bodies() -> list[tuple[int, bytes, str]]:
    """The expected status, the body, and its header fields."""
    made: list[tuple[int, bytes, str]] = []
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"):
        width = 4 if "32" in encoding else 2
        for text in ("[", '{"a":', "1,", "[],"):
            # As UTF-8 it would have none of these brackets and commas, or four times as many bytes between them.
            body = (("[" if text.endswith(",") else "") + text * (BYTES_MAXIMUM // width // len(text) - 2)).encode(encoding)
            made.append((415, body, JSON_TYPE))
    nested = b"[" * (BYTES_MAXIMUM - 1)
    made += [
        (413, nested, JSON_TYPE),
        (413, b"[" + b"1," * (BYTES_MAXIMUM // 2 - 1) + b"1", JSON_TYPE),
        (413, b"[" + b"1" * (BYTES_MAXIMUM - 1), JSON_TYPE),
        (415, nested[:-1] + b"\0", JSON_TYPE),
        (415, nested[:-1] + b"\xff", JSON_TYPE),
        (400, b'"' + b"\\u0041" * (BYTES_MAXIMUM // 6 - 1) + b'"', JSON_TYPE),
        (400, b"{" + b",".join(b'"%d":0' % n for n in range(9_999)) + b"}", JSON_TYPE),
        (415, gzip.compress(b"[" * 50_000_000)[:BYTES_MAXIMUM], JSON_TYPE + "\r\nContent-Encoding: gzip"),
        (415, b"{}", JSON_TYPE + "; charset=utf-16"),
    ]
    return made


def requests() -> list[tuple[int, bytes]]:
    made = []
    for path in PATHS:
        for status, body, fields in bodies():
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {AUTHORIZATION}\r\n"
            # A billing event needs no token here; with that field it would.
            if path != PATHS[0]:
                head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n"
            made.append((status, f"{head}{fields}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body))
    return made


class Peer:
    def __init__(self, connection: socket.socket, status: int, request: bytes) -> None:
        self.socket, self.status, self.unsent, self.received = connection, status, memoryview(request), b""

    @property
    def events(self) -> int:
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self.unsent else 0)


class Attack:
    def __init__(self, port: int, count: int) -> None:
        self.port, self.count = port, count
        self.requests = requests()
        self.selector = selectors.DefaultSelector()
        #: By expected and received status.
        self.answers: Counter[str] = Counter()

    def open(self) -> None:
        connection = socket.socket()
        connection.setblocking(False)
        result = connection.connect_ex(("127.0.0.1", self.port))
        if result not in (0, errno.EINPROGRESS):
            raise SystemExit(f"no connection: {errno.errorcode[result]}")
        peer = Peer(connection, *random.choice(self.requests))
        self.selector.register(connection, peer.events, peer)

    def close(self, peer: Peer) -> None:
        status = peer.received[9:12].decode(errors="replace") or "none"
        self.answers[f"{status} for {peer.status}"] += 1
        self.selector.unregister(peer.socket)
        peer.socket.close()
        self.open()

    def serve(self, peer: Peer, events: int) -> None:
        try:
            if events & selectors.EVENT_READ:
                chunk = peer.socket.recv(65_536)
                peer.received += chunk
                # The service does not read the rest of the body.
                if not chunk or b"\r\n\r\n" in peer.received:
                    self.close(peer)
                    return
            if events & selectors.EVENT_WRITE:
                peer.unsent = peer.unsent[peer.socket.send(peer.unsent) :]
                self.selector.modify(peer.socket, peer.events, peer)
        except BlockingIOError:
            return
        except OSError:
            self.close(peer)

    def run(self) -> None:
        for _ in range(self.count):
            self.open()
        print("ready", flush=True)
        while True:
            for key, events in self.selector.select(1):
                self.serve(key.data, events)

    def end(self) -> None:
        print(json.dumps(self.answers), flush=True)
        sys.exit(0)


def main() -> None:
    random.seed(1)
    attack = Attack(int(sys.argv[1]), int(sys.argv[2]))
    signal.signal(signal.SIGTERM, lambda *_: attack.end())
    attack.run()


if __name__ == "__main__":
    main()
