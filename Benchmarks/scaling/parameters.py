"""What is simulated, and what everything costs. Times are in seconds, costs in microseconds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

COSTS = Path(__file__).resolve().parent / "costs.json"


class BadParameter(ValueError):
    """A parameter of which no cluster can have the value."""


@dataclass(frozen=True)
class Costs:
    """Processor time in microseconds, measured (costs.json)."""

    batch: float
    """A batch on its server, whatever its size: statement, receipt and commit."""
    row: float
    """Each user of a batch."""
    flush: float
    """One flush of the write-ahead log; elapsed time."""
    event_loop: float
    """A message on its event loop."""
    lane_batch: float
    lane_message: float
    """A batch, and each of its messages, on the lane's thread."""
    monitor: float
    """One look of an instance at the database, on the coordinator."""
    watch: float
    """One look of an instance at a server."""
    poll_bucket: float
    poll_user: float
    """A poll for changes, on the coordinator: each bucket, and each subscribed user."""
    poll_worker_bucket: float
    poll_worker_user: float
    """The same on the worker that has the bucket."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) >= 0:
                raise BadParameter(f"{field.name} is {getattr(self, field.name)}: no cost is negative")
        if self.batch + self.row <= 0:
            raise BadParameter("a batch costs nothing")


def costs_of(measured: Mapping[str, Any], server: str, load: str) -> Costs:
    """From the contents of costs.json.

    server: `plain`, or `worker` of a distributed database. load: how many connections, and how many requests are in flight on each;
    an event loop takes less for a message if it reads several at once.
    """
    batches, polls, service = measured["batches"][server], measured["polls"], measured["service"]
    return Costs(
        batch=batches[server]["batch_us"],
        row=batches[server]["row_us"],
        flush=batches["flush_us"],
        event_loop=service["event_loop_us"][load],
        lane_batch=service["lane_batch_us"],
        lane_message=service["lane_message_us"],
        monitor=polls["monitor_us"],
        watch=polls["watch_us"],
        poll_bucket=polls["poll_bucket_us"],
        poll_user=polls["poll_user_us"],
        poll_worker_bucket=polls["poll_worker_bucket_us"],
        poll_worker_user=polls["poll_worker_user_us"],
    )


def measured_costs(path: Path = COSTS) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Cluster:
    """Machines, settings and users."""

    workers: int = 1
    cores: int = 2
    """Of each worker, and of the coordinator."""
    buckets: int = 64
    instances: int = 2
    event_loops: int = 1
    """Of each instance: the setting event-loops."""
    lanes: int = 2
    """Of each instance to each worker: the setting lanes."""
    batch_maximum: int = 512
    round_trip: float = 0.0002
    """Between an instance and a worker."""
    connections_maximum: int = 100
    """Of each worker: max_connections."""
    subscribed_users: int = 0
    """Of each instance: users whose changes its clients want to know."""
    poll_interval: float = 0.1
    """The setting changes-poll-ms."""
    users: int = 1_000_000
    zipf_exponent: float | None = None
    """Of the distribution of messages over users; uniform if it is None."""
    hot_user_share: float = 0.0
    """The share of all messages that one user sends; the others are uniform."""
    simulated_workers: int = 1
    """Workers that are simulated, those with most messages. The others are alike, and their messages take the time of event loops."""

    def __post_init__(self) -> None:
        for name in ("workers", "cores", "buckets", "instances", "event_loops", "lanes", "batch_maximum", "users", "simulated_workers"):
            if getattr(self, name) < 1:
                raise BadParameter(f"{name} is {getattr(self, name)}, but there is at least one")
        if self.buckets & (self.buckets - 1) or self.buckets > 1_024:
            raise BadParameter(f"{self.buckets} buckets: their number is a power of 2 up to 1024")
        if self.buckets < self.workers:
            raise BadParameter(f"{self.buckets} buckets leave some of {self.workers} workers without any")
        if self.simulated_workers > self.workers:
            raise BadParameter(f"{self.simulated_workers} of {self.workers} workers cannot be simulated")
        if not 0 <= self.hot_user_share <= 1:
            raise BadParameter(f"a user sends {self.hot_user_share} of all messages")
        if self.zipf_exponent is not None and (self.zipf_exponent < 0 or self.hot_user_share):
            raise BadParameter("a Zipf exponent is not negative, and excludes a hot user")
        if self.round_trip < 0 or self.poll_interval <= 0 or self.subscribed_users < 0:
            raise BadParameter("round trips, intervals and numbers of subscribed users are not negative")

    @property
    def buckets_of_a_worker(self) -> int:
        """Of the worker with most; `headroom distribute` gives each about as many."""
        return -(-self.buckets // self.workers)

    @property
    def loops(self) -> int:
        return self.instances * self.event_loops

    @property
    def lanes_of_a_worker(self) -> int:
        return self.instances * self.lanes

    @property
    def connections_of_a_worker(self) -> int:
        """Lanes, a session of each instance that watches the server, and one through which the coordinator reads for its poll."""
        return self.instances * (self.lanes + 1 + (self.subscribed_users > 0))
