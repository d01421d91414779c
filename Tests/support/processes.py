"""Programs that are started, looked at and ended, each by its process id, so that none is left, however we end."""

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


class Failure(Exception):
    """A program did not do what it was started for; the text is for whoever started ours."""


# Starting and ending ------------------------------------------------------------------------------------------------------


def start(arguments, stop_signal=signal.SIGTERM, log=None, **options):
    """Starts a process that gets `stop_signal` when ours ends, also when ours is killed. With a log it reads nothing, has the
    root directory for its own, and adds what it writes to that file.

    The kernel takes the end of the thread that starts it for our end, so that thread has to last.
    """

    # In a process group of its own: Ctrl-C is for us alone, who then end everything in the right order.
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
    """Has the kernel send a signal to this process when the one that started it ends, also when nobody is left to do it."""
    # prctl(PR_SET_PDEATHSIG)
    ctypes.CDLL(None).prctl(1, int(number))


def stop(process, timeout=TIMEOUT_SECONDS, stop_signal=None):
    """Stops a process and waits for its end, which it is given by SIGKILL when it takes too long; returns its exit status."""
    if process.poll() is None:
        # A stopped process would not take the signal before it is continued.
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
    """Ends a process without its help; returns its exit status."""
    process.kill()
    return process.wait()


def directory(mode=0o755):
    """A temporary directory that goes away with us; a short path, because Unix sockets stand in some."""
    path = tempfile.mkdtemp(prefix="hr-", dir="/tmp")
    os.chmod(path, mode)
    _directories.append(path)
    return path


def stop_all():
    for process in reversed(list(_started)):
        stop(process)
    for path in _directories:
        shutil.rmtree(path, ignore_errors=True)
    _directories.clear()


def free_port():
    """A port of 127.0.0.1 on which nobody listens, for those who cannot choose one themselves when they start."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        lowest = int(file.read().split()[0])
    while True:
        # The kernel gives connections their ports from that range: below it none is taken between now and the start.
        # Tests that run at the same time may have the same seed, and must not look in the same places.
        port = random.SystemRandom().randrange(10_000, lowest) if lowest > 12_000 else 0
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return probe.getsockname()[1]


# Running to the end -------------------------------------------------------------------------------------------------------


def run(command, seconds=TIMEOUT_SECONDS, log=None, environment=None):
    """A program's standard output. Its standard error goes to the log; where it fails, it is part of the Failure."""
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


async def run_async(command, seconds=TIMEOUT_SECONDS, text=""):
    """Runs a program with a text on its standard input while other coroutines go on; a CompletedProcess, whatever its status.
    Too late is status -9."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd="/"
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(text.encode()), seconds)
    except (asyncio.TimeoutError, TimeoutError):
        process.kill()
        await process.wait()
        return subprocess.CompletedProcess(command, -9, "", f"not within {seconds:g} s")
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    return subprocess.CompletedProcess(command, process.returncode, out.decode(), err.decode())


# Looking ------------------------------------------------------------------------------------------------------------------


def state(pid):
    """The letter in /proc: T is stopped, Z has ended and waits to be collected; empty is gone."""
    try:
        return _stat(pid)[0]
    except OSError:
        return ""


def is_alive(pid):
    """A zombie that nobody has collected yet is not."""
    return state(pid) not in ("", "Z")


def pause(pid):
    """Stops a process, and returns when all of its threads stand still: until then they may still do something."""
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
    """`VmHWM` is the most that it ever was."""
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith(f"{which}:"):
                return int(line.split()[1]) * 1_024
    # What has ended and was not collected has a status, but no memory.
    raise ProcessLookupError(pid)


def processor_seconds(pid):
    """Of a process, its living children, and those that it has collected."""
    # Sessions that end are counted once they are collected, and not while that happens: wait until nobody comes or goes.
    present = children(pid)
    for _ in range(20):
        if not present:
            break
        time.sleep(0.02)
        before, present = present, children(pid)
        if before == present:
            break
    return _own_seconds(pid) + sum(map(_own_seconds, present))


def collected_children_seconds():
    """Of the programs that we ran to their end."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _own_seconds(pid):
    try:
        # utime, stime, cutime, cstime.
        return sum(map(int, _stat(pid)[11:15])) / TICKS_PER_SECOND
    except OSError:
        return 0.0


def _stat(pid):
    """The fields of proc(5) from the third on: the name before them may have anything in it."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()


atexit.register(stop_all)
