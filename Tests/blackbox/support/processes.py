"""Everything that the suite starts, so that everything is stopped, by its id, however the suite ends."""

import atexit
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile

_started = []
_directories = []


def start(arguments, stop_signal=signal.SIGTERM, **options):
    """Starts a process that gets `stop_signal` when the suite ends, also when the suite is killed."""

    def die_with_parent():
        # prctl(PR_SET_PDEATHSIG): the kernel tells the child even when nobody here is left to do it.
        ctypes.CDLL(None).prctl(1, int(stop_signal))

    process = subprocess.Popen(arguments, preexec_fn=die_with_parent, **options)
    process.stop_signal = stop_signal
    _started.append(process)
    return process


def stop(process, timeout=10):
    """Stops a process and waits for its end; returns its exit status."""
    if process.poll() is None:
        # A stopped process would not take the signal before it is continued.
        process.send_signal(signal.SIGCONT)
        process.send_signal(process.stop_signal)
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process in _started:
        _started.remove(process)
    return process.returncode


def directory(mode=0o755):
    """A temporary directory that goes away with the suite; a short path, because Unix sockets stand in some."""
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


atexit.register(stop_all)
