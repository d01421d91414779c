"""The clients of clients/, each driven in the same way, so that one test covers all of them.

A driver's `call` returns the answer as a dictionary with the fields' names of the protocol, or raises `Failed`.
"""

import asyncio
import dataclasses
import itertools
import json
import re
import shutil
import subprocess
import sys
import threading
import unittest
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

from . import processes
from .waiting import TIMEOUT_SECONDS

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "clients" / "python"))

import headroom_client  # noqa: E402

CALLBACKS = {
    "own words": lambda error: headroom_client.Answer("allowed", banner=f"own words for {error.user}"),
    "the code": lambda error: "refuse" if error.code == "UNKNOWN" else "allow",
}


class Failed(Exception):
    """What the client has raised."""

    def __init__(self, name, code, message, answer, user=None, key=None):
        super().__init__(name, code, message)
        self.name, self.code, self.message, self.answer, self.user, self.key = name, code, message, answer, user, key


class ModelFailed(Exception):
    pass


def plain(answer):
    """Without None, as in JSON, and with instants as texts."""
    fields = dataclasses.asdict(answer)
    if isinstance(answer, headroom_client.Allowances):
        return {**fields, "allowances": [without_none(each) for each in fields["allowances"]]}
    fields.update(**fields.pop("more"), allowed=answer.allowed)
    return without_none(fields)


def without_none(fields):
    return {
        name: f"{value:%Y-%m-%dT%H:%M:%SZ}" if isinstance(value, datetime) else value
        for name, value in fields.items()
        if value is not None
    }


class PythonClient:
    """`Headroom`; the blocking calls of several threads are concurrent."""

    kind = headroom_client.Headroom

    def __init__(self, is_http):
        self.is_http = is_http
        self.name = f"{self.kind.__name__} over {'HTTP' if is_http else 'TCP'}"

    def connect(self, url, token=None, seconds=TIMEOUT_SECONDS, attempt_seconds=TIMEOUT_SECONDS, when_away="raise", **options):
        client = self.kind(
            url, token, timeout=seconds, attempt_timeout=attempt_seconds, when_away=CALLBACKS.get(when_away, when_away), **options
        )
        return Session(self, client)

    def perform(self, client, method, user, options):
        return getattr(client, method)(user, **options)

    def hold(self, client, user, options, amount, raises):
        with client.hold(user, **options) as hold:
            self.body(hold, amount, raises)
        return hold

    @staticmethod
    def body(hold, amount, raises):
        if amount is not None:
            hold.amount = amount
        if raises:
            raise ModelFailed(hold)

    def many(self, client, method, user, count):
        with ThreadPoolExecutor(count) as threads:
            return list(threads.map(lambda _: self.perform(client, method, user, {}), range(count)))

    def close(self, client):
        client.close()


class AsyncPythonClient(PythonClient):
    """`AsyncHeadroom`, in a loop of its own."""

    kind = headroom_client.AsyncHeadroom

    def __init__(self, is_http):
        super().__init__(is_http)
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(TIMEOUT_SECONDS)

    def perform(self, client, method, user, options):
        return self.run(getattr(client, method)(user, **options))

    def hold(self, client, user, options, amount, raises):
        async def hold():
            async with client.hold(user, **options) as held:
                self.body(held, amount, raises)
            return held

        return self.run(hold())

    def many(self, client, method, user, count):
        async def all_at_once():
            return await asyncio.gather(*(getattr(client, method)(user) for _ in range(count)))

        return self.run(all_at_once())

    def close(self, client):
        self.run(client.aclose())


