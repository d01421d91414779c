"""The faults of a high-availability cluster. Each returns after one injection with the number of proven effects.

A fault says when the database is back: when another node leads and has committed a write. The checker gives the service five more
seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from faults import AnyScene, serves_again
from support import processes
from support.patroni import WRITE, Node, PatroniCluster
from support.residence import residents
from support.waiting import wait_until_async

# Longer than the deadline of a request. An answer from before a fault may arrive so late, behind one that waits.
DEADLINE_SECONDS = 3.0
LANES = "select count(*) from pg_stat_activity where application_name = 'headroom lane'"
END_LANES = "select count(*) filter (where pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'headroom lane'"


@dataclass(kw_only=True)
class ClusterScene(AnyScene):
    """`leader` leads at first; a fault that ends with another leader sets it."""

    cluster: PatroniCluster
    leader: Node

    def standbys(self) -> list[Node]:
        return [node for node in self.cluster.nodes if node is not self.leader]

    async def back(self, besides: Node | None = None) -> Node:
        """Waits until a node leads, another than `besides`, and both instances serve again."""
        node = await self.cluster.writable(besides)
        self.recorder.healed()
        self.leader = node
        await self.serves()
        return node

    async def serves(self) -> None:
        await serves_again(self.recorder)

    def allowed(self) -> int:
        return self.recorder.counts["allowed"]

    async def stays_silent(self) -> None:
        """Keeps a state in which nothing can be counted for longer than the deadline of a request. Fails if something is allowed: the
        checker does not see it where nothing is lost in the end."""
        before = self.allowed()
        await asyncio.sleep(DEADLINE_SECONDS)
        if self.allowed() > before:
            raise RuntimeError(f"{self.allowed() - before} messages were answered as counted that are on one node only")


@dataclass
class ClusterFault:
    name: str
    inject: Callable[[ClusterScene], Awaitable[int]]
    is_synchronous: bool = True
    # Whether the service reaches each node through a link that can be cut.
    has_client_links: bool = False
    # Whether the service knows of the first primary only.
    knows_one: bool = False


async def none(scene: ClusterScene) -> int:
    """The same load without a fault."""
    await asyncio.sleep(2)
    return 1


async def kill_primary(scene: ClusterScene) -> int:
    """The primary's machine is lost: kill -9 of PostgreSQL and of Patroni."""
    old = scene.leader
    old.kill()
    fired = int(not residents(old.home))
    await scene.back(besides=old)
    return fired


async def kill_standby(scene: ClusterScene) -> int:
    """The synchronous standby's machine is lost, and returns."""
    standby = await scene.cluster.synchronous_standby()
    standby.kill()
    fired = int(not residents(standby.home))
    await scene.back()
    standby.start()
    scene.leader = await scene.cluster.ready()
    return fired


async def switch_over(scene: ClusterScene) -> int:
    old = scene.leader
    await scene.cluster.switch_over()
    await scene.back(besides=old)
    scene.leader = await scene.cluster.ready()
    return int(scene.leader is not old)


async def cut_off_primary(scene: ClusterScene) -> int:
    """The primary reaches neither etcd nor the standbys, but the service reaches it. It returns beside the new one."""
    old = scene.leader
    old.cut_off()
    fired = int(old.is_cut_off)
    await scene.back(besides=old)
    old.reconnect()
    scene.leader = await scene.cluster.ready()
    await scene.serves()
    return fired


async def cut_off_service(scene: ClusterScene) -> int:
    """The service does not reach the primary, which goes on leading: nobody is told, and open connections stay silent."""
    link = scene.leader.clients_link
    assert link is not None
    link.cut()
    fired = int(link.is_cut)
    await asyncio.sleep(DEADLINE_SECONDS)
    await scene.stays_silent()
    link.heal()
    await scene.back()
    return fired


async def lose_standbys(scene: ClusterScene) -> int:
    """Both standbys are lost, so that nothing may be answered as counted. They return, and the primary is lost."""
    lost = scene.standbys()
    for standby in lost:
        standby.kill()
    fired = int(not any(residents(standby.home) for standby in lost))
    await asyncio.sleep(DEADLINE_SECONDS)
    await scene.stays_silent()
    for standby in lost:
        standby.start()
    await scene.back()
    await scene.cluster.ready()
    return fired + await kill_primary(scene)


async def freeze_primary(scene: ClusterScene) -> int:
    """The primary stops at once and for longer than it may stay silent; it resumes beside the new one."""
    old = scene.leader
    old.freeze()
    fired = int(old.postmaster is not None and processes.state(old.postmaster) == "T")
    await scene.back(besides=old)
    old.thaw()
    scene.leader = await scene.cluster.ready()
    await scene.serves()
    return fired


async def lose_quorum(scene: ClusterScene) -> int:
    """etcd does not answer, as without a quorum. Patroni then makes the primary a standby, because it cannot know who leads."""
    cluster = scene.cluster
    assert cluster.etcd is not None
    processes.pause(cluster.etcd.pid)

    async def is_demoted() -> bool:
        return await cluster.leader() is None

    await wait_until_async(is_demoted, "the primary is demoted", 60)
    await asyncio.sleep(DEADLINE_SECONDS)
    await scene.stays_silent()
    fired = int(processes.state(cluster.etcd.pid) == "T")
    processes.resume(cluster.etcd.pid)
    await scene.back()
    scene.leader = await cluster.ready()
    return fired


