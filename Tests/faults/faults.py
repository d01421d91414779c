"""The faults. Each returns after one injection with the number of proven effects."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from clusters import DATABASE, FaultedCluster
from instance import Instance
from recorder import Recorder
from support import settings
from support.processes import children, resume, state
from support.proxy import DisturbedProxy
from support.waiting import WaitTimeout, wait_until_async
from tracer import Tracer
from workload import FIVE, HOT, Workload, user_id

# Requests that each instance must serve after the fault, to show that it has recovered.
SERVED_AFTERWARDS = 200


@dataclass(kw_only=True)
class AnyScene:
    """What every fault may use."""

    random: random.Random
    instances: list[Instance]
    recorder: Recorder
    workload: Workload
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Scene(AnyScene):
    """With one server, and what its fault needs beside it."""

    directory: Path
    cluster: FaultedCluster
    standby: FaultedCluster | None = None
    database_proxy: DisturbedProxy | None = None
    client_proxies: list[DisturbedProxy] = field(default_factory=list)
    serial: int = 0

    def tracer(self) -> Tracer:
        self.serial += 1
        return Tracer(self.directory / f"strace-{self.serial}.log")

    def instance(self) -> Instance:
        return self.random.choice(self.instances)

    async def lane(self) -> int | None:
        lanes = await self.cluster.lanes()
        return self.random.choice(lanes) if lanes else None

    def frozen(self, since: int, instance: Instance | None) -> None:
        self.recorder.write(t="frozen", **{"from": since}, to=time.monotonic_ns(), i=instance.index if instance else None)


Inject = Callable[[Scene], Awaitable[int]]


async def happens(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether a condition becomes true within a number of seconds."""
    try:
        await wait_until_async(condition, "something that need not be", seconds)
    except WaitTimeout:
        return False
    return True


async def serves_again(recorder: Recorder) -> None:
    """Waits until both instances have served requests after the fault."""
    # A longer wait is not needed: the checker reports instances that are late.
    await happens(lambda: all(recorder.served[index] >= SERVED_AFTERWARDS for index in range(2)), 15)


async def is_stopped(pid: int) -> bool:
    """Waits until a process that was sent SIGSTOP is stopped. False if it has ended."""
    await wait_until_async(lambda: state(pid) in ("T", "Z", ""), f"process {pid} has stopped")
    return state(pid) == "T"


@dataclass
class Fault:
    name: str
    inject: Inject
    # The required set-up: "standby", "tmpfs", "database proxy", "client proxy", "clock", "strace".
    needs: frozenset[str] = frozenset()
    # Injected once, not repeatedly.
    is_once: bool = False
    # PostgreSQL's deadlock detector may have to end the operator's session, or ours.
    may_deadlock: bool = False


# The service ------------------------------------------------------------------------------------------------------------


async def kill_service(scene: Scene) -> int:
    instance = scene.instance()
    await asyncio.sleep(scene.random.random() * 0.5)
    instance.kill()
    fired = int(instance.status == -signal.SIGKILL)
    await instance.start()
    return fired


async def kill_service_at_call(scene: Scene) -> int:
    """Kills an instance at the nth system call of one of its threads."""
    instance = scene.instance()
    call = scene.random.choice(("sendto", "recvfrom", "write,writev,sendmsg", "read", "poll,ppoll", "epoll_wait"))
    tracer = scene.tracer()
    tracer.attach(instance.pid, call, f"signal=KILL:when={scene.random.randrange(1, 40)}", threads=True)
    await happens(lambda: instance.status is not None, 4)
    fired = int(instance.status == -signal.SIGKILL)
    await tracer.detach()
    instance.kill()
    await instance.start()
    return fired


async def stop_service(scene: Scene) -> int:
    instance = scene.instance()
    since = time.monotonic_ns()
    os.kill(instance.pid, signal.SIGSTOP)
    fired = int(await is_stopped(instance.pid))
    await asyncio.sleep(scene.random.choice((0.2, 1.0, 3.0)))
    resume(instance.pid)
    # The accumulated requests are executed first.
    await asyncio.sleep(0.3)
    scene.frozen(since, instance)
    return fired


async def terminate_service(scene: Scene) -> int:
    instance = scene.instance()
    at = time.monotonic_ns()
    code = await instance.terminate()
    scene.recorder.write(t="sigterm", at=at, exited=time.monotonic_ns(), i=instance.index, code=code)
    await instance.start()
    return int(code == 0)


# On a busy machine, this process takes long for 2,000 connections.
VISIT_SECONDS = 60


