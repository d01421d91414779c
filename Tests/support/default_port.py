"""127.0.0.1:6747, the address in the programs of docs/clients.md, relayed to the service of a test.

Two test runs may use the machine at once, so the programs run in a network namespace that has only this port. A relay listens
there. Creating the namespace needs root, or the right to create user namespaces. Without either (a container without
CAP_SYS_ADMIN), the relay takes the machine's own port, one test after the other, if it is free.
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
from .proxy import Connection, Cut, Relay
from .waiting import TIMEOUT_SECONDS

PORT = 6747

# Brings the loopback up, listens, passes the listening socket on, and keeps the namespace until the other side closes.
KEEPER = f"""
import fcntl, socket, struct
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))
with socket.socket(fileno=0) as suite, socket.create_server(("127.0.0.1", {PORT}), backlog=64) as listener:
    socket.send_fds(suite, [b"1"], [listener.fileno()])
    suite.recv(1)
"""

# A CONSUME as clients send it, in one segment, perhaps after a handshake.
CONSUME = re.compile(rb"\*\d+\r\n\$7\r\nconsume\r\n", re.IGNORECASE)
ECHO, ECHOED = b"*2\r\n$4\r\nECHO\r\n$6\r\nforged\r\n", b"$6\r\nforged\r\n"
LOST = b""


class AnswerConnection(Connection):
    """Drops or replaces the answer to a CONSUME."""

    fault = None
    """The fault for the answer: LOST, another line, or None."""

    async def request(self, data):
        requested = CONSUME.search(data)
        self.relay.sent += data
        self.fault = self.relay.next_fault() if requested else None
        if requested and self.fault is None and self.relay.is_silent:
            data = data[: requested.start()]
        elif self.fault:
            # The service gets another request instead, so that the line comes after the answers to a preceding handshake.
            data = data[: requested.start()] + ECHO
        yield data

    async def answer(self, data):
        if self.fault is LOST and data.startswith((b"+ALLOWED ", b"+BLOCKED ")):
            raise Cut
        yield data.replace(ECHOED, self.fault) if self.fault else data


class AnswerRelay(Relay):
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
    """Relays to the port `target`, and drops or replaces the armed answers."""

    def __init__(self):
        self.target = None
        self._keeper = self._handle = self._turn = None
        self._inside = []
        self._relay = AnswerRelay(lambda: self.target, self._in_a_namespace() or self._on_this_machine()).start_in_background()

    @property
    def sent(self):
        """The bytes from programs since `behave`."""
        return self._relay.sent

    @property
    def connections(self):
        """Connections since `behave`."""
        return self._relay.connections

    @property
    def fired(self):
        """Dropped or replaced answers."""
        return self._relay.fired

    def run(self, script, directory, timeout=TIMEOUT_SECONDS):
        """Runs a shell script in `directory`, where the programs are saved."""
        return subprocess.run(
            [*self._inside, "bash", "-euo", "pipefail", "-c", script], cwd=directory, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=timeout, env=self._environment(),
        )  # fmt: skip

    def start(self, script, directory, **options):
        """Starts one command in the background."""
        return processes.start(
            [*self._inside, "bash", "-euo", "pipefail", "-c", f"exec {script}"], cwd=directory, stdin=subprocess.DEVNULL,
            env=self._environment(), **options,
        )  # fmt: skip

    @staticmethod
    def _environment():
        # `python3` is the tests' own, which has the package that the page names.
        return {**os.environ, "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]}

    def lose_answers(self, count=1):
        """The service executes the next CONSUME, and the connection breaks before its answer arrives."""
        self._arm([LOST] * count)

    def answer_instead(self, *lines):
        """The service does not get the next CONSUMEs; each is answered with one of these lines."""
        self._arm([line.encode() + b"\r\n" for line in lines])

    def be_silent(self):
        """Answers a client's handshake, and nothing from its first CONSUME on."""
        self._relay.is_silent = True

    def cut(self):
        """Breaks every open connection."""
        self._relay.cut()

    def behave(self):
        """Relays everything, and resets the counters."""
        self._arm([])
        self._relay.sent, self._relay.connections = b"", 0

    def _arm(self, faults):
        self._relay.is_silent = False
        self._relay.fired = 0
        self._relay.faults = faults

    def close(self):
        self._relay.close()
        if self._turn is not None:
            self._turn.close()
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
                # It ends, and the namespace with it, when this end is closed.
                self._handle = ours.dup()
            self._keeper = keeper
            self._inside = ["nsenter", "--target", str(keeper.pid), "--net"]
            if unshare is as_anybody:
                self._inside += ["--user", "--preserve-credentials"]
            return socket.socket(fileno=listening[0])
        return None

    def _on_this_machine(self):
        # Releases the lock for another test; the kernel also releases it if this process is killed.
        self._turn = open(f"{tempfile.gettempdir()}/headroom-tests-port-{PORT}.lock", "w")  # noqa: SIM115  # the lock lives as long as it
        fcntl.flock(self._turn, fcntl.LOCK_EX)
        try:
            return socket.create_server(("127.0.0.1", PORT), backlog=64)
        except OSError as error:
            self._turn.close()
            raise unittest.SkipTest(
                f"no network namespace may be made here (root with CAP_SYS_ADMIN, or namespaces of users), and"
                f" 127.0.0.1:{PORT} of the machine cannot be taken: {error.strerror}"
            ) from None
