"""A database that Citus distributes over a coordinator and workers, with an instance of the service and a load, for people. Started
by script/cluster --citus."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from argparse import Namespace
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import screen
from citus_case import SETTINGS
from clusters import psql
from instance import Instance
from live_screen import LiveScreen
from load import Gaps, LiveRecorder
from starting import step
from support import processes
from support.citus import CitusCluster, Node, prepare
from support.residence import Residence
from workload import Workload, setup_sql

# Between two bursts of a client, so that the load leaves the processors to the servers.
PAUSE_SECONDS = 0.2
# A dead server is started again after this time, as by a service manager.
RETURNS_AFTER = 10
LANES = "select count(*) from pg_stat_activity where application_name = 'headroom lane'"
USERS = "select user_id, bucket from headroom.subscribers where user_id is not null"
UNKNOWN = "-"


class NodeRecorder(LiveRecorder):
    """Also counts the messages of the users of each node."""

    def __init__(self, bucket_of: dict[str, int]) -> None:
        # The workload sends to two instances, which are the same one here.
        super().__init__(2)
        self.bucket_of = bucket_of
        self.node_of_bucket: dict[int, str] = {}
        self.user_of: dict[int, str] = {}
        self.allowed_by_node: Counter[str] = Counter()
        self.gaps_by_node: dict[str, Gaps] = {}

    def send(self, client: int, instance: int | None, verb: str, user: str, **more: Any) -> int:
        op = super().send(client, instance, verb, user, **more)
        self.user_of[op] = user
        return op

    def reply(self, op: int, status: str, code: str | None = None, fields: dict[str, str] | None = None) -> None:
        super().reply(op, status, code, fields)
        node = self.node_of_bucket.get(self.bucket_of.get(self.user_of.pop(op), -1))
        if node is not None and status in ("ALLOWED", "HELD"):
            self.allowed_by_node[node] += 1
            self.gaps_by_node.setdefault(node, Gaps()).allowed()


@dataclass
class NodeState:
    node: Node
    buckets: int
    lanes: str
    allowed: float
    gaps: Gaps | None


@dataclass
class Moment:
    """What a second has shown."""

    states: list[NodeState]
    allowed: float
    events: list[str] = field(default_factory=list)


class LiveCitus(LiveScreen):
    def __init__(self, arguments: Namespace, residence: Residence) -> None:
        super().__init__()
        self.arguments, self.home = arguments, residence.path
        with step("creating and distributing the database"):
            prepared = prepare(str(self.home / "prepared"), setup_sql(), arguments.workers)
        with step("starting the nodes"):
            self.cluster = CitusCluster(SETTINGS, str(self.home), prepared)
            shutil.rmtree(prepared)
            self.database = self.cluster.new_database(True)
            # A server for the reader to add; it is no node of the database yet.
            self.spare = self.cluster.add_worker()
            self.spare.create_database(self.database)
        rows = (row.split("|") for row in self.cluster.sql(USERS, database=self.database).splitlines())
        self.recorder = NodeRecorder({user: int(bucket) for user, bucket in rows})
        self.recorder.node_of_bucket = self.nodes_of_buckets()
        self.instance = Instance(0, self.home, self.cluster.url(self.database), flags=())

    def nodes_of_buckets(self) -> dict[int, str]:
        return {bucket: node.name for bucket, (_, node) in self.cluster.placements(self.database).items()}

    async def run(self) -> None:
        with step("starting the instance"):
            await self.instance.start()
        if self.arguments.has_load:
            workload = Workload(self.recorder, seed=1, port_of=lambda _: self.instance.port)
            workload.pause = PAUSE_SECONDS
            workload.start()
        await self.follow(self.addresses(), self.proposals(), self.arguments.seconds)

    async def next_moment(self) -> Moment:
        recorder = self.recorder
        before, together, began = Counter(recorder.allowed_by_node), recorder.counts["allowed"], time.monotonic()
        await asyncio.sleep(1)
        lanes = await asyncio.gather(*(self.lanes(node) for node in self.cluster.nodes))
        if self.cluster.is_running:
            # If the coordinator has ended since, the buckets are where they were.
            with contextlib.suppress(processes.Failure):
                recorder.node_of_bucket = await asyncio.to_thread(self.nodes_of_buckets)
        buckets = Counter(recorder.node_of_bucket.values())
        seconds = time.monotonic() - began
        states = [
            NodeState(
                node, buckets[node.name], connected, (recorder.allowed_by_node[node.name] - before[node.name]) / seconds,
                recorder.gaps_by_node.get(node.name),
            )
            for node, connected in zip(self.cluster.nodes, lanes)
        ]  # fmt: skip
        return Moment(states, (recorder.counts["allowed"] - together) / seconds, list(self.events))

    async def lanes(self, node: Node) -> str:
        result = await psql(node.url(self.database), LANES, 5)
        return result.stdout.strip() if result.returncode == 0 else UNKNOWN

    async def start_again(self) -> None:
        await self.start_instance(self.instance)
        for node in self.cluster.nodes:
            if not node.is_running and self.is_due(node.name, RETURNS_AFTER):
                node.launch()

    # What is shown

    def addresses(self) -> list[str]:
        assert self.instance.service is not None
        lines = [f"directory   {self.home}"]
        for node in self.cluster.nodes:
            lines.append(f"{node.name:11} psql '{node.url(self.database)}'" + (" (no node yet)" if node is self.spare else ""))
        address = f"127.0.0.1:{self.instance.port}"
        lines.append(f"service     line protocol {address}, dashboard {self.instance.service.address}/dashboard")
        return [*lines, f"            {self.arguments.binary} status --target {address}"]

    def proposals(self) -> list[str]:
        """Commands for another terminal, with the present process ids and places."""
        placements = self.cluster.placements(self.database) if self.cluster.is_running else {}
        url, programs = self.cluster.url(self.database), self.cluster.bin
        lines = []
        for name, node in (("a worker", self.cluster.workers[0]), ("the coordinator", self.cluster)):
            if node.is_running:
                every = f"{node.pid} $(cat /proc/{node.pid}/task/{node.pid}/children)"
                lines += [f"kill {name:16} kill -9 {every}", f"freeze {name:14} kill -STOP {every}     (-CONT ends it)"]
        if placements:
            bucket, (shard, source) = next(iter(placements.items()))
            target = next(node for node in self.cluster.workers if node is not source)
            move = f"citus_move_shard_placement({shard}, '127.0.0.1', {source.port}, '127.0.0.1', {target.port}, 'force_logical')"
            lines.append(f'move bucket {bucket:<9} {programs}/psql "{url}" -c "select {move}"')
        if self.spare.name not in self.recorder.node_of_bucket.values():
            add = f"rebalance --workers '{self.spare.url(self.database)}' --database-url '{url}'"
            lines.append(f"add a worker          {self.arguments.binary} {add}")
        return lines

    def one_line(self, moment: Moment) -> str:
        nodes = " ".join(f"{state.node.name.replace(' ', '')}={state.buckets}/{state.lanes}/{state.allowed:.0f}" for state in moment.states)
        recorder = self.recorder
        return (
            f"{time.strftime('%H:%M:%S')} buckets/lanes/allowed: {nodes} allowed/s={moment.allowed:.0f}"
            f" gap={recorder.overall.present:.1f} longest={recorder.overall.longest:.1f} errors: {screen.errors(recorder)}"
        )

    def whole_screen(self, moment: Moment, about: list[str]) -> str:
        lines = [*about, "", "node         port   buckets  lanes  allowed/s       gap   longest  postmaster"]
        for state in moment.states:
            gaps = state.gaps
            times = (screen.gap(gaps.present), screen.gap(gaps.longest)) if gaps and state.buckets else (UNKNOWN, UNKNOWN)
            lines.append(
                f"{state.node.name:12} {state.node.port:<6} {state.buckets:>7} {state.lanes:>6} {state.allowed:>10.0f} {times[0]:>9}"
                f" {times[1]:>9}  {state.node.pid if state.node.is_running else UNKNOWN!s:>10}"
            )
        recorder = self.recorder
        overall = screen.gap(recorder.overall.present), screen.gap(recorder.overall.longest)
        lines.append(f"{'together':35} {moment.allowed:>10.0f} {overall[0]:>9} {overall[1]:>9}")
        lines += [f"errors       {screen.errors(recorder)}", "", *(f"To {line}" for line in self.proposals())]
        return screen.framed([*lines, "", *self.events[-4:]])


def summary(recorder: NodeRecorder) -> str:
    return (
        f"{recorder.counts['allowed']} messages allowed, longest gap {recorder.overall.longest:.1f} s,"
        f" errors: {screen.errors(recorder)}"
    )
