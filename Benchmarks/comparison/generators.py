"""The load generators: their command lines and the parsing of their output."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.processes import Failure, run
from support.users import numbered_user

from .figures import Sample, percentile, rounded

#: The default number of connections and of requests in flight on each.
CONNECTIONS = 64
PIPELINE = 16


# pgbench --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pgbench:
    program: Path
    socket: Path
    work: Path
    seconds: float

    def measure(self, script: Path, clients: int, database: str) -> Sample:
        prefix = self.work / "transactions"
        # A log line for each transaction of one client, and for a sample of many clients.
        sampling = [] if clients == 1 else ["--sampling-rate=0.05"]
        out = run(
            [
                str(self.program),
                "--no-vacuum",
                "--protocol=prepared",
                f"--client={clients}",
                f"--jobs={min(clients, 2)}",
                f"--time={max(1, round(self.seconds))}",
                f"--file={script}",
                "--log",
                f"--log-prefix={prefix}",
                *sampling,
                f"--host={self.socket}",
                "--username=postgres",
                database,
            ],
            self.seconds + 60,
            self.work / "pgbench.log",
        )
        logs = sorted(self.work.glob(prefix.name + ".*"))
        latencies = pgbench_latencies(line for log in logs for line in log.read_text(encoding="ascii").splitlines())
        for log in logs:
            log.unlink()
        return parse_pgbench(out) | latencies


def parse_pgbench(out: str) -> Sample:
    rate = re.search(r"^tps = ([0-9.]+)", out, re.MULTILINE)
    processed = re.search(r"^number of transactions actually processed: (\d+)", out, re.MULTILINE)
    failed = re.search(r"^number of failed transactions: (\d+)", out, re.MULTILINE)
    if not rate or not processed:
        raise Failure("pgbench gave no figure")
    if failed and int(failed[1]):
        raise Failure(f"{failed[1]} of pgbench's transactions failed")
    return {"per_second": rounded(float(rate[1]), 6), "messages": int(processed[1])}


def pgbench_latencies(lines: Iterable[str]) -> Sample:
    """The transactions' times, in the third column of pgbench's log in microseconds."""
    milliseconds = [int(line.split()[2]) / 1000 for line in lines]
    if not milliseconds:
        raise Failure("pgbench logged no transaction")
    return {
        f"{name}_ms": percentile(milliseconds, percent) for name, percent in (("p50", 50), ("p99", 99), ("p99_9", 99.9))
    }


# redis-benchmark ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RedisBenchmark:
    work: Path
    seconds: float

    def measure(
        self,
        port: int,
        pipeline: int,
        users: int,
        requests: int,
        request: Sequence[str],
        access: Sequence[str] = (),
    ) -> Sample:
        # It sends CONFIG first, which headroom does not support; the warning goes to the log.
        out = run(
            [
                "redis-benchmark",
                "-h",
                "127.0.0.1",
                "-p",
                str(port),
                "-c",
                str(CONNECTIONS),
                "-P",
                str(pipeline),
                "-r",
                str(users),
                "-n",
                str(requests),
                "-e",
                "--csv",
                *access,
                *request,
            ],
            self.seconds * 10 + 60,
            self.work / "redis-benchmark.log",
        )
        return parse_redis_benchmark(out) | {"messages": requests}

    def requests_for(self, rate_before: float) -> int:
        """The number of requests that takes the time at the rate of the run before.

        Whole batches on every connection, since it issues its requests by the pipeline.
        """
        unit = CONNECTIONS * PIPELINE
        return (int(rate_before * self.seconds) // unit + 1) * unit


def parse_redis_benchmark(out: str) -> Sample:
    # "request","rps","avg","min","p50","p95","p99","max": counted from the end, as the request may have commas.
    rows = [row for row in csv.reader(out.splitlines()) if len(row) >= 8]
    try:
        rate, p50, p99 = (float(rows[-1][column]) for column in (-7, -4, -2))
    except (IndexError, ValueError) as error:
        raise Failure("redis-benchmark gave no figure") from error
    return {"per_second": rate, "p50_ms": p50, "p99_ms": p99}


# Users in turn --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InTurn:
    """A closed loop in which each user's turn comes once before any user's comes again (in_turn.c)."""

    program: Path

    def measure(
        self,
        port: int,
        users: int,
        pipeline: int = PIPELINE,
        first: int = 0,
        among: int | None = None,
        cycles: int = 1,
        may_refuse: bool = False,
    ) -> Sample:
        """among: of how many users, scattered over which are those whose turn comes.

        may_refuse: messages refused as overload are counted and do not fail the run.
        """
        numbers = (port, CONNECTIONS, pipeline, first, among or users, users, cycles * users, int(may_refuse))
        out = run([str(self.program), *map(str, numbers)], 600)
        return parse_in_turn(out, cycles * users, may_refuse)


def parse_in_turn(out: str, messages: int, may_refuse: bool = False) -> Sample:
    try:
        report = json.loads(out)
        seconds, refused = report["seconds"], report["refused"]
        latencies = {name: rounded(report[name]) for name in ("p50_ms", "p99_ms", "p99_9_ms", "max_ms")}
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f"in_turn gave no figure: {out.strip()[:200]!r}") from error
    messages -= refused
    sample = {"per_second": rounded(messages / seconds, 6), **latencies, "messages": messages}
    return sample | ({"refused": refused} if may_refuse else {})


# wrk ------------------------------------------------------------------------------------------------------------------

WRK_SCRIPT = """\
function setup(thread) thread:set("seed", {seed}) end
function init(args) math.randomseed(seed) end
function request()
    local user = string.format("{prefix}%012d", math.random(0, {users} - 1))
    return wrk.format("POST", "/v1/usage/" .. user .. "/consume")
