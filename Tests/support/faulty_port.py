"""A port before the service's line protocol or HTTP port, which loses, withholds or replaces chosen answers to clients."""

import re

from .proxy import Connection, Cut, Proxy

REQUEST = re.compile(
    rb"\*\d+\r\n\$\d+\r\n(CONSUME|CHECK|RESERVE|COMMIT|RELEASE|USAGE)\r\n|POST /v1/usage/[^/ ]+/(\w+) HTTP|(GET) /v1/usage/"
)
LOST, SILENT = object(), object()
"""The answer does not arrive, although the service has executed the request; the service does not get the request."""
STAND_INS = {True: b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", False: b"*1\r\n$4\r\nPING\r\n"}
"""What the service gets instead of a request whose answer is replaced, for HTTP and for the line protocol."""


class FaultyConnection(Connection):
    fault = None
    is_over = False
    """The rest of this connection does not reach the service."""

    async def request(self, data):
        found = REQUEST.search(data)
        if found and not self.is_over:
            verb = next(filter(None, found.groups())).decode().upper().replace("GET", "USAGE")
            self.proxy.verbs.append(verb)
            self.fault = self.proxy.fault_for(verb)
            if self.fault is SILENT:
                self.is_over = True
            elif self.fault is not None and self.fault is not LOST:
                is_http = self.proxy.is_http
                yield data[: found.start()] + STAND_INS[is_http]
                # HTTP clients send a body after the head, and connect again after this answer.
                self.is_over = is_http
                return
        if not self.is_over:
            yield data

    async def answer(self, data):
        fault, self.fault = self.fault, None
        if fault is LOST:
            raise Cut
        yield fault if isinstance(fault, bytes) else data


class FaultyPort(Proxy):
    """`faults` are pairs of a verb and what happens to the answer to its next request, in order; `verbs` are the requests so far."""

    connection = FaultyConnection

    def __init__(self, port, is_http):
        super().__init__(lambda: port)
        self.is_http = is_http
        self.faults = []
        self.verbs = []
        self.is_silent = False
        """Whether no request gets an answer."""
        self.start_in_background()

    def fault_for(self, verb):
        if self.is_silent:
            return SILENT
        if self.faults and self.faults[0][0] == verb:
            return self.faults.pop(0)[1]
        return None

    def behave(self):
        self.faults, self.verbs, self.is_silent = [], [], False


def http_answer(status, body, **headers):
    """The bytes of an answer, after which a client connects again."""
    fields = {"Content-Type": "application/json", "Content-Length": len(body.encode()), "Connection": "close", **headers}
    lines = [f"HTTP/1.1 {status} Status", *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items()), "", body]
    return "\r\n".join(lines).encode()
