"""A high-availability cluster on this machine: PostgreSQL servers under Patroni, and etcd, which knows who leads.

Everything listens on free ports of 127.0.0.1. Each node reaches etcd through a link of its own, and the others reach the node's
PostgreSQL and Patroni through another one (see `support.link`); cutting both takes the node off the network of the cluster, while
clients still reach it. Clients connect to the servers' own ports, or, if asked for, also through a link to each.

Processes, not network namespaces: those need root and packages that this machine may not have, and a person could not connect to them.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import http as web
from . import postgres, processes
from .link import Link
from .residence import residents
from .service import environment
from .waiting import wait_until, wait_until_async

SCOPE = "headroom"
LEAST_TTL = 20
"""Patroni raises a lower one to this."""
LOOP_WAIT, RETRY_TIMEOUT = 1, 5
"""Patroni requires loop_wait + 2 * retry_timeout <= ttl."""
REST_TIMEOUT = 1.0
COLLECTED_EVERY = 0.1
WRITE = "create table if not exists written (at timestamptz); insert into written values (now())"

SETTINGS = {
    **{name: value.strip("'") for name, value in postgres.DURABLE.items()},
    "max_connections": "120",
    "shared_buffers": "64MB",
    "min_wal_size": "32MB",
    "max_wal_size": "512MB",
    "autovacuum_naptime": "10s",
    "wal_level": "replica",
    "hot_standby": "on",
    # In the data directory, so that nothing is left of a killed server.
    "dynamic_shared_memory_type": "mmap",
    # The collector, so that the log is apart from Patroni's.
    "logging_collector": "on",
    "log_filename": "postgres.log",
    "log_rotation_age": "0",
    "log_rotation_size": "0",
}


@dataclass(frozen=True)
class Group:
    """What makes a Patroni cluster one server of a database that Citus distributes: the coordinator or a worker, with its standbys.
    All groups of a database have one etcd."""

    number: int
    """Of Patroni and in pg_dist_node; 0 is the coordinator."""
    database: str
    etcd_port: int
    settings: dict[str, str]
    """Of PostgreSQL, besides `SETTINGS`."""

    @property
    def name(self) -> str:
        return f"worker{self.number}" if self.number else "coordinator"

    @property
    def path(self) -> str:
        """In etcd, below the scope."""
        return f"{self.number}/"

    @property
    def of_patroni(self) -> dict[str, Any]:
        """What Patroni's configuration has besides that of a cluster of its own."""
        return {"citus": {"group": self.number, "database": self.database}}


