"""One run of a cluster's fault with one seed: two instances of the service, three nodes under Patroni, and the final state."""

from __future__ import annotations

import asyncio
import random

import billing
from case import SETTLED_WITHIN, Assignment, Case, keep_logs, read_final
from cluster_faults import CLUSTER_FAULTS, PLANTED, ClusterFault, ClusterScene
from clusters import DATABASE
from instance import Instance
from recorder import Recorder
from support.patroni import PatroniCluster
from support.residence import Residence
from workload import Workload

# Between two bursts of a client: the load must leave the processors to etcd and Patroni, which have to be in time.
PAUSE_SECONDS = 0.03


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
        self.instances += [Instance(index, self.directory, url, flags=()) for index in range(2)]
        await asyncio.gather(*(instance.start() for instance in self.instances))
        workload = Workload(recorder, seed=self.seed, port_of=lambda index: self.instances[index].port)
        workload.pause = PAUSE_SECONDS
        return ClusterScene(
            random=random.Random(f"fault/{self.seed}"), cluster=cluster, leader=leader, instances=self.instances, recorder=recorder,
            workload=workload, notes=self.result.notes,
        )  # fmt: skip

    async def run_scenario(self, recorder: Recorder) -> None:
        recorder.write(t="meta", fault=self.fault.name, seed=self.seed, deadline_ms=2000, instances=[0, 1])
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
