"""The environment of a measurement: servers, load generators and the record of results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.processes import collected_children_seconds, processor_seconds, resident_bytes

from .ceiling import Ceiling, StatementCeiling
from .figures import Sample, combined, rounded
from .generators import HeadroomBench, Pgbench, RedisBenchmark, Wrk
from .machine import print_progress
from .peers import CountingPeer, Headroom, Postgres, Redis
from .renewals import Renewals
from .scenarios import measurements_wanted
from .titles import USERS, clients_name


@dataclass(frozen=True)
class Options:
    names: tuple[str, ...]
    rounds: int
    seconds: float
    soak_minutes: int
    program: Path


class Bench:
    def __init__(self, options: Options, work: Path) -> None:
        self.options, self.work = options, work
        print_progress("starting PostgreSQL")
        self.postgres = Postgres(work)
        self.redis = Redis(work / "redis", work / "redis.log")
        self.headroom = Headroom(program=options.program, postgres=self.postgres, database="bench", work=work)
        self.ceiling = Ceiling(self.postgres, work)
        self.statement = StatementCeiling(options.program, self.postgres, work)
        self.services: list[Headroom | Ceiling] = [self.headroom, self.ceiling, self.statement]
        self.redises = [self.redis]
        self.pgbench = Pgbench(program=self.postgres.pgbench, socket=Path(self.postgres.home), work=work, seconds=options.seconds)
        self.redis_benchmark = RedisBenchmark(work, options.seconds)
        self.headroom_bench = HeadroomBench(options.program, work, options.seconds)
        self.wrk = Wrk(work)
        self.samples: list[Sample] = []
        self.wanted: set[str] = set()
        self.round = 1
        self._rates: dict[str, float] = {}

    def start(self) -> None:
        print_progress(f"starting Redis and headroom, and making {USERS} users in each")
        self.postgres.create_database(self.headroom.database)
        self.redis.start()
        self.headroom.start()
        self.postgres.prepare_function(USERS)
        self.headroom.prepare(USERS)
        databases = ["bench"]
        wanted = measurements_wanted(self.options.names, "main")
        for ceiling in (self.ceiling, self.statement):
            if any(name.startswith(ceiling.database) for name in wanted):
                ceiling.prepare(USERS)
                ceiling.start()
                databases.append(ceiling.database)
        self.settle(*databases)
        self.postgres.create_wal_files()

    def settle(self, *databases: str) -> None:
        """Updates statistics and writes all pages, so that no measurement includes the work of another."""
        for database in databases:
            self.postgres.sql("vacuum analyze", database=database, seconds=900)
        self.postgres.sql("checkpoint", seconds=900)

    def close(self) -> None:
        for service in self.services:
            service.stop()
        for redis in self.redises:
            redis.stop()
        self.postgres.stop()

    def rounds(self, measure: Callable[[], None]) -> None:
        for number in range(1, self.options.rounds + 1):
            self.round = number
            # No timed checkpoint during a measurement, and equal conditions at the start of each round.
            self.postgres.sql("checkpoint", seconds=900)
            measure()

    @contextmanager
    def separate_service(self, database: str, *settings: str, http: str = "off") -> Iterator[Headroom]:
        """A service on a database of its own."""
        self.postgres.create_database(database)
        service = Headroom(program=self.options.program, postgres=self.postgres, database=database, work=self.work)
        self.services.append(service)
        service.start(*settings, http=http)
        yield service
        service.stop()
        self.services.remove(service)
        self.postgres.sql(f"drop database {database}", seconds=900)

    # Measuring --------------------------------------------------------------------------------------------------------

    def is_wanted(self, *names: str) -> bool:
        return not self.wanted.isdisjoint(names)

    def latest(self, name: str) -> Sample:
        return next(sample for sample in reversed(self.samples) if sample["name"] == name)

    def record(self, name: str, sample: Sample) -> None:
        self.samples.append({"name": name, "round": self.round, **sample})

    def report(self, name: str, sample: Sample) -> None:
        self.record(name, sample)
        print_progress(f"round {self.round} of {self.options.rounds}: {name} {sample['per_second']:,.0f} a second")

    def best(self, name: str, best_name: str, clients: tuple[int, ...]) -> None:
        """The best of a round's client counts represents the round."""
        counts = {count: self.latest(f"{name}_{clients_name(count)}") for count in clients}
        best = max(counts, key=lambda count: counts[count]["per_second"])
        values = {key: value for key, value in counts[best].items() if key not in ("name", "round")}
        self.record(best_name, {**values, "clients": best})

    def by_pgbench(self, name: str, script: str, clients: int) -> None:
        self.observe(name, lambda: self.pgbench.measure(self.work / f"{script}.sql", clients, "bench"))

    def by_headroom_bench(self, name: str, peer: Redis | CountingPeer, users: int, **how: Any) -> None:
        def load() -> Sample:
            return self.headroom_bench.measure(peer.port, users, seed=self.round, **how)

        self.observe(name, load, peer)

    def by_wrk(self, name: str, service: Headroom, users: int) -> None:
        """As fast as possible over HTTP."""

        def load() -> Sample:
            return self.wrk.measure(service.http_port, users, self.options.seconds, self.round)

        self.observe(name, load, service)

    def beside_http(self, name: str, service: Headroom, users: int, rate: float, http_rate: int) -> None:
        """An open loop on the line protocol, beside messages over HTTP at a steady rate."""

        def load() -> Sample:
            # One connection's share of the rate is 20 a second. A request takes a few milliseconds of that.
            connections = http_rate // 20
            seconds = self.options.seconds
            with ThreadPoolExecutor(1) as background:
                over_http = background.submit(
                    self.wrk.measure, service.http_port, users, seconds + 1, self.round, connections, 47
                )
                sample = self.headroom_bench.measure(service.port, users, seed=self.round, rate=rate)
                http = over_http.result()
            sample["http_per_second"] = http["per_second"]
            sample["messages"] += http["messages"]
            sample["unanswered_at_most"] = http["unanswered_at_most"]
            return sample

        self.observe(name, load, service)

    def by_redis_benchmark(
        self, name: str, pipeline: int, users: int, request: list[str], peer: Redis | CountingPeer
    ) -> None:
        """The number of requests that takes the time, by the rate of the run before; a short run comes first."""
        if not self.is_wanted(name):
            return
        if name not in self._rates:
            # Enough to fill every connection twenty times.
            requests = self.redis_benchmark.requests_for(0) * 20
            first = self.redis_benchmark.measure(peer.port, pipeline, users, requests, request, peer.access)
            self._rates[name] = first["per_second"]
            if isinstance(peer, CountingPeer):
                peer.counted("a first try", requests)
        requests = self.redis_benchmark.requests_for(self._rates[name])
        sample = self.observe(
            name,
            lambda: self.redis_benchmark.measure(peer.port, pipeline, users, requests, request, peer.access),
            peer,
        )
        self._rates[name] = sample["per_second"]

    def by_renewals(self, name: str, service: Headroom, renewals: Renewals) -> None:
        """Posts events as fast as possible, and measures the processor time of one. Counts no message."""
        if not self.is_wanted(name):
            return
        processes = {"service": service.pid, "postgres": self.postgres.pid}
        before = {process: processor_seconds(pid) for process, pid in processes.items()}
        sample = renewals.measure(self.options.seconds)
        spent = {process: processor_seconds(pid) - before[process] for process, pid in processes.items()}
        events = sample["messages"]
        sample |= {f"{process}_ms": rounded(seconds * 1e3 / events) for process, seconds in spent.items()}
        self.report(name, sample)

    def by_passes(
        self, name: str, service: Headroom, load: Callable[[], Sample], before: Callable[[], None] = lambda: None
    ) -> None:
        """Repeats a load, each time after what has to happen before, until the passes together took the time."""
        if not self.is_wanted(name):
            return
        passes: list[Sample] = []
        while not passes or combined(passes)["messages"] < combined(passes)["per_second"] * self.options.seconds:
            before()
            passes.append(self._observed(name, load, service))
        self.report(name, combined(passes))

    def observe(self, name: str, load: Callable[[], Sample], peer: Redis | CountingPeer | None = None) -> Sample:
        """Runs a load and measures its costs; without a peer the load runs on PostgreSQL itself."""
        if not self.is_wanted(name):
            return {}
        sample = self._observed(name, load, peer)
        self.report(name, sample)
        return sample

    def _observed(self, name: str, load: Callable[[], Sample], peer: Redis | CountingPeer | None) -> Sample:
        service = peer if isinstance(peer, CountingPeer) else None
        redis = peer if isinstance(peer, Redis) else None
        processes = {"service": service.pid} if service else {"redis": redis.pid} if redis else {}
        if not redis:
            processes["postgres"] = self.postgres.pid
        info = peer.info() if isinstance(peer, Headroom) else {}
        wal = 0 if redis else self.postgres.wal_position()
        before = {process: processor_seconds(pid) for process, pid in processes.items()}
        load_before = collected_children_seconds()
        with PeakMemory(service.pid if service else None) as memory:
            sample = load()
        spent = {"load": collected_children_seconds() - load_before}
        spent |= {process: processor_seconds(pid) - before[process] for process, pid in processes.items()}
        messages = sample["messages"]
        sample["cpu_us"] = {process: rounded(seconds * 1e6 / messages) for process, seconds in spent.items()}
        if not redis:
            sample["wal_bytes"] = rounded((self.postgres.wal_position() - wal) / messages)
        if service:
            sample |= {
                "resident_mb": rounded(memory.highest),
                "resident_highest_mb": rounded(resident_bytes(service.pid, "VmHWM") / 1e6),
            }
            service.counted(name, messages, sample.pop("unanswered_at_most", 0))
        if isinstance(peer, Headroom):
            after = peer.info()
            batches = int(after["batches"]) - int(info["batches"])
            if batches > 0:
                sample["batch"] = rounded((int(after["requests"]) - int(info["requests"])) / batches)
        sample.pop("series", None)
        return sample


class PeakMemory:
    """The highest resident memory of a process in megabytes, sampled twice a second."""

    def __init__(self, pid: int | None) -> None:
        self.pid, self.highest = pid, 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def _sample(self) -> None:
        while self.pid is not None:
            try:
                self.highest = max(self.highest, resident_bytes(self.pid) / 1e6)
            except OSError:
                # The load reports this error better.
                return
            if self._over.wait(0.5):
                return

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