class Node:
    """One PostgreSQL and its Patroni. `home` has their data, configuration and logs."""

    def __init__(self, cluster: PatroniCluster, number: int) -> None:
        group = cluster.group
        self.cluster, self.number, self.name = cluster, number, f"{group.name}-{number}" if group else f"node{number}"
        self.home: Path = cluster.home / self.name
        self.data = self.home / "data"
        self.log, self.patroni_log = self.home / "postgres.log", self.home / "patroni.log"
        self.port, self.rest_port = int(processes.free_port()), int(processes.free_port())
        self.patroni: subprocess.Popen[bytes] | None = None
        self.home.mkdir(mode=0o711)
        subprocess.run(["cp", "-a", str(cluster.like), str(self.data)], check=True)
        self.etcd_link = Link(cluster.home, cluster.etcd_port)
        # Without a group: clients, too, connect to the address that Patroni tells Citus.
        self.peers_link = None if group else Link(cluster.home, self.port, self.rest_port)
        self.clients_link = Link(cluster.home, self.port) if cluster.has_client_links else None
        self.configuration = self.home / "patroni.yml"
        # JSON is YAML.
        self.configuration.write_text(json.dumps(self.settings(), indent=2), encoding="utf-8")
        postgres.chown_to_postgres(self.home)

    def settings(self) -> dict[str, Any]:
        sql_port, rest_port = self.peers_link.ports if self.peers_link else (self.port, self.rest_port)
        return {
            "scope": SCOPE,
            "name": self.name,
            "restapi": {"listen": f"127.0.0.1:{self.rest_port}", "connect_address": f"127.0.0.1:{rest_port}"},
            # Without `use_proxies` Patroni would ask etcd for its address, and go around the link.
            "etcd3": {"host": f"127.0.0.1:{self.etcd_link.ports[0]}", "use_proxies": True},
            "postgresql": {
                "listen": f"127.0.0.1:{self.port}",
                "connect_address": f"127.0.0.1:{sql_port}",
                "data_dir": str(self.data),
                "bin_dir": postgres.programs(),
                "pgpass": str(self.home / "pgpass"),
                "authentication": {name: {"username": "postgres"} for name in ("superuser", "replication", "rewind")},
                "parameters": {"unix_socket_directories": str(self.home), "log_directory": str(self.home)},
            },
            "watchdog": {"mode": "off"},
            **(self.cluster.group.of_patroni if self.cluster.group else {}),
        }

    def start(self) -> None:
        """Starts Patroni, which starts PostgreSQL, as a standby if another node leads."""
        self.patroni = processes.start(
            [str(self.cluster.programs / "bin" / "patroni"), str(self.configuration)], signal.SIGKILL, self.patroni_log,
            cwd=self.home, env=environment(), **postgres.as_postgres_user(),
        )  # fmt: skip

    def launch_postgres(self, *settings: str) -> None:
        """Starts PostgreSQL without Patroni, as a person would by hand. Settings are `name=value`."""
        processes.start(
            [postgres.programs() + "/postgres", "-D", str(self.data), *(f"--{setting}" for setting in settings)], signal.SIGQUIT,
            self.log, cwd=self.home, **postgres.as_postgres_user(),
        )  # fmt: skip

    # Processes

    def written_pid(self) -> int | None:
        """The process in the postmaster's file, which may have ended."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int((self.data / "postmaster.pid").read_text().splitlines()[0])
        return None

    @property
    def has_died(self) -> bool:
        """Without its Patroni a node is not managed, whether its PostgreSQL still runs or not."""
        return self.patroni is not None and self.patroni.poll() is not None

    @property
    def postmaster(self) -> int | None:
        pid = self.written_pid()
        with contextlib.suppress(OSError):
            # Another process may have the number of one that was killed.
            if pid and processes.is_alive(pid) and os.readlink(f"/proc/{pid}/cwd") == str(self.data):
                return pid
        return None

    def processes(self) -> list[int]:
        """Patroni first, so that it starts nothing while the others are ended; then the postmaster."""
        first = [self.patroni.pid if self.patroni else None, self.postmaster]
        return sorted(residents(self.home), key=lambda pid: first.index(pid) if pid in first else len(first))

    def signal_all(self, number: signal.Signals) -> None:
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """Kills every process, as the loss of the machine does."""

        postmaster = self.written_pid()

        def is_dead() -> bool:
            self.signal_all(signal.SIGKILL)
            # A next postmaster takes a zombie for a running one.
            return not residents(self.home) and (postmaster is None or not processes.state(postmaster))

        wait_until(is_dead, f"the end of {self.name}")
        if self.patroni:
            self.patroni.wait()

    def freeze(self) -> None:
        """Stops every process by SIGSTOP."""

        def is_frozen() -> bool:
            self.signal_all(signal.SIGSTOP)
            return all(processes.state(pid) in ("T", "Z", "") for pid in self.processes())

        wait_until(is_frozen, f"the stop of {self.name}")

    def thaw(self) -> None:
        self.signal_all(signal.SIGCONT)

    def cut_off(self) -> None:
        """Cuts the node off from etcd and from the other nodes; clients still reach it."""
        self.cut_off_from_peers()
        self.etcd_link.cut()

    def cut_off_from_peers(self) -> None:
        assert self.peers_link is not None
        self.peers_link.cut()

    @property
    def is_cut_off(self) -> bool:
        return self.etcd_link.is_cut and self.peers_link is not None and self.peers_link.is_cut

    def reconnect(self) -> None:
        assert self.peers_link is not None
        self.peers_link.heal()
        self.etcd_link.heal()

    # Questions

    def rest(self, path: str, method: str = "GET", body: dict[str, Any] | None = None) -> tuple[int, Any]:
        """The status and the JSON of an answer of Patroni; status 0 if there is none."""
        timeout = REST_TIMEOUT if method == "GET" else 60.0
        try:
            answer = web.request(self.rest_port, method, path, body, timeout=timeout)
        except (OSError, http.client.HTTPException):
            return 0, None
        with contextlib.suppress(ValueError):
            return answer.status, answer.json
        return answer.status, answer.text

    def url(self, database: str) -> str:
        return f"host=127.0.0.1 port={self.port} user=postgres dbname={database}"

    async def query(self, text: str, seconds: float = 30, database: str = "postgres") -> subprocess.CompletedProcess[str]:
        command = postgres.psql(f"{self.url(database)} connect_timeout=2")
        done: subprocess.CompletedProcess[str] = await processes.run_async(command, seconds, text)
        return done

    def logged(self, text: str, log: Path | None = None, since: int = 0) -> int:
        """How often a text is in PostgreSQL's log, or in Patroni's."""
        with contextlib.suppress(FileNotFoundError), open(log or self.log, "rb") as file:
            file.seek(since)
            return file.read().count(text.encode())
        return 0


def start_etcd(home: Path, port: int) -> subprocess.Popen[bytes]:
    client = f"http://127.0.0.1:{port}"
    # With port 0 its own peers' port is chosen by the kernel; it has no peers.
    etcd: subprocess.Popen[bytes] = processes.start(
        [shutil.which("etcd") or "/usr/bin/etcd", "--data-dir", str(home / "etcd"), "--listen-client-urls", client,
         "--advertise-client-urls", client, "--listen-peer-urls", "http://127.0.0.1:0", "--log-level", "warn"],
        signal.SIGKILL, home / "etcd.log", cwd=home,
    )  # fmt: skip

    def answers() -> bool:
        if etcd.poll() is not None:
            raise processes.Failure(f"etcd ended:\n{(home / 'etcd.log').read_text()[-2000:]}")
        with contextlib.suppress(OSError):
            return bool(web.request(port, "GET", "/health", timeout=1).status == 200)
        return False

    wait_until(answers, "etcd answers")
    return etcd


class PatroniCluster:
    """The nodes and etcd, all in the directory `home`. Each node begins with a copy of the data directory `like`, which a stopped
    PostgreSQL with checksums has left. With a `group` it is one server of a distributed database, and etcd is somebody else's."""

    def __init__(
        self, home: Path, like: Path, programs: Path, nodes: int = 3, ttl: int = LEAST_TTL, is_synchronous: bool = True,
        has_client_links: bool = False, group: Group | None = None,
    ) -> None:  # fmt: skip
        self.home, self.like, self.programs, self.group = home, like, programs, group
        self.ttl, self.is_synchronous, self.has_client_links = ttl, is_synchronous, has_client_links
        self.etcd_port = group.etcd_port if group else int(processes.free_port())
        self.etcd: subprocess.Popen[bytes] | None = None
        self.nodes = [Node(self, number) for number in range(1, nodes + 1)]
        # With etcd's own address, so that it works whatever link is cut.
        self.control = home / (f"patronictl-{group.name}.yml" if group else "patronictl.yml")
        about: dict[str, Any] = {"scope": SCOPE, "etcd3": {"host": f"127.0.0.1:{self.etcd_port}"}}
        if group:
            # So that patronictl knows that there are groups.
            about |= group.of_patroni
        self.control.write_text(json.dumps(about), encoding="utf-8")

    def start(self) -> None:
        processes.adopt_orphans()
        threading.Thread(target=self.collect_postmasters, daemon=True).start()
        if self.group is None:
            self.etcd = start_etcd(self.home, self.etcd_port)
        self.configure()
        for node in self.nodes:
            node.start()

    def collect_postmasters(self) -> None:
        """Collects ended postmasters, which are nobody's children, for as long as our process runs: Patroni waits until they are
        gone."""
        known: set[int] = set()
        while True:
            known |= {pid for node in self.nodes if (pid := node.written_pid())}
            for pid in list(known):
                try:
                    is_over = os.waitpid(pid, os.WNOHANG)[0] == pid
                except ChildProcessError:
                    # Not ours, or not yet: its parent has not ended.
                    is_over = True
                if is_over:
                    known.discard(pid)
            time.sleep(COLLECTED_EVERY)

    def configure(self) -> None:
        """Stores the settings of the whole cluster, which Patroni takes from etcd."""
        settings = {
            "ttl": self.ttl,
            "loop_wait": LOOP_WAIT,
            "retry_timeout": RETRY_TIMEOUT,
            "synchronous_mode": self.is_synchronous,
            # Otherwise Patroni empties synchronous_standby_names when the last standby goes, and commits are local without a
            # warning.
            "synchronous_mode_strict": self.is_synchronous,
            # A node may only lead with all that was answered; without synchronous standbys, whatever it lacks.
            "maximum_lag_on_failover": 1 << 20 if self.is_synchronous else 1 << 40,
            "postgresql": {"use_pg_rewind": True, "parameters": {**SETTINGS, **(self.group.settings if self.group else {})}},
        }
        path = f"/service/{SCOPE}/{self.group.path if self.group else ''}"
        encoded = {
            name: base64.b64encode(text.encode()).decode()
            for name, text in (("key", f"{path}config"), ("value", json.dumps(settings)))
        }
        answer = web.request(self.etcd_port, "POST", "/v3/kv/put", encoded)
        if answer.status != 200:
            raise processes.Failure(f"etcd refused the settings: {answer.text}")

    # Who leads

    async def ask_all(self, path: str) -> list[tuple[int, Any]]:
        return list(await asyncio.gather(*(asyncio.to_thread(node.rest, path) for node in self.nodes)))

    async def members(self) -> list[dict[str, Any]]:
        """What Patroni knows of each node (name, role, state, timeline, lag); empty if none answers."""
        for status, answer in await self.ask_all("/cluster"):
            if status == 200:
                return list(answer["members"])
        return []

    async def leader(self, besides: Node | None = None) -> Node | None:
        """The node that has the lock and is a primary. One that is cut off may believe so for some seconds beside another."""
        for node, (status, _) in zip(self.nodes, await self.ask_all("/primary")):
            if status == 200 and node is not besides:
                return node
        return None

    async def ready(self) -> Node:
        """Waits until a node leads and all others follow it, and (if asked for) one of them synchronously; returns the leader."""
        members: list[dict[str, Any]] = []
        led: list[Node] = []

        async def is_ready() -> bool:
            nonlocal members
            members, leader = await self.members(), await self.leader()
            led[:] = [leader] if leader else []
            following = [member for member in members if member["state"] == "streaming"]
            has_synchronous = any(member["role"] == "sync_standby" for member in following)
            return bool(led) and len(following) == len(self.nodes) - 1 and (has_synchronous or not self.is_synchronous)

        await wait_until_async(is_ready, lambda: f"all nodes are ready; they are {members}", 180)
        return led[0]

    async def writable(self, besides: Node | None = None) -> Node:
        """Waits until a node leads, another than `besides`, and has committed a write; returns it."""
        led: list[Node] = []

        async def is_written() -> bool:
            leader = await self.leader(besides)
            if leader is None:
                return False
            led[:] = [leader]
            return (await leader.query(WRITE)).returncode == 0

        await wait_until_async(is_written, lambda: f"a node commits; {led[0].name if led else 'none'} leads", 180)
        return led[0]

    async def synchronous_standby(self) -> Node:
        """The node that leads next."""
        member = next(member for member in await self.members() if member["role"] == "sync_standby")
        return next(node for node in self.nodes if node.name == member["name"])

    async def switch_over(self) -> None:
        """Asks the leader to give the lead to another node; returns when it has."""
        leader = await self.leader()
        if leader is None:
            raise processes.Failure("no node leads")
        status, answer = await asyncio.to_thread(leader.rest, "/switchover", "POST", {"leader": leader.name})
        if status != 200:
            raise processes.Failure(f"Patroni refused the switchover: {answer}")

    def url(self, database: str, first: Node | None = None) -> str:
        """Of all servers, for a client that wants the primary; `first` is asked first."""
        nodes = sorted(self.nodes, key=lambda node: node is not first)
        ports = ",".join(str(node.clients_link.ports[0] if node.clients_link else node.port) for node in nodes)
        return (
            f"host={','.join(['127.0.0.1'] * len(nodes))} port={ports} user=postgres dbname={database}"
            " target_session_attrs=read-write"
        )
