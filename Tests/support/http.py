"""Requests to the HTTP server."""

import http.client
import json
from dataclasses import dataclass

from .waiting import TIMEOUT_SECONDS


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    """Header fields, by case-insensitive name."""
    body: bytes

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)


def request(port, method, path, body=None, headers=None, timeout=TIMEOUT_SECONDS, tls=None):
    """Sends bytes and text as they are, any other `body` as JSON. `tls` is an ssl.SSLContext."""
    headers = dict(headers or {})
    if body is not None and not isinstance(body, (bytes, str)):
        body = json.dumps(body)
        headers.setdefault("Content-Type", "application/json")
    if tls is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    else:
        connection = http.client.HTTPSConnection("localhost", port, timeout=timeout, context=tls)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return Answer(status=response.status, headers=response.headers, body=response.read())
    finally:
        connection.close()
