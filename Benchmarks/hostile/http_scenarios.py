"""The HTTP port under attack: how many health checks are answered, and how fast."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from comparison.figures import percentile, rounded
from comparison.peers import Headroom
from support import http, processes
from support.processes import Failure, processor_seconds, resident_bytes

from .bodies import AUTHORIZATION
from .scenarios import Sample, good_clients

#: The number of connections, out of 256 (http-connections-maximum).
BODY_CONNECTIONS = 64
#: All from one address, and few, because each sends as much as it can.
FLOOD_CONNECTIONS = 16
#: The settings with which the service accepts all posts of the attackers.
BODY_SETTINGS = ("--revenuecat-authorization", AUTHORIZATION)
PROBES = ("/healthz", "/readyz")
#: Balancers check about once a second; more often here, for percentiles.
PROBE_SECONDS = 0.05
#: The timeout of a check.
PROBE_TIMEOUT_SECONDS = 5.0


def probes(service: Headroom, seconds: float) -> Sample:
    """Probes on new connections, one after the other."""
    waits: list[float] = []
    failed = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for path in PROBES:
            begin = time.monotonic()
            try:
                is_answered = http.request(service.http_port, "GET", path, timeout=PROBE_TIMEOUT_SECONDS).status == 200
            except OSError:
                is_answered = False
            waits.append((time.monotonic() - begin) * 1_000)
            failed += not is_answered
        time.sleep(PROBE_SECONDS)
    waits.sort()
    return {
        "probes": len(waits), "probes_failed": failed, "probe_p50_ms": rounded(percentile(waits, 50)),
        "probe_p99_ms": rounded(percentile(waits, 99)), "probe_max_ms": rounded(waits[-1]),
    }  # fmt: skip


def bodies(service: Headroom, connections: int, seconds: float) -> Sample:
    """Probes, then well-behaved clients of the line port, while hostile peers post bodies of every kind."""
    attackers = None
    if connections:
        attackers = processes.start(
            [sys.executable, "-m", "hostile.bodies", str(service.http_port), str(connections)],
            log=service.work / "bodies.log", stdout=subprocess.PIPE,
        )  # fmt: skip
        if attackers.stdout.readline() != b"ready\n":
            raise Failure("the attackers did not start")
    begin, used = time.monotonic(), processor_seconds(service.pid)
    sample = probes(service, seconds) | good_clients(service, seconds)
    took, used = time.monotonic() - begin, processor_seconds(service.pid) - used
    sample |= {"resident_highest_mb": rounded(resident_bytes(service.pid, "VmHWM") / 1e6), "processors": rounded(used / took)}
    if attackers:
        if attackers.poll() is not None:
            raise Failure("the attackers ended before their time")
        attackers.terminate()
        answers = json.loads(attackers.stdout.readline())
        processes.stop(attackers)
        wrong = sum(count for answer, count in answers.items() if answer[:3] != answer[-3:])
        sample |= {"bodies_per_second": rounded(sum(answers.values()) / took), "bodies_answered_otherwise": wrong}
    return sample


def flood(service: Headroom, kind: str, certificate: str, seconds: float) -> Sample:
    """The service's memory while peers without a token flood a port, and the probes beside them."""
    port = service.port if kind.startswith("line port") else service.http_port
    attackers = processes.start(
        [sys.executable, "-m", "hostile.floods", str(port), str(certificate), kind, str(FLOOD_CONNECTIONS)],
        log=service.work / "floods.log", stdout=subprocess.PIPE,
    )  # fmt: skip
    if attackers.stdout.readline() != b"ready\n":
        raise Failure("the attackers did not start")
    begin, used = time.monotonic(), processor_seconds(service.pid)
    time.sleep(seconds)
    took, used = time.monotonic() - begin, processor_seconds(service.pid) - used
    highest = resident_bytes(service.pid, "VmHWM")
    attackers.terminate()
    sample = json.loads(attackers.stdout.readline())
    processes.stop(attackers)
    return {"resident_highest_mb": rounded(highest / 1e6), "processors": rounded(used / took), **sample}
