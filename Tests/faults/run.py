"""Runs faults against the service under load and has the histories checked. script/faults starts it."""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import checker
from faults import FAULTS, Fault, Scene
from machinery import TEST_CLOCK, Cluster, Instance, Proxy, Tracer, json_lines, postgres_programs, psql, run
from plants import PLANTS, Plant
from workload import FIVE, HOLD, HOT, RESET, RESET_USERS, Recorder, Workload, setup_sql, user_id

TEMPLATE = "prepared"
FINAL_SQL = """
select json_build_object('t', 'row', 'user', user_id, 'period', billing_period, 'count', message_count, 'held', held,
    'limit', "limit", 'generation', generation) from message_usage;
select json_build_object('t', 'key', 'user', user_id, 'key', key, 'verb', verb, 'status', status, 'messages', messages,
    'used', used, 'committed_used', committed_used, 'period', billing_period, 'generation', generation)
from headroom.message_keys;
"""


@dataclass
class Result:
    fault: str
    seed: int
    fired: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    violations: list[checker.Violation] = field(default_factory=list)
    error: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def is_passed(self) -> bool:
        return not self.violations and not self.error and self.fired > 0


class House:
    """Clusters are made when the first run needs them; most runs share one, each with a database of its own."""

    def __init__(self, directory: Path, binary: Path, environment: dict[str, str]) -> None:
        self.directory, self.binary, self.environment = directory, binary, environment
        self.bin = postgres_programs()
        self.shared: Cluster | None = None
        self.clusters: list[Cluster] = []
        self.mounts: list[Path] = []

    async def cluster(self, name: str, directory: Path | None = None) -> Cluster:
        cluster = Cluster(directory or self.directory / name, self.bin)
        self.clusters.append(cluster)
        await cluster.create()
        await cluster.start()
        await self.prepare(cluster)
        return cluster

    async def prepare(self, cluster: Cluster) -> None:
        """A database with plans and users, from which each run's is copied."""
        await self.must(cluster, f"create database {TEMPLATE}", "postgres")
        migrated = await run(
            ["env", f"HEADROOM_DATABASE_URL={cluster.conninfo(TEMPLATE)}", str(self.binary), "migrate"], 60
        )
        if migrated.code != 0:
            raise RuntimeError(f"headroom migrate: {migrated.err}")
        await self.must(cluster, setup_sql(), TEMPLATE)

    async def must(self, cluster: Cluster, text: str, database: str) -> str:
        result = await cluster.sql(text, database, 120)
        if result.code != 0:
            raise RuntimeError(f"psql: {result.err}")
        return result.out

    async def shared_cluster(self) -> Cluster:
        if self.shared is None or not self.shared.is_running:
            self.shared = await self.cluster(f"shared-{len(self.clusters)}")
        return self.shared

    async def small_cluster(self, name: str) -> Cluster:
        """On a disk of its own that can be filled: a tmpfs, in this process's own mount namespace."""
        directory = self.directory / name
        directory.mkdir()
        result = await run(["mount", "-t", "tmpfs", "-o", "size=320m,mode=711", "tmpfs", str(directory)])
        if result.code != 0:
            raise RuntimeError(f"mount: {result.err}")
        self.mounts.append(directory)
        return await self.cluster(name, directory)

    async def standby_of(self, primary: Cluster, name: str) -> Cluster:
        standby = Cluster(self.directory / name, self.bin)
        self.clusters.append(standby)
        await standby.copy_from(primary)
        await standby.start()
        await self.must(primary, "alter system set synchronous_standby_names = '*'", "postgres")
        await self.must(primary, "select pg_reload_conf()", "postgres")
        for _ in range(200):
            out = await self.must(primary, "select count(*) from pg_stat_replication where sync_state = 'sync'", "postgres")
            if out.strip() == "1":
                return standby
            await asyncio.sleep(0.05)
        raise RuntimeError("the standby did not become synchronous")

    async def retire(self, *clusters: Cluster | None) -> None:
        for cluster in clusters:
            if cluster is None or cluster is self.shared:
                continue
            await cluster.stop()
            await self.unmount(cluster.directory)
            shutil.rmtree(cluster.directory, ignore_errors=True)

    async def unmount(self, directory: Path) -> None:
        if directory in self.mounts:
            await run(["umount", str(directory)])
            self.mounts.remove(directory)

    async def close(self) -> None:
        for cluster in self.clusters:
            await cluster.stop()
        for mount in list(self.mounts):
            await self.unmount(mount)


