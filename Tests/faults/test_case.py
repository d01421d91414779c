"""Tests of what surrounds a fault, without servers."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock, patch

sys.path.insert(0, str(Path(__file__).parent))
from case import Assignment, ServerCase
from delays import Delays
from faults import SERVED_AFTERWARDS, Fault, Scene
from support import settings


class Attempts(unittest.TestCase):
    def fired(self, effects: list[int], is_once: bool = False, seconds: float = 0) -> tuple[int, int]:
        """The effects of a fault in all, and how often it was injected."""
        attempts = iter(effects)
        inject = AsyncMock(side_effect=lambda scene: next(attempts))
        case = ServerCase(Assignment("none", 1, seconds, settings.binary, Path(), Path(), Path()))
        case.fault = Fault("tested", inject, is_once=is_once)
        cluster = Mock(accepts_connections=AsyncMock())
        scene: Scene = SimpleNamespace(  # type: ignore[assignment]
            random=random.Random(1), cluster=cluster, recorder=Mock(served=[SERVED_AFTERWARDS] * 2)
        )
        with patch("case.asyncio.sleep", AsyncMock()):
            asyncio.run(case.inject(scene))
        return case.result.fired, inject.await_count

    def test_a_fault_without_an_effect_is_injected_again(self) -> None:
        self.assertEqual(self.fired([0, 0, 2, 1]), (2, 3))

    def test_a_fault_with_an_effect_is_not_injected_after_its_time(self) -> None:
        self.assertEqual(self.fired([1, 1]), (1, 1))

    def test_a_fault_that_is_injected_once_gets_no_second_attempt(self) -> None:
        self.assertEqual(self.fired([0, 1], is_once=True), (0, 1))


class Measured(unittest.TestCase):
    def test_delays_are_the_longest_of_the_loop_and_of_the_disk(self) -> None:
        async def measure() -> Delays:
            delays = Delays(Path(directory) / "flushed")
            with patch.object(delays, "flush", side_effect=[0.5, 2, 1, asyncio.CancelledError]):
                task = asyncio.create_task(delays.measure())
                await asyncio.wait([task])
            return delays

        with tempfile.TemporaryDirectory() as directory, patch("delays.PAUSE_SECONDS", 0):
            delays = asyncio.run(measure())
            self.assertGreater(delays.flush(), 0)
        self.assertEqual(delays.disk, 2)
        self.assertEqual(delays.total, delays.loop + 2)


if __name__ == "__main__":
    unittest.main()
