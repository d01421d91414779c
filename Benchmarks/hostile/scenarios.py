"""The attacks on the service, and the measurements during them. Each scenario measures one binary once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from comparison.figures import rounded
from comparison.peers import Headroom, Postgres
from support import processes
from support.certificates import Authority
from support.processes import Failure, processor_seconds, resident_bytes, run
from support.waiting import wait_until

USERS = 10_000
#: Well-behaved clients: connections, and messages a second over all of them at random intervals.
GOOD_CONNECTIONS = 64
GOOD_RATE = 2_000
#: Requests in flight on a greedy connection: the maximum.
GREEDY_PIPELINE = 1_024
GREEDY_CONNECTIONS = (0, 1, 16, 64)
HOSTILE_CONNECTIONS = 4_096
HTTP_CONNECTIONS = 5_000
#: The time of each flush of the slow disk.
FLUSH_MILLISECONDS = 100
OVERLOAD_CONNECTIONS = 256

Sample = dict[str, Any]


def good_clients(service: Headroom, seconds: float, seed: int = 1) -> Sample:
    """Well-behaved clients that send at a fixed rate. The latency begins when a message is due, also if it is sent later."""
    # Always the generator of the built binary, so that only the service differs.
    command = [
        str(service.generator), "bench", "--target", f"127.0.0.1:{service.port}", "--connections", str(GOOD_CONNECTIONS),
        "--rate", str(GOOD_RATE), "--duration", f"{seconds:g}", "--warmup", "1", "--users", str(USERS), "--seed", str(seed),
        "--json", "--quiet",
    ]  # fmt: skip
    # The exit status reports dropped and unanswered requests, which are figures here.
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=False)
    try:
        report = json.loads(done.stdout)
    except ValueError as error:
        if "PING" not in done.stderr:
            raise Failure(f"headroom bench gave no figure: {done.stderr.strip()[-400:]}") from error
        # A well-behaved client cannot connect.
        return {"got_in": 0}
    latency = report["latency_ms"] or {}
    return {
        "got_in": 1,
        "p50_ms": rounded(latency.get("p50", 0)),
        "p99_ms": rounded(latency.get("p99", 0)),
        "max_ms": rounded(latency.get("max", 0)),
        "allowed_per_second": rounded(report["allowed"] / report["seconds"]),
        "errors": report["errors"],
        "unanswered": report["unanswered"] + report["dropped"],
    }


@contextmanager
def greedy_clients(service: Headroom, connections: int, command: str | None = None) -> Iterator[None]:
    if connections == 0:
        yield
        return
    verb = ["--command", command] if command else ["--verb", "consume"]
    # Separate users, so that well-behaved clients wait for the service and not for a row.
    generator = processes.start(
        [
            str(service.generator), "bench", "--target", f"127.0.0.1:{service.port}", "--connections", str(connections),
            "--pipeline", str(GREEDY_PIPELINE), "--duration", "600", "--warmup", "0", "--users", str(USERS), "--seed", "2",
            "--json", "--quiet", *verb,
        ],
        log=service.work / "greedy.log",
    )  # fmt: skip
    try:
        before = int(service.info()["connections"])
        wait_until(lambda: int(service.info()["connections"]) >= before + connections, "the greedy clients are connected")
        yield
        if generator.poll() is not None:
            raise Failure("the greedy clients ended before their time")
    finally:
        processes.kill(generator)


def fairness(service: Headroom, connections: int, seconds: float, command: str | None = None) -> Sample:
    with greedy_clients(service, connections, command):
        return good_clients(service, seconds)


class DescriptorCounter:
    """The highest number of descriptors of a process, sampled ten times a second."""

    def __init__(self, pid: int) -> None:
        self.pid, self.descriptors = pid, 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while not self._over.wait(0.1):
            self.descriptors = max(self.descriptors, len(os.listdir(f"/proc/{self.pid}/fd")))

    def end(self) -> int:
        self._over.set()
        self._thread.join()
        return self.descriptors


@contextmanager
def attacked(service: Headroom, protocol: str, connections: int) -> Iterator[None]:
    if connections == 0:
        yield
        return
    port = service.port if protocol == "line" else service.http_port
    attackers = processes.start(
        [sys.executable, "-m", "hostile.attackers", protocol, str(port), str(connections)],
        log=service.work / "attackers.log", stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        if attackers.stdout.readline() != b"ready\n":
            raise Failure("the attackers did not start")
        yield
        if attackers.poll() is not None:
            raise Failure("the attackers ended before their time")
    finally:
        processes.stop(attackers)


def hostile(service: Headroom, connections: int, seconds: float) -> Sample:
    """Memory, descriptors and the latency of well-behaved clients under hostile peers."""
    counter = DescriptorCounter(service.pid)
    try:
        with attacked(service, "line", connections):
            sample = good_clients(service, seconds)
            info = service.info()
    finally:
        descriptors = counter.end()
    sessions = int(service.postgres.sql("select count(*) from pg_stat_activity where application_name like 'headroom%'"))
    return sample | {
        "resident_highest_mb": rounded(resident_bytes(service.pid, "VmHWM") / 1e6),
        "descriptors_highest": descriptors,
        "connections": int(info["connections"]),
        "database_sessions": sessions,
    }


def http_probes(service: Headroom, connections: int, seconds: float, tls: Authority | None) -> Sample:
    """Health checks of a load balancer on new connections while hostile peers occupy the HTTP port, and the latency of clients of
    the line protocol."""
    counter = DescriptorCounter(service.pid)
    try:
        with attacked(service, "http", connections):
            command = [sys.executable, "-m", "hostile.probing", str(service.http_port), f"{seconds:g}"]
            sample = json.loads(run([*command, *([tls.certificate] if tls else [])], seconds + 120))
            sample["line"] = good_clients(service, seconds) if tls is None else {}
    finally:
        descriptors = counter.end()
    return sample | {
        "resident_highest_mb": rounded(resident_bytes(service.pid, "VmHWM") / 1e6),
        "descriptors_highest": descriptors,
    }


def overload(service: Headroom, rate: float, seconds: float) -> Sample:
    command = [sys.executable, "-m", "hostile.open_loop", str(service.port), f"{rate:g}", f"{seconds:g}", str(OVERLOAD_CONNECTIONS)]
    return json.loads(run(command, seconds + 60))


def throughput(service: Headroom, pipeline: int, seconds: float) -> Sample:
    """64 connections that send as fast as they are answered: the cost of the defences for well-behaved clients."""
    command = [
        str(service.generator), "bench", "--target", f"127.0.0.1:{service.port}", "--connections", "64", "--pipeline",
        str(pipeline), "--duration", f"{seconds:g}", "--warmup", "1", "--users", str(USERS), "--seed", "3", "--json", "--quiet",
    ]  # fmt: skip
    before = processor_seconds(service.pid)
    report = json.loads(run(command, seconds + 60))
    messages = report["replies"] + report["warmup_replies"]
    return {
        "per_second": rounded(report["allowed"] / report["seconds"]),
        "p99_ms": rounded(report["latency_ms"]["p99"]),
        # On a busy machine this is more reliable than the rate.
        "cpu_us": rounded((processor_seconds(service.pid) - before) * 1e6 / messages),
    }


class Contender(Headroom):
    """One of the binaries to compare, on a separate database."""

    def __init__(self, name: str, program: Path, generator: Path, postgres: Postgres, work: Path) -> None:
        super().__init__(program, postgres, f"hostile_{name}", work)
        self.name, self.generator = name, generator

    def prepare_database(self) -> None:
        self.postgres.create_database(self.database)
        self.start()
        self.prepare(USERS)
        self.stop()

    @contextmanager
    def serving(self, *settings: str, **how: Any) -> Iterator[Callable[[], None]]:
        """A new process for each measurement, because the highest memory is recorded for the process."""
        self.start(*settings, **how)
        try:
            yield self.stop
        finally:
            self.stop()
