"""A product's backend that receives notifications."""

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler

from .local_server import LocalServer
from .waiting import TIMEOUT_SECONDS, wait_until

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER_SECRET = "whsec_" + base64.b64encode(bytes(range(32, 64))).decode()


def signature(secret, number, timestamp, body):
    """As Standard Webhooks describes it, written anew."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{number}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()


@dataclass
class Received:
    path: str
    headers: dict
    """By names in lower case."""
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def user(self):
        return self.json["data"].get("user")

    @property
    def id(self):
        return self.headers["webhook-id"]

    @property
    def signatures(self):
        return self.headers["webhook-signature"].split(" ")

    def expected_signature(self, secret=SECRET):
        return signature(secret, self.id, self.headers["webhook-timestamp"], self.body)


class Receiver(LocalServer):
    """Answers 204, or what `answers` has for the user: a status and header fields."""

    def __init__(self, port=0):
        self.requests = []
        self.answers = {}
        self.gates = {}
        """Events by user: the request is answered once the event is set."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received = Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                receiver.requests.append(received)
                if received.user in receiver.gates:
                    receiver.gates[received.user].wait(TIMEOUT_SECONDS)
                status, headers = receiver.answers.get(received.user, (204, {}))
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    if status != 204:
                        self.send_header("Content-Length", "5")
                    self.end_headers()
                    if status != 204:
                        self.wfile.write(b"text\n")
                except OSError:
                    pass  # the sender did not wait

            def log_message(self, *_):
                pass

        super().__init__(Handler, port)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hooks"

    def settings(self, secret=SECRET):
        """The environment of a service that sends here."""
        return {"HEADROOM_NOTIFICATIONS_URL": self.url, "HEADROOM_NOTIFICATIONS_SECRET": secret}

    def of(self, user):
        return [received for received in list(self.requests) if received.user == user]

    def wait_for(self, user, count=1):
        wait_until(lambda: len(self.of(user)) >= count, lambda: f"{count} requests about {user}; there are {self.of(user)}")
        return self.of(user)

    def close(self):
        for gate in self.gates.values():
            gate.set()
        super().close()
