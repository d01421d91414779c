"""A connection to the HTTP port that speaks HTTP/2, for requests side by side and for peers that do not behave."""

import select
import socket
from collections import defaultdict
from email.message import Message

import h2.config
import h2.connection
import h2.events

from .http import Answer
from .waiting import TIMEOUT_SECONDS


class Stream:
    """What has come back for one request."""

    def __init__(self):
        self.status = None
        self.headers = Message()
        self.body = b""
        self.is_complete = False
        self.is_continued = False
        """100 Continue came."""
        self.reset = None
        """The error code with which the peer reset it."""

    @property
    def answer(self):
        return Answer(status=self.status, headers=self.headers, body=self.body)


class HTTP2Connection:
    """Not for several threads. With `reads=False`, the peer may send no body: flow control has no room for it."""

    def __init__(self, port, context, reads=True):
        context.set_alpn_protocols(["h2"])
        self.socket = context.wrap_socket(
            socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS), server_hostname="localhost"
        )
        self.protocol = self.socket.selected_alpn_protocol()
        self.http = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.reads = reads
        self.streams = defaultdict(Stream)
        self.is_closed = False
        self.is_going_away = False
        self.error = None
        """The code of the peer's GOAWAY."""
        self.http.initiate_connection()
        if not reads:
            self.http.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def flush(self):
        self.socket.sendall(self.http.data_to_send())

    def open(self, method, path, headers=None, body=b"", ends=True):
        """Sends a request, or its beginning; returns the number of its stream."""
        stream = self.http.get_next_available_stream_id()
        fields = [(":method", method), (":scheme", "https"), (":authority", "localhost"), (":path", path)]
        fields += [(name.lower(), value) for name, value in (headers or {}).items()]
        self.http.send_headers(stream, fields, end_stream=ends and not body)
        if body:
            self.http.send_data(stream, body, end_stream=ends)
        self.flush()
        return stream

    def send(self, stream, body, ends=True):
        self.http.send_data(stream, body, end_stream=ends)
        self.flush()

    def send_large(self, stream, body):
        """As much as the peer takes, until it has answered."""
        while body and not self.streams[stream].is_complete:
            size = min(len(body), self.http.local_flow_control_window(stream), 16_384)
            if size:
                self.send(stream, body[:size], ends=size == len(body))
                body = body[size:]
            else:
                self.read(TIMEOUT_SECONDS)

    def reset(self, *streams):
        for stream in streams:
            self.http.reset_stream(stream)
        self.flush()

    def answer(self, stream):
        """Waits for the whole answer."""
        self.read_until(lambda: self.streams[stream].is_complete)
        return self.streams[stream].answer

    def request(self, method, path, body=None, headers=None):
        body = body.encode() if isinstance(body, str) else body or b""
        return self.answer(self.open(method, path, headers, body))

    def read_until(self, condition):
        while not condition():
            if self.is_closed:
                raise AssertionError("the connection was closed where an answer was due")
            self.read(TIMEOUT_SECONDS)

    def wait_for_close(self):
        while not self.is_closed:
            self.read(TIMEOUT_SECONDS)

    def read(self, seconds):
        """Reads once what comes within this time."""
        if not self.socket.pending() and not select.select([self.socket], [], [], seconds)[0]:
            raise TimeoutError("nothing came back")
        try:
            received = self.socket.recv(65_536)
        except ConnectionResetError:
            received = b""
        if not received:
            self.is_closed = True
            return
        for event in self.http.receive_data(received):
            self.handle(event)
        try:
            self.flush()
        except (BrokenPipeError, ConnectionResetError):
            self.is_closed = True

    def handle(self, event):
        if isinstance(event, h2.events.ConnectionTerminated):
            self.is_going_away = True
            self.error = event.error_code
            # The streams that are open go on (RFC 9113, 6.8); the library permits none.
            self.http.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN
            return
        stream = self.streams[getattr(event, "stream_id", None)]
        if isinstance(event, h2.events.ResponseReceived):
            for name, value in event.headers:
                if name == ":status":
                    stream.status = int(value)
                else:
                    stream.headers[name] = value
        elif isinstance(event, h2.events.InformationalResponseReceived):
            stream.is_continued = True
        elif isinstance(event, h2.events.DataReceived):
            stream.body += event.data
            if self.reads:
                self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            stream.is_complete = True
        elif isinstance(event, h2.events.StreamReset):
            stream.reset = event.error_code
