"""A link of a network: a process that passes bytes from its ports of 127.0.0.1 to others.

    python3 -m support.link LISTENER=PORT …

SIGSTOP cuts the link as a broken network does: connections stay open, nothing arrives, and nobody is told. SIGCONT heals it, and what
was sent meanwhile arrives. So a test needs no privileges to cut a network, and a person can do it by hand. It cuts no better than
its ends are separate: a program that also knows another way to the other end takes that.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

from . import processes
from .proxy import Proxy

TESTS = Path(__file__).resolve().parents[1]


class Link:
    """A running link to ports of 127.0.0.1; `ports` are its own, in the same order."""

    def __init__(self, home: Path, *targets: int) -> None:
        # Bound here, so that the ports are known before the process runs, and stay ours.
        listeners = [socket.create_server(("127.0.0.1", 0), backlog=512) for _ in targets]
        self.ports: list[int] = [listener.getsockname()[1] for listener in listeners]
        pairs = [f"{listener.fileno()}={target}" for listener, target in zip(listeners, targets)]
        self.process: subprocess.Popen[bytes] = processes.start(
            [sys.executable, "-m", "support.link", *pairs], log=home / "links.log", cwd=home,
            pass_fds=[listener.fileno() for listener in listeners], env={**os.environ, "PYTHONPATH": str(TESTS)},
        )  # fmt: skip
        for listener in listeners:
            listener.close()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_cut(self) -> bool:
        return bool(processes.state(self.pid) == "T")

    def cut(self) -> None:
        processes.pause(self.pid)

    def heal(self) -> None:
        processes.resume(self.pid)


async def pass_on(pairs: list[str]) -> None:
    for pair in pairs:
        listener, target = map(int, pair.split("="))
        await Proxy(lambda target=target: target, socket.socket(fileno=listener)).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(pass_on(sys.argv[1:]))
