"""Measures how much a busy machine delays everything, so that its delays do not count as those of the service."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

# At most nine requests in a burst, and three iterations of the event loop for each reply.
ITERATIONS_PER_BURST = 27
# Between two flushes.
PAUSE_SECONDS = 0.2


class Delays:
    """The longest delays so far, in seconds: of this process's event loop, which limits the precision of recorded times, and of a
    small write that is flushed to the disk on which the databases are, as each commit is."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.loop = self.disk = 0.0

    @property
    def total(self) -> float:
        return self.loop + self.disk

    def __str__(self) -> str:
        return f"delays: loop {self.loop * 1000:.0f} ms, disk {self.disk * 1000:.0f} ms"

    async def measure(self) -> None:
        """Measures until it is cancelled."""
        await asyncio.gather(self.measure_loop(), self.measure_disk())

    async def measure_loop(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.02)
            for _ in range(ITERATIONS_PER_BURST):
                await asyncio.sleep(0)
            self.loop = max(self.loop, time.monotonic() - before - 0.02)

    async def measure_disk(self) -> None:
        while True:
            await asyncio.sleep(PAUSE_SECONDS)
            self.disk = max(self.disk, await asyncio.to_thread(self.flush))

    def flush(self) -> float:
        """The seconds of a write of one page of WAL."""
        before = time.monotonic()
        descriptor = os.open(self.file, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.pwrite(descriptor, bytes(8192), 0)
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        return time.monotonic() - before
