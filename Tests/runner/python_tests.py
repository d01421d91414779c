"""Runs the Python tests: distributes classes to worker processes, the longest first."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from support import citus, postgres, processes, settings
from support.residence import Residence

from .results import Report, Result

PART = "Python"
CLASS_LIMIT_SECONDS = 1200
"""More than one test may take, after which the worker fails that test itself."""
MEMORY = "/dev/shm"
MEMORY_BYTES = 8 << 30
"""More than twice of what the databases of all classes take."""
HERE = Path(__file__).resolve().parent
REMEMBERED = HERE / "seconds.json"
"""The duration of each class in seconds, written by `script/test --remember`."""


def worker_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "runner.worker", *arguments]


def environment() -> dict[str, str]:
    tests = HERE.parent
    folders = ["blackbox", "faults", "comparison", "scaling"]
    path = os.pathsep.join(map(str, [tests, *(tests / folder for folder in folders), HERE, tests.parent / "Benchmarks"]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


@contextlib.contextmanager
def databases_in_memory() -> Iterator[None]:
    """Puts the databases of the tests, thousands of files that live for seconds, in memory: on a disk they take a third more of the
    processors. Not where too little memory is free, or where programs may not be started from it."""
    if not has_memory():
        yield
        return
    home = Residence("hr-", MEMORY)
    os.environ["HEADROOM_TEST_DIRECTORY"] = str(home.path)
    processes.put_directories_in(home.path)
    try:
        yield
    finally:
        home.close()


def has_memory() -> bool:
    try:
        found = os.statvfs(MEMORY)
        with open("/proc/meminfo") as file:
            available = next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return False
    return min(found.f_bavail * found.f_frsize, available) >= MEMORY_BYTES and not found.f_flag & os.ST_NOEXEC


class Schedule:
    """Classes that wait for a worker. The longest begin first, so that none runs alone at the end."""

    def __init__(self, classes: list[str], remembered: dict[str, float]) -> None:
        # An unmeasured class may take long.
        self._waiting = sorted(classes, key=lambda name: remembered.get(name, float("inf")))
        self._lock = threading.Lock()
        self.seconds: dict[str, float] = {}

    def next(self) -> str | None:
        with self._lock:
            return self._waiting.pop() if self._waiting else None


class Worker:
    """A process that runs classes from the schedule one after the other."""

    def __init__(
        self, binary: Path, words: list[str], is_distributed: bool, seed: int, log: Path, schedule: Schedule, report: Report
    ) -> None:
        flags = ["--seed", str(seed), *(["--distributed"] if is_distributed else [])]
        self.command = worker_command(*flags, str(binary), *words)
        self.log, self.schedule, self.report = log, schedule, report
        self.process: subprocess.Popen[str] | None = None
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    def _work(self) -> None:
        while not self.report.is_stopped and (name := self.schedule.next()):
            started_at = time.monotonic()
            self._run(name)
            self.schedule.seconds[name] = round(time.monotonic() - started_at, 1)
        if self.process is not None:
            # At the end of its input it stops the processes that it has started.
            self.process.stdin.close()
            try:
                self.process.wait(CLASS_LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                processes.stop(self.process)

    def _run(self, name: str) -> None:
        if self.process is None:
            with open(self.log, "ab") as log:
                self.process = processes.start(
                    self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment()
                )
        process = self.process
        limit = threading.Timer(CLASS_LIMIT_SECONDS, process.kill)
        limit.start()
        try:
            print(name, file=process.stdin, flush=True)
            for line in process.stdout:
                record = json.loads(line)
                if "end" in record:
                    return
                self.report.add(Result(PART, name, **record))
        except BrokenPipeError:
            pass
        finally:
            limit.cancel()
        status = processes.stop(process)
        self.process = None
        text = f"the worker ended with status {status} in this class (-9: it took longer than {CLASS_LIMIT_SECONDS} s)"
        self.report.add(Result(part=PART, group=name, name="runs to its end", seconds=0, failure=f"{text}; its log is {self.log}"))


def left_out(is_distributed: bool) -> str:
    """What `script/test`, or `script/test --citus`, leaves out, and why."""
    flags = ["--left-out", *(["--distributed"] if is_distributed else [])]
    listed = subprocess.run(worker_command(*flags, "none"), stdout=subprocess.PIPE, text=True, env=environment(), check=True)
    return listed.stdout


def discover(binary: Path, words: list[str], is_distributed: bool = False) -> list[str]:
    flags = ["--list", *(["--distributed"] if is_distributed else [])]
    listed = subprocess.run(worker_command(*flags, str(binary), *words), stdout=subprocess.PIPE, text=True, env=environment(), check=True)
    return json.loads(listed.stdout)


def run(
    root: Path, binary: Path, words: list[str], jobs: int, report: Report, has_to_remember: bool = False, is_distributed: bool = False
) -> None:
    seed = int(os.environ.get("HEADROOM_TEST_SEED") or random.randrange(1 << 32))
    report.print_line(f"Python tests with seed {seed} (HEADROOM_TEST_SEED runs the same again)")
    remembered = json.loads(REMEMBERED.read_text()) if REMEMBERED.exists() else {}
    classes = discover(binary, words, is_distributed)
    with databases_in_memory():
        # Created here, so that all workers share it.
        postgres.template()
        if is_distributed:
            settings.binary = str(binary)
            report.print_line(f"preparing a database that is distributed over {citus.WORKERS} workers")
            citus.prepare()
        schedule = Schedule(classes, remembered)
        workers = [
            Worker(
                binary=binary,
                words=words,
                is_distributed=is_distributed,
                seed=seed,
                log=root / f".build/test/python-{number}.log",
                schedule=schedule,
                report=report,
            )
            for number in range(1, min(jobs, len(classes)) + 1)
        ]
        for worker in workers:
            worker.thread.join()
    if not report.is_stopped:
        report_missing(classes, schedule, report)
    if has_to_remember:
        # Removed classes are dropped.
        seconds = schedule.seconds if not words else {**remembered, **schedule.seconds}
        REMEMBERED.write_text(json.dumps(dict(sorted(seconds.items())), indent=4) + "\n")


def report_missing(classes: list[str], schedule: Schedule, report: Report) -> None:
    """Reports classes without a result, because a thread of the runner died."""
    for name in classes:
        if name not in schedule.seconds:
            failure = "it did not, by a fault of the runner that is printed above"
            report.add(Result(part=PART, group=name, name="runs to its end", seconds=0, failure=failure))