async def rejoin(scene: ClusterScene) -> int:
    """The primary is lost and returns as a standby, its own history rewound; then the new primary is lost."""
    old = scene.leader
    await kill_primary(scene)
    old.start()
    await scene.cluster.ready()
    rewound = old.logged("running pg_rewind", old.patroni_log)
    scene.notes.append(f"pg_rewind ran {rewound} times")
    return await kill_primary(scene)


async def return_first(scene: ClusterScene) -> int:
    """The old primary is started by hand, without Patroni and as a primary, while another leads, and is first in the service's
    list. Then the service has to connect again."""
    old = scene.leader
    await kill_primary(scene)
    # Otherwise its commits would wait for standbys, and nothing could be lost.
    old.launch_postgres("synchronous_standby_names=")

    await wait_until_async(lambda: accepts(old), "the old primary accepts connections", 60)
    is_primary = await execute(old, "select not pg_is_in_recovery()")
    ended = await execute(scene.leader, END_LANES)
    scene.recorder.healed()
    await scene.serves()
    await asyncio.sleep(DEADLINE_SECONDS)
    scene.notes.append(f"the old primary has {await execute(old, LANES)} lanes")
    old.kill()
    await scene.back(besides=old)
    return int(ended) * int(is_primary == "t")


async def keep_stale_names(scene: ClusterScene) -> int:
    """All nodes are lost. One standby is started and promoted by hand, and its synchronous_standby_names names a node that is gone.
    Nothing may be answered as counted until an operator empties it."""
    promoted = await scene.cluster.synchronous_standby()
    gone = next(node for node in scene.standbys() if node is not promoted)
    await execute(promoted, f"alter system set synchronous_standby_names = '{gone.name}'")
    for node in (scene.leader, gone, promoted):
        node.kill()
    # A restart, because a running server applies a changed setting some time after the reload, and commits until then.
    promoted.launch_postgres()
    await wait_until_async(lambda: accepts(promoted), "the standby accepts connections", 60)
    await asyncio.sleep(DEADLINE_SECONDS)
    await execute(promoted, "select pg_promote(true, 60)")
    scene.leader = promoted
    await scene.stays_silent()
    waiting = await execute(promoted, "select count(*) from pg_stat_activity where wait_event = 'SyncRep'")
    await execute(promoted, "alter system set synchronous_standby_names = ''")
    await execute(promoted, "select pg_reload_conf()")
    await execute(promoted, WRITE)
    scene.recorder.healed()
    await scene.serves()
    return int(waiting)


async def accepts(node: Node) -> bool:
    return (await node.query("select 1")).returncode == 0


async def execute(node: Node, statement: str) -> str:
    done = await node.query(statement, 90)
    if done.returncode != 0:
        raise RuntimeError(f"{statement}: {done.stderr}")
    return done.stdout.strip()


async def restart_instances(scene: ClusterScene) -> int:
    """SIGTERM of one instance after the other, each started again, as in a deployment."""
    fired = 0
    for instance in scene.instances:
        at = time.monotonic_ns()
        code = await instance.terminate()
        scene.recorder.write(t="sigterm", at=at, exited=time.monotonic_ns(), i=instance.index, code=code)
        await instance.start()
        fired += int(code == 0)
        scene.recorder.healed()
        await scene.serves()
    return fired


async def lose_unreplicated(scene: ClusterScene) -> int:
    """Standbys receive nothing for a while, which asynchronous replication does not notice; then the primary is lost."""
    old = scene.leader
    old.cut_off_from_peers()
    before = scene.allowed()
    await wait_until_async(lambda: scene.allowed() > before + 500, "messages are answered that no standby has")
    return await kill_primary(scene)


CLUSTER_FAULTS = [
    ClusterFault("none", none),
    ClusterFault("kill-primary", kill_primary),
    ClusterFault("cut-off-primary", cut_off_primary),
    ClusterFault("cut-off-service", cut_off_service, has_client_links=True),
    ClusterFault("lose-standbys", lose_standbys),
    ClusterFault("freeze-primary", freeze_primary),
    ClusterFault("etcd-without-quorum", lose_quorum),
    ClusterFault("switchover", switch_over),
    ClusterFault("rejoin", rejoin),
    ClusterFault("old-primary-first", return_first),
    ClusterFault("stale-synchronous-standby-names", keep_stale_names),
    ClusterFault("kill-standby", kill_standby),
    ClusterFault("rolling-restart", restart_instances),
]


@dataclass(frozen=True)
class ClusterPlant:
    """A wrong set-up, which the checker must catch."""

    description: str
    caught_by: frozenset[str]
    fault: ClusterFault


PLANTED = [
    ClusterPlant(
        "replication is asynchronous, and the primary is lost", frozenset({"I5"}),
        ClusterFault("planted-asynchronous", lose_unreplicated, is_synchronous=False),
    ),
    ClusterPlant(
        "the service knows the old primary only", frozenset({"I12"}),
        ClusterFault("planted-one-host", kill_primary, knows_one=True),
    ),
]
