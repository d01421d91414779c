"""Peers that mean no good, all in one process: `python3 -m hostile.attackers PORT COUNT` until it is ended.

Every kind in equal parts. Who is closed comes again at once, so that there are as many all the time.
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

#: As many requests as a connection may have under way, with the longest replies that need the database.
PIPELINE = "".join(f"USAGE {numbered_user(number)}\n" for number in range(1024)).encode()
#: Replies of kilobytes for five bytes.
LONG_REPLIES = b"HELP\n" * 4096
REQUEST = f"CONSUME {numbered_user(1)} key={'k' * 100}\n".encode()
#: All but the end of the longest request.
HALF = b"PING " + b"x" * 1018
KINDS = ("silent", "never reads", "never reads long replies", "a byte a second", "half a request")


@dataclass(eq=False)
class Peer:
    kind: str
    socket: socket.socket
    unsent: bytes = b""
    sent: int = 0
    next_byte_at: float = field(default_factory=time.monotonic)


class Attack:
    def __init__(self, port: int, count: int) -> None:
        self.port, self.count = port, count
        self.selector = selectors.DefaultSelector()
        self.peers: set[Peer] = set()
        self.opened = 0
        self.again: list[tuple[float, str]] = []

    def open(self, kind: str) -> None:
        connection = socket.socket()
        connection.setblocking(False)
        # Of what it does not read, little stays here: the rest is the service's to keep.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        result = connection.connect_ex(("127.0.0.1", self.port))
        if result not in (0, errno.EINPROGRESS):
            connection.close()
            self.again.append((time.monotonic() + 0.2, kind))
            return
        peer = Peer(kind, connection)
        peer.unsent = {"never reads": PIPELINE, "never reads long replies": LONG_REPLIES, "half a request": HALF}.get(
            kind, b""
        )
        self.opened += 1
        self.peers.add(peer)
        self.selector.register(connection, self.interest(peer), peer)

    @staticmethod
    def interest(peer: Peer) -> int:
        # The end of a connection shows as readable; who never reads notices it by writing.
        reads = 0 if peer.kind.startswith("never reads") else selectors.EVENT_READ
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
                if not peer.unsent:
                    peer.unsent = PIPELINE if peer.kind == "never reads" else LONG_REPLIES
                count = peer.socket.send(peer.unsent)
                peer.unsent = peer.unsent[count:]
                self.selector.modify(peer.socket, self.interest(peer), peer)
        except BlockingIOError:
            return
        except OSError:
            self.close(peer)

    def trickle(self, now: float) -> None:
        for peer in [peer for peer in self.peers if peer.kind == "a byte a second" and peer.next_byte_at <= now]:
            peer.next_byte_at = now + 1
            place = peer.sent % len(REQUEST)
            peer.sent += 1
            try:
                peer.socket.send(REQUEST[place : place + 1])
            except BlockingIOError:
                pass
            except OSError:
                self.close(peer)

    def run(self) -> None:
        for number in range(self.count):
            self.open(KINDS[number % len(KINDS)])
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
    port, count = int(sys.argv[1]), int(sys.argv[2])
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    random.seed(1)
    Attack(port, count).run()


if __name__ == "__main__":
    main()
