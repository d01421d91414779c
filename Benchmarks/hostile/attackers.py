"""Hostile peers, all in one process: `python3 -m hostile.attackers line|http PORT COUNT` runs until it is ended.

There are as many peers of each kind. A peer whose connection is closed opens another one at once, so their number stays.
"""

from __future__ import annotations

import errno
import random
import resource
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass, field

from support.users import numbered_user

#: The maximum of requests in flight, with the longest replies that need the database.
PIPELINE = "".join(f"USAGE {numbered_user(number)}\n" for number in range(1024)).encode()
#: Replies of kilobytes for five bytes.
LONG_REPLIES = b"HELP\n" * 4096
REQUEST = f"CONSUME {numbered_user(1)} key={'k' * 100}\n".encode()
#: The longest request without its end.
HALF = b"PING " + b"x" * 1018


@dataclass(frozen=True)
class Kind:
    """A kind of hostile peer. The HTTP peers correspond to those of the line protocol where possible."""

    name: str
    #: Sent once, at the beginning.
    begins: bytes = b""
    #: Sent repeatedly by a peer that never reads.
    floods: bytes = b""
    #: Sent byte by byte, one a second.
    trickles: bytes = b""


def http(line: str, *fields: str) -> bytes:
    return "\r\n".join([f"{line} HTTP/1.1", "Host: localhost", *fields, "", ""]).encode()


KINDS = {
    "line": (
        Kind("silent"),
        Kind("never reads", floods=PIPELINE),
        Kind("never reads long replies", floods=LONG_REPLIES),
        Kind("a byte a second", trickles=REQUEST),
        Kind("half a request", begins=HALF),
    ),
    "http": (
        Kind("silent"),
        Kind("idle after a request", begins=http("GET /healthz")),
        Kind("never reads long answers", floods=http("GET /v1/openapi.json") * 64),
        Kind("a byte a second", trickles=http("GET /healthz", f"X-Slow: {'x' * 100}")),
        Kind("half a head", begins=http("GET /healthz")[:-2]),
        Kind("a body that does not come", begins=http("POST /v1/billing-events", "Content-Length: 100")),
    ),
}


@dataclass(eq=False)
class Peer:
    kind: Kind
    socket: socket.socket
    unsent: bytes = b""
    sent: int = 0
    next_byte_at: float = field(default_factory=time.monotonic)


class Attack:
    def __init__(self, kinds: tuple[Kind, ...], port: int, count: int) -> None:
        self.kinds, self.port, self.count = kinds, port, count
        self.selector = selectors.DefaultSelector()
        self.peers: set[Peer] = set()
        self.opened = 0
        self.again: list[tuple[float, Kind]] = []

    def open(self, kind: Kind) -> None:
        connection = socket.socket()
        connection.setblocking(False)
        # A small receive buffer: unread replies stay in the service.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        result = connection.connect_ex(("127.0.0.1", self.port))
        if result not in (0, errno.EINPROGRESS):
            connection.close()
            self.again.append((time.monotonic() + 0.2, kind))
            return
        peer = Peer(kind, connection, kind.begins or kind.floods)
        self.opened += 1
        self.peers.add(peer)
        self.selector.register(connection, self.interest(peer), peer)

    @staticmethod
    def interest(peer: Peer) -> int:
        # The end of a connection makes it readable; a peer that never reads notices it by writing.
        reads = 0 if peer.kind.floods else selectors.EVENT_READ
        return reads | (selectors.EVENT_WRITE if peer.unsent or not reads else 0)

    def close(self, peer: Peer) -> None:
        self.selector.unregister(peer.socket)
        peer.socket.close()
        self.peers.discard(peer)
        self.again.append((time.monotonic() + 0.05, peer.kind))

    def serve(self, peer: Peer, events: int) -> None:
        try:
            if events & selectors.EVENT_READ and not peer.socket.recv(65_536):
                self.close(peer)
                return
            if events & selectors.EVENT_WRITE:
                peer.unsent = peer.unsent or peer.kind.floods
                count = peer.socket.send(peer.unsent)
                peer.unsent = peer.unsent[count:]
                self.selector.modify(peer.socket, self.interest(peer), peer)
        except BlockingIOError:
            return
        except OSError:
            self.close(peer)

    def trickle(self, now: float) -> None:
        for peer in [peer for peer in self.peers if peer.kind.trickles and peer.next_byte_at <= now]:
            peer.next_byte_at = now + 1
            place = peer.sent % len(peer.kind.trickles)
            peer.sent += 1
            try:
                peer.socket.send(peer.kind.trickles[place : place + 1])
            except BlockingIOError:
                pass
            except OSError:
                self.close(peer)

    def run(self) -> None:
        for number in range(self.count):
            self.open(self.kinds[number % len(self.kinds)])
        print("ready", flush=True)
        while True:
            for key, events in self.selector.select(0.05):
                if key.data in self.peers:
                    self.serve(key.data, events)
            now = time.monotonic()
            self.trickle(now)
            due, self.again = [entry for entry in self.again if entry[0] <= now], [
                entry for entry in self.again if entry[0] > now
            ]
            for _, kind in due:
                self.open(kind)


def main() -> None:
    kinds, port, count = KINDS[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    random.seed(1)
    Attack(kinds, port, count).run()


if __name__ == "__main__":
    main()
