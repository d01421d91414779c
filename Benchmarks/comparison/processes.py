"""Programs that are started, asked, measured and ended; each is ended by its process id."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Sequence

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Failure(Exception):
    """What to tell whoever started the comparison."""


def wait_until(condition: Callable[[], bool], seconds: float, process: subprocess.Popen[bytes] | None = None) -> bool:
    """Whether the condition came true within so many seconds and while the process lived."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until or (process is not None and process.poll() is not None):
            return False
        time.sleep(0.05)
    return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(
    command: Sequence[str], seconds: float, log: Path | None = None, environment: dict[str, str] | None = None
) -> str:
    """A program's standard output. Its standard error goes to the log; both are shown when it fails."""
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd="/",
            timeout=seconds,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{Path(command[0]).name} took longer than {seconds:.0f} s") from error
    except FileNotFoundError as error:
        raise Failure(f"{command[0]} was not found") from error
    errors = done.stderr.decode(errors="replace")
    if log is not None and errors:
        with open(log, "a", encoding="utf-8") as out:
            out.write(errors)
    if done.returncode != 0:
        raise Failure(f"{Path(command[0]).name} ended with status {done.returncode}: {errors.strip()[-800:]}")
    return done.stdout.decode(errors="replace")


class Server:
    """A program that runs until it is ended."""

    def __init__(
        self, command: Sequence[str], log: Path, out: Path | None = None, environment: dict[str, str] | None = None
    ) -> None:
        # In a process group of its own: Ctrl-C is for us alone, who then end everything in the right order.
        with open(log, "ab") as errors, open(out or log, "ab") as output:
            self.process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                cwd="/",
                env=environment,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def end(self, how: signal.Signals = signal.SIGTERM, patience: float = 15) -> None:
        """Asks, waits, then kills."""
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def processor_seconds(pid: int) -> float:
    """Of a process, its living children, and those it has buried."""
    # Sessions that end are counted once they are buried, and not while that happens: wait until nobody comes or goes.
    children = children_of(pid)
    for _ in range(20):
        if not children:
            break
        time.sleep(0.02)
        before, children = children, children_of(pid)
        if before == children:
            break
    return _own_seconds(pid) + sum(map(_own_seconds, children))


def _own_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    # utime, stime, cutime, cstime; the first field after the name is the third of proc(5).
    return sum(map(int, fields[11:15])) / TICKS_PER_SECOND


def buried_children_seconds() -> float:
    """Of the programs that we ran to their end: the load generators."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@dataclass(frozen=True)
class Memory:
    """Resident memory in megabytes of 1,000,000 bytes."""

    now: float
    highest: float


def memory_of(pid: int) -> Memory:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        values = {name: value for name, _, value in (line.partition(":") for line in lines)}
        now, highest = (int(values[name].split()[0]) * 1024 / 1e6 for name in ("VmRSS", "VmHWM"))
    except (OSError, KeyError) as error:
        raise Failure(f"process {pid} is gone") from error
    return Memory(now, highest)
