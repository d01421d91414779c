"""The model as formulas. The simulation adds queues and chance to them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .parameters import Cluster, Costs

MICROSECOND = 1e-6
LONGEST_REST = 1.0
"""Between two polls for changes; else a pause is at least four times as long as the poll before."""


def cores_limit(cluster: Cluster, costs: Costs, batch: float) -> float:
    """Messages a second with which the cores of all workers are busy all the time, in batches of this size."""
    return cluster.workers * cluster.cores / ((costs.batch / batch + costs.row) * MICROSECOND)


def lane_seconds(cluster: Cluster, costs: Costs, batch: float) -> float:
    """How long a lane needs for a batch on an idle worker, whose flush it waits for alone."""
    on_thread = costs.lane_batch + costs.lane_message * batch
    return (on_thread + costs.batch + costs.row * batch + costs.flush) * MICROSECOND + cluster.round_trip


def lanes_limit(cluster: Cluster, costs: Costs, batch: float) -> float:
    """Messages a second with which all lanes are busy all the time."""
    return cluster.workers * cluster.lanes_of_a_worker * batch / lane_seconds(cluster, costs, batch)


def sweep_seconds(cluster: Cluster, costs: Costs) -> float:
    """In how much time each bucket has had one turn in each instance, if every batch is small. A message waits for about one sweep,
    and in the worst case for two, whatever the rate, until batches are so large that their rows count.

    Either the cores decide, which all instances share, or a lane, which waits for a flush, and half of the time for another before.
    """
    of_a_worker = cluster.buckets_of_a_worker
    on_cores = cluster.instances * of_a_worker * costs.batch * MICROSECOND / cluster.cores
    of_a_lane = math.ceil(of_a_worker / cluster.lanes)
    return max(on_cores, of_a_lane * (lane_seconds(cluster, costs, 1) + costs.flush * MICROSECOND / 2))


def event_loops_limit(cluster: Cluster, costs: Costs) -> float:
    return cluster.loops / (costs.event_loop * MICROSECOND)


@dataclass(frozen=True)
class PollDemand:
    per_second: float
    """Polls of all instances."""
    coordinator: float
    worker: float
    """Seconds of a core for each poll."""


def poll_demand(cluster: Cluster, costs: Costs) -> PollDemand:
    """Polls for changes of subscribed users, who are in as many buckets as there are, or in one each."""
    users = cluster.subscribed_users
    if users == 0:
        return PollDemand(0, 0, 0)
    buckets = min(users, cluster.buckets)
    coordinator = (buckets * costs.poll_bucket + users * costs.poll_user) * MICROSECOND
    all_workers = (buckets * costs.poll_worker_bucket + users * costs.poll_worker_user) * MICROSECOND
    elapsed = coordinator + all_workers + min(buckets, cluster.buckets) * cluster.round_trip
    rest = max(cluster.poll_interval, min(LONGEST_REST, 4 * elapsed))
    return PollDemand(cluster.instances / (elapsed + rest), coordinator, all_workers / cluster.workers)


def coordinator_share(cluster: Cluster, costs: Costs) -> float:
    """Of the coordinator's cores. Each instance looks every two seconds at the database, every second at each server, and polls."""
    polls = poll_demand(cluster, costs)
    looks = cluster.instances * (costs.monitor / 2 + costs.watch) * MICROSECOND
    return (looks + polls.per_second * polls.coordinator) / cluster.cores