async def reconnect_storm(scene: Scene) -> int:
    """2,000 connections at once; each must be answered or refused."""
    instance = scene.instance()
    question = f"CHECK {user_id(HOT, 0)}\n".encode()

    async def visit() -> bool:
        try:
            reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", instance.port), VISIT_SECONDS)
            writer.write(question)
            line = await asyncio.wait_for(reader.readline(), VISIT_SECONDS)
            writer.transport.abort()
            return line.startswith((b"+", b"-"))
        except (OSError, asyncio.TimeoutError, TimeoutError):
            return False

    since = time.monotonic_ns()
    answered = sum(await asyncio.gather(*(visit() for _ in range(2000))))
    # This process is the slow part here.
    scene.frozen(since, None)
    scene.notes.append(f"{answered} of 2000 connections were answered")
    return int(answered >= 1900)


# The database -----------------------------------------------------------------------------------------------------------


async def kill_backend(scene: Scene) -> int:
    before = scene.cluster.log_size()
    lane = await scene.lane()
    if lane is None:
        return 0
    os.kill(lane, signal.SIGKILL)
    await happens(lambda: scene.cluster.log_count("was terminated by signal 9", before) > 0, 30)
    return scene.cluster.log_count("was terminated by signal 9", before)


async def terminate_backend(scene: Scene) -> int:
    result = await scene.cluster.query(
        "select count(*) filter (where pg_terminate_backend(pid)) from pg_stat_activity"
        " where application_name = 'headroom lane' and random() < 0.7"
    )
    return int(result.stdout) if result.returncode == 0 else 0


async def restart_immediately(scene: Scene) -> int:
    before = scene.cluster.log_size()
    await scene.cluster.crash()
    await asyncio.sleep(scene.random.choice((0.0, 0.5)))
    await scene.cluster.recover()
    return scene.cluster.log_count("database system was not properly shut down", before)


async def stop_backend(scene: Scene) -> int:
    lane = await scene.lane()
    if lane is None:
        return 0
    os.kill(lane, signal.SIGSTOP)
    fired = int(await is_stopped(lane))
    await asyncio.sleep(scene.random.choice((0.3, 1.0, 2.5, 3.5)))
    resume(lane)
    return fired


async def terminate_stopped_backend(scene: Scene) -> int:
    """Stops a lane's session twice, and ends it then. The requests that wait during the first stop are executed during the second as one
    batch, so their deadlines are far apart: some of them have passed when the session ends, others have not."""
    lane = await scene.lane()
    if lane is None:
        return 0
    for pause in (0.0, 0.002 + scene.random.random() * 0.02):
        await asyncio.sleep(pause)
        os.kill(lane, signal.SIGSTOP)
        if not await is_stopped(lane):
            return 0
        await asyncio.sleep(1.2)
        if pause:
            os.kill(lane, signal.SIGTERM)
        resume(lane)
    return int(await happens(lambda: not state(lane), 30))


async def stop_postmaster(scene: Scene) -> int:
    """Stops the postmaster, so that no client can connect, and ends the lanes' sessions."""
    os.kill(scene.cluster.pid, signal.SIGSTOP)
    fired = int(await is_stopped(scene.cluster.pid))
    for child in children(scene.cluster.pid):
        if b"headroom" in Path(f"/proc/{child}/cmdline").read_bytes() and scene.random.random() < 0.5:
            os.kill(child, signal.SIGTERM)
    await asyncio.sleep(scene.random.choice((0.5, 1.5, 3.0)))
    resume(scene.cluster.pid)
    return fired


async def cut_before_reply(scene: Scene) -> int:
    """A backend commits and cannot send its reply: the row is durable, the service sees a lost connection."""
    lane = await scene.lane()
    if lane is None:
        return 0
    tracer = scene.tracer()
    tracer.attach(lane, "sendto", f"error=ECONNRESET:when={scene.random.randrange(1, 12)}")
    await happens(lambda: not state(lane) or tracer.injected() > 0, 4)
    await happens(lambda: not state(lane), 1)
    await tracer.detach()
    return int(tracer.injected() > 0 and not state(lane))


async def slow_flush(scene: Scene) -> int:
    tracers = []
    for lane in await scene.cluster.lanes():
        tracer = scene.tracer()
        tracer.attach(lane, "fdatasync", f"delay_enter={scene.random.choice((100_000, 400_000, 900_000))}")
        tracers.append(tracer)
    await asyncio.sleep(2)
    for tracer in tracers:
        await tracer.detach()
    return sum(tracer.injected() for tracer in tracers)


async def lock_in_reverse(scene: Scene) -> int:
    """A session locks the rows of many users in descending order for some seconds."""
    before = scene.cluster.log_size()
    hot = scene.workload.hot_set % 200 * 8
    users = [user_id(HOT, hot + index) for index in range(8)] + [user_id(FIVE, index) for index in range(8)]
    listed = ", ".join(f"'{user}'" for user in users)
    await scene.cluster.query(
        f"""do $$ declare u record; begin
            for u in select user_id from message_usage where user_id in ({listed}) order by user_id desc loop
                perform from message_usage where user_id = u.user_id for update;
                perform pg_sleep(0.12);
            end loop;
        end $$""",
    )
    await asyncio.sleep(0.2)
    return scene.cluster.log_count("due to lock timeout", before) + scene.cluster.log_count("deadlock detected", before)