end
{delay}
function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format(
        '\\n{{"messages": %d, "seconds": %f, "p50_ms": %f, "p99_ms": %f, "errors": %d}}\\n', summary.requests,
        summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
        errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
"""


@dataclass(frozen=True)
class Wrk:
    """POST …/consume of random users on keep-alive connections, each with one request at a time."""

    work: Path

    def measure(
        self, port: int, users: int, seconds: float, seed: int, connections: int = CONNECTIONS, delay_ms: int = 0
    ) -> Sample:
        """delay_ms: how long a connection waits before its next request."""
        script = self.work / f"wrk_{connections}.lua"
        delay = f"function delay() return {delay_ms} end" if delay_ms else ""
        script.write_text(WRK_SCRIPT.format(seed=seed, users=users, delay=delay, prefix=numbered_user(0)[:24]))
        arguments = ["wrk", "-t1", f"-c{connections}", f"-d{round(seconds)}s", "-s", str(script), f"http://127.0.0.1:{port}"]
        return parse_wrk(run(arguments, seconds + 60, self.work / "wrk.log"), connections)


def parse_wrk(out: str, connections: int) -> Sample:
    try:
        report = json.loads(out.strip().splitlines()[-1])
        sample: Sample = {
            "per_second": rounded(report["messages"] / report["seconds"], 6),
            "p50_ms": rounded(report["p50_ms"]),
            "p99_ms": rounded(report["p99_ms"]),
            "messages": report["messages"],
            # It reads no answer after the end, so the messages on the way are counted without one.
            "unanswered_at_most": connections,
        }
        errors = report["errors"]
    except (ValueError, KeyError, TypeError, IndexError, ZeroDivisionError) as error:
        raise Failure(f"wrk gave no figure: {out.strip()[-200:]!r}") from error
    if errors:
        raise Failure(f"wrk met {errors} errors")
    return sample


# headroom bench -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HeadroomBench:
    program: Path
    work: Path
    seconds: float

    def measure(
        self,
        port: int,
        users: int,
        connections: int = CONNECTIONS,
        pipeline: int = PIPELINE,
        distribution: str = "uniform",
        command: str | None = None,
        verb: str = "consume",
        rate: float | None = None,
        key_share: float = 0,
        idle_connections: int = 0,
        seed: int = 1,
        seconds: float | None = None,
        warmup: float = 1,
        may_refuse: bool = False,
    ) -> Sample:
        """may_refuse: messages refused as overload are counted and do not fail the run."""
        seconds = seconds or self.seconds
        arguments = [
            str(self.program),
            "bench",
            "--target",
            f"127.0.0.1:{port}",
            "--connections",
            str(connections),
            "--duration",
            f"{seconds:g}",
            "--warmup",
            f"{warmup:g}",
            "--users",
            str(users),
            "--distribution",
            distribution,
            "--seed",
            str(seed),
            "--json",
            "--quiet",
        ]
        # An open loop has no fixed number in flight.
        arguments += ["--pipeline", str(pipeline)] if rate is None else ["--rate", f"{rate:.0f}"]
        arguments += ["--command", command] if command else ["--verb", verb]
        if key_share:
            arguments += ["--key-share", f"{key_share:g}"]
        if idle_connections:
            arguments += ["--idle-connections", str(idle_connections)]
        out = run(arguments, seconds + warmup + 120, self.work / "headroom-bench.log")
        return parse_headroom_bench(out, may_refuse)


def parse_headroom_bench(out: str, may_refuse: bool = False) -> Sample:
    try:
        report: dict[str, Any] = json.loads(out)
        latency = report["latency_ms"]
        refused = report["errors"].pop("OVERLOADED", 0) if may_refuse else 0
        # The database also has the messages of the warm-up. How many of these were refused is not reported.
        replies = report["replies"] + report["warmup_allowed" if may_refuse else "warmup_replies"] - refused
        # A message with a hold has two requests.
        messages = replies // 2 if report["verb"] == "reserve" else replies
        sample: Sample = {
            "per_second": rounded(report["per_second"], 6),
            "p50_ms": rounded(latency["p50"]),
            "p99_ms": rounded(latency["p99"]),
            "p99_9_ms": rounded(latency["p99_9"]),
            "max_ms": rounded(latency["max"]),
            "messages": messages,
            "series": report["series"],
        }
        if may_refuse:
            sample["refused"] = refused
        if report["mode"] == "open":
            sample |= {"rate_offered": report["rate_offered"], "send_lag_p99_ms": rounded(report["send_lag_ms"]["p99"])}
        wrong = {
            name: report[name]
            for name in ("errors", "blocked", "dropped", "unanswered", "broken_connections", "idle_connections_closed")
        }
        if report["verb"] in ("consume", "reserve"):
            wrong["not allowed"] = messages - report["allowed"] - report["warmup_allowed"]
        if report["verb"] == "reserve":
            wrong["without RESERVE or COMMIT"] = replies % 2
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f"headroom bench gave no figure: {out.strip()[:200]!r}") from error
    if any(wrong.values()):
        raise Failure(
            f"headroom bench met what should not be: { {name: value for name, value in wrong.items() if value} }"
        )
    return sample
