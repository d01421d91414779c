"""The base class of tests that each client of clients/ must pass, over TCP and over HTTP."""

import json
import re
import shutil

from .case import MID_MONTH, Case
from .faulty_port import FaultyPort, http_answer
from .packaged_clients import Failed, drivers

LIMIT = "We've had a lot of great conversations this month! Your next session refreshes on April 1."
LET_THROUGH = "I couldn't check your usage right now — don't worry, you can keep chatting."
NOT_NOW = "I couldn't check your usage right now. Let's try again in a moment."
NOBODY = {"seconds": 0.5, "attempt_seconds": 0.5}
SILENT = {"seconds": 1.5, "attempt_seconds": 0.5}
"""Timeouts for a port where nobody listens, which each attempt learns at once, and for a service that never answers."""


class ClientCase(Case):
    """Runs a check for each client, which is connected through a port that can lose answers."""

    CLOCK = MID_MONTH

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.drivers = drivers()
        cls.faulty = {is_http: FaultyPort(cls.port(is_http), is_http) for is_http in (False, True)}

    @classmethod
    def tearDownClass(cls):
        for port in cls.faulty.values():
            port.close()
        for driver in cls.drivers:
            if hasattr(driver, "stop"):
                driver.stop()
        super().tearDownClass()

    @classmethod
    def port(cls, is_http):
        return cls.service.http_port if is_http else cls.service.port

    def each(self, check, **options):
        for driver in self.drivers:
            with self.subTest(client=driver.name):
                self.line = self.faulty[driver.is_http]
                self.line.behave()
                client = driver.connect(self.url(driver, self.line.port), **options)
                check(client)
                client.close()
        if shutil.which("node") is None:
            self.skipTest("the client for Node.js was left out: node is not installed; script/bootstrap --test installs it on Debian")

    @staticmethod
    def url(driver, *ports):
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        return f"{'http' if driver.is_http else 'headroom'}://{hosts}"

    def held(self, user):
        """The messages that are held for a user."""
        found = re.search(r" held=(\d+) ", self.send_command(f"USAGE {user}"))
        return int(found[1]) if found else 0

    def failure(self, work, *arguments, **options):
        with self.assertRaises(Failed) as raised:
            work(*arguments, **options)
        return raised.exception

    def instead(self, code, text="", retry_ms=None, line=None):
        """An error in place of the next answer of `line`."""
        if not (line or self.line).is_http:
            advice = f"retry_ms={retry_ms} " if retry_ms else ""
            return f"-{code} {advice}{text}\r\n".encode()
        status = {"UNKNOWN": 504, "EXPIRED": 410}.get(code, 503)
        return http_answer(status, json.dumps({"status": status, "code": code, "detail": text}))

    def answering(self, user, word="ALLOWED", **fields):
        """An answer with these fields in place of the next one."""
        if self.line.is_http:
            return http_answer(200, json.dumps({"allowed": True, "user": user, **fields}))
        words = [f'{name}="{value}"' if isinstance(value, str) else f"{name}={int(value)}" for name, value in fields.items()]
        return f"+{word} user={user} {' '.join(words)}\r\n".encode()