async def operate(workload: Workload, recorder: Recorder, house: House, conninfo: str, stop: asyncio.Event, seed: int) -> None:
    """The operator: resets and changed limits by psql, every half a second."""
    chance = random.Random(f"operator/{seed}")
    while not stop.is_set():
        user = user_id(RESET, chance.randrange(RESET_USERS))
        recorder.user(user, 1000)
        if chance.random() < 0.6:
            op = recorder.send(-1, None, "RESET", user)
            text = f"select public.reset_usage('{user}')"
        else:
            value = chance.randrange(100, 1001)
            op = recorder.send(-1, None, "LIMIT", user, value=value)
            text = f"update message_usage set \"limit\" = {value} where user_id = '{user}' returning 1"
        result = await psql(house.bin, conninfo, f"set statement_timeout = '1500ms'; {text};", 6)
        if result.code == 0 and result.out.strip():
            recorder.reply(op, "OK")
        elif result.code == 0 or "ERROR:" in result.err:
            # No row yet, or rolled back.
            recorder.reply(op, "ERROR", "FAILED")
        elif "could not connect" in result.err or "connection to server" in result.err and "failed" in result.err:
            recorder.reply(op, "ERROR", "FAILED")
        else:
            recorder.reply(op, "CLOSED")
        try:
            await asyncio.wait_for(stop.wait(), 0.5)
        except (asyncio.TimeoutError, TimeoutError):
            pass


async def read_final(scene: Scene, recorder: Recorder, house: House) -> None:
    """All rows and keys, once no session of the service is left that might still commit."""
    for _ in range(200):
        if not await scene.cluster.lanes(scene.database):
            break
        await asyncio.sleep(0.05)
    out = await house.must(scene.cluster, FINAL_SQL, scene.database)
    for entry in json_lines(out):
        recorder.write(**entry)
    recorder.write(t="end", at=time.monotonic_ns())


