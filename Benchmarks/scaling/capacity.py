"""How many messages a second a cluster sustains, what breaks first beyond that, and what a cluster needs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .formulas import coordinator_share, cores_limit, event_loops_limit, lane_seconds, lanes_limit, sweep_seconds
from .parameters import Cluster, Costs
from .simulation import Outcome, Simulation
from .users import Users

P99_LIMIT = 50.0
"""Milliseconds."""
FINISHED_LIMIT = 0.98
"""Else more and more messages wait."""
MESSAGES = 40_000
"""Of one run. Fewer show no tail, more take longer."""
STEPS = 10
BUSY = 0.9
"""A part that is busy for this share of the time has no reserve."""


@dataclass(frozen=True)
class Capacity:
    cluster: Cluster
    rate: float
    """Messages a second of all workers; 0 if there is no rate at which p99 is low enough."""
    outcome: Outcome
    coordinator: float
    sweep: float
    """Milliseconds in which each bucket has had a turn in each instance."""

    @property
    def breaks_first(self) -> str:
        """The part without which more messages would be sustained."""
        outcome = self.outcome
        if self.cluster.connections_of_a_worker > self.cluster.connections_maximum:
            return "connections"
        if self.coordinator > BUSY:
            return "coordinator"
        if 2 * self.sweep > BUSY * P99_LIMIT:
            return "turns of buckets"
        # While cores, flushes or lanes are all busy, the lanes wait for one of the others.
        for name, share in (("event loops", outcome.event_loops), ("cores", outcome.cores), ("flushes", outcome.flush)):
            if share > BUSY:
                return name
        return "lanes" if outcome.lanes > BUSY else "p99"


def run(cluster: Cluster, costs: Costs, users: Users, rate: float, seed: int) -> Outcome:
    seconds = min(10.0, max(0.25, MESSAGES / (rate * users.share)))
    return Simulation(cluster, costs, users, rate, seconds, seed).run()


def is_sustained(outcome: Outcome) -> bool:
    return outcome.p99 < P99_LIMIT and outcome.finished >= FINISHED_LIMIT


def capacity(cluster: Cluster, costs: Costs, seed: int = 1) -> Capacity:
    """By bisection between rates of which the greatest is more than any part can do."""
    users = Users(cluster)
    most = cluster.batch_maximum
    # Messages of one user are one row, and the busiest workers get a part of all.
    limits = [event_loops_limit(cluster, costs)]
    if cluster.zipf_exponent is None and not cluster.hot_user_share:
        limits += [cores_limit(cluster, costs, most), lanes_limit(cluster, costs, most)]
    high = min(limits)
    low = high / 2_048
    best = run(cluster, costs, users, low, seed)
    coordinator, sweep = coordinator_share(cluster, costs), 1e3 * sweep_seconds(cluster, costs)
    if not is_sustained(best):
        return Capacity(cluster, 0, best, coordinator, sweep)
    for _ in range(STEPS):
        rate = math.sqrt(low * high)
        outcome = run(cluster, costs, users, rate, seed)
        if is_sustained(outcome):
            low, best = rate, outcome
        else:
            high = rate
    return Capacity(cluster, low, best, coordinator, sweep)


# Sizing -------------------------------------------------------------------------------------------------------------------

LOOPS_TARGET = 0.6
"""The share of their time for which event loops should be busy."""
SIZED_BATCH = 256
"""Messages of a batch for which a cluster is sized. Larger ones are the reserve."""
EVENT_LOOPS_MAXIMUM = 8
"""Of an instance, which has as many cores and some for its lanes."""
SWEEP_TARGET = 0.02
"""Seconds. Two sweeps are less than the limit of p99."""


def sized(workers: int, costs: Costs, cores: int = 2) -> Cluster:
    """A cluster whose workers are busy before anything else is: one bucket on one machine, else up to four for each worker."""
    cluster = Cluster(workers=workers, cores=cores, buckets=1 if workers == 1 else power_of_two(workers))
    rate = cores_limit(cluster, costs, SIZED_BATCH)
    loops = math.ceil(rate * costs.event_loop * 1e-6 / LOOPS_TARGET)
    # Two, so that one can be replaced.
    instances = max(2, math.ceil(loops / EVENT_LOOPS_MAXIMUM))
    on_cores = (costs.batch + costs.row * SIZED_BATCH) * 1e-6
    # While a lane waits for anything but a core, another must use that core; half as many again, because they wait by chance.
    lanes = math.ceil(1.5 * cores * lane_seconds(cluster, costs, SIZED_BATCH) / on_cores)
    cluster = replace(cluster, instances=instances, event_loops=math.ceil(loops / instances), lanes=math.ceil(lanes / instances))
    if workers > 1:
        more = [replace(cluster, buckets=cluster.buckets * factor) for factor in (2, 4)]
        cluster = [cluster, *(one for one in more if sweep_seconds(one, costs) <= SWEEP_TARGET)][-1]
    return replace(cluster, connections_maximum=max(100, 2 * cluster.connections_of_a_worker))


def power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()
