"""Who sends messages, and where the rows of each user are."""

from __future__ import annotations

import random
from itertools import accumulate

from .parameters import Cluster


def scattered(number: int) -> int:
    """A hash of 32 bits: a bijection, so that no two users collide."""
    number = (number ^ (number >> 16)) * 0x45D9F3B & 0xFFFFFFFF
    number = (number ^ (number >> 16)) * 0x45D9F3B & 0xFFFFFFFF
    return number ^ (number >> 16)


class Users:
    """Users of the simulated workers. Bucket b is on worker b modulo their number; a user's number, divided by the number of buckets,
    leaves the bucket, and the rest of it decides which of the lanes that share the bucket has the user."""

    def __init__(self, cluster: Cluster) -> None:
        self._buckets, self._workers = cluster.buckets, cluster.workers
        self._hot = cluster.hot_user_share
        if cluster.zipf_exponent is None:
            self._uniform(cluster)
        else:
            self._zipf(cluster, cluster.zipf_exponent)

    def _uniform(self, cluster: Cluster) -> None:
        # Buckets 0, 1 … and so the workers 0, 1 … have at least as many users as others; the hot user is in bucket 0.
        self.workers = list(range(cluster.simulated_workers))
        of_workers = [bucket for bucket in range(self._buckets) if bucket % self._workers < cluster.simulated_workers]
        even = len(of_workers) / self._buckets
        self.share = self._hot + (1 - self._hot) * even
        self._hot_here = self._hot / self.share
        self._own_buckets = of_workers
        self._each = max(1, cluster.users // self._buckets)
        self._population: list[int] | None = None

    def _zipf(self, cluster: Cluster, exponent: float) -> None:
        numbers = [scattered(rank) for rank in range(1, cluster.users + 1)]
        weights = [rank**-exponent for rank in range(1, cluster.users + 1)]
        by_worker = [0.0] * self._workers
        for number, weight in zip(numbers, weights):
            by_worker[number % self._buckets % self._workers] += weight
        self.workers = sorted(range(self._workers), key=lambda worker: -by_worker[worker])[: cluster.simulated_workers]
        chosen = set(self.workers)
        here = [(number, weight) for number, weight in zip(numbers, weights) if number % self._buckets % self._workers in chosen]
        self.share = sum(weight for _, weight in here) / sum(weights)
        self._population = [number for number, _ in here]
        self._cumulative = list(accumulate(weight for _, weight in here))

    def draw(self, chance: random.Random, count: int) -> list[int]:
        """The senders of messages to the simulated workers."""
        if self._population is not None:
            return chance.choices(self._population, cum_weights=self._cumulative, k=count)
        own, buckets, each, any_of = self._own_buckets, self._buckets, self._each, chance.random
        drawn = [own[int(any_of() * len(own))] + buckets * int(any_of() * each) for _ in range(count)]
        if self._hot:
            drawn = [0 if any_of() < self._hot_here else user for user in drawn]
        return drawn


def lane_of(unit: int, bucket: int, buckets: int, lanes: int) -> int:
    """Which of an instance's lanes to a worker has a user: the rule of `LaneRoutes.swift`.

    bucket: its number among the worker's `buckets`. unit: the part of the user's hash that divides a bucket.
    """
    if buckets >= lanes:
        return bucket % lanes
    sharing = (lanes - bucket + buckets - 1) // buckets
    return bucket + unit % sharing * buckets
