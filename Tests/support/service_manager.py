"""A service manager as systemd is one: it passes listening sockets to a service, and hears from it how it is."""

import os
import socket
import stat
import sys

from . import processes, settings
from .waiting import TIMEOUT_SECONDS

LAUNCHER = """#!{python}
import os, sys
for index, descriptor in enumerate({descriptors}):
    os.dup2(descriptor, 100 + index)
for index in range({count}):
    os.dup2(100 + index, 3 + index)
    os.close(100 + index)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="{count}", LISTEN_FDNAMES="{names}")
os.execv("{binary}", ["{binary}", *sys.argv[1:]])
"""


class ServiceManager:
    """Pass it to `Service`. Its sockets stay open while services come and go."""

    def __init__(self, names=("line", "http"), file_descriptor_names=None, host="127.0.0.1", backlog=4_096, **environment):
        """`names` says which ports it opens; `file_descriptor_names` are the names that the service gets to know."""
        self.sockets = {name: socket.create_server((host, 0), backlog=backlog) for name in names}
        directory = processes.directory()
        self._states = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._states.bind(directory + "/notify")
        self._states.settimeout(TIMEOUT_SECONDS)
        self.environment = {"NOTIFY_SOCKET": directory + "/notify", **environment}
        self.launcher = directory + "/headroom"
        script = LAUNCHER.format(
            python=sys.executable, descriptors=self.descriptors, count=len(self.sockets), binary=settings.binary,
            names=":".join(names if file_descriptor_names is None else file_descriptor_names),
        )  # fmt: skip
        with open(self.launcher, "w") as file:
            file.write(script)
        os.chmod(self.launcher, stat.S_IRWXU)

    @property
    def descriptors(self):
        return tuple(each.fileno() for each in self.sockets.values())

    def port(self, name):
        return self.sockets[name].getsockname()[1]

    def listen_abstractly(self):
        """Hears the service at an abstract address from now on; returns it."""
        self._states.close()
        self._states = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._states.settimeout(TIMEOUT_SECONDS)
        self._states.bind("")  # the kernel chooses one
        return "@" + self._states.getsockname()[1:].decode()

    def next_state(self):
        """Waits for the service's next message; returns its variables."""
        lines = self._states.recv(4_096).decode().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def close(self):
        for each in (*self.sockets.values(), self._states):
            each.close()
