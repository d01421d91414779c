"""A TLS client that controls which bytes go to the socket, and when."""

import contextlib
import socket
import ssl
import time

from .waiting import TIMEOUT_SECONDS


class RecordClient:
    def __init__(self, port, context, handshake=True, timeout=TIMEOUT_SECONDS):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.timeout = timeout
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.session = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")
        if handshake:
            self.handshake()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def handshake(self):
        while True:
            try:
                self.session.do_handshake()
                self.send_records()
                return
            except ssl.SSLWantReadError:
                self.send_records()
                self.receive_records()

    def hello(self):
        """The first bytes of a handshake, without sending them."""
        try:
            self.session.do_handshake()
        except ssl.SSLWantReadError:
            return self.outgoing.read()
        raise AssertionError("a handshake takes more than a hello")

    def send_records(self):
        self.socket.sendall(self.outgoing.read())

    def receive_records(self):
        """Returns False if the peer has closed the connection."""
        data = self.socket.recv(1 << 16)
        if data:
            self.incoming.write(data)
        else:
            self.incoming.write_eof()
        return bool(data)

    def send(self, data):
        self.session.write(data)
        self.send_records()

    def send_close_notify(self):
        with contextlib.suppress(ssl.SSLWantReadError):
            self.session.unwrap()
        self.send_records()

    def read_to_end(self):
        """All bytes until the end, and whether close_notify came before it."""
        received, until = b"", time.monotonic() + self.timeout
        while time.monotonic() < until:
            try:
                data = self.session.read(1 << 16)
                if not data:
                    return received, True
                received += data
            except ssl.SSLWantReadError:
                self.receive_records()
            except ssl.SSLZeroReturnError:
                return received, True
            except ssl.SSLEOFError:
                return received, False
        raise AssertionError(f"the service did not end the connection; it sent {len(received)} bytes")
