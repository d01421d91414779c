"""What a message costs the service: of its event loop, and of the lanes' threads."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from comparison.machine import print_progress
from support import processes
from support.processes import TICKS_PER_SECOND, Failure
from support.waiting import wait_until

from .fit import fit_line

PIPELINES = (1, 4, 16)
CONNECTIONS = 64


def thread_seconds(pid: int) -> dict[str, float]:
    """Processor time of each thread, by id and name."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        head, fields = (task / "stat").read_text().rsplit(")", 1)
        found[f"{task.name} {head.split('(', 1)[1]}"] = sum(map(int, fields.split()[11:13])) / TICKS_PER_SECOND
    return found


def batches(http: int) -> tuple[float, float]:
    """How many batches the service has executed, and with how many messages."""
    with urllib.request.urlopen(f"http://127.0.0.1:{http}/metrics") as answer:
        text = answer.read().decode()
    values = [re.search(rf"^headroom_batch_requests_{name}\S* (\S+)$", text, re.M) for name in ("count", "sum")]
    return float(values[0][1]), float(values[1][1])


def service_costs(headroom: Path, url: str, seconds: int, rounds: int) -> dict[str, Any]:
    port, http = processes.free_port(), processes.free_port()
    with tempfile.TemporaryDirectory() as home:
        log = Path(home) / "log"
        service = processes.start(
            [headroom, "serve", "--listen", f"127.0.0.1:{port}", "--http", f"127.0.0.1:{http}"],
            log=log, env={**os.environ, "DATABASE_URL": url},
        )  # fmt: skip
        try:
            wait_until(lambda: "ready listen=" in log.read_text(), "the service is ready")
            # Users get their rows first, which costs more than counting in them.
            bench(headroom, port, 16, 2 * seconds)
            points = [
                least([point(headroom, service.pid, port, http, pipeline, seconds) for _ in range(rounds)]) for pipeline in PIPELINES
            ]
        finally:
            processes.stop(service)
    lanes = fit_line([(size, lane) for size, _, lane in points])
    return {
        "event_loop_us": {f"{CONNECTIONS} x {pipeline}": round(loop, 2) for pipeline, (_, loop, _) in zip(PIPELINES, points)},
        "lane_batch_us": round(lanes.start),
        "lane_message_us": round(lanes.slope, 2),
    }


def least(points: list[tuple[float, float, float]]) -> tuple[float, float, float]:
    """The costs of the round that other programs disturbed least, with the size of its batches."""
    return min(points, key=lambda point: point[1])


def bench(headroom: Path, port: int, pipeline: int, seconds: int) -> dict[str, Any]:
    done = subprocess.run(
        [headroom, "bench", "--target", f"127.0.0.1:{port}", "--connections", str(CONNECTIONS), "--pipeline", str(pipeline), "--json",
         "--quiet", "--duration", str(seconds), "--warmup", "0", "--users", "2000", "--seed", "1"],
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode != 0:
        raise Failure(f"headroom bench: {done.stderr.strip()}")
    return json.loads(done.stdout)


def point(headroom: Path, pid: int, port: int, http: int, pipeline: int, seconds: int) -> tuple[float, float, float]:
    """The mean size of a batch; microseconds of the event loop for each message, and of all other threads for each batch."""
    before, (count_before, sum_before) = thread_seconds(pid), batches(http)
    bench(headroom, port, pipeline, seconds)
    after, (count_after, sum_after) = thread_seconds(pid), batches(http)
    spent = {name: value - before.get(name, 0) for name, value in after.items()}
    loop = max(value for name, value in spent.items() if "NIO" in name)
    messages, executed = sum_after - sum_before, count_after - count_before
    print_progress(f"service, pipeline {pipeline}: {messages:.0f} messages, {executed:.0f} batches")
    return messages / executed, 1e6 * loop / messages, 1e6 * (sum(spent.values()) - loop) / executed
