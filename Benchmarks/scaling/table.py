"""The tables of script/scaling, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

from .capacity import Capacity, capacity, sized
from .parameters import Cluster, Costs, costs_of

WORKERS = (1, 2, 4, 8, 16, 32, 64)
LOAD = "64 x 1"
"""Clients with one request in flight on each connection: the most costly for event loops."""


@dataclass(frozen=True)
class Row:
    name: str
    cluster: Cluster
    costs: Costs


def costs_for(measured: dict[str, Any], workers: int, flush: float | None) -> Costs:
    costs = costs_of(measured, "plain" if workers == 1 else "worker", LOAD)
    return costs if flush is None else replace(costs, flush=flush)


def as_installed(measured: dict[str, Any], cores: int, flush: float | None) -> list[Row]:
    rows = []
    for workers in WORKERS:
        cluster = Cluster(workers=workers, cores=cores, buckets=1 if workers == 1 else max(64, workers))
        rows.append(Row(str(workers), cluster, costs_for(measured, workers, flush)))
    return rows


def as_needed(measured: dict[str, Any], cores: int, flush: float | None) -> list[Row]:
    rows = []
    for workers in WORKERS:
        costs = costs_for(measured, workers, flush)
        rows.append(Row(str(workers), sized(workers, costs, cores), costs))
    return rows


def one_machine(measured: dict[str, Any], cores: int, flush: float | None) -> list[Row]:
    """One machine with more cores, beginning with as many as the others have."""
    costs = costs_for(measured, 1, flush)
    return [Row(str(more), sized(1, costs, more), costs) for more in (cores, 2 * cores, 4 * cores, 8 * cores)]


def variations(measured: dict[str, Any], cores: int, flush: float | None) -> list[Row]:
    """One thing is changed in a cluster of eight workers."""
    costs = costs_for(measured, 8, flush)
    base = sized(8, costs, cores)
    many = replace(base, instances=8 * base.instances, connections_maximum=10_000)
    return [
        Row("as in the table above", base, costs),
        Row("8 buckets", replace(base, buckets=8), costs),
        Row("128 buckets", replace(base, buckets=128), costs),
        Row("1024 buckets", replace(base, buckets=1_024), costs),
        Row("eight times as many instances", many, costs),
        Row("1 ms between service and worker", replace(base, round_trip=0.001), costs),
        Row("users by Zipf's law", replace(base, zipf_exponent=1.0, users=100_000), costs),
        Row("one user sends a tenth", replace(base, hot_user_share=0.1), costs),
        Row("1,000 subscribed users an instance", replace(base, subscribed_users=1_000), costs),
    ]


def computed(rows: list[Row], seed: int, executor: Executor) -> Iterable[Capacity]:
    return executor.map(capacity, [row.cluster for row in rows], [row.costs for row in rows], [seed] * len(rows))


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


COLUMNS: list[tuple[str, Callable[[Capacity], str]]] = [
    ("instances × loops", lambda one: f"{one.cluster.instances} × {one.cluster.event_loops}"),
    ("lanes", lambda one: str(one.cluster.lanes)),
    ("buckets", lambda one: str(one.cluster.buckets)),
    ("messages/s", lambda one: f"{float(f'{one.rate:.2g}'):,.0f}"),
    ("p50, p99 ms", lambda one: f"{one.outcome.p50:.0f}, {one.outcome.p99:.0f}"),
    ("batch", lambda one: f"{one.outcome.batch:.0f}"),
    ("sweep ms", lambda one: f"{one.sweep:.0f}"),
    ("cores", lambda one: percent(one.outcome.cores)),
    ("flushes", lambda one: percent(one.outcome.flush)),
    ("lanes busy", lambda one: percent(one.outcome.lanes)),
    ("loops", lambda one: percent(one.outcome.event_loops)),
    ("coordinator", lambda one: percent(one.coordinator)),
    ("connections", lambda one: str(one.cluster.connections_of_a_worker)),
    ("breaks first", lambda one: one.breaks_first),
]


def markdown(first: str, names: list[str], found: Iterable[Capacity]) -> str:
    lines = [
        "| " + " | ".join([first, *(name for name, _ in COLUMNS)]) + " |",
        "| --- |" + " --: |" * (len(COLUMNS) - 1) + " --- |",
    ]
    lines += ["| " + " | ".join([name, *(value(one) for _, value in COLUMNS)]) + " |" for name, one in zip(names, found)]
    return "\n".join(lines)