async def fill_disk(scene: Scene) -> int:
    before = scene.cluster.log_size()
    filler = Path(scene.cluster.home) / "filler"
    with open(filler, "wb", buffering=0) as file:
        for size in (1 << 20, 1 << 16, 1 << 12):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    await asyncio.sleep(1)
    if scene.cluster.log_count("No space left on device", before) == 0 or scene.random.random() < 0.5:
        # New WAL segments are needed at once; when the recycled ones are used up, there is no room.
        for _ in range(5):
            if not scene.cluster.is_running or scene.cluster.log_count("No space left on device", before):
                break
            await scene.cluster.query("select pg_switch_wal()", seconds=2)
            await asyncio.sleep(0.2)
    await asyncio.sleep(1)
    filler.unlink()
    # PostgreSQL ends when it has no room for its WAL, and an operator starts it again.
    await asyncio.sleep(0.5)
    if not scene.cluster.is_running:
        scene.notes.append("PostgreSQL ended itself and was started again")
        await scene.cluster.recover()
    return scene.cluster.log_count("No space left on device", before)


# The network ------------------------------------------------------------------------------------------------------------


async def disturb(scene: Scene, proxies: list[DisturbedProxy], ways: tuple[str, ...]) -> int:
    way = scene.random.choice(ways)
    before = sum(proxy.fired[way] for proxy in proxies)
    for proxy in proxies:
        if way == "reset":
            proxy.reset()
        elif way == "cut":
            proxy.cut_after_bytes = scene.random.choice((0, 1, 5, 20))
        elif way == "delay":
            proxy.delay = scene.random.choice((0.05, 0.2))
        elif way == "split":
            proxy.is_split = True
        elif way == "silence":
            proxy.speaks.clear()
    await asyncio.sleep({"silence": scene.random.choice((0.5, 1.9, 3.0)), "reset": 0.1, "cut": 0.3}.get(way, 1.0))
    for proxy in proxies:
        proxy.heal()
    return sum(proxy.fired[way] for proxy in proxies) - before


async def disturb_database(scene: Scene) -> int:
    assert scene.database_proxy is not None
    return await disturb(scene, [scene.database_proxy], ("reset", "cut", "cut", "delay", "split", "silence"))


async def disturb_clients(scene: Scene) -> int:
    return await disturb(scene, scene.client_proxies, ("reset", "cut", "delay", "split"))


# Failover ---------------------------------------------------------------------------------------------------------------


async def promote(scene: Scene) -> None:
    """Promotes the standby and repeats until it is the primary; on a busy disk this may take several attempts."""
    standby = scene.standby
    assert standby is not None
    output = ""

    async def leads() -> bool:
        nonlocal output
        result = await standby.query("select pg_promote(false) where pg_is_in_recovery(); select pg_is_in_recovery()")
        output = (result.stdout + result.stderr).strip()
        return result.returncode == 0 and result.stdout.split()[-1:] == ["f"]

    await wait_until_async(leads, lambda: f"the standby leads; it answered {output!r}", 60)
    scene.recorder.healed()


async def fail_over_stopped(scene: Scene) -> int:
    assert scene.standby is not None
    await asyncio.sleep(1 + scene.random.random())
    await scene.cluster.crash()
    await promote(scene)
    scene.cluster = scene.standby
    await asyncio.sleep(2)
    return 1


async def fail_over_frozen(scene: Scene) -> int:
    """The old primary is frozen, and resumes for a while beside the new one, until it is stopped."""
    assert scene.standby is not None
    await asyncio.sleep(1 + scene.random.random())
    old = scene.cluster
    frozen = old.processes()
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    for pid in frozen:
        await is_stopped(pid)
    await promote(scene)
    scene.cluster = scene.standby
    # The service must have recovered, on the new primary.
    await asyncio.sleep(5.2)
    for pid in frozen:
        resume(pid)
    await asyncio.sleep(2.5)
    await old.crash()
    return 1


