"""Connects the programs of docs/clients.md, which use 127.0.0.1:6747, with the service of a test.

Two test runs may use the machine at once, so the programs run in a network namespace of their own, where a proxy
listens on this port. Creating the namespace needs root, or the right to create user namespaces. Without either (a
container without CAP_SYS_ADMIN), the proxy listens on the machine's own port if that is free, and a lock lets one test
use the port at a time.
"""

import fcntl
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

from . import processes
from .proxy import Connection, Cut, Proxy
from .waiting import TIMEOUT_SECONDS

PORT = 6747

# Runs in the namespace: brings the loopback up, sends the listening socket to the test, and keeps the namespace alive
# until the test closes its end.
KEEPER = f"""
import fcntl, socket, struct
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))
with socket.socket(fileno=0) as test, socket.create_server(("127.0.0.1", {PORT}), backlog=64) as listener:
    socket.send_fds(test, [b"1"], [listener.fileno()])
    test.recv(1)
"""

# The start of a CONSUME. Clients send it in one segment, perhaps after a handshake.
COUNTING = re.compile(rb"\*\d+\r\n\$7\r\nconsume\r\n", re.IGNORECASE)
ECHO, ECHOED = b"*2\r\n$4\r\nECHO\r\n$6\r\nforged\r\n", b"$6\r\nforged\r\n"
LOST = b""


class AnswerConnection(Connection):
    """Drops or replaces the answer to a CONSUME, or withholds the request."""

    fault = None
    """What happens to the answer: LOST, the line that replaces it, or None for no fault."""

    async def request(self, data):
        requested = COUNTING.search(data)
        self.proxy.sent += data
        self.fault = self.proxy.next_fault() if requested else None
        if requested and self.fault is None and self.proxy.is_silent:
            data = data[: requested.start()]
        elif self.fault:
            # The service gets an ECHO instead. Its answer, which `answer` replaces, comes after those to the handshake.
            data = data[: requested.start()] + ECHO
        yield data

    async def answer(self, data):
        if self.fault is LOST and data.startswith((b"+ALLOWED ", b"+BLOCKED ")):
            raise Cut
        yield data.replace(ECHOED, self.fault) if self.fault else data


class AnswerProxy(Proxy):
    connection = AnswerConnection

    def __init__(self, target, listener):
        super().__init__(target, listener)
        self.sent = b""
        self.fired = 0
        self.faults = []
        self.is_silent = False

    def next_fault(self):
        if not self.faults:
            return None
        self.fired += 1
        return self.faults.pop(0)


class DefaultPort:
    """Relays port 6747 to the port `target`, and injects faults into the answers to CONSUME."""

    def __init__(self):
        self.target = None
        self._keeper = self._handle = self._lock = None
        self._nsenter = []
        listener = self._in_a_namespace() or self._on_this_machine()
        self._proxy = AnswerProxy(lambda: self.target, listener).start_in_background()

    @property
    def sent(self):
        """The bytes that the programs have sent since `behave`."""
        return self._proxy.sent

    @property
    def connections(self):
        """Connections since `behave`."""
        return self._proxy.connections

    @property
    def fired(self):
        """The number of answers that were dropped or replaced since the faults were set."""
        return self._proxy.fired

    def run(self, script, directory, timeout=TIMEOUT_SECONDS):
        """Runs a shell script in `directory`, where the programs are saved."""
        return subprocess.run(
            [*self._nsenter, "bash", "-euo", "pipefail", "-c", script], cwd=directory, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=timeout, env=self._environment(),
        )  # fmt: skip

    def start(self, script, directory, **options):
        """Starts one command in the background."""
        return processes.start(
            [*self._nsenter, "bash", "-euo", "pipefail", "-c", f"exec {script}"], cwd=directory,
            stdin=subprocess.DEVNULL, env=self._environment(), **options,
        )  # fmt: skip

    @staticmethod
    def _environment():
        # `python3` is the one that runs the tests: it has the packages that docs/clients.md requires.
        return {**os.environ, "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]}

    def lose_answers(self, count=1):
        """Breaks the connection before the answer to the next CONSUME arrives. The service has executed it."""
        self._arm([LOST] * count)

    def answer_instead(self, *lines):
        """Answers the next requests that count with these lines, one each. The service does not get them."""
        self._arm([line.encode() + b"\r\n" for line in lines])

    def be_silent(self):
        """Answers the handshake of a client, but no CONSUME."""
        self._proxy.is_silent = True

    def cut(self):
        """Breaks every open connection."""
        self._proxy.cut()

    def behave(self):
        """Removes all faults and resets the counters."""
        self._arm([])
        self._proxy.sent, self._proxy.connections = b"", 0

    def _arm(self, faults):
        self._proxy.is_silent = False
        self._proxy.fired = 0
        self._proxy.faults = faults

    def close(self):
        self._proxy.close()
        if self._lock is not None:
            self._lock.close()
        if self._keeper is not None:
            self._handle.close()
            processes.stop(self._keeper)

    def _in_a_namespace(self):
        if shutil.which("unshare") is None or shutil.which("nsenter") is None:
            return None
        as_anybody = ["unshare", "--map-root-user", "--net"]
        for unshare in [["unshare", "--net"]] * (os.getuid() == 0) + [as_anybody]:
            ours, theirs = socket.socketpair()
            with ours, theirs:
                keeper = processes.start(
                    [*unshare, sys.executable, "-c", KEEPER], stdin=theirs.fileno(), stderr=subprocess.DEVNULL, cwd="/"
                )
                theirs.close()
                _, listening, _, _ = socket.recv_fds(ours, 1, 1)
                if not listening:
                    processes.stop(keeper)
                    continue
                # Closing this end stops the keeper, and the namespace ends with it.
                self._handle = ours.dup()
            self._keeper = keeper
            self._nsenter = ["nsenter", "--target", str(keeper.pid), "--net"]
            if unshare is as_anybody:
                self._nsenter += ["--user", "--preserve-credentials"]
            return socket.socket(fileno=listening[0])
        return None

    def _on_this_machine(self):
        # Waits for other tests. `close` releases the lock, as does the kernel if this process is killed.
        # The file stays open as long as the lock is held.
        self._lock = open(f"{tempfile.gettempdir()}/headroom-tests-port-{PORT}.lock", "w")  # noqa: SIM115
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            return socket.create_server(("127.0.0.1", PORT), backlog=64)
        except OSError as error:
            self._lock.close()
            raise unittest.SkipTest(
                f"cannot create a network namespace (needs root with CAP_SYS_ADMIN, or user namespaces), nor listen on"
                f" 127.0.0.1:{PORT}: {error.strerror}"
            ) from None
