"""A temporary directory that all processes of a cluster have as their working directory, or below it: that identifies them.

PostgreSQL's postmaster is nobody's child, so ending one's children does not end it. `Residence` ends whatever lives in its directory,
also when our process is killed: a guard waits for the end of ours, by a pipe that closes with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from .waiting import WaitTimeout, wait_until

TESTS = Path(__file__).resolve().parents[1]
IPC_RMID = 0


class Residence:
    """The directory `path`, until `close`."""

    def __init__(self, prefix: str, parent: str) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        # PostgreSQL's user passes through it.
        self.path.chmod(0o711)
        # Without processes.start: it has to outlive our process. In a session of its own, so that Ctrl-C does not end it.
        self.guard = subprocess.Popen(
            [sys.executable, "-m", "support.residence", str(self.path)], stdin=subprocess.PIPE, cwd="/", start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        )  # fmt: skip

    def close(self) -> None:
        """Ends every process in the directory, and deletes it."""
        assert self.guard.stdin is not None
        self.guard.stdin.close()
        self.guard.wait()


def residents(home: Path) -> list[int]:
    """Processes that work in a directory. A person's shell there does not count: it has a terminal, our processes have none."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, IndexError, ValueError):
            directory = os.readlink(f"/proc/{entry}/cwd").removesuffix(" (deleted)")
            if directory != str(home) and not directory.startswith(f"{home}/"):
                continue
            with open(f"/proc/{entry}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            # The state and the terminal.
            if fields[0] != "Z" and fields[4] == "0":
                found.append(int(entry))
    return found


def clear(home: Path) -> None:
    for number, seconds in ((signal.SIGQUIT, 5), (signal.SIGKILL, 60)):
        for pid in residents(home):
            name = ""
            with contextlib.suppress(OSError):
                name = Path(f"/proc/{pid}/comm").read_text().strip()
            with contextlib.suppress(ProcessLookupError):
                # SIGQUIT is PostgreSQL's immediate shutdown, after which nothing of its shared memory is left.
                os.kill(pid, number if name == "postgres" else signal.SIGKILL)
                os.kill(pid, signal.SIGCONT)
        with contextlib.suppress(WaitTimeout):
            wait_until(lambda: not residents(home), "the end of all processes", seconds)
    remove_shared_memory(home)
    shutil.rmtree(home, ignore_errors=True)


def remove_shared_memory(home: Path) -> None:
    """Removes the segments of killed postmasters, which only their next start would remove."""
    for pid_file in [*home.glob("*/data/postmaster.pid"), *home.glob("*/*/data/postmaster.pid")]:
        with contextlib.suppress(OSError, IndexError, ValueError):
            # The seventh line has the segment's key and number.
            segment = int(pid_file.read_text().splitlines()[6].split()[1])
            ctypes.CDLL(None).shmctl(segment, IPC_RMID, None)


def guard(home: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Returns when the other end is closed, by its process or with it.
    sys.stdin.read()
    clear(home)


if __name__ == "__main__":
    guard(Path(sys.argv[1]))
