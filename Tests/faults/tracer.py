"""Faults within system calls."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

from support import processes


class Tracer:
    """strace, attached to one process, which injects a fault into a system call."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def is_installed() -> bool:
        return shutil.which("strace") is not None

    def attach(self, pid: int, call: str, injection: str, threads: bool = False) -> None:
        command = ["strace", "-qq", "-o", str(self.log), "-e", f"trace={call}", "-e", f"inject={call}:{injection}"]
        command += ["-f"] if threads else []
        self.process = processes.start(
            command + ["-p", str(pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def injected(self) -> int:
        """The number of injected faults, from strace's output."""
        if not self.log.exists():
            return 0
        text = self.log.read_text(errors="replace")
        return text.count("(INJECTED)") + text.count("(DELAYED)")

    async def detach(self) -> None:
        if self.process is not None:
            await asyncio.to_thread(processes.stop, self.process, 3)
            self.process = None
