"""127.0.0.1:6747, the address that the programs in docs/clients.md have in them, with whatever service a test runs.

The port is the whole machine's, and two suites may run at once; so the programs run in a network namespace in which there
is nothing but this port. What listens there is a relay of the test's own, since a socket belongs to the namespace in which
it was made, whoever uses it. Root makes the namespace, or somebody who may make a namespace of users first. Where neither
is permitted (a container without CAP_SYS_ADMIN), the relay takes the port of the machine, if nobody else has it.
"""

import contextlib
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import threading
import unittest

from . import processes

PORT = 6747

# Brings the loopback up, listens, hands the listening socket over, and keeps the namespace until the other side is gone.
KEEPER = f"""
import fcntl, socket, struct
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))
with socket.socket(fileno=0) as suite, socket.create_server(("127.0.0.1", {PORT}), backlog=64) as listener:
    socket.send_fds(suite, [b"1"], [listener.fileno()])
    suite.recv(1)
"""


# A CONSUME as clients send it, in one piece, perhaps behind a handshake.
ASKING = re.compile(rb"\*\d+\r\n\$7\r\nconsume\r\n", re.IGNORECASE)
ECHO, ECHOED = b"*2\r\n$4\r\nECHO\r\n$6\r\nforged\r\n", b"+forged\r\n"
LOST = b""


class DefaultPort:
    """Relays to the port `target`, and loses or forges answers when it is told to."""

    def __init__(self):
        self.target = None
        self.sent = b""
        """What programs have sent since `behave`."""
        self.connections = 0
        self.fired = 0
        """Answers lost or forged."""
        self._lock = threading.Lock()
        self._faults = []
        self._is_silent = False
        self._carried = set()
        self._keeper = self._handle = None
        self._inside = []
        self._listener = self._in_a_namespace() or self._on_this_machine()
        threading.Thread(target=self._accept, daemon=True).start()

    def run(self, script, directory, timeout=30):
        """A shell script, as somebody types it who has saved the programs in `directory`."""
        return subprocess.run(
            [*self._inside, "bash", "-euo", "pipefail", "-c", script], cwd=directory, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=timeout, env=self._environment(),
        )  # fmt: skip

    def start(self, script, directory, **options):
        """The same for one command that goes on."""
        return processes.start(
            [*self._inside, "bash", "-euo", "pipefail", "-c", f"exec {script}"], cwd=directory, stdin=subprocess.DEVNULL,
            env=self._environment(), **options,
        )  # fmt: skip

    @staticmethod
    def _environment():
        # `python3` is the suite's own, which has the package that the page says to install.
        return {**os.environ, "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]}

    def lose_answers(self, count=1):
        """The service does what the next CONSUME says, and the connection breaks before its answer has come."""
        self._arm([LOST] * count)

    def answer_instead(self, *lines):
        """The service never sees the next CONSUME; these lines come back, one for each."""
        self._arm([line.encode() + b"\r\n" for line in lines])

    def be_silent(self):
        """Answers a client's handshake, and nothing from its first CONSUME on."""
        self._is_silent = True

    def cut(self):
        """Breaks every connection that there is."""
        with self._lock:
            for client in self._carried:
                with contextlib.suppress(OSError):  # it has broken by itself
                    client.shutdown(socket.SHUT_RDWR)

    def _arm(self, faults):
        with self._lock:
            self._faults = faults
            self._is_silent = False
            self.fired = 0

    def behave(self):
        """Carries everything, and begins to count anew."""
        self._arm([])
        self.sent, self.connections = b"", 0

    def close(self):
        # Closing alone would not wake the thread that accepts, and until it wakes the port stays taken.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
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
                # It goes when nobody holds this end any more, and the namespace with it.
                self._handle = ours.dup()
            self._keeper = keeper
            self._inside = ["nsenter", "--target", str(keeper.pid), "--net"]
            if unshare is as_anybody:
                self._inside += ["--user", "--preserve-credentials"]
            return socket.socket(fileno=listening[0])
        return None

    def _on_this_machine(self):
        try:
            return socket.create_server(("127.0.0.1", PORT), backlog=64)
        except OSError as error:
            raise unittest.SkipTest(
                f"no network namespace may be made here (root with CAP_SYS_ADMIN, or namespaces of users), and"
                f" 127.0.0.1:{PORT} of the machine cannot be taken: {error.strerror}"
            ) from None

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client):
        with self._lock:
            self._carried.add(client)
        try:
            with socket.create_connection(("127.0.0.1", self.target), 10) as service:
                self._carry(client, service)
        except OSError:
            pass  # one of the two is gone, and the other learns it
        with self._lock:
            self._carried.discard(client)
            client.close()

    def _carry(self, client, service):
        open_ends = [client, service]
        fault = None
        while open_ends:
            for ready in select.select(open_ends, [], [])[0]:
                data = ready.recv(1 << 16)
                if not data:
                    open_ends.remove(ready)
                    (service if ready is client else client).shutdown(socket.SHUT_WR)
                elif ready is client:
                    data, fault = self._taken(data)
                    service.sendall(data)
                elif fault is LOST and data.startswith((b"+ALLOWED ", b"+BLOCKED ")):
                    return
                else:
                    client.sendall(data.replace(ECHOED, fault) if fault else data)

    def _taken(self, data):
        """What the service gets of it, and what becomes of the answer: LOST, another line, or None."""
        asked = ASKING.search(data)
        with self._lock:
            self.sent += data
            if asked is None or not (self._faults or self._is_silent):
                return data, None
            if not self._faults:
                return data[: asked.start()], None
            self.fired += 1
            fault = self._faults.pop(0)
        # The service is asked something else, so that the line comes after the answers to a handshake before it.
        return (data if fault is LOST else data[: asked.start()] + ECHO), fault
