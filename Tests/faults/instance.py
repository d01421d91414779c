"""An instance of the service under fault injection."""

from __future__ import annotations

import signal
from pathlib import Path

from support.processes import resume
from support.service import Service
from support.waiting import WaitTimeout, wait_until_async


class Instance:
    """One `headroom serve`, restarted after it was ended."""

    def __init__(self, index: int, directory: Path, url: str, flags: tuple[str, ...] = ("--http", "off")) -> None:
        self.index, self.directory, self.url, self.flags = index, directory, url, flags
        self.service: Service | None = None
        self.starts = 0

    async def start(self) -> None:
        self.starts += 1
        self.service = service = Service(
            *self.flags, database_url=self.url, as_owner=True, wait=False, cwd=self.directory,
            directory=self.directory / f"instance-{self.index}-{self.starts}",
        )  # fmt: skip
        await wait_until_async(service.is_ready, lambda: f"instance {self.index} is ready; its log says\n{service.log()[-1500:]}")

    @property
    def port(self) -> int | None:
        """None while it does not run."""
        return self.service.port if self.service and self.service.is_running else None

    @property
    def http_port(self) -> int | None:
        return self.service.http_port if self.service and self.service.is_running else None

    @property
    def pid(self) -> int:
        assert self.service is not None
        return self.service.process.pid

    @property
    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self.service.process.poll() if self.service else None

    async def terminate(self, seconds: float = 13) -> int:
        """SIGTERM; the exit status, -9 if it had to be killed."""
        service = self.service
        if service is None:
            return 0
        if service.is_running:
            resume(self.pid)
            service.signal(signal.SIGTERM)
            try:
                await wait_until_async(lambda: not service.is_running, "the end after SIGTERM", seconds)
            except WaitTimeout:
                service.kill()
        return service.process.returncode

    def kill(self) -> None:
        if self.service and self.service.is_running:
            self.service.kill()
