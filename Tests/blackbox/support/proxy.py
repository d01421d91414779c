"""A relay between the service and PostgreSQL that loses exactly what it is told to."""

import os
import select
import socket
import threading

from . import processes

READY_AND_IDLE = b"Z\x00\x00\x00\x05I"
"""ReadyForQuery outside of a transaction: whatever was asked is committed."""


class Proxy:
    """Listens on a Unix socket in a directory of its own, as PostgreSQL does."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.home = processes.directory()
        self.fired = 0
        self._lock = threading.Lock()
        self._armed = None
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.home + "/.s.PGSQL.5432")
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, database):
        return f"host={self.home} user=postgres dbname={database}"

    def cut_after_commit(self, matches):
        """Loses the reply to the next message for which matches(bytes) holds, once the database has committed it."""
        self._arm(("reply", matches))

    def cut_before_request(self, matches):
        """Loses the next such message itself: the database never sees it."""
        self._arm(("request", matches))

    def _arm(self, fault):
        with self._lock:
            self._armed = fault

    def _take(self, kind, data):
        with self._lock:
            if self._armed is None or self._armed[0] != kind or not self._armed[1](data):
                return False
            self._armed = None
            self.fired += 1
            return True

    def close(self):
        self._listener.close()
        os.unlink(self.home + "/.s.PGSQL.5432")

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client):
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self.cluster.home + "/.s.PGSQL.5432")
            self._carry(client, server)
        except OSError:
            pass
        finally:
            client.close()
            server.close()

    def _carry(self, client, server):
        request = b""
        while True:
            for ready in select.select([client, server], [], [])[0]:
                data = ready.recv(1 << 16)
                if not data:
                    return
                if ready is client:
                    if self._take("request", data):
                        return
                    request = data
                    server.sendall(data)
                elif data.endswith(READY_AND_IDLE) and self._take("reply", request):
                    return
                else:
                    client.sendall(data)


def runs(statement):
    """Messages that run a prepared statement of this name."""
    return lambda data: data[:1] == b"B" and b"\0" + statement + b"\0" in data


def runs_any_of(*statements):
    return lambda data: any(runs(statement)(data) for statement in statements)


def commits(data):
    """Messages that end a transaction, as a simple query or as an extended one."""
    return data[:1] in (b"Q", b"P") and b"commit\0" in data[:16]
