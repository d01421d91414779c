"""Measures what a batch, a poll and a message cost, for costs.json.

The databases are scratch databases on this machine, migrated by this version: one on a plain PostgreSQL, and one that `headroom
distribute` has put on a coordinator and workers. They get users. Batches are those of `sql/queries/count_batch.sql`, sent by pgbench
with a lane's settings, one after the other; every commit waits for the disk.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from comparison.machine import description, print_progress
from support import postgres, processes
from support.processes import Failure

from .fit import Line, fit_line
from .measure_service import service_costs

ROOT = Path(__file__).resolve().parent.parent.parent
SIZES = (1, 4, 16, 64, 256)
USERS = 100_000
"""With rows in the bucket whose batches are measured."""
SCRIPTS = 64
"""Batches of different users, in turn: their rows are on pages all over the table, as those of real users."""
WARM_UP = 150
"""Statements."""
LANE_SETTINGS = (
    "search_path=pg_catalog,pg_temp", "enable_hashjoin=off", "enable_mergejoin=off", "enable_seqscan=off", "enable_bitmapscan=off",
    "jit=off", "role=headroom_service", "track_wal_io_timing=on",
)  # fmt: skip
"""As `LaneSettings.swift` sets them, and the time of each flush is recorded."""

OWN_BUCKETS = """
    select numbers.bucket
    from headroom.bucket_map as map
    cross join unnest(map.buckets) as numbers (bucket)
    join pg_dist_placement as placement
        on placement.shardid = get_shard_id_for_distribution_column('public.message_usage', numbers.bucket)
    join pg_dist_local_group as own on own.groupid = placement.groupid
