"""A distributed database each of whose servers has standbys under Patroni, on this machine: docs/distributed.md, High availability.

Each server is a Patroni cluster of its own, a group. All groups have one etcd and one scope, so that the Patroni of the coordinator
learns who leads each group, and tells Citus.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from . import processes
from .citus import SETTINGS, CitusCluster, known_settings
from .patroni import LEAST_TTL, Group, Node, PatroniCluster, start_etcd
from .postgres import VOLATILE
from .waiting import wait_until_async

BUCKETS_OF_GROUPS = (
    "select map.bucket, placement.shardid, placement.groupid"
    " from (select distinct unnest(buckets) as bucket from headroom.bucket_map) as map"
    " join pg_dist_placement as placement"
    " on placement.shardid = get_shard_id_for_distribution_column('message_usage', map.bucket)"
)
PRIMARIES = "select groupid, nodeport from pg_dist_node where noderole = 'primary' order by groupid"


def distributed_data(home: Path, prepared: Path) -> tuple[str, list[Path]]:
    """Copies servers of `citus.prepare`, and makes a distributed database in them. Returns its name, and the data directory of each
    server, the coordinator's first. The servers have stopped."""
    cluster = CitusCluster(VOLATILE, str(home), str(prepared))
    database = cluster.new_database(True)
    cluster.stop()
    return database, [Path(node.data) for node in cluster.nodes]


class CitusGroups:
    """The groups, all in the directory `home`: the coordinator and the workers, each with as many nodes as `sizes` says. A group with
    more than one replicates synchronously."""

    def __init__(
        self, home: Path, prepared: Path, programs: Path, sizes: Sequence[int], ttl: int = LEAST_TTL
    ) -> None:
        self.home = home
        # On the way of PostgreSQL's user.
        origin = home / "origin"
        origin.mkdir(mode=0o711)
        self.database, data = distributed_data(origin, prepared)
        self.etcd_port = int(processes.free_port())
        self.etcd: subprocess.Popen[bytes] | None = None
        settings = {name: value.strip("'") for name, value in {**SETTINGS, **known_settings()}.items()} | {"max_connections": "200"}
        self.groups = [
            PatroniCluster(
                home, like, programs, size, ttl, is_synchronous=size > 1,
                group=Group(number, self.database, self.etcd_port, settings),
            )
            for number, (like, size) in enumerate(zip(data, sizes))
        ]  # fmt: skip
        shutil.rmtree(origin)

    @property
    def coordinator(self) -> PatroniCluster:
        return self.groups[0]

    @property
    def workers(self) -> list[PatroniCluster]:
        return self.groups[1:]

    @property
    def nodes(self) -> list[Node]:
        return [node for group in self.groups for node in group.nodes]

    def start(self) -> None:
        self.etcd = start_etcd(self.home, self.etcd_port)
        for group in self.groups:
            group.start()

    async def ready(self) -> list[Node]:
        """Waits until all nodes run, and Citus knows the primary of each group; returns the primaries."""
        leaders = await asyncio.gather(*(group.ready() for group in self.groups))
        await self.known(leaders, leaders)
        return list(leaders)

    async def known(self, primaries: Sequence[Node], asked: Sequence[Node]) -> None:
        """Waits until these are the primaries of all groups, as each of the asked servers says."""
        expected = {number: node.name for number, node in enumerate(primaries)}
        found: list[dict[int, str]] = []

        async def is_known() -> bool:
            found[:] = await asyncio.gather(*(self.primaries(node) for node in asked))
            return all(known == expected for known in found)

        await wait_until_async(is_known, lambda: f"Citus knows the primaries {expected}; it has {found}", 180)

    async def primaries(self, asked: Node) -> dict[int, str]:
        """The name of the primary of each group, as Citus on a server has it; empty without an answer."""
        done = await asked.query(PRIMARIES, database=self.database)
        names = {node.port: node.name for node in self.nodes}
        rows = (map(int, row.split("|")) for row in done.stdout.split())
        return {group: names.get(port, "") for group, port in rows}

    async def placements(self, coordinator: Node) -> dict[int, tuple[int, int]]:
        """The shard of message_usage of each bucket, and the group that has it."""
        done = await coordinator.query(BUCKETS_OF_GROUPS, database=self.database)
        if done.returncode != 0:
            raise processes.Failure(f"the placements cannot be read: {done.stderr}")
        rows = (map(int, row.split("|")) for row in done.stdout.split())
        return {bucket: (shard, group) for bucket, shard, group in rows}
