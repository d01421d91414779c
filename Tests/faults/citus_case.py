"""One run of a fault of a distributed database with one seed: two instances of the service, a coordinator and two workers."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

from case import Assignment, Case, read_final
from citus_faults import CITUS_FAULTS, CitusFault, CitusScene
from clusters import psql
from faults import serves_again
from recorder import Recorder
from support.citus import CitusCluster
from support.postgres import DURABLE

SETTINGS = {**DURABLE, "max_connections": "200", "shared_buffers": "64MB", "max_wal_size": "256MB", "autovacuum_naptime": "10s"}
DEADLOCKS = ("deadlock detected", "involved in a distributed deadlock")


class CitusCase(Case):
    limit_seconds = 480.0

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        self.fault: CitusFault = next(fault for fault in CITUS_FAULTS if fault.name == assignment.fault)
        self.cluster: CitusCluster | None = None

    async def set_up(self, recorder: Recorder) -> CitusScene:
        # In this thread, because the kernel stops the servers when the starting thread ends.
        cluster = CitusCluster(SETTINGS, str(self.assignment.clusters), str(self.assignment.prepared))
        self.cluster = cluster
        database = cluster.new_database(True) if self.fault.is_distributed else cluster.new_undistributed_database()
        return CitusScene(cluster=cluster, database=database, **await self.start_instances(recorder, cluster.url(database)))

    async def run_scenario(self, recorder: Recorder) -> None:
        scene = await self.set_up(recorder)
        nodes = scene.nodes_of_buckets() if self.fault.is_distributed else {}

        async def inject() -> None:
            await asyncio.sleep(self.seconds + scene.random.random())
            self.result.fired += await self.fault.inject(scene)
            recorder.healed()
            await serves_again(recorder)

        url = scene.cluster.url(scene.database)
        await self.put_on_load(scene.workload, recorder, inject, lambda: url)
        logs = [Path(node.log).read_text(encoding="utf-8", errors="replace") for node in scene.cluster.nodes]
        deadlocks = sum(log.count(text) for log in logs for text in DEADLOCKS)
        if self.fault.is_distributed:
            recorder.write(t="deadlocks", count=deadlocks)
        else:
            # While its tables change, statements are planned with a server's own settings, and may lock users in another
            # order (decision 42). They are executed again.
            self.result.notes.append(f"deadlocks: {deadlocks}")
        await write_nodes(url, recorder, nodes)
        await read_final(lambda text, seconds=30: self.query(scene, text, seconds), recorder)

    async def query(self, scene: CitusScene, text: str, seconds: float) -> subprocess.CompletedProcess[str]:
        return await psql(scene.cluster.url(scene.database), text, seconds)

    async def clean_up(self) -> None:
        if self.cluster:
            self.cluster.end()
        for node in self.cluster.nodes if self.cluster else []:
            shutil.copy(node.log, self.directory / f"{node.name.replace(' ', '-')}.log")
        shutil.rmtree(self.assignment.clusters, ignore_errors=True)


async def write_nodes(url: str, recorder: Recorder, nodes: dict[int, str]) -> None:
    """Records on which node each user was when the load began, by the node of each bucket."""
    if not nodes:
        return
    users = ",".join(sorted(recorder.known_users))
    statement = f"select u, headroom.bucket_of(u) from unnest('{{{users}}}'::uuid[]) as u"
    result = await psql(url, statement, 60)
    for row in result.stdout.splitlines():
        user, bucket = row.split("|")
        recorder.write(t="node", user=user, node=nodes[int(bucket)])
