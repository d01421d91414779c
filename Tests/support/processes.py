"""Starting, inspecting and ending processes by their ids, so that none is left over when the tests end."""

import asyncio
import atexit
import contextlib
import ctypes
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from .waiting import TIMEOUT_SECONDS, wait_until

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")

_started = []
_directories = []
_parent = os.environ.get("HEADROOM_TEST_DIRECTORY") or "/tmp"


class Failure(Exception):
    """A program failed; the text is for the user."""


# Starting and ending ------------------------------------------------------------------------------------------------------


def start(arguments, stop_signal=signal.SIGTERM, log=None, **options):
    """Starts a process that gets `stop_signal` when ours ends, also if ours is killed. With a log its input is empty, its directory
    is /, and its output is appended to that file.

    The kernel sends the signal when the starting thread ends, so that thread must outlive the process.
    """

    # In a session of its own: Ctrl-C reaches only our process, which ends the others in order.
    options.setdefault("start_new_session", True)
    with contextlib.ExitStack() as files:
        if log is not None:
            output = files.enter_context(open(log, "ab"))
            options = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output, "cwd": "/", **options}
        process = subprocess.Popen(arguments, preexec_fn=lambda: die_with_parent(stop_signal), **options)
    process.stop_signal = stop_signal
    _started.append(process)
    return process


def die_with_parent(number):
    """Makes the kernel send a signal to the calling process when its parent ends."""
    # prctl(PR_SET_PDEATHSIG)
    ctypes.CDLL(None).prctl(1, int(number))


def adopt_orphans():
    """Makes our process the parent of its descendants whose parents end, in place of process 1, which in some containers and
    namespaces does not collect the status of ended processes: they stay zombies."""
    # prctl(PR_SET_CHILD_SUBREAPER)
    ctypes.CDLL(None).prctl(36, 1)


def stop(process, timeout=TIMEOUT_SECONDS, stop_signal=None):
    """Stops a process and waits for its end, with SIGKILL after the timeout; returns its exit status."""
    if process.poll() is None:
        # A process that SIGSTOP has stopped handles the signal only after SIGCONT.
        process.send_signal(signal.SIGCONT)
        process.send_signal(stop_signal or process.stop_signal)
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            kill(process)
    if process in _started:
        _started.remove(process)
    return process.returncode


def kill(process):
    """Kills a process; returns its exit status."""
    process.kill()
    return process.wait()


def directory(mode=0o755):
    """A temporary directory, deleted when our process ends; its path is short enough for Unix sockets."""
    path = tempfile.mkdtemp(prefix="hr-", dir=_parent)
    os.chmod(path, mode)
    _directories.append(path)
    return path


def put_directories_in(path):
    """Makes temporary directories in this one, which somebody else deletes if our process is killed."""
    global _parent
    _parent = str(path)


def stop_all():
    for process in reversed(list(_started)):
        stop(process)
    for path in _directories:
        shutil.rmtree(path, ignore_errors=True)
    _directories.clear()


_given_ports = set()


def free_port():
    """An unused port of 127.0.0.1, for programs that cannot choose one themselves. It is not given again in this process: a test
    that ends a program may expect that nothing answers there."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        lowest = int(file.read().split()[0])
    # Below the range from which the kernel takes ports of connections, so that the port stays free until the program starts. The
    # tests in Swift take theirs from the lower half.
    ports = range((10_000 + lowest) // 2, lowest) if lowest > 12_000 else range(1)
    while True:
        # The random numbers are the system's, because concurrent tests may have the same seed.
        port = random.SystemRandom().choice(ports)
        if len(_given_ports) > len(ports) // 2:
            # Where there are so few, the oldest are no longer in use.
            _given_ports.clear()
        if port in _given_ports:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            _given_ports.add(port)
            return probe.getsockname()[1]


# Running to the end -------------------------------------------------------------------------------------------------------


def run(command, seconds=TIMEOUT_SECONDS, log=None, environment=None):
    """Runs a program; returns its standard output. Its standard error goes to the log, and into the Failure if it fails."""
    name = os.path.basename(command[0])
    try:
        done = subprocess.run(
            list(command), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", cwd="/", timeout=seconds,
            env=environment, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{name} took longer than {seconds:.0f} s") from error
    except FileNotFoundError as error:
        raise Failure(f"{command[0]} was not found") from error
    if log is not None and done.stderr:
        with open(log, "a", encoding="utf-8") as file:
            file.write(done.stderr)
    if done.returncode != 0:
        raise Failure(f"{name} ended with status {done.returncode}: {done.stderr.strip()[-800:]}")
    return done.stdout


def completed(command, **options):
    """Runs a program to its end, whatever its status; returns a CompletedProcess with the texts that it wrote. Without an `input`
    its standard input is empty."""
    empty = {} if "input" in options else {"stdin": subprocess.DEVNULL}
    return subprocess.run(command, **{"capture_output": True, "text": True, "timeout": TIMEOUT_SECONDS, "check": False, **empty, **options})


async def run_async(command, seconds=TIMEOUT_SECONDS, text=""):
    """Runs a program with a text on its standard input, without blocking other coroutines; returns a CompletedProcess. A timeout
    is status -9."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd="/"
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(text.encode()), seconds)
    except (asyncio.TimeoutError, TimeoutError):
        await _kill(process)
        return subprocess.CompletedProcess(command, -9, "", f"not within {seconds:g} s")
    except asyncio.CancelledError:
        await _kill(process)
        raise
    return subprocess.CompletedProcess(command, process.returncode, out.decode(), err.decode())


async def _kill(process):
    # It may have ended by itself meanwhile.
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()


# Inspecting ---------------------------------------------------------------------------------------------------------------


def state(pid):
    """The state in /proc: T is stopped, Z a zombie; empty if there is no such process."""
    try:
        return _stat(pid)[0]
    except OSError:
        return ""


def is_alive(pid):
    """Whether a process runs; false for a zombie."""
    return state(pid) not in ("", "Z")


def pause(pid):
    """Stops a process by SIGSTOP; returns when all of its threads are stopped."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: all(state(f"{pid}/task/{thread}") in ("T", "") for thread in os.listdir(f"/proc/{pid}/task")), "the stop")


def resume(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def resident_bytes(pid, which="VmRSS"):
    """The resident memory; with `VmHWM`, its maximum so far."""
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith(f"{which}:"):
                return int(line.split()[1]) * 1_024
    # A zombie has a status, but no memory.
    raise ProcessLookupError(pid)


def processor_seconds(pid):
    """Processor time of a process, its children, and its ended children."""
    # A child that ends is counted only after wait(): repeat until the set of children does not change.
    present = children(pid)
    for _ in range(20):
        if not present:
            break
        time.sleep(0.02)
        before, present = present, children(pid)
        if before == present:
            break
    return _seconds_with_ended_children(pid) + sum(map(_seconds_with_ended_children, present))


def collected_children_seconds():
    """Processor time of our process's ended children."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _seconds_with_ended_children(pid):
    try:
        # utime, stime, cutime, cstime.
        return sum(map(int, _stat(pid)[11:15])) / TICKS_PER_SECOND
    except OSError:
        return 0.0


def _stat(pid):
    """The fields of /proc/PID/stat from the third on: the name before them may contain anything."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()


atexit.register(stop_all)
