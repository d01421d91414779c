"""A minimal client of the line protocol, which shows exactly what was sent and received."""

import re
import select
import socket
import struct
import time

from .waiting import TIMEOUT_SECONDS

FIELD = re.compile(r'([a-z_]+)=("(?:[^"\\]|\\["\\])*"|[^ "\\]+)')


class Closed(Exception):
    """The server closed the connection before a reply."""


class LineConnection:
    """One connection of the line protocol."""

    def __init__(self, port, timeout=TIMEOUT_SECONDS, tls=None, source="127.0.0.1"):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout, source_address=(source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.tls = tls
        if tls:
            # It closes the socket also if the handshake fails.
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.timeout = timeout
        self.received = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        self.socket.sendall(data.encode() if isinstance(data, str) else data)

    def send_byte_by_byte(self, data):
        """Sends each byte in a segment of its own, until the server closes."""
        for index in range(len(data)):
            try:
                self.socket.send(data[index : index + 1])
            except (BrokenPipeError, ConnectionResetError):
                return

    def readable(self, seconds):
        """Waits for bytes or the end; returns False after the timeout."""
        if self.tls and self.socket.pending():
            return True
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return bool(poll.poll(max(0, seconds) * 1_000))

    def read_line(self):
        """The next line, without its line end."""
        until = time.monotonic() + self.timeout
        while b"\n" not in self.received:
            if not self.readable(until - time.monotonic()):
                raise AssertionError(f"no reply within {self.timeout} s; so far {self.received!r}")
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionResetError:
                raise Closed("reset") from None
            if not data:
                raise Closed(f"end; unfinished {self.received!r}")
            self.received += data
        line, self.received = self.received.split(b"\n", 1)
        assert line.endswith(b"\r"), f"a reply must end with CRLF: {line!r}"
        return line[:-1].decode()

    def read_lines(self, count):
        return [self.read_line() for _ in range(count)]

    def send_command(self, request):
        """Sends one command and returns the line of its reply."""
        self.send(request + "\n")
        return self.read_line()

    def send_list_command(self, request):
        """Sends a command with a list reply; returns its lines."""
        header = self.send_command(request)
        assert re.fullmatch(r"\*\d+", header), f"a list was expected, not {header!r}"
        return self.read_lines(int(header[1:]))

    def answer(self, request):
        return Answer(self.send_command(request))

    def end_input(self):
        self.socket.shutdown(socket.SHUT_WR)

    def read_to_end(self):
        """All bytes until the server closes; fails if it does not."""
        until = time.monotonic() + self.timeout
        while True:
            if not self.readable(until - time.monotonic()):
                raise AssertionError(f"the server did not close within {self.timeout} s; it sent {self.received!r}")
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionResetError:
                data = b""
            if not data:
                received, self.received = self.received, b""
                return received
            self.received += data

    def reset(self):
        """Closes with RST instead of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self):
        self.socket.close()


class Answer:
    """A parsed `+STATUS name=value …` line."""

    def __init__(self, text):
        self.text = text
        match = re.fullmatch(r"\+([A-Z]+)((?: " + FIELD.pattern + r")*)", text)
        assert match, f"not a field line: {text!r}"
        self.status = match[1]
        self.fields = {}
        for name, value in FIELD.findall(match[2]):
            assert name not in self.fields, f"{name} appears twice in {text!r}"
            if value.startswith('"'):
                value = re.sub(r'\\(["\\])', r"\1", value[1:-1])
            self.fields[name] = value

    def __getitem__(self, name):
        assert name in self.fields, f"no field {name} in {self.text!r}"
        return self.fields[name]

    def get(self, name):
        return self.fields.get(name)

    def __contains__(self, name):
        return name in self.fields

    @property
    def used(self):
        return int(self["used"])


def array(*tokens):
    """A request in array framing."""
    parts = [token.encode() if isinstance(token, str) else token for token in tokens]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