class Case:
    """One fault with one seed."""

    def __init__(
        self, house: House, fault: Fault, seed: int, seconds: float, directory: Path, plant: Plant | None = None
    ) -> None:
        self.plant = plant
        self.house, self.fault, self.seed, self.seconds, self.directory = house, fault, seed, seconds, directory
        self.result = Result(fault.name, seed)
        self.instances: list[Instance] = []
        self.proxies: list[Proxy] = []
        self.own: list[Cluster] = []

    async def run(self) -> Result:
        history = self.directory / "history.jsonl"
        try:
            with open(history, "w", encoding="utf-8") as out:
                await asyncio.wait_for(self.play(Recorder(out)), self.seconds * 3 + 150)
            await asyncio.to_thread(self.judge, history)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is this run's failure and not the others'
            self.result.error = f"{type(error).__name__}: {error}"
            if not isinstance(error, (RuntimeError, TimeoutError)):
                self.result.error += "\n" + traceback.format_exc()
        finally:
            for instance in self.instances:
                instance.kill()
            for proxy in self.proxies:
                await proxy.stop()
            await self.house.retire(*self.own)
        return self.result

    async def set_up(self, recorder: Recorder) -> Scene:
        needs = self.fault.needs
        name = self.directory.name.replace("-", "_")
        if "tmpfs" in needs:
            cluster = await self.house.small_cluster(f"small-{name}")
            self.own.append(cluster)
        elif "standby" in needs:
            cluster = await self.house.cluster(f"primary-{name}")
            self.own.append(cluster)
        else:
            cluster = await self.house.shared_cluster()
        database = f"f_{name}"
        await self.house.must(cluster, f"create database {database} template {TEMPLATE}", "postgres")
        if "clock" in needs:
            await self.house.must(cluster, TEST_CLOCK, database)
        if self.plant:
            await self.house.must(cluster, self.plant.sql, database)
        standby = None
        conninfo = cluster.conninfo(database)
        if "standby" in needs:
            standby = await self.house.standby_of(cluster, f"standby-{name}")
            self.own.append(standby)
            conninfo = (
                f"host=127.0.0.1,127.0.0.1 port={cluster.port},{standby.port} dbname={database} user=headroom"
                " target_session_attrs=read-write"
            )
        self.operator_conninfo = conninfo
        database_proxy = None
        if "database proxy" in needs:
            database_proxy = await self.proxy(lambda: cluster.port)
            conninfo = f"host=127.0.0.1 port={database_proxy.port} dbname={database} user=headroom"
        for index in range(2):
            instance = Instance(index, self.house.binary, self.directory, self.house.environment)
            instance.conninfo = conninfo
            self.instances.append(instance)
        await asyncio.gather(*(instance.start() for instance in self.instances))
        client_proxies = []
        if "client proxy" in needs:
            for instance in self.instances:
                client_proxies.append(await self.proxy(lambda instance=instance: instance.port))  # type: ignore[misc]
        ports = (lambda i: client_proxies[i].port) if client_proxies else (lambda i: self.instances[i].port)
        # Holds end by the database's clock; where that jumps, their ends cannot be checked against ours.
        kinds = (HOT, FIVE) if "clock" in needs else (HOT, FIVE, HOLD, RESET)
        workload = Workload(recorder, self.seed, ports, kinds)
        return Scene(
            random.Random(f"fault/{self.seed}"), self.directory, cluster, database, self.instances, recorder, workload,
            standby, database_proxy, client_proxies, notes=self.result.notes,
        )

    async def proxy(self, target: Callable[[], int | None]) -> Proxy:
        proxy = Proxy(target)
        await proxy.start()
        self.proxies.append(proxy)
        return proxy

    async def play(self, recorder: Recorder) -> None:
        recorder.write(t="meta", fault=self.fault.name, seed=self.seed, deadline_ms=2000, instances=[0, 1])
        scene = await self.set_up(recorder)
        log_start = scene.cluster.log_size()
        first_cluster = scene.cluster
        scene.workload.start()
        stop = asyncio.Event()
        operator = None
        if "clock" not in self.fault.needs:
            operator = asyncio.create_task(
                operate(scene.workload, recorder, self.house, self.operator_conninfo, stop, self.seed)
            )
        try:
            await self.inject(scene)
        finally:
            stop.set()
            if operator:
                await operator
            await scene.workload.stop()
        left = await scene.workload.settle(20)
        if left:
            raise RuntimeError(f"{left} operations with keys got no answer within 20 s after the fault was over")
        for instance in self.instances:
            at = time.monotonic_ns()
            code = await instance.terminate()
            recorder.write(t="sigterm", at=at, exited=time.monotonic_ns(), i=instance.index, code=code)
        if not self.fault.may_deadlock:
            count = first_cluster.log_count("deadlock detected", log_start)
            if self.fault.is_quiet:
                count += first_cluster.log_count("due to lock timeout", log_start)
            recorder.write(t="deadlocks", count=count)
        await read_final(scene, recorder, self.house)
        recorder.write(t="meta", lag_ms=int(scene.workload.lag * 1000))
        self.result.notes.append(f"lag {int(scene.workload.lag * 1000)} ms")
        await self.house.must(scene.cluster, f"drop database {scene.database} with (force)", "postgres")

    async def inject(self, scene: Scene) -> None:
        await asyncio.sleep(0.7)
        until = time.monotonic() + self.seconds
        while True:
            self.result.fired += await self.fault.inject(scene)
            if self.fault.is_once or time.monotonic() > until:
                break
            await asyncio.sleep(0.2 + scene.random.random() * 0.8)
        scene.recorder.write(t="healed", at=time.monotonic_ns())
        # Time enough to be seen back; longer only for those that are late.
        await asyncio.sleep(1.5)

    def judge(self, path: Path) -> None:
        with open(path, encoding="utf-8") as lines:
            history = checker.read(lines)
        self.result.counts = checker.summary(history)
        self.result.violations = checker.check(history)


HEADINGS = ("fault", "seed", "fired", "operations", "allowed", "blocked", "unknowns", "replays", "violations")


def table_row(result: Result) -> str:
    counts = result.counts
    cells = [
        result.fault, str(result.seed), str(result.fired),
        *(str(counts.get(name, "-")) for name in ("ops", "allowed", "blocked", "unknowns", "replays")),
        "failed" if result.error else str(len(result.violations)),
    ]
    return "| " + " | ".join(cell.ljust(23) if i == 0 else cell.rjust(len(HEADINGS[i])) for i, cell in enumerate(cells)) + " |"


def report(result: Result) -> None:
    """A row, and below it what was wrong; the same invariant broken often is shown a few times."""
    print(table_row(result), flush=True)
    if result.error:
        print(f"    {result.error}")
    if not result.error and result.fired == 0:
        print("    the fault was never seen to fire")
    shown: dict[str, int] = {}
    for violation in result.violations:
        shown[violation.invariant] = shown.get(violation.invariant, 0) + 1
        if shown[violation.invariant] <= 2:
            print("    " + str(violation).replace("\n", "\n    "))
    for invariant, count in shown.items():
        if count > 2:
            print(f"    {invariant}: {count} in all")
    sys.stdout.flush()


def is_possible(fault: Fault) -> str:
    """Why a fault cannot be injected here; empty when it can."""
    if "strace" in fault.needs and not Tracer.is_there():
        return "there is no strace"
    if "tmpfs" in fault.needs and (os.geteuid() != 0 or os.environ.get("HEADROOM_FAULTS_NAMESPACE") != "1"):
        return "a small disk can only be mounted as root, in a namespace of its own"
    return ""


