"""The faults of a distributed database whose servers have standbys under Patroni. Each returns after one injection with the number of
proven effects.

A fault says when a server is back: when another node of its group leads and has committed a write. The checker gives the service five
more seconds. Patroni tells Citus some seconds later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from citus_faults import MOVE_SECONDS, headroom
from faults import AnyScene, happens, serves_again
from support import processes
from support.citus_patroni import CitusGroups
from support.patroni import Node
from support.residence import residents
from support.waiting import wait_until_async

COORDINATOR, SOURCE, TARGET = 0, 1, 2
"""The groups: the coordinator, the worker that `headroom rebalance` takes a bucket from, and the one that gets it."""
COPYING = "select count(*) from pg_stat_subscription where pid is not null"
# Left by moves that did not end.
LEFT = (
    "select (select count(*) from pg_dist_cleanup) + (select count(*) from pg_subscription)"
    " + (select count(*) from pg_replication_slots where slot_type = 'logical')"
)


@dataclass(kw_only=True)
class FailoverScene(AnyScene):
    """`leaders` are the primaries of the groups; a fault that ends with another one sets it."""

    groups: CitusGroups
    leaders: list[Node]

    @property
    def database(self) -> str:
        return self.groups.database

    def coordinator_url(self) -> str:
        return self.leaders[COORDINATOR].url(self.database)

    async def nodes_of_buckets(self) -> dict[int, str]:
        """By the names of the table's columns."""
        placements = await self.groups.placements(self.leaders[COORDINATOR])
        return {bucket: f"worker {group}" for bucket, (_, group) in placements.items()}

    async def users(self, number: int) -> set[str]:
        """Users whose rows a group has, of those who have sent something."""
        coordinator = self.leaders[COORDINATOR]
        placements = await self.groups.placements(coordinator)
        buckets = ",".join(str(bucket) for bucket, (_, group) in placements.items() if group == number)
        known = ",".join(self.recorder.known_users)
        statement = f"select u from unnest('{{{known}}}'::text[]) as u where headroom.bucket_of(u::uuid) in ({buckets})"
        return set((await self.execute(coordinator, statement)).split())

    async def taken_over(self, number: int, users: set[str]) -> None:
        """Waits until another node leads a group, Citus knows it, and both instances serve these users again."""
        group, old, began = self.groups.groups[number], self.leaders[number], time.monotonic()
        self.leaders[number] = await group.writable(besides=old)
        promoted = time.monotonic() - began
        self.recorder.healed(f"worker {number}" if number else None)

        def serve() -> bool:
            served = self.recorder.users_served.copy()
            return all(any((index, user) in served for user in users) for index in range(len(self.instances)))

        # The checker reports instances that are late.
        await happens(serve, 15)
        await serves_again(self.recorder)
        served = time.monotonic() - began
        await self.groups.known(self.leaders, [self.leaders[COORDINATOR]])
        known = time.monotonic() - began
        name = self.leaders[number].name
        self.notes.append(f"{name} leads after {promoted:.1f} s, is used after {served:.1f} s, and Citus knows it after {known:.1f} s")

    async def rebalance(self) -> int:
        """Runs `headroom rebalance`, as an operator does, with all servers of the coordinator; returns its exit status."""
        return await headroom(self.groups.coordinator.url(self.database), self.notes, "rebalance")

    async def execute(self, node: Node, statement: str, seconds: float = 90) -> str:
        done = await node.query(statement, seconds, self.database)
        if done.returncode != 0:
            raise processes.Failure(f"{statement}: {done.stderr}")
        return done.stdout.strip()


@dataclass(frozen=True)
class FailoverFault:
    name: str
    inject: Callable[[FailoverScene], Awaitable[int]]
    # The group that fails has three nodes, so that a standby is left.
    group: int
    # Whether one worker has more buckets than the other when the load begins, so that `headroom rebalance` moves one.
    is_unbalanced: bool = False


def lose(node: Node) -> int:
    """kill -9 of PostgreSQL and Patroni; the node stays away."""
    node.kill()
    return int(not residents(node.home))


async def fail_worker_over(scene: FailoverScene) -> int:
    users = await scene.users(TARGET)
    fired = lose(scene.leaders[TARGET])
    await scene.taken_over(TARGET, users)
    return fired


async def switch_worker_over(scene: FailoverScene) -> int:
    """Patroni's planned change of a worker's primary."""
    group, old, users = scene.groups.groups[TARGET], scene.leaders[TARGET], await scene.users(TARGET)
    await group.switch_over()
    await scene.taken_over(TARGET, users)
    await group.ready()
    return int(scene.leaders[TARGET] is not old)


