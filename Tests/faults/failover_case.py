"""One run of a failover's fault with one seed: two instances of the service, and a coordinator and two workers with standbys."""

from __future__ import annotations

import asyncio

from case import Assignment, Case, keep_logs, read_final
from citus_case import DEADLOCKS, write_nodes
from failover_faults import COORDINATOR, FAILOVER_FAULTS, FailoverFault, FailoverScene, unbalance
from recorder import Recorder
from support.citus_patroni import CitusGroups
from support.residence import Residence

GROUPS = 3


class FailoverCase(Case):
    limit_seconds = 480.0

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        self.fault: FailoverFault = next(fault for fault in FAILOVER_FAULTS if fault.name == assignment.fault)
        # On the same disk as the histories, and reachable for PostgreSQL's user.
        self.residence = Residence("headroom-cluster-", str(assignment.clusters.parent))
        self.groups: CitusGroups | None = None

    async def set_up(self, recorder: Recorder) -> FailoverScene:
        assert self.assignment.patroni is not None
        sizes = [3 if number == self.fault.group else 2 for number in range(GROUPS)]
        groups = CitusGroups(self.residence.path, self.assignment.prepared, self.assignment.patroni, sizes)
        self.groups = groups
        groups.start()
        leaders = await groups.ready()
        url = groups.coordinator.url(groups.database, first=leaders[COORDINATOR])
        return FailoverScene(groups=groups, leaders=leaders, **await self.start_instances(recorder, url))

    async def run_scenario(self, recorder: Recorder) -> None:
        scene = await self.set_up(recorder)
        if self.fault.is_unbalanced:
            await unbalance(scene)
        nodes = await scene.nodes_of_buckets()

        async def inject() -> None:
            await asyncio.sleep(self.seconds + scene.random.random())
            self.result.fired += await self.fault.inject(scene)

        # The operator asks Patroni who leads.
        await self.put_on_load(scene.workload, recorder, inject, scene.coordinator_url)
        recorder.write(t="deadlocks", count=sum(node.logged(text) for node in scene.groups.nodes for text in DEADLOCKS))
        await write_nodes(scene.coordinator_url(), recorder, nodes)
        coordinator = scene.leaders[COORDINATOR]
        await read_final(lambda text, seconds=30: coordinator.query(text, seconds, scene.database), recorder)

    async def clean_up(self) -> None:
        keep_logs(self.groups.nodes if self.groups else [], self.directory)
        await asyncio.to_thread(self.residence.close)
