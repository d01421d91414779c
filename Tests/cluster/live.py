"""A high-availability cluster with two instances of the service and a load, for people. Started by script/cluster."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

import screen
from clusters import DATABASE, prepare
from instance import Instance
from live_citus import LiveCitus
from live_citus import summary as summary_of_citus
from live_groups import LiveGroups
from live_screen import LiveScreen
from load import LiveRecorder
from starting import say, step
from support import citus, processes, settings
from support.patroni import LEAST_TTL, PatroniCluster
from support.residence import Residence
from workload import Workload

INSTANCES = 2
# Between two bursts of a client, so that the load leaves the processors to the cluster.
PAUSE_SECONDS = 0.2
# A dead node returns this long after another can have taken the lead, as a machine that is started again.
RETURNS_AFTER = 10


class LiveCluster(LiveScreen):
    def __init__(self, arguments: argparse.Namespace, residence: Residence) -> None:
        super().__init__()
        self.arguments = arguments
        self.home = residence.path
        with step("creating the database"):
            prepared = prepare(self.home / "prepared")
        self.cluster = PatroniCluster(self.home, prepared, arguments.programs, arguments.nodes, arguments.ttl, not arguments.is_async)
        self.recorder = LiveRecorder(INSTANCES)
        self.workload: Workload | None = None
        self.instances: list[Instance] = []
        self.leader = ""
        self.timeline = 0

    async def run(self) -> None:
        with step("starting the nodes"):
            self.cluster.start()
            leader = await self.cluster.ready()
        url = self.cluster.url(DATABASE, first=leader)
        self.instances = [Instance(index, self.home, url, flags=()) for index in range(INSTANCES)]
        with step("starting the instances"):
            await asyncio.gather(*(instance.start() for instance in self.instances))
        if self.arguments.has_load:
            self.workload = Workload(self.recorder, seed=1, port_of=lambda index: self.instances[index].port)
            self.workload.pause = PAUSE_SECONDS
            self.workload.start()
        about = screen.addresses(self.cluster, self.instances, DATABASE, str(self.arguments.binary))
        await self.follow(about, screen.proposals(self.cluster, leader.name), self.arguments.seconds)

    async def next_moment(self) -> screen.Moment:
        before, began = dict(self.recorder.allowed), time.monotonic()
        await asyncio.sleep(1)
        members = await self.cluster.members()
        allowed = [self.recorder.allowed[index] - before.get(index, 0) for index in range(INSTANCES)]
        led = next((member for member in members if member["role"] == "leader"), None)
        if led and led["name"] != self.leader:
            if self.leader:
                self.say_event(f"{led['name']} leads; the gap before was {self.recorder.overall.longest:.1f} s")
            self.leader = led["name"]
            self.recorder.forget_gaps()
        if led:
            self.timeline = int(led.get("timeline") or self.timeline)
        return screen.Moment(members, led["name"] if led else "", self.timeline, allowed, time.monotonic() - began, list(self.events))

    async def start_again(self) -> None:
        """A node only after its lead can have passed to another."""
        for instance in self.instances:
            await self.start_instance(instance, f"instance {instance.index}")
        for node in self.cluster.nodes:
            if node.has_died and self.is_due(node.name, self.cluster.ttl + RETURNS_AFTER):
                node.kill()
                node.start()

    def whole_screen(self, moment: screen.Moment, about: list[str]) -> str:
        return screen.screen(moment, self.recorder, self.cluster, self.instances, about)

    def one_line(self, moment: screen.Moment) -> str:
        return screen.one_line(moment, self.recorder)


def summary(live: LiveCluster) -> str:
    recorder = live.recorder
    return (
        f"{sum(recorder.allowed.values())} messages allowed, longest gap since the lead changed"
        f" {recorder.overall.longest:.1f} s, errors: {screen.errors(recorder)}"
    )


def end_by_signal(_number: int, _: FrameType | None) -> NoReturn:
    # As an exception, so that everything is cleaned up; only once.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    sys.exit(0)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cluster", add_help=False)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--programs", type=Path)
    parser.add_argument("--citus", action="store_true")
    parser.add_argument("--standbys", dest="has_standbys", action="store_true")
    parser.add_argument("--pg-config")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--ttl", type=int, default=LEAST_TTL)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--no-load", dest="has_load", action="store_false")
    parser.add_argument("--async", dest="is_async", action="store_true")
    arguments = parser.parse_args()
    if not 2 <= arguments.nodes <= 9:
        parser.error("--nodes must be 2 to 9")
    if arguments.has_standbys and not arguments.citus:
        parser.error("--standbys is for --citus")
    if not 2 <= arguments.workers <= 6:
        parser.error("--workers must be 2 to 6")
    if arguments.ttl < LEAST_TTL:
        parser.error(f"--ttl must be at least {LEAST_TTL}, the least that Patroni accepts")
    return arguments


def main() -> int:
    arguments = parsed()
    settings.binary = str(arguments.binary.resolve())
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, end_by_signal)
    # On a disk, because the temporary directory may be in memory.
    residence = Residence("headroom-cluster-", "/var/tmp")
    processes.put_directories_in(residence.path)
    try:
        if arguments.citus and arguments.has_standbys:
            citus.use(arguments.pg_config)
            live_groups = LiveGroups(arguments, residence)
            asyncio.run(live_groups.run())
            print(summary_of_citus(live_groups.recorder))
        elif arguments.citus:
            citus.use(arguments.pg_config)
            live_citus = LiveCitus(arguments, residence)
            asyncio.run(live_citus.run())
            print(summary_of_citus(live_citus.recorder))
        else:
            live = LiveCluster(arguments, residence)
            asyncio.run(live.run())
            print(summary(live))
    except (AssertionError, RuntimeError, processes.Failure) as error:
        say(str(error))
        return 1
    finally:
        residence.close()
        processes.stop_all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