async def fail_over_unreplicated(scene: Scene) -> int:
    """The standby stops, and the sessions that wait for it are ended: their commits are only on the primary. Then the primary is
    lost and the standby starts again."""
    assert scene.standby is not None
    await asyncio.sleep(1 + scene.random.random())
    # Killed, not stopped: bytes in a stopped process's sockets would still arrive.
    await scene.standby.crash()
    before = scene.cluster.log_size()
    fired = 0

    async def ends_a_wait() -> bool:
        nonlocal fired
        await asyncio.sleep(0.4)
        await terminate_backend(scene)
        # PostgreSQL's warning about a commit without replication.
        fired = scene.cluster.log_count("canceling the wait for synchronous replication", before)
        return fired > 0

    for _ in range(3):
        await ends_a_wait()
    await wait_until_async(ends_a_wait, "a session that waited for the standby was ended", 30)
    await asyncio.sleep(1.2)
    await scene.cluster.crash()
    await scene.standby.recover()
    await promote(scene)
    scene.cluster = scene.standby
    await asyncio.sleep(2)
    return fired


# Timeouts -------------------------------------------------------------------------------------------------------------------


async def roll_over(scene: Scene) -> int:
    """The database's clock passes the month's end under load, twice."""
    fired = 0
    for _ in range(2):
        result = await scene.cluster.query(
            """with moved as (
                update headroom.clock set ahead =
                    (date_trunc('month', headroom.now() at time zone 'UTC') + interval '1 month - 700 milliseconds')
                    at time zone 'UTC' - pg_catalog.now()
                returning ahead)
            select to_char(pg_catalog.now() + ahead, 'YYYY-MM') from moved""",
        )
        await asyncio.sleep(2)
        after = await scene.cluster.query("select to_char(headroom.now(), 'YYYY-MM')")
        fired += int(result.returncode == 0 and re.match(r"\d{4}-\d\d", after.stdout.strip()) is not None and after.stdout != result.stdout)
    return fired


async def idle_day(scene: Scene) -> int:
    """An instance is idle for two days before another one starts."""
    scene.workload.running.clear()
    await asyncio.sleep(1)
    result = await scene.cluster.query(
        "with aged as (update headroom.lane_receipts set updated_at = updated_at - interval '2 days' returning 1)"
        " select count(*) from aged",
    )
    code = await scene.instances[1].terminate()
    await scene.instances[1].start()
    scene.workload.running.set()
    await asyncio.sleep(1)
    return int(result.stdout or 0) if code == 0 else 0


async def divide_users(scene: Scene) -> int:
    """An operator divides the users into buckets. The first attempt is killed, and often a lane loses its session meanwhile."""
    buckets = scene.random.choice((2, 8, 64))
    arguments = [settings.binary, "distribute", "--buckets", str(buckets), "--database-url", scene.cluster.url(DATABASE)]
    process = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL)
    await asyncio.sleep(scene.random.random() * 0.3)
    if process.returncode is None:
        process.kill()
    await process.wait()
    process = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE)
    lane = await scene.lane()
    if lane is not None and scene.random.random() < 0.5:
        await scene.cluster.query(f"select pg_terminate_backend({lane})")
    _, errors = await process.communicate()
    if process.returncode != 0:
        scene.notes.append(errors.decode().strip()[-300:])
    result = await scene.cluster.query("select cardinality(buckets) from headroom.bucket_map where moved = 4096")
    return int(process.returncode == 0 and result.stdout.strip() == str(buckets))


async def nothing(scene: Scene) -> int:
    """The same load without a fault, in which the checker must find nothing."""
    await asyncio.sleep(1)
    return 1


FAULTS: list[Fault] = [
    Fault("none", nothing),
    Fault("kill-service", kill_service),
    Fault("kill-service-at-call", kill_service_at_call, needs=frozenset({"strace"})),
    Fault("cut-before-reply", cut_before_reply, needs=frozenset({"strace"})),
    Fault("kill-backend", kill_backend),
    Fault("terminate-backend", terminate_backend),
    Fault("restart-immediately", restart_immediately),
    Fault("stop-backend", stop_backend),
    Fault("terminate-stopped", terminate_stopped_backend),
    Fault("stop-postmaster", stop_postmaster),
    Fault("stop-service", stop_service),
    Fault("disturb-database", disturb_database, needs=frozenset({"database proxy"})),
    Fault("disturb-clients", disturb_clients, needs=frozenset({"client proxy"})),
    Fault("fill-disk", fill_disk, needs=frozenset({"tmpfs"})),
    Fault("slow-flush", slow_flush, needs=frozenset({"strace"})),
    Fault("lock-in-reverse", lock_in_reverse, may_deadlock=True),
    Fault("reconnect-storm", reconnect_storm),
    Fault("terminate-service", terminate_service),
    Fault("roll-over", roll_over, needs=frozenset({"clock"}), is_once=True),
    Fault("idle-day", idle_day),
    Fault("divide-users", divide_users, is_once=True),
    Fault("fail-over-stopped", fail_over_stopped, needs=frozenset({"standby"}), is_once=True),
    Fault("fail-over-frozen", fail_over_frozen, needs=frozenset({"standby"}), is_once=True),
    Fault("fail-over-unreplicated", fail_over_unreplicated, needs=frozenset({"standby"}), is_once=True),
]
