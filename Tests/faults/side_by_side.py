"""Runs cases concurrently, each in a process of its own, so that one does not delay another's clients."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import sys
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait

from case import Assignment, Case, Result, ServerCase
from citus_case import CitusCase
from cluster_case import ClusterCase
from failover_case import FailoverCase
from failover_faults import FAILOVER_FAULTS
from support import processes


def results(assignments: Sequence[Assignment], jobs: int) -> Iterator[tuple[Assignment, Result]]:
    """Yields each result as soon as it is available."""
    # A forked process would treat our processes and temporary directories as its own.
    context = multiprocessing.get_context("spawn")
    waiting = list(reversed(assignments))
    running: dict[Connection, tuple[Assignment, multiprocessing.process.BaseProcess]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                receiver, sender = context.Pipe(duplex=False)
                assignment = waiting.pop()
                process = context.Process(target=execute, args=(assignment, sender))
                process.start()
                # So that the pipe ends when the process does.
                sender.close()
                running[receiver] = (assignment, process)
            for receiver in wait(list(running)):
                assert isinstance(receiver, Connection)
                assignment, process = running[receiver]
                try:
                    result = receiver.recv()
                except EOFError:
                    process.join()
                    result = Result(assignment.fault, assignment.seed, error=f"its process ended with status {process.exitcode}")
                process.join()
                del running[receiver]
                yield assignment, result
    finally:
        for _, process in running.values():
            process.terminate()
        for _, process in running.values():
            process.join()


def kind(assignment: Assignment) -> type[Case]:
    if assignment.is_distributed:
        return FailoverCase if any(assignment.fault == fault.name for fault in FAILOVER_FAULTS) else CitusCase
    return ClusterCase if assignment.patroni else ServerCase


def execute(assignment: Assignment, sender: Connection) -> None:
    """Runs an assignment in its own process."""
    processes.die_with_parent(signal.SIGTERM)
    # Ctrl-C is for the parent process, which ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def bounded() -> Result:
        case = kind(assignment)(assignment)
        task = asyncio.ensure_future(case.run())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await task

    try:
        sender.send(asyncio.run(bounded()))
    except asyncio.CancelledError:
        sys.exit(1)
    finally:
        processes.stop_all()
