"""One run of a fault with one seed: set-up, injection, and the final state."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import shutil
import subprocess
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import availability
import checker
from clusters import DATABASE, FaultedCluster, SmallDisk, psql, synchronous_standby
from delays import Delays
from faults import FAULTS, Fault, Scene, serves_again
from history import Violation, read_file
from instance import Instance
from plants import PLANTS, Plant
from recorder import Recorder
from support import settings
from support.patroni import Node
from support.proxy import DisturbedProxy
from support.waiting import wait_until_async
from workload import FIVE, HOLD, HOT, RESET, RESET_USERS, Workload, random_parts, record_user, user_id

# The database's clock, ahead by the value in a table. `create or replace` keeps the functions that call it valid.
TEST_CLOCK = """
create table headroom.clock (ahead interval not null);
insert into headroom.clock values ('0');
grant select on headroom.clock to public;
create or replace function headroom.now() returns timestamptz language sql stable parallel safe
    return pg_catalog.now() + (select ahead from headroom.clock);
"""
# Otherwise a service that starts restores the objects that differ from what was installed.
UNCHECKED = "delete from headroom.installed_objects"
# Between two bursts of a client of a cluster: the load must leave the processors to several servers, etcd and Patroni.
PAUSE_SECONDS = 0.03
# Seconds after the load in which each request with a key must be answered.
SETTLED_WITHIN = 20
# Seconds in which a fault without an effect is injected again.
MORE_ATTEMPTS_SECONDS = 60
# Runs SQL; with another number of seconds as its limit.
Query = Callable[..., Awaitable[subprocess.CompletedProcess[str]]]
FINAL_SQL = """
select json_build_object('t', 'row', 'user', user_id, 'period', billing_period, 'count', message_count, 'held', held,
    'limit', "limit", 'generation', generation) from message_usage;
select json_build_object('t', 'balance', 'user', users.user_id, 'key', left_over.key, 'left', left_over.messages)
from (select distinct user_id from headroom.grants) as users
cross join lateral headroom.user_balances(users.user_id, headroom.now()) as left_over;
select json_build_object('t', 'key', 'user', user_id, 'key', key, 'verb', verb, 'status', status, 'messages', messages,
    'used', used, 'committed', committed_messages, 'period', billing_period, 'generation', generation, 'parts', parts,
    'is_over', expires_at <= headroom.now()) from headroom.message_keys;
select json_build_object('t', 'part', 'user', user_id, 'period', billing_period, 'part', kind || ' ' || name, 'count', used,
    'held', held, 'limit', "limit", 'generation', generation) from headroom.usage_parts;
