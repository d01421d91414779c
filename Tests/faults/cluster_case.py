"""One run of a cluster's fault with one seed: two instances of the service, three nodes under Patroni, and the final state."""

from __future__ import annotations

import asyncio

import billing
from case import SETTLED_WITHIN, Assignment, Case, keep_logs, read_final
from cluster_faults import CLUSTER_FAULTS, PLANTED, ClusterFault, ClusterScene
from clusters import DATABASE
from recorder import Recorder
from support.patroni import PatroniCluster
from support.residence import Residence


class ClusterCase(Case):
    limit_seconds = 480.0

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        known = [*CLUSTER_FAULTS, *(plant.fault for plant in PLANTED)]
        self.fault: ClusterFault = next(fault for fault in known if fault.name == assignment.fault)
        # On the same disk as the histories, and reachable for PostgreSQL's user.
        self.residence = Residence("headroom-cluster-", str(assignment.clusters.parent))
        self.cluster: PatroniCluster | None = None

    async def set_up(self, recorder: Recorder) -> ClusterScene:
        assert self.assignment.patroni is not None
        cluster = PatroniCluster(
            self.residence.path, self.assignment.prepared, self.assignment.patroni, is_synchronous=self.fault.is_synchronous,
            has_client_links=self.fault.has_client_links,
        )  # fmt: skip
        self.cluster = cluster
        cluster.start()
        leader = await cluster.ready()
        url = leader.url(DATABASE) if self.fault.knows_one else cluster.url(DATABASE, first=leader)
        return ClusterScene(cluster=cluster, leader=leader, **await self.start_instances(recorder, url, flags=()))

    async def run_scenario(self, recorder: Recorder) -> None:
        scene = await self.set_up(recorder)

        async def inject() -> None:
            customers = billing.Billing(recorder, self.seed, lambda index: self.instances[index].http_port)
            customers.start()
            try:
                await asyncio.sleep(self.seconds + scene.random.random())
                self.result.fired += await self.fault.inject(scene)
            finally:
                recorder.write(t="unanswered", count=await customers.stop(SETTLED_WITHIN), seconds=SETTLED_WITHIN)

        # The operator asks Patroni who leads: a second primary would take the changes, too, and lose them.
        await self.put_on_load(scene.workload, recorder, inject, lambda: scene.leader.url(DATABASE))
        recorder.write(t="deadlocks", count=sum(node.logged("deadlock detected") for node in scene.cluster.nodes))
        await read_final(lambda text, seconds=30: scene.leader.query(text, seconds, DATABASE), recorder, billing.FINAL_SQL)

    async def clean_up(self) -> None:
        keep_logs(self.cluster.nodes if self.cluster else [], self.directory)
        await asyncio.to_thread(self.residence.close)