class Session:
    """One client in Python."""

    def __init__(self, driver, client):
        self.driver, self.client = driver, client

    def call(self, method, user, **options):
        return plain(self._reporting(lambda: self.driver.perform(self.client, method, user, options)))

    def many(self, method, user, count):
        return [plain(answer) for answer in self.driver.many(self.client, method, user, count)]

    def hold(self, user, amount=None, raises=False, **options):
        raised = False
        try:
            hold = self._reporting(lambda: self.driver.hold(self.client, user, options, amount, raises))
        except ModelFailed as failed:
            (hold,), raised = failed.args, True
        return {
            "raised": raised, "key": hold.key, "answer": plain(hold.answer), "outcome": hold.outcome and plain(hold.outcome),
            "error": hold.error and type(hold.error).__name__,
        }  # fmt: skip

    def close(self):
        self.driver.close(self.client)

    @staticmethod
    def _reporting(work):
        try:
            return work()
        except headroom_client.Blocked as refusal:
            raise Failed(type(refusal).__name__, None, str(refusal), plain(refusal.answer)) from refusal
        except headroom_client.HeadroomError as error:
            raise Failed(type(error).__name__, error.code, str(error), None, error.user, error.key) from error


class NodeClient:
    """The client for Node.js, in a process of its own."""

    is_http = True
    name = "Node.js"

    def __init__(self):
        if shutil.which("node") is None:
            raise unittest.SkipTest("node is not installed; script/bootstrap --test installs it on Debian")
        driver, library = Path(__file__).with_name("client_driver.mjs"), ROOT / "clients" / "node" / "index.js"
        self.process = processes.start(
            ["node", str(driver), str(library)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.numbers = itertools.count()
        self.waiting = {}
        self.lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            result = json.loads(line)
            self.waiting.pop(result["id"]).set_result(result)

    def send(self, **request):
        future = Future()
        with self.lock:
            request["id"] = next(self.numbers)
            self.waiting[request["id"]] = future
            self.process.stdin.write(json.dumps(request) + "\n")
        return future

    def connect(
        self, url, token=None, seconds=TIMEOUT_SECONDS, attempt_seconds=TIMEOUT_SECONDS, when_away="raise", spread=False
    ):  # fmt: skip
        session = NodeSession(self)
        timeouts = {"timeout": seconds * 1000, "attemptTimeout": attempt_seconds * 1000}
        options = {**timeouts, "whenAway": when_away, "spread": spread}
        session.result(create={"url": url, **options, **({"token": token} if token else {})})
        return session

    def stop(self):
        self.process.stdin.close()
        processes.stop(self.process)


class NodeSession:
    """One client in Node.js."""

    def __init__(self, driver):
        self.driver, self.number = driver, next(driver.numbers)

    def send(self, **request):
        return self.driver.send(client=self.number, **request)

    def result(self, **request):
        return self.value(self.send(**request))

    def value(self, future):
        result = future.result(TIMEOUT_SECONDS)
        if failure := result.get("failure"):
            answer = failure.pop("answer")
            raise Failed(answer=answer and snake(answer), **failure)
        return result["value"]

    def call(self, method, user, **options):
        return snake(self.result(method=method, user=user, options=options))

    def many(self, method, user, count):
        futures = [self.send(method=method, user=user, options={}) for _ in range(count)]
        return [snake(self.value(future)) for future in futures]

    def hold(self, user, amount=None, raises=False, **options):
        body = {"raises": raises, **({} if amount is None else {"amount": amount})}
        held = self.result(method="hold", user=user, options=options, body=body)
        held.pop("ran")
        return {**held, "answer": snake(held["answer"]), "outcome": held["outcome"] and snake(held["outcome"])}

    def close(self):
        self.result(method="close")


def snake(fields):
    """The protocol's names for the camel case of JavaScript."""
    names = {re.sub(r"[A-Z]", lambda letter: "_" + letter[0].lower(), name): value for name, value in fields.items()}
    read = {name: [snake(each) for each in value] if name == "allowances" else value for name, value in names.items()}
    return {name: value for name, value in read.items() if value is not None}


def drivers():
    """All clients over all protocols; without Node.js, those in Python."""
    everything = [kind(is_http) for kind in (PythonClient, AsyncPythonClient) for is_http in (False, True)]
    return everything + ([NodeClient()] if shutil.which("node") else [])
