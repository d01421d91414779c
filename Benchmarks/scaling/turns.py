"""Whose turn it is among a lane's buckets: the rule of `Sources/Engine/Buckets/BucketTurns.swift`."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass


@dataclass
class Waiting:
    bucket: int
    passed_over: int = 0
    """How many batches of other buckets have begun since this one began to wait."""


class BucketTurns:
    """The fullest bucket is next, as long as each other can still have its turn within as many batches as buckets wait."""

    def __init__(self) -> None:
        self.waiting: list[Waiting] = []

    def append(self, bucket: int) -> None:
        """A bucket that was empty has messages, or one that had a turn has some left."""
        self.waiting.append(Waiting(bucket))

    def take_next(self, queues: Sequence[Sized]) -> int | None:
        """The bucket whose turn it is, which waits no longer."""
        waiting = self.waiting
        if not waiting:
            return None
        fullest, most = 0, 0
        for index, one in enumerate(waiting):
            if len(queues[one.bucket]) > most:
                fullest, most = index, len(queues[one.bucket])
        chosen = waiting.pop(fullest if self._others_can_wait(fullest) else 0)
        for one in waiting:
            one.passed_over += 1
        return chosen.bucket

    def _others_can_wait(self, chosen: int) -> bool:
        """Whether the others would have their turns in time if they had them in their order after this one."""
        waiting = self.waiting
        batches = 1
        for index, one in enumerate(waiting):
            if index == chosen:
                continue
            if one.passed_over + batches > len(waiting):
                return False
            batches += 1
        return True
