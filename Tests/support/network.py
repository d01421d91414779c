"""A network namespace for one test. Every port in it is free, so the test can run printed commands, which use the default ports."""

import os
import shutil
import socket
import subprocess
import sys
import unittest

from . import processes

# Brings the loopback up, reports it, and keeps the namespace until the other side closes.
KEEPER = """
import fcntl, socket, struct
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))
with socket.socket(fileno=0) as suite:
    suite.send(b"1")
    suite.recv(1)
"""


class OwnNetwork:
    """Creates the namespace as root, or within a new user namespace. Skips the test if neither is permitted."""

    def __init__(self):
        self.inside = None
        """The prefix of a command that runs in it."""
        if shutil.which("unshare") is None or shutil.which("nsenter") is None:
            raise unittest.SkipTest("unshare and nsenter (util-linux) are not installed")
        as_anybody = ["unshare", "--map-root-user", "--net"]
        for unshare in [["unshare", "--net"]] * (os.getuid() == 0) + [as_anybody]:
            ours, theirs = socket.socketpair()
            keeper = processes.start([*unshare, sys.executable, "-c", KEEPER], stdin=theirs.fileno(), stderr=subprocess.DEVNULL, cwd="/")
            theirs.close()
            if ours.recv(1) == b"1":
                self._handle, self._keeper = ours, keeper
                self.inside = ["nsenter", "--target", str(keeper.pid), "--net"]
                if unshare is as_anybody:
                    self.inside += ["--user", "--preserve-credentials"]
                return
            ours.close()
            processes.stop(keeper)
        raise unittest.SkipTest("no network namespace may be made here (root with CAP_SYS_ADMIN, or namespaces of users)")

    def close(self):
        self._handle.close()
        processes.stop(self._keeper)