def chosen_faults(only: str | None) -> list[Fault]:
    if not only:
        return FAULTS
    names = only.split(",")
    unknown = set(names) - {fault.name for fault in FAULTS}
    if unknown:
        raise SystemExit(f"faults: no fault {', '.join(sorted(unknown))}; there are {', '.join(f.name for f in FAULTS)}")
    return [fault for fault in FAULTS if fault.name in names]


async def run_planted(arguments: argparse.Namespace) -> int:
    """Each planted bug must be caught, by an invariant that names it."""
    directory = Path(tempfile.mkdtemp(prefix="headroom-faults-", dir="/var/tmp"))
    directory.chmod(0o711)
    house = House(directory, Path(arguments.binary).resolve(), {})
    faults = {fault.name: fault for fault in FAULTS}
    passed = failed = 0
    try:
        for plant in PLANTS:
            place = directory / f"planted-{plant.name}"
            place.mkdir()
            case = Case(house, faults[plant.fault], arguments.first_seed, plant.seconds, place, plant)
            result = await case.run()
            caught = sorted({violation.invariant for violation in result.violations})
            is_caught = not result.error and bool(plant.caught_by & set(caught))
            passed, failed = passed + is_caught, failed + (not is_caught)
            verdict = f"caught by {', '.join(caught)}" if is_caught else f"NOT caught ({result.error or ', '.join(caught) or 'nothing seen'})"
            print(f"planted {plant.name} ({plant.what}), under {plant.fault}, seed {arguments.first_seed}: {verdict}")
            for violation in result.violations:
                if violation.invariant in plant.caught_by:
                    print("    " + str(violation).replace("\n", "\n    "))
                    break
            sys.stdout.flush()
    finally:
        await house.close()
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


async def run_all(arguments: argparse.Namespace) -> int:
    directory = Path(tempfile.mkdtemp(prefix="headroom-faults-", dir="/var/tmp"))
    directory.chmod(0o711)
    house = House(directory, Path(arguments.binary).resolve(), {})
    kept = Path(arguments.keep) if arguments.keep else None
    passed = failed = 0
    totals = {"unknowns": 0, "replays": 0, "ops": 0}
    print("| " + " | ".join(h.ljust(23) if i == 0 else h for i, h in enumerate(HEADINGS)) + " |")
    print("|" + "|".join("-" * (len(h) + 2 if i else 25) for i, h in enumerate(HEADINGS)) + "|", flush=True)
    skipped = []
    try:
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
            for fault in chosen_faults(arguments.only):
                reason = is_possible(fault)
                if reason:
                    skipped.append(f"{fault.name} was not injected: {reason}")
                    continue
                place = directory / f"{fault.name}-{seed}"
                place.mkdir()
                result = await Case(house, fault, seed, arguments.duration, place).run()
                report(result)
                passed, failed = passed + result.is_passed, failed + (not result.is_passed)
                for name in totals:
                    totals[name] += result.counts.get(name, 0)
                if not result.is_passed:
                    print(f"    again: script/faults --only {fault.name} --first-seed {seed} --duration {arguments.duration:g}")
                if kept and (arguments.verbose or not result.is_passed):
                    kept.mkdir(parents=True, exist_ok=True)
                    shutil.copytree(place, kept / place.name, dirs_exist_ok=True)
                if arguments.verbose:
                    print(f"    {'; '.join(result.notes)}")
                shutil.rmtree(place)
    finally:
        await house.close()
        shutil.rmtree(directory, ignore_errors=True)
    for line in dict.fromkeys(skipped):
        print(line)
    print(f"{totals['ops']} operations, {totals['unknowns']} unknown outcomes, {totals['replays']} replays")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def die_with_parent() -> None:
    """Should whoever started us be killed, so are we, and with us (in our namespace) all that we started."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def main() -> int:
    parser = argparse.ArgumentParser(prog="faults", description=__doc__)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--duration", type=float, default=5, help="seconds of faults in each run")
    parser.add_argument("--only", help="names of faults, with commas between")
    parser.add_argument("--keep", help="where histories and logs of failed runs go; with --verbose, of all")
    parser.add_argument("--planted", action="store_true", help="plant bugs instead, and see that they are caught")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    die_with_parent()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(16384, hard), hard))

    async def bounded() -> int:
        task = asyncio.ensure_future((run_planted if arguments.planted else run_all)(arguments))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, task.cancel)
        try:
            return await task
        except asyncio.CancelledError:
            return 130

    return asyncio.run(bounded())


if __name__ == "__main__":
    sys.exit(main())
