"""The faults of a distributed database. Each returns after one injection with the number of proven effects.

A fault says when the database is back: when each node accepts connections. The checker gives the service five more seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from clusters import psql
from faults import AnyScene
from support import settings
from support.citus import BUCKETS, CitusCluster, Node
from support.service import environment
from support.waiting import wait_until_async

# How long a lost node stays away: longer than the deadline of a request.
AWAY_SECONDS = 3.0
# Messages that are allowed between two steps of a fault, so that each step happens under load.
ALLOWED_BETWEEN = 50
# A move copies the rows, and then waits until the copy has what was written meanwhile.
MOVE_SECONDS = 120.0
COMMAND_SECONDS = 300.0


async def headroom(url: str, notes: list[str], *arguments: str) -> int:
    """Runs a command of the service on a database; returns its exit status, and notes what a failed one says."""
    process = await asyncio.create_subprocess_exec(
        settings.binary, *arguments, "--database-url", url, env=environment(), cwd="/",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        _, errors = await asyncio.wait_for(process.communicate(), COMMAND_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        notes.append(f"{arguments[0]}: {errors.decode().strip()[-300:]}")
    return process.returncode or 0


@dataclass(kw_only=True)
class CitusScene(AnyScene):
    cluster: CitusCluster
    database: str

    async def counts_on(self) -> None:
        """Waits until more messages are allowed."""
        least = self.recorder.counts["allowed"] + ALLOWED_BETWEEN
        await wait_until_async(lambda: self.recorder.counts["allowed"] >= least, "messages are allowed", 60)

    async def start(self, node: Node) -> None:
        """Starts a node that has ended, and waits until it accepts connections."""
        # In this thread, because the kernel stops the process when the starting thread ends.
        node.launch()
        await asyncio.to_thread(node.wait_until_ready)

    async def headroom(self, *arguments: str) -> int:
        return await headroom(self.cluster.url(self.database), self.notes, *arguments)

    def nodes_of_buckets(self) -> dict[int, str]:
        return {bucket: node.name for bucket, (_, node) in self.cluster.placements(self.database).items()}

    async def move(self, bucket: int, target: Node) -> bool:
        """Moves the shard of a bucket, as an operator does; returns whether it is there."""
        shard, source = (await asyncio.to_thread(self.cluster.placements, self.database))[bucket]
        statement = (f"select citus_move_shard_placement({shard}, '127.0.0.1', {source.port}, '127.0.0.1', {target.port}, 'force_logical')")
        done = await psql(self.cluster.url(self.database), statement, MOVE_SECONDS)
        if done.returncode != 0:
            self.notes.append(done.stderr.strip()[-300:])
        return (await asyncio.to_thread(self.cluster.placements, self.database))[bucket][1] is target

    async def copies(self, move: asyncio.Future[Any], target: Node) -> bool:
        """Waits until a move copies rows to a worker. Returns whether it has ended instead."""
        subscriptions = "select count(*) from pg_stat_subscription where pid is not null"

        async def copies() -> bool:
            result = await psql(target.url(self.database), subscriptions)
            return move.done() or result.stdout.strip() not in ("", "0")

        await wait_until_async(copies, "the move copies rows", MOVE_SECONDS)
        return move.done()


@dataclass(frozen=True)
class CitusFault:
    name: str
    inject: Callable[[CitusScene], Awaitable[int]]
    # Whether the database is distributed when the load begins.
    is_distributed: bool = True


async def none(scene: CitusScene) -> int:
    """The same load without a fault."""
    await scene.counts_on()
    return 1


async def move_shards(scene: CitusScene) -> int:
    """A bucket moves to the other worker while its lane counts, and another one back."""
    first, second = scene.cluster.workers[:2]
    fired = 0
    for source, target in ((first, second), (second, first)):
        placements = await asyncio.to_thread(scene.cluster.placements, scene.database)
        bucket = scene.random.choice([bucket for bucket, (_, node) in placements.items() if node is source])
        fired += await scene.move(bucket, target)
        await scene.counts_on()
    return fired if fired == 2 else 0


async def lose(scene: CitusScene, node: Node) -> int:
    """kill -9 of all processes of a node, which is back after some seconds."""
    node.kill()
    fired = int(not node.is_running)
    await asyncio.sleep(AWAY_SECONDS)
    await scene.start(node)
    return fired


async def kill_worker(scene: CitusScene) -> int:
    return await lose(scene, scene.random.choice(scene.cluster.workers))


async def kill_coordinator(scene: CitusScene) -> int:
    return await lose(scene, scene.cluster)


async def kill_target_of_move(scene: CitusScene) -> int:
    """The worker to which a bucket moves is lost meanwhile. Nothing has moved then, and the operator repeats the move."""
    placements = await asyncio.to_thread(scene.cluster.placements, scene.database)
    source, target = scene.cluster.workers[:2]
    bucket = next(bucket for bucket, (_, node) in placements.items() if node is source)
    move = asyncio.ensure_future(scene.move(bucket, target))
    was_moved = await scene.copies(move, target)
    fired = await lose(scene, target)
    has_moved = await move
    scene.notes.append(f"the move was over before the worker was lost: {was_moved}; it succeeded: {has_moved}")
    return fired if has_moved or await scene.move(bucket, target) else 0


async def kill_rebalance(scene: CitusScene) -> int:
    """The command that moves a bucket is killed while rows are copied. The operator runs it again at once."""
    source, target = scene.cluster.workers[:2]
    bucket = next(bucket for bucket, name in (await asyncio.to_thread(scene.nodes_of_buckets)).items() if name == target.name)
    if not await scene.move(bucket, source):
        return 0
    move = asyncio.ensure_future(scene.headroom("rebalance"))
    was_moved = await scene.copies(move, target)
    move.cancel()
    await asyncio.wait([move])
    if await scene.headroom("rebalance") != 0:
        return 0
    names = list((await asyncio.to_thread(scene.nodes_of_buckets)).values())
    return int(not was_moved and names.count(source.name) == names.count(target.name))


async def distribute(scene: CitusScene) -> int:
    """An operator distributes the database of an ordinary PostgreSQL while clients count."""
    urls = []
    for worker in scene.cluster.workers:
        await asyncio.to_thread(worker.create_database, scene.database)
        urls.append(worker.url(scene.database))
    if await scene.headroom("distribute", "--buckets", str(BUCKETS), "--workers", ",".join(urls)) != 0:
        return 0
    nodes = await asyncio.to_thread(scene.nodes_of_buckets)
    return int(len(nodes) == BUCKETS and len(set(nodes.values())) == len(scene.cluster.workers))


async def add_worker(scene: CitusScene) -> int:
    """An operator adds a worker, which gets its share of the buckets."""
    # In this thread, because the kernel stops the process when the starting thread ends.
    added = scene.cluster.add_worker()
    await asyncio.to_thread(added.create_database, scene.database)
    if await scene.headroom("rebalance", "--workers", added.url(scene.database)) != 0:
        return 0
    nodes = await asyncio.to_thread(scene.nodes_of_buckets)
    return int(added.name in nodes.values())


CITUS_FAULTS = [
    CitusFault("none", none),
    CitusFault("move-shards", move_shards),
    CitusFault("kill-worker", kill_worker),
    CitusFault("kill-coordinator", kill_coordinator),
    CitusFault("kill-target-of-move", kill_target_of_move),
    CitusFault("kill-rebalance", kill_rebalance),
    CitusFault("add-worker", add_worker),
    CitusFault("distribute", distribute, is_distributed=False),
]
