"""A PgBouncer in front of a Cluster, on a free port of 127.0.0.1."""

import os
import shutil
import signal
import socket
from pathlib import Path

from . import processes
from .postgres import as_postgres_user, chown_to_postgres
from .waiting import wait_until

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
"""None if it is not installed."""

USERS = ("postgres", "backend")


class Pooler:
    def __init__(self, cluster, pool_mode, **settings):
        self.home = processes.directory()
        self.port = processes.free_port()
        self.cluster = cluster
        # The default port and socket would be shared by all tests.
        self.settings = {
            "listen_addr": "127.0.0.1", "listen_port": self.port, "unix_socket_dir": "", "auth_type": "trust",
            "auth_file": self.home + "/users", "logfile": self.home + "/log", "admin_users": "postgres",
            "max_client_conn": 200, "default_pool_size": 40, **settings,
        }  # fmt: skip
        with open(self.home + "/users", "w") as file:
            file.writelines(f'"{user}" ""\n' for user in USERS)
        chown_to_postgres(self.home)
        self.write(pool_mode)
        # It has nothing to save, and other signals may wait for clients, depending on the version.
        self.process = processes.start([PROGRAM, "-q", self.home + "/ini"], signal.SIGKILL, self.home + "/output", **as_postgres_user())
        wait_until(self.answers, "PgBouncer listens")

    def write(self, pool_mode):
        lines = ["[databases]", f"* = host={self.cluster.home}", "[pgbouncer]", f"pool_mode = {pool_mode}"]
        with open(self.home + "/ini", "w") as file:
            file.write("\n".join(lines + [f"{name} = {value}" for name, value in self.settings.items()]) + "\n")

    def reload(self, pool_mode):
        """Changes the mode while clients are connected."""
        self.write(pool_mode)
        self.process.send_signal(signal.SIGHUP)
        console = [self.cluster.bin + "/psql", "-X", "-A", "-t", "-c", "show config", self.url("pgbouncer")]
        wait_until(lambda: f"\npool_mode|{pool_mode}|" in processes.run(console), "the mode is in force")

    def answers(self):
        if self.process.poll() is not None:
            text = "".join(Path(path).read_text() for path in (self.home + "/output", self.home + "/log") if os.path.exists(path))
            raise processes.Failure(f"PgBouncer ended:\n{text[-2000:]}")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def url(self, database):
        return f"host=127.0.0.1 port={self.port} user=postgres dbname={database}"

    def stop(self):
        processes.stop(self.process)
