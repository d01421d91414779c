"""One run: messages arrive at a rate, and each is followed from its event loop to its commit."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass

from .formulas import poll_demand
from .parameters import BadParameter, Cluster, Costs
from .resources import Clock, GroupCommit, SharedCores
from .turns import BucketTurns
from .users import Users, lane_of

MICROSECOND = 1e-6


@dataclass
class Outcome:
    """What a run has shown. Shares are of the time, for the busiest of the simulated kind where there are several."""

    offered: float
    """Messages a second that arrive for all workers."""
    finished: float
    """The share of the messages that were answered as fast as they came; below 1 if ever more wait."""
    p50: float
    p99: float
    """Milliseconds from a message's arrival to its answer, without the client's network."""
    batch: float
    """Messages of a batch."""
    cores: float
    flush: float
    lanes: float
    """The mean of all lanes."""
    event_loops: float


class Worker:
    def __init__(self, clock: Clock, cluster: Cluster, costs: Costs) -> None:
        self.cores = SharedCores(clock, cluster.cores)
        self.commits = GroupCommit(clock, costs.flush * MICROSECOND)


class Lane:
    """Takes a batch, waits for its commit, answers, and takes the next."""

    def __init__(self, simulation: Simulation, worker: Worker, buckets: int) -> None:
        self._simulation, self._worker = simulation, worker
        self._queues: list[deque[tuple[float, int]]] = [deque() for _ in range(buckets)]
        self._turns = BucketTurns()
        self._is_idle = True
        self.busy = 0.0

    def add(self, bucket: int, arrival: float, user: int) -> None:
        queue = self._queues[bucket]
        if not queue:
            self._turns.append(bucket)
        queue.append((arrival, user))

    def wake(self) -> None:
        if self._is_idle:
            self._take()

    def _take(self) -> None:
        bucket = self._turns.take_next(self._queues)
        self._is_idle = bucket is None
        if bucket is None:
            return
        queue, simulation, worker = self._queues[bucket], self._simulation, self._worker
        size = min(len(queue), simulation.cluster.batch_maximum)
        batch = [queue.popleft() for _ in range(size)]
        if queue:
            self._turns.append(bucket)
        costs, clock = simulation.costs, simulation.clock
        # A user with several messages in a batch is one row.
        demand = (costs.batch + costs.row * len({user for _, user in batch})) * MICROSECOND
        half = (costs.lane_batch + costs.lane_message * size) * MICROSECOND / 2 + simulation.cluster.round_trip / 2
        began = clock.now

        def answer() -> None:
            self.busy += clock.now - began
            simulation.answered(batch)
            self._take()

        commit = lambda: worker.commits.commit(lambda: clock.after(half, answer))
        clock.after(half, worker.cores.execute, demand, commit)


class EventLoop:
    """Reads what has arrived, handles it, and passes it on to the lanes; what arrives meanwhile is for the next iteration."""

    def __init__(self, simulation: Simulation, rate: float, cost: float, lanes: list[list[Lane]]) -> None:
        self._simulation, self._rate, self._cost, self._lanes = simulation, rate, cost, lanes
        self.busy = 0.0
        self._next = simulation.chance.expovariate(rate)
        simulation.clock.at(self._next, self._iterate)

    def read(self) -> list[float]:
        """The times of the messages that have arrived."""
        simulation = self._simulation
        arrivals = []
        while self._next <= simulation.clock.now:
            arrivals.append(self._next)
            self._next += simulation.chance.expovariate(self._rate)
        simulation.arrived(arrivals)
        return arrivals

    def _iterate(self) -> None:
        simulation, arrivals = self._simulation, self.read()
        seconds = len(arrivals) * self._cost
        self.busy += seconds
        simulation.clock.after(seconds, self._pass_on, arrivals)

    def _pass_on(self, arrivals: list[float]) -> None:
        simulation = self._simulation
        woken: dict[Lane, None] = {}
        for arrival, user in zip(arrivals, simulation.users.draw(simulation.chance, len(arrivals))):
            worker, bucket, lane_number = simulation.place(user)
            lane = self._lanes[worker][lane_number]
            lane.add(bucket, arrival, user)
            woken[lane] = None
        for lane in woken:
            lane.wake()
        simulation.clock.at(max(self._next, simulation.clock.now), self._iterate)


class Simulation:
    def __init__(self, cluster: Cluster, costs: Costs, users: Users, rate: float, seconds: float, seed: int) -> None:
        if rate <= 0 or seconds <= 0:
            raise BadParameter("a rate and a time are greater than zero")
        self.cluster, self.costs, self.users = cluster, costs, users
        self.clock, self.chance = Clock(), random.Random(seed)
        self._seconds, self._offered = seconds, rate
        self.latencies: list[float] = []
        self._arrived = self._arrived_early = self._answered_early = 0
        self._batches = self._messages = 0
        self._number_of_worker = {worker: number for number, worker in enumerate(users.workers)}
        self._workers = [Worker(self.clock, cluster, costs) for _ in users.workers]
        # An instance's lanes to each worker, which all of its event loops share.
        self._lanes = [
            [[Lane(self, worker, cluster.buckets_of_a_worker) for _ in range(cluster.lanes)] for worker in self._workers]
            for _ in range(cluster.instances)
        ]
        simulated_rate = rate * users.share / cluster.loops
        # The messages to workers that are not simulated take the loops' time, too.
        cost = costs.event_loop * MICROSECOND / users.share
        self._loops = [EventLoop(self, simulated_rate, cost, lanes) for lanes in self._lanes for _ in range(cluster.event_loops)]
        self._warm_up = seconds / 4
        polls = poll_demand(cluster, costs)
        if polls.worker > 0:
            for worker in self._workers:
                self._poll(worker, polls.per_second, polls.worker)

    def _poll(self, worker: Worker, per_second: float, seconds: float) -> None:
        """What all instances ask of the worker to find out who has changed."""

        def ask() -> None:
            worker.cores.execute(seconds, lambda: None)
            self.clock.after(self.chance.expovariate(per_second), ask)

        self.clock.after(self.chance.expovariate(per_second), ask)

    def place(self, user: int) -> tuple[int, int, int]:
        """The number of the user's worker among the simulated ones, of the bucket on it, and of the lane to it."""
        cluster = self.cluster
        bucket, unit = user % cluster.buckets, user // cluster.buckets
        worker, number = bucket % cluster.workers, bucket // cluster.workers
        count = (cluster.buckets - worker + cluster.workers - 1) // cluster.workers
        return self._number_of_worker[worker], number, lane_of(unit, number, count, cluster.lanes)

    def arrived(self, times: list[float]) -> None:
        self._arrived += len(times)
        if times and times[0] < self._warm_up:
            self._arrived_early += sum(time < self._warm_up for time in times)

    def answered(self, batch: list[tuple[float, int]]) -> None:
        now = self.clock.now
        self._batches += 1
        self._messages += len(batch)
        if now < self._warm_up:
            self._answered_early += len(batch)
        for arrival, _ in batch:
            if arrival >= self._warm_up:
                self.latencies.append(now - arrival)

    def run(self) -> Outcome:
        seconds = self._seconds
        self.clock.run(until=seconds)
        # What an overloaded loop has not read waits, too.
        for loop in self._loops:
            loop.read()
        more_wait = (self._arrived - self._messages) - (self._arrived_early - self._answered_early)
        finished = 1 - max(0, more_wait) / max(1, self._arrived - self._arrived_early)
        latencies = sorted(self.latencies)
        at = lambda share: 1e3 * latencies[min(len(latencies) - 1, int(share * len(latencies)))] if latencies else float("inf")
        lanes = [lane for instance in self._lanes for of_worker in instance for lane in of_worker]
        return Outcome(
            offered=self._offered,
            finished=finished,
            p50=at(0.5),
            p99=at(0.99),
            batch=self._messages / max(1, self._batches),
            cores=max(worker.cores.busy for worker in self._workers) / seconds / self.cluster.cores,
            flush=min(1.0, max(worker.commits.busy for worker in self._workers) / seconds),
            lanes=sum(lane.busy for lane in lanes) / len(lanes) / seconds,
            event_loops=min(1.0, max(loop.busy for loop in self._loops) / seconds),
        )


def simulate(cluster: Cluster, costs: Costs, rate: float, seconds: float = 0.5, seed: int = 1) -> Outcome:
    return Simulation(cluster, costs, Users(cluster), rate, seconds, seed).run()