async def fail_coordinator_over(scene: FailoverScene) -> int:
    """The workers count meanwhile. Then they know the new coordinator, and a bucket can move."""
    fired = lose(scene.leaders[COORDINATOR])
    await scene.taken_over(COORDINATOR, scene.recorder.known_users)
    await scene.groups.known(scene.leaders, scene.leaders)
    await unbalance(scene)
    return fired if await scene.rebalance() == 0 and await is_balanced(scene) else 0


async def freeze_worker(scene: FailoverScene) -> int:
    """A worker's primary is silent, as behind a broken network: sessions stay open, and nobody is told. It resumes beside the new one."""
    group, old, users = scene.groups.groups[TARGET], scene.leaders[TARGET], await scene.users(TARGET)
    old.freeze()
    fired = int(old.postmaster is not None and processes.state(old.postmaster) == "T")
    await scene.taken_over(TARGET, users)
    old.thaw()
    await group.ready()
    await serves_again(scene.recorder)
    return fired


async def cut_worker_off(scene: FailoverScene) -> int:
    """A worker's primary does not reach etcd, while its standbys, the other servers and the service reach it. Patroni demotes it."""
    group, old, users = scene.groups.groups[TARGET], scene.leaders[TARGET], await scene.users(TARGET)
    old.etcd_link.cut()
    fired = int(old.etcd_link.is_cut)
    await scene.taken_over(TARGET, users)
    old.etcd_link.heal()
    await group.ready()
    await serves_again(scene.recorder)
    return fired


async def fail_source_of_move_over(scene: FailoverScene) -> int:
    return await fail_over_during_move(scene, SOURCE)


async def fail_target_of_move_over(scene: FailoverScene) -> int:
    return await fail_over_during_move(scene, TARGET)


async def fail_over_during_move(scene: FailoverScene, number: int) -> int:
    """A bucket moves, and the primary of the worker that has it, or of the one that gets it, is lost while rows are copied. The command
    fails. The operator runs it again after the failover: it removes what is left of the first one, and moves the bucket."""
    users = await scene.users(number)
    target, move = scene.leaders[TARGET], asyncio.ensure_future(scene.rebalance())

    async def copies() -> bool:
        result = await target.query(COPYING, database=scene.database)
        return move.done() or result.stdout.strip() not in ("", "0")

    await wait_until_async(copies, "the move copies rows", MOVE_SECONDS)
    was_moved = move.done()
    fired = lose(scene.leaders[number])
    await scene.taken_over(number, users)
    status = await move
    scene.notes.append(f"the move was over before the worker was lost: {was_moved}; the command ended with {status}")
    if await scene.rebalance() != 0:
        return 0
    left = [await scene.execute(node, LEFT) for node in scene.leaders]
    scene.notes.append(f"left of moves: {', '.join(left)}")
    return fired if await is_balanced(scene) and left == ["0"] * len(left) else 0


async def unbalance(scene: FailoverScene) -> None:
    """Moves a bucket from one worker to the other, so that `headroom rebalance` moves one back."""
    coordinator = scene.leaders[COORDINATOR]
    placements = await scene.groups.placements(coordinator)
    shard = next(shard for shard, group in placements.values() if group == TARGET)
    source, target = scene.leaders[TARGET], scene.leaders[SOURCE]
    ports = f"'127.0.0.1', {source.port}, '127.0.0.1', {target.port}"
    await scene.execute(coordinator, f"select citus_move_shard_placement({shard}, {ports}, 'force_logical')", MOVE_SECONDS)


async def is_balanced(scene: FailoverScene) -> bool:
    groups = [group for _, group in (await scene.groups.placements(scene.leaders[COORDINATOR])).values()]
    return groups.count(SOURCE) == groups.count(TARGET)


FAILOVER_FAULTS = [
    FailoverFault("worker-failover", fail_worker_over, TARGET),
    FailoverFault("worker-switchover", switch_worker_over, TARGET),
    FailoverFault("worker-freeze", freeze_worker, TARGET),
    FailoverFault("worker-cut-off", cut_worker_off, TARGET),
    FailoverFault("worker-failover-during-move", fail_target_of_move_over, TARGET, is_unbalanced=True),
    FailoverFault("source-failover-during-move", fail_source_of_move_over, SOURCE, is_unbalanced=True),
    FailoverFault("coordinator-failover", fail_coordinator_over, COORDINATOR),
]