"""


@dataclass(frozen=True)
class Assignment:
    """The parameters of one run, for another process."""

    fault: str
    seed: int
    seconds: float
    binary: str
    # A data directory to begin with.
    prepared: Path
    # The directories of the history and logs, and of the databases.
    directory: Path
    clusters: Path
    # The name of a bug to plant.
    plant: str | None = None
    # Where Patroni is, for a fault of a high-availability cluster.
    patroni: Path | None = None
    # Whether it is a fault of a distributed database; `prepared` has the servers then.
    is_distributed: bool = False
    # Seconds that the service may be late because the machine is busy, besides the measured delays.
    slack: float = 0


@dataclass
class Result:
    fault: str
    seed: int
    fired: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    error: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def is_passed(self) -> bool:
        return not self.violations and not self.error and self.fired > 0


def keep_logs(nodes: Iterable[Node], directory: Path) -> None:
    """Copies the logs of nodes that are removed with their residence."""
    for node in nodes:
        for log in (node.log, node.patroni_log):
            if log.exists():
                shutil.copy(log, directory / f"{node.name}-{log.name}")


class Case:
    """Runs an assignment, with two instances of the service."""

    # Without the fault itself. A busy machine takes several times as long as a fast one.
    limit_seconds = 300.0

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self.seed, self.seconds, self.directory = assignment.seed, assignment.seconds, assignment.directory
        self.result = Result(assignment.fault, assignment.seed)
        self.instances: list[Instance] = []
        settings.binary = assignment.binary

    async def run(self) -> Result:
        history = self.directory / "history.jsonl"
        try:
            with open(history, "w", encoding="utf-8") as out:
                recorder = Recorder(out)
                recorder.write(t="meta", fault=self.assignment.fault, seed=self.seed, deadline_ms=2000, instances=[0, 1])
                await asyncio.wait_for(self.run_scenario(recorder), self.seconds * 3 + self.limit_seconds)
            self.check(history)
        except Exception as error:  # any error fails this run only
            self.result.error = f"{type(error).__name__}: {error}"
            if not isinstance(error, (RuntimeError, TimeoutError)):
                self.result.error += "\n" + traceback.format_exc()
        finally:
            for instance in self.instances:
                instance.kill()
            await self.clean_up()
        return self.result

    async def run_scenario(self, recorder: Recorder) -> None:
        """Sets everything up, injects the fault under load, and records the final state."""
        raise NotImplementedError

    async def clean_up(self) -> None:
        """Ends all but the instances, and keeps logs."""
        raise NotImplementedError

    async def start_instances(self, recorder: Recorder, url: str, **options: Any) -> dict[str, Any]:
        """Starts two instances on the servers of a cluster; returns what every scene has."""
        self.instances += [Instance(index, self.directory, url, **options) for index in range(2)]
        await asyncio.gather(*(instance.start() for instance in self.instances))
        workload = Workload(recorder, seed=self.seed, port_of=lambda index: self.instances[index].port)
        workload.pause = PAUSE_SECONDS
        return {
            "random": random.Random(f"fault/{self.seed}"), "instances": self.instances, "recorder": recorder, "workload": workload,
            "notes": self.result.notes,
        }  # fmt: skip

    async def put_on_load(
        self, workload: Workload, recorder: Recorder, inject: Callable[[], Awaitable[None]], operator_url: Callable[[], str] | None
    ) -> None:
        """Injects the fault while clients send messages and an operator makes changes; then answers are awaited, and both instances
        are stopped."""
        workload.start()
        delays = Delays(self.directory / "flushed")
        measurement = asyncio.create_task(delays.measure())
        stop = asyncio.Event()
        operator = asyncio.create_task(operate(recorder, operator_url, stop, self.seed)) if operator_url else None
        try:
            await inject()
        finally:
            stop.set()
            if operator:
                await operator
            await workload.stop()
            recorder.write(t="stopped", at=time.monotonic_ns())
        seconds = SETTLED_WITHIN + round(delays.total)
        unanswered = await workload.settle(seconds)
        recorder.write(t="unanswered", count=unanswered, seconds=seconds)
        for instance in self.instances:
            at = time.monotonic_ns()
            code = await instance.terminate()
            recorder.write(t="sigterm", at=at, exited=time.monotonic_ns(), i=instance.index, code=code)
        measurement.cancel()
        recorder.write(t="meta", lag_ms=int(delays.total * 1000), slack_ms=int(self.assignment.slack * 1000))
        self.result.notes.append(str(delays))

    def check(self, path: Path) -> None:
        history = read_file(path)
        self.result.counts = checker.summary(history) | availability.measured(history)
        self.result.violations = checker.check(history)


class ServerCase(Case):
    """With a PostgreSQL of its own, and for failovers a standby."""

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        self.fault: Fault = next(fault for fault in FAULTS if fault.name == assignment.fault)
        self.plant: Plant | None = next((plant for plant in PLANTS if plant.name == assignment.plant), None)
        self.proxies: list[DisturbedProxy] = []
        self.clusters: list[FaultedCluster] = []
        self.disk: SmallDisk | None = None

    async def clean_up(self) -> None:
        for proxy in self.proxies:
            await proxy.stop()
        for number, cluster in enumerate(self.clusters, start=1):
            cluster.stop_immediately()
            shutil.copy(cluster.log, self.directory / f"postgres-{number}.log")
        if self.disk:
            self.disk.unmount()
        shutil.rmtree(self.assignment.clusters, ignore_errors=True)

    def set_up_database(self) -> FaultedCluster:
        needs, homes = self.fault.needs, self.assignment.clusters
        if "tmpfs" in needs:
            self.disk = SmallDisk(homes)
        # Deadlocks that a fault causes are ended by lock_timeout, as with PostgreSQL's own settings.
        settings = {"deadlock_timeout": "1s"} if self.fault.may_deadlock else {}
        cluster = FaultedCluster(homes / "1", like=self.assignment.prepared, **settings)
        self.clusters.append(cluster)
        if "clock" in needs:
            cluster.sql(TEST_CLOCK, UNCHECKED, database=DATABASE)
        if self.plant:
            cluster.sql(self.plant.sql, UNCHECKED, database=DATABASE)
        return cluster

    async def set_up(self, recorder: Recorder) -> Scene:
        needs = self.fault.needs
        cluster = self.set_up_database()
        standby = database_proxy = None
        url = cluster.url(DATABASE)
        if "standby" in needs:
            standby = synchronous_standby(cluster, self.assignment.clusters / "2")
            self.clusters.append(standby)
            url = (
                f"host=127.0.0.1,127.0.0.1 port={cluster.port},{standby.port} user=postgres dbname={DATABASE}"
                " target_session_attrs=read-write"
            )
        self.operator_url = url
        if "database proxy" in needs:
            database_proxy = await self.proxy(lambda: cluster.port)
            url = f"host=127.0.0.1 port={database_proxy.port} user=postgres dbname={DATABASE}"
        self.instances += [Instance(index=index, directory=self.directory, url=url) for index in range(2)]
        await asyncio.gather(*(instance.start() for instance in self.instances))
        client_proxies = []
        if "client proxy" in needs:
            for instance in self.instances:
                client_proxies.append(await self.proxy(lambda instance=instance: instance.port))  # type: ignore[misc]
        port_of = (lambda i: client_proxies[i].port) if client_proxies else (lambda i: self.instances[i].port)
        # Holds expire by the database's clock; if it jumps, their ends cannot be checked with ours.
        kinds = (HOT, FIVE) if "clock" in needs else (HOT, FIVE, HOLD, RESET)
        workload = Workload(recorder=recorder, seed=self.seed, port_of=port_of, kinds=kinds)
        return Scene(
            random=random.Random(f"fault/{self.seed}"),
            directory=self.directory,
            cluster=cluster,
            instances=self.instances,
            recorder=recorder,
            workload=workload,
            standby=standby,
            database_proxy=database_proxy,
            client_proxies=client_proxies,
            notes=self.result.notes,
        )

    async def proxy(self, target: Callable[[], int | None]) -> DisturbedProxy:
        proxy = DisturbedProxy(target)
        await proxy.start()
        self.proxies.append(proxy)
        return proxy

    async def run_scenario(self, recorder: Recorder) -> None:
        scene = await self.set_up(recorder)
        first_cluster = scene.cluster
        operator_url = (lambda: self.operator_url) if "clock" not in self.fault.needs else None
        await self.put_on_load(scene.workload, recorder, lambda: self.inject(scene), operator_url)
        if not self.fault.may_deadlock:
            recorder.write(t="deadlocks", count=first_cluster.log_count("deadlock detected"))
        await read_final(scene.cluster.query, recorder)

    async def inject(self, scene: Scene) -> None:
        await asyncio.sleep(0.7)
        until = time.monotonic() + self.seconds
        while True:
            self.result.fired += await self.fault.inject(scene)
            # On a busy machine it may take several attempts to see an effect.
            late = time.monotonic() - until
            if self.fault.is_once or late > (0 if self.result.fired else MORE_ATTEMPTS_SECONDS):
                break
            await asyncio.sleep(0.2 + scene.random.random() * 0.8)
        # After a killed backend PostgreSQL recovers by itself, in a time that depends on the disk, not on the service.
        await scene.cluster.accepts_connections()
        scene.recorder.healed()
        await serves_again(scene.recorder)


async def operate(recorder: Recorder, url: Callable[[], str], stop: asyncio.Event, seed: int) -> None:
    """An operator who resets counts and changes limits in psql, every half a second."""
    chance = random.Random(f"operator/{seed}")
    while not stop.is_set():
        user = user_id(RESET, chance.randrange(RESET_USERS))
        record_user(recorder, RESET, user)
        if chance.random() < 0.6:
            # Of an account often a model or a member alone.
            parts = {kind: name for kind, name in random_parts(chance, user).items() if chance.random() < 0.4}
            op = recorder.send(-1, None, "RESET", user, **parts)
            named = "".join(f", p_{kind} => '{name}'" for kind, name in parts.items())
            statement = f"select public.reset_usage('{user}'{named})"
        else:
            limit = chance.randrange(100, 1001)
            op = recorder.send(-1, None, "LIMIT", user, new_limit=limit)
            statement = f"update message_usage set \"limit\" = {limit} where user_id = '{user}' returning 1"
        result = await psql(url(), f"set statement_timeout = '1500ms'; {statement};", 6)
        if re.search("canceling (the )?wait for synchronous replication", result.stderr):
            # Committed here only, so that a failover may lose it.
            recorder.reply(op, "CLOSED")
        elif result.returncode == 0 and result.stdout.strip():
            recorder.reply(op, "OK")
        elif result.returncode == 0 or "ERROR:" in result.stderr:
            # No row yet, or rolled back.
            recorder.reply(op, "ERROR", "FAILED")
        elif "could not connect" in result.stderr or "connection to server" in result.stderr and "failed" in result.stderr:
            recorder.reply(op, "ERROR", "FAILED")
        else:
            recorder.reply(op, "CLOSED")
        with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
            await asyncio.wait_for(stop.wait(), 0.5)


async def read_final(query: Query, recorder: Recorder, more_sql: str = "") -> None:
    """Records all rows and keys, and what other SQL yields as JSON, once no session of the service can still commit."""

    async def is_quiet() -> bool:
        result = await query("select count(*) from pg_stat_activity where application_name = 'headroom lane'")
        return result.returncode == 0 and result.stdout.strip() == "0"

    await wait_until_async(is_quiet, "the end of the service's sessions")
    result = await query(FINAL_SQL + more_sql, 300)
    if result.returncode != 0:
        raise RuntimeError(f"the final state cannot be read: {result.stderr}")
    for line in result.stdout.splitlines():
        if line.startswith("{"):
            recorder.write(**json.loads(line))
    recorder.write(t="end", at=time.monotonic_ns())
