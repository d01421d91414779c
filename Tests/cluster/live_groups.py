"""A database that Citus distributes over a coordinator and workers, each with standbys under Patroni, with an instance of the service
and a load, for people. Started by script/cluster --citus --standbys."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from argparse import Namespace
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import screen
from instance import Instance
from live_citus import LANES, PAUSE_SECONDS, UNKNOWN, USERS, NodeRecorder
from live_screen import LiveScreen
from load import Gaps
from starting import step
from support import processes
from support.citus import prepare
from support.citus_patroni import CitusGroups
from support.patroni import SCOPE, Node, PatroniCluster
from support.postgres import programs
from support.residence import Residence
from workload import Workload, setup_sql

# A dead node returns this long after another can have taken the lead, as a machine that is started again.
RETURNS_AFTER = 10


@dataclass
class GroupState:
    """What a second has shown of the coordinator or a worker."""

    group: PatroniCluster
    members: dict[str, dict[str, Any]]
    leader: str
    known: str
    buckets: int
    lanes: str
    allowed: float
    gaps: Gaps | None


@dataclass
class Moment:
    states: list[GroupState]
    allowed: float
    events: list[str] = field(default_factory=list)


def name(group: PatroniCluster) -> str:
    return group.group.name if group.group else ""


class LiveGroups(LiveScreen):
    def __init__(self, arguments: Namespace, residence: Residence) -> None:
        super().__init__()
        self.arguments, self.home = arguments, residence.path
        with step("creating and distributing the database"):
            prepared = prepare(str(self.home / "prepared"), setup_sql(), arguments.workers)
        sizes = [arguments.nodes] * (arguments.workers + 1)
        self.groups = CitusGroups(self.home, Path(prepared), arguments.programs, sizes, arguments.ttl)
        shutil.rmtree(prepared)
        self.recorder = NodeRecorder({})
        self.instance: Instance | None = None
        self.leaders: dict[str, str] = {}
        # Of each bucket: its shard, and the number of its group.
        self.placements: dict[int, tuple[int, int]] = {}

    async def run(self) -> None:
        leaders = await self.start()
        instance = Instance(0, self.home, self.groups.coordinator.url(self.groups.database, first=leaders[0]), flags=())
        self.instance = instance
        with step("starting the instance"):
            await instance.start()
        if self.arguments.has_load:
            workload = Workload(self.recorder, seed=1, port_of=lambda _: instance.port)
            workload.pause = PAUSE_SECONDS
            workload.start()
        await self.follow(self.addresses(instance), self.proposals(), self.arguments.seconds)

    async def start(self) -> list[Node]:
        with step("starting the nodes"):
            self.groups.start()
            leaders = await self.groups.ready()
        self.leaders = {name(group): leader.name for group, leader in zip(self.groups.groups, leaders)}
        self.placements = await self.groups.placements(leaders[0])
        users = await leaders[0].query(USERS, database=self.groups.database)
        rows = (row.split("|") for row in users.stdout.splitlines())
        # Now, so that no gap began before.
        self.recorder = NodeRecorder({user: int(bucket) for user, bucket in rows})
        return leaders

    def node(self, named: str) -> Node | None:
        return next((node for node in self.groups.nodes if node.name == named), None)

    # What a second shows

    async def next_moment(self) -> Moment:
        recorder = self.recorder
        before, together, began = Counter(recorder.allowed_by_node), recorder.counts["allowed"], time.monotonic()
        await asyncio.sleep(1)
        coordinator = self.node(self.leaders["coordinator"])
        assert coordinator is not None
        # If the coordinator is away, the buckets are where they were.
        with contextlib.suppress(processes.Failure):
            self.placements = await self.groups.placements(coordinator)
            names = [name(group) for group in self.groups.groups]
            recorder.node_of_bucket = {bucket: names[number] for bucket, (_, number) in self.placements.items()}
        known = await self.groups.primaries(coordinator)
        found = await asyncio.gather(*(self.look(group) for group in self.groups.groups))
        buckets, seconds = Counter(recorder.node_of_bucket.values()), time.monotonic() - began
        states = [
            GroupState(
                group, members, self.leaders[name(group)], known.get(number, UNKNOWN), buckets[name(group)], lanes,
                (recorder.allowed_by_node[name(group)] - before[name(group)]) / seconds, recorder.gaps_by_node.get(name(group)),
            )
            for number, (group, (members, lanes)) in enumerate(zip(self.groups.groups, found))
        ]  # fmt: skip
        return Moment(states, (recorder.counts["allowed"] - together) / seconds, list(self.events))

    async def look(self, group: PatroniCluster) -> tuple[dict[str, dict[str, Any]], str]:
        """What Patroni says of each node of a group, and how many lanes its primary has."""
        members = {member["name"]: member for member in await group.members()}
        led = next((member["name"] for member in members.values() if member["role"] == "leader"), None)
        if led and led != self.leaders[name(group)]:
            self.say_event(f"{led} leads {name(group)}")
            self.leaders[name(group)] = led
        leader = self.node(self.leaders[name(group)])
        assert leader is not None
        lanes = await leader.query(LANES, 5, self.groups.database)
        return members, lanes.stdout.strip() if lanes.returncode == 0 else UNKNOWN

    async def start_again(self) -> None:
        """A node only after its lead can have passed to another."""
        if self.instance:
            await self.start_instance(self.instance)
        for node in self.groups.nodes:
            if node.has_died and self.is_due(node.name, self.arguments.ttl + RETURNS_AFTER):
                node.kill()
                node.start()

    # What is printed

    def addresses(self, instance: Instance) -> list[str]:
        assert instance.service is not None
        lines = [f"directory   {self.home}"]
        for group in self.groups.groups:
            lines.append(f"{name(group):11} psql '{group.url(self.groups.database)}'")
        lines.append(f"service     line protocol 127.0.0.1:{instance.port}, dashboard {instance.service.address}/dashboard")
        lines.append(f"            {self.arguments.binary} status --target 127.0.0.1:{instance.port}")
        return [*lines, f"logs        cd {self.home} && tail -F */postgres.log */patroni.log etcd.log instance-*/headroom.log"]

    def proposals(self) -> list[str]:
        """Commands for another terminal, with the present process ids."""
        control = f"{self.arguments.programs}/bin/patronictl -c {self.groups.coordinator.control}"
        lines = [f"look               {control} list"]
        for group in (self.groups.workers[0], self.groups.coordinator):
            node = self.node(self.leaders[name(group)])
            if node is None or group.group is None:
                continue
            postmaster = node.postmaster or 0
            everything = f"{node.patroni.pid if node.patroni else 0} {postmaster} $(cat /proc/{postmaster}/task/{postmaster}/children)"
            lines.append(f"kill {name(group):13} kill -9 {everything}")
            lines.append(f"switch {name(group):11} {control} switchover {SCOPE} --group {group.group.number} --force")
        return [*lines, *self.moves()]

    def moves(self) -> list[str]:
        """A command that moves a bucket to another worker, from and to the present primaries."""
        source, target = (self.node(self.leaders[name(group)]) for group in self.groups.workers[:2])
        shard = next((shard for shard, number in self.placements.values() if number == 1), None)
        if source is None or target is None or shard is None:
            return []
        url = self.groups.coordinator.url(self.groups.database)
        move = f"citus_move_shard_placement({shard}, '127.0.0.1', {source.port}, '127.0.0.1', {target.port}, 'force_logical')"
        return [f"move a bucket      {programs()}/psql \"{url}\" -c \"select {move}\""]

    def one_line(self, moment: Moment) -> str:
        groups = " ".join(f"{state.leader}={state.buckets}/{state.lanes}/{state.allowed:.0f}" for state in moment.states)
        recorder = self.recorder
        return (
            f"{time.strftime('%H:%M:%S')} leader=buckets/lanes/allowed: {groups} allowed/s={moment.allowed:.0f}"
            f" gap={recorder.overall.present:.1f} longest={recorder.overall.longest:.1f} errors: {screen.errors(recorder)}"
        )

    def whole_screen(self, moment: Moment, about: list[str]) -> str:
        lines = [*about, ""]
        lines.append("group        primary         of Citus         buckets  lanes  allowed/s       gap   longest")
        for state in moment.states:
            gaps = state.gaps
            times = (screen.gap(gaps.present), screen.gap(gaps.longest)) if gaps and state.buckets else (UNKNOWN, UNKNOWN)
            lines.append(
                f"{name(state.group):12} {state.leader:15} {state.known:15} {state.buckets:>8} {state.lanes:>6} {state.allowed:>10.0f}"
                f" {times[0]:>9} {times[1]:>9}"
            )
        recorder = self.recorder
        overall = screen.gap(recorder.overall.present), screen.gap(recorder.overall.longest)
        lines += [f"{'together':60} {moment.allowed:>10.0f} {overall[0]:>9} {overall[1]:>9}", ""]
        lines.append("node           port   role          state          timeline  postmaster  Patroni")
        for state in moment.states:
            lines += [self.row(node, state.members.get(node.name, {})) for node in state.group.nodes]
        lines += [f"errors       {screen.errors(recorder)}", "", *(f"To {line}" for line in self.proposals())]
        return screen.framed([*lines, "", *self.events[-4:]])

    def row(self, node: Node, member: dict[str, Any]) -> str:
        patroni = node.patroni.pid if node.patroni and node.patroni.poll() is None else UNKNOWN
        return (
            f"{node.name:14} {node.port:<6} {member.get('role', UNKNOWN):13} {member.get('state', 'unknown'):14}"
            f" {member.get('timeline', UNKNOWN)!s:>8}  {node.postmaster or UNKNOWN!s:>10}  {patroni!s:>7}"
        )