"""
"""The buckets that the server has that executes it."""


@dataclass
class Server:
    name: str
    url: str
    plan_cache_mode: str

    def sql(self, statement: str) -> list[str]:
        done = subprocess.run(postgres.psql(self.url), input=statement, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise Failure(f"{self.name}: {done.stderr.strip()}")
        return done.stdout.splitlines()

    def value(self, statement: str) -> str:
        return self.sql(statement)[0]

    def processor_seconds(self) -> float:
        """Of all processes of the server, which runs on this machine."""
        backend = int(self.value("select pg_catalog.pg_backend_pid()"))
        return processes.processor_seconds(self._postmaster(backend))

    def _postmaster(self, backend: int) -> int:
        if not hasattr(self, "_pid"):
            directory = self.value("select pg_catalog.current_setting('data_directory')")
            self._pid = int(Path(directory, "postmaster.pid").read_text().splitlines()[0])
        return self._pid

    def flushes(self) -> tuple[int, float]:
        """How many there were, and the milliseconds that they took."""
        number, milliseconds = self.value("select wal_sync || '|' || wal_sync_time from pg_catalog.pg_stat_wal").split("|")
        return int(number), float(milliseconds)


@dataclass
class Executed:
    """A session of pgbench."""

    elapsed: float
    """Microseconds for each statement."""
    processor_seconds: list[float]
    """Of each watched server, in all."""


@dataclass
class Run:
    """Microseconds for each statement."""

    elapsed: float
    processor: dict[str, float]
    flush: float
    """Of one flush; 0 if there was none."""


def statement(name: str, **parameters: str) -> str:
    """A statement of the service, with values in place of `$1`, `$2` …, named p1, p2 …"""
    lines = (ROOT / "sql/queries" / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--"))
    return re.sub(r"\$(\d+)", lambda found: parameters[f"p{found[1]}"], text)


def array(values: list[Any]) -> str:
    return "'{" + ",".join(map(str, values)) + "}'"


class Measurement:
    def __init__(self, plain: Server, worker: Server, coordinator: Server, work: Path, seconds: int, rounds: int) -> None:
        self.plain, self.worker, self.coordinator = plain, worker, coordinator
        self.work, self.seconds, self.rounds = work, seconds, rounds
        self.pgbench = shutil.which("pgbench", path=postgres.programs() + os.pathsep + os.environ["PATH"])
        if self.pgbench is None:
            raise Failure("pgbench was not found")

    def run(self, server: Server, scripts: list[str], watched: list[Server]) -> Run:
        """The first statements of a session are planned, so they are executed in a session of their own, whose time is subtracted."""
        files = []
        for index, script in enumerate(scripts):
            path = self.work / f"{index}.sql"
            path.write_text(script, encoding="utf-8")
            files += ["-f", str(path)]
        first = self._execute(server, files, watched, "-t", str(WARM_UP), "-D", "number=0")
        flushes = server.flushes()
        more = max(2 * WARM_UP, int(1e6 * self.seconds / first.elapsed))
        rest = self._execute(server, files, watched, "-t", str(WARM_UP + more), "-D", f"number={WARM_UP}")
        number, milliseconds = (after - earlier for after, earlier in zip(server.flushes(), flushes))
        spent = [1e6 / more * (after - earlier) for after, earlier in zip(rest.processor_seconds, first.processor_seconds)]
        flush = 1e3 * milliseconds / number if number else 0
        return Run(rest.elapsed, {one.name: each for one, each in zip(watched, spent)}, flush)

    def _execute(self, server: Server, files: list[str], watched: list[Server], *limits: str) -> Executed:
        settings = [*LANE_SETTINGS, f"plan_cache_mode={server.plan_cache_mode}"]
        environment = {**os.environ, "PGOPTIONS": " ".join(f"-c {setting}" for setting in settings)}
        before = [one.processor_seconds() for one in watched]
        done = subprocess.run(
            [self.pgbench, "-n", "-M", "prepared", *limits, *files, server.url], capture_output=True, text=True, env=environment
        )
        found = re.search(r"latency average = ([\d.]+) ms", done.stdout)
        if done.returncode != 0 or found is None:
            raise Failure(f"{server.name}: {done.stderr.strip()[-2_000:]}")
        spent = [one.processor_seconds() - earlier for one, earlier in zip(watched, before)]
        return Executed(1e3 * float(found[1]), spent)

    # Users --------------------------------------------------------------------------------------------------------------

    def add_users(self, server: Server, buckets: list[int], each: int) -> dict[int, list[str]]:
        """New users in each of these buckets, with rows that can be counted in."""
        needed = 2 * each * int(server.value("select cardinality(buckets) from headroom.bucket_map"))
        rows = server.sql(
            "select bucket || ' ' || string_agg(id::text, ',' order by id) from ("
            "select id, bucket, row_number() over (partition by bucket) as number from ("
            f"select id, headroom.bucket_of(id) as bucket from (select gen_random_uuid() as id from generate_series(1, {needed})) as a"
            f") as b) as c where number <= {each} and bucket = any('{{{','.join(map(str, buckets))}}}') group by bucket"
        )
        users = {int(bucket): ids.split(",") for bucket, ids in (row.split(" ") for row in rows)}
        revision = server.value("select revision from headroom.plan_revision")
        for bucket, ids in users.items():
            server.sql(
                "insert into public.message_usage (bucket, user_id, billing_period, plan, state, enforced, usable_until, plan_revision, "
                f"entitlement_version, generation) select {bucket}, id, '{self.period}', 'pro', 'active', true, 'infinity', {revision}, "
                f"1, 1 from unnest({array(ids)}::uuid[]) as users (id)"
            )
        return users

    period = "2026-01"

    def batches(self, server: Server, bucket: int, users: list[str], size: int) -> list[str]:
        """Batches of different users, which a new lane sends in turn."""
        lane = str(uuid.uuid4())
        server.sql(statement("open_lane", p1=str(bucket), p2=f"'{lane}'::uuid"))
        revision = server.value("select buckets_revision from headroom.plan_revision")
        scripts = []
        chance = random.Random(size)
        for _ in range(SCRIPTS):
            ids = sorted(chance.sample(users, size))
            text = statement(
                "count_batch", p1=str(bucket), p2=f"'{lane}'::uuid", p3=":number", p4=array(ids), p5=array([self.period]),
                p6=array([1] * size), p7=array([1] * size), p8=array([1] * size), p9=revision,
            )  # fmt: skip
            scripts.append(f"\\set number :number + 1\n{text}\n")
        return scripts

    # Costs --------------------------------------------------------------------------------------------------------------

    def batch_costs(self) -> dict[str, Any]:
        bucket = int(self.worker.value(OWN_BUCKETS))
        plain_bucket = int(self.plain.value("select buckets[1] from headroom.bucket_map"))
        plain_users = self.add_users(self.plain, [plain_bucket], USERS)[plain_bucket]
        users = self.add_users(self.coordinator, [bucket], USERS)[bucket]
        targets = {
            "plain": (self.plain, plain_bucket, plain_users, [self.plain]),
            "worker": (self.worker, bucket, users, [self.worker]),
            "forwarded": (self.coordinator, bucket, users, [self.coordinator, self.worker]),
        }
        runs: dict[str, dict[int, list[Run]]] = {name: {size: [] for size in SIZES} for name in targets}
        for number in range(self.rounds):
            for size in SIZES:
                for name, (server, of, ids, watched) in targets.items():
                    runs[name][size].append(self.run(server, self.batches(server, of, ids, size), watched))
                print_progress(f"round {number + 1}, batches of {size}")
        return {
            name: batch_figures(by_size, [one.name for one in watched])
            for (name, by_size), (_, _, _, watched) in zip(runs.items(), targets.values())
        }

    def poll_costs(self) -> dict[str, Any]:
        """What each instance of the service asks of the servers without a message."""
        buckets = [int(row) for row in self.coordinator.sql("select unnest(buckets) from headroom.bucket_map")]
        users = [user for ids in self.add_users(self.coordinator, buckets, 1_024 // len(buckets)).values() for user in ids]
        monitor = "".join(statement(name) for name in ("read_database", "read_placements", "read_tokens"))
        watch = statement("read_server", p1="0")
        some = {size: users[:: len(users) // size] for size in (128, 1_024)}
        polls = {size: statement("poll_distributed_users", p1=array(of), p2=array(["x"] * len(of))) for size, of in some.items()}
        both = [self.coordinator, self.worker]
        found = {}
        for name, text in {"monitor": monitor, "watch": watch, **{f"poll of {size}": text for size, text in polls.items()}}.items():
            runs = [self.run(self.coordinator, [text], both).processor for _ in range(self.rounds)]
            found[name] = {one.name: min(each[one.name] for each in runs) for one in both}
            print_progress(f"{name}: {found[name]}")
        line = fit_line([(size, found[f"poll of {size}"]["coordinator"]) for size in polls])
        # The worker has a part of the buckets.
        own = int(self.worker.value(f"select count(*) from ({OWN_BUCKETS}) as own"))
        on_worker = fit_line([(size * own / len(buckets), found[f"poll of {size}"]["worker"]) for size in polls])
        return {
            "monitor_us": round(found["monitor"]["coordinator"]),
            "watch_us": round(found["watch"]["coordinator"]),
            "poll_bucket_us": round(line.start / len(buckets)),
            "poll_user_us": round(line.slope, 2),
            "poll_worker_bucket_us": round(on_worker.start / own),
            "poll_worker_user_us": round(on_worker.slope, 2),
        }

    def round_trip(self) -> float:
        return min(self.run(self.plain, ["select 1;"], [self.plain]).elapsed for _ in range(self.rounds))


def batch_figures(runs: dict[int, list[Run]], servers: list[str]) -> dict[str, Any]:
    """The least of each, because other programs on the machine can only add to it."""
    processor = {name: {size: min(run.processor[name] for run in each) for size, each in runs.items()} for name in servers}
    lines: dict[str, Line] = {name: fit_line(list(by_size.items())) for name, by_size in processor.items()}
    return {
        **{name: {"batch_us": round(line.start), "row_us": round(line.slope, 2)} for name, line in lines.items()},
        "flush_us": round(min(run.flush for each in runs.values() for run in each)),
        "processor_us": {name: {str(size): round(value) for size, value in by_size.items()} for name, by_size in processor.items()},
        "elapsed_us": {str(size): round(min(run.elapsed for run in each)) for size, each in runs.items()},
    }


def measure(chosen: Any) -> dict[str, Any]:
    plain = Server("plain", chosen.plain, "force_generic_plan")
    worker = Server("worker", chosen.worker, "auto")
    coordinator = Server("coordinator", chosen.coordinator, "auto")
    # So that no user of the service is refused.
    plain.sql("update headroom.plans set allowance = 1000000000 where plan = 'trial'")
    with tempfile.TemporaryDirectory() as work:
        measurement = Measurement(plain, worker, coordinator, Path(work), chosen.seconds, chosen.rounds)
        return {
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "machine": description(Path(worker.value("select pg_catalog.current_setting('data_directory')"))),
            "postgres": plain.value("select pg_catalog.current_setting('server_version')"),
            "citus": worker.value("select extversion from pg_catalog.pg_extension where extname = 'citus'"),
            "local_round_trip_us": round(measurement.round_trip()),
            "batches": measurement.batch_costs(),
            "polls": measurement.poll_costs(),
            "service": service_costs(chosen.headroom, plain.url, chosen.seconds, chosen.rounds),
        }


def write(costs: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(costs, indent=2) + "\n", encoding="utf-8")
