"""PostgreSQL servers with Citus on this machine: a coordinator and workers, and databases that are distributed over them.

Each server listens on a free port of 127.0.0.1, because Citus connects from node to node by host and port.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from . import processes, service
from .postgres import MIGRATED, VOLATILE, Cluster, PortCluster, programs
from .residence import residents
from .waiting import wait_until

VERSION = "13.2.0"
EXTENSION_VERSION = "13.2-1"
"""What the control file of that version says."""

PREPARED_VARIABLE = "HEADROOM_TEST_CITUS"
"""Set in the processes of `script/test --citus`: the directory of `prepare`."""

UNDISTRIBUTED = "undistributed"

WORKERS = 2
BUCKETS = 8

SETTINGS = {
    "shared_preload_libraries": "'citus'",
    # Shards are split and moved by logical replication.
    "wal_level": "logical",
    # Statements on several nodes are committed in two phases.
    "max_prepared_transactions": "200",
    # Each database with Citus has a maintenance process on each node.
    "max_worker_processes": "64",
    # Between nodes on this machine; by default Citus requires TLS.
    "citus.node_conninfo": "'sslmode=disable'",
}
"""What each node needs; docs/scaling.md says the same to operators."""

PLUGINS = "output_plugin_libraries"
"""Minor versions of PostgreSQL that have this setting load no other plug-in for logical replication."""


def is_asked_for() -> bool:
    """Whether tests get distributed databases."""
    return PREPARED_VARIABLE in os.environ


# The programs -------------------------------------------------------------------------------------------------------------


def find(pg_config: str | None) -> str:
    """The directory of the programs of a PostgreSQL that has the extension; by default that of the pg_config in PATH."""
    path = pg_config or shutil.which("pg_config")
    if path is None:
        raise processes.Failure(f"Citus {VERSION} was asked for, but there is no pg_config in PATH; name one with --pg-config PATH")
    libraries, shared, directory = (processes.run([path, f"--{name}"]).strip() for name in ("pkglibdir", "sharedir", "bindir"))
    control = Path(shared, "extension", "citus.control")
    if not control.exists() or not Path(libraries, "citus.so").exists():
        raise processes.Failure(f"the PostgreSQL of {path} does not have Citus; name another one with --pg-config PATH")
    found = re.search(r"default_version = '([^']*)'", control.read_text(encoding="utf-8"))
    version = found[1] if found else "unknown"
    if version != EXTENSION_VERSION:
        raise processes.Failure(f"Citus {VERSION} ({EXTENSION_VERSION}) is needed; the PostgreSQL of {path} has {version}")
    if not os.access(f"{directory}/initdb", os.X_OK):
        raise processes.Failure(f"there is no PostgreSQL server in {directory}, the directory of {path}")
    return directory


def use(pg_config: str | None) -> None:
    """Lets this process and its children take PostgreSQL's programs from there."""
    os.environ["HEADROOM_POSTGRES_BIN"] = find(pg_config)


def known_settings() -> dict[str, str]:
    described = processes.run([programs() + "/postgres", "--describe-config"])
    return {PLUGINS: "'pgoutput,test_decoding,citus'"} if re.search(rf"^{PLUGINS}\t", described, re.MULTILINE) else {}


# The servers --------------------------------------------------------------------------------------------------------------


class Node(PortCluster):
    """The coordinator or a worker."""

    name = ""

    def __init__(
        self, settings: dict[str, str], home: str | Path | None = None, like: str | Path | None = None, port: int | None = None
    ) -> None:
        super().__init__({**SETTINGS, **known_settings(), **settings}, home, like, port)

    def kill(self) -> None:
        """Kills every process, as the loss of the machine does."""
        Cluster.signal_all(self, signal.SIGKILL)
        self.process.wait()

        def is_released() -> bool:
            # The next postmaster refuses to start while a process of this one is attached to its shared memory.
            return not residents(Path(self.data))

        wait_until(is_released, f"the end of {self.name}")

    def copy_template(self, name: str, nodes: list[Node]) -> None:
        """This node's part of a copy of the distributed database, in which the nodes have other ports."""
        self.sql(f'create database "{name}" template {MIGRATED}', *(
            f'alter database "{name}" set {setting} to {value}' for setting, value in self.template_settings()
        ))  # fmt: skip
        ports = " ".join(f"when {group} then {node.port}" for group, node in enumerate(nodes))
        self.sql(
            f"update pg_catalog.pg_dist_node set nodeport = case groupid {ports} end",
            # Citus copies the database's settings to each new node.
            "update pg_catalog.pg_dist_object set objid = (select oid from pg_database where datname = current_database())"
            " where classid = 'pg_database'::regclass",
            database=name,
        )

    def template_settings(self) -> list[tuple[str, str]]:
        """The settings of the distributed database; a copy does not have them by itself."""
        rows = self.sql(
            "select replace(setting, '=', '|') from pg_db_role_setting, unnest(setconfig) as setting"
            f" where setdatabase = (select oid from pg_database where datname = '{MIGRATED}') and setrole = 0"
        )
        return [(name, f"'{value}'") for name, _, value in (row.partition("|") for row in rows.splitlines())]


class CitusCluster(Node):
    """A coordinator with its workers. As a Cluster it has the coordinator's address, and is stopped as a whole: without the
    coordinator alone, the workers still count.

    With `like`, a directory of `prepare`, it begins with copies of those servers, and its databases with copies of theirs.
    """

    _shared = None

    def __init__(
        self, settings: dict[str, str] = VOLATILE, home: str | None = None, like: str | None = None, workers: int = WORKERS
    ) -> None:
        home = home or processes.directory(mode=0o711)
        like = like or os.environ.get(PREPARED_VARIABLE)
        self.settings = settings
        if like:
            workers = sum(1 for _ in Path(like).iterdir()) - 1
        homes = [f"{home}/{number}" for number in range(workers + 1)]
        origins = [f"{like}/{number}/data" if like else None for number in range(workers + 1)]
        # Before the coordinator starts.
        self.workers: list[Node] = []
        super().__init__(settings, homes[0], origins[0])
        self.workers = [Node(settings, directory, origin) for directory, origin in zip(homes[1:], origins[1:])]
        for number, node in enumerate(self.nodes):
            node.name = f"worker {number}" if number else "coordinator"

    @property
    def nodes(self) -> list[Node]:
        return [self, *self.workers]

    def add_worker(self) -> Node:
        """A new server, which is no node of the database yet."""
        added = Node(self.settings, f"{os.path.dirname(self.home)}/{len(self.nodes)}")
        added.name = f"worker {len(self.nodes)}"
        self.workers.append(added)
        return added

    def on_each(self, action: Any) -> list[Any]:
        """As in Cluster; on all nodes at the same time."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            return list(pool.map(action, self.nodes))

    # In this thread, because the kernel stops a server when the thread that started it ends.
    def start(self, environment: dict[str, str] | None = None) -> None:
        for node in self.nodes:
            Node.start(node, environment)

    def stop(self) -> None:
        self.on_each(Node.stop)

    def stop_immediately(self) -> None:
        self.on_each(Node.stop_immediately)

    def signal_all(self, number: int) -> None:
        for node in self.nodes:
            Node.signal_all(node, number)

    def placements(self, database: str) -> dict[int, tuple[int, Node]]:
        """The shard of message_usage of each bucket, and the worker that has it."""
        rows = self.sql(
            "select map.bucket, shard.shardid, shard.nodeport from (select distinct unnest(buckets) as bucket from headroom.bucket_map)"
            " as map join citus_shards as shard on shard.table_name = 'message_usage'::regclass"
            " and shard.shardid = get_shard_id_for_distribution_column('message_usage', map.bucket)",
            database=database,
        )
        by_port = {int(node.port): node for node in self.nodes}
        found = (map(int, row.split("|")) for row in rows.splitlines())
        return {bucket: (shard, by_port[port]) for bucket, shard, port in found}

    def new_database(self, is_migrated: bool = False) -> str:
        """A new database: empty and only on the coordinator, or distributed. The latter is copied on each node, which takes a
        fraction of a second; to distribute one takes some."""
        if not is_migrated:
            return str(super().new_database())
        self.databases += 1
        name = f"t{self.databases}"
        self.on_each(lambda node: node.copy_template(name, self.nodes))
        return name

    def new_undistributed_database(self) -> str:
        """A database that can be distributed over the workers."""
        self.databases += 1
        name = f"t{self.databases}"
        self.create_database(name, copy_of=UNDISTRIBUTED)
        return name

    def drop_database(self, name: str) -> None:
        """Ends its sessions, too: Citus keeps some from node to node."""
        self.on_each(lambda node: node.sql(f'drop database if exists "{name}" with (force)'))


# Distributed databases ----------------------------------------------------------------------------------------------------


def distribute(cluster: CitusCluster, database: str, buckets: int = BUCKETS) -> None:
    """Distributes a migrated database of the coordinator, as docs/scaling.md says."""
    for worker in cluster.workers:
        worker.create_database(database)
    urls = ",".join(worker.url(database) for worker in cluster.workers)
    outcome = service.command("distribute", "--buckets", str(buckets), "--workers", urls, database_url=cluster.url(database))
    if outcome.returncode != 0:
        raise processes.Failure(f"headroom distribute: {outcome.stderr}")


def prepare(home: str | None = None, sql: str = "", workers: int = WORKERS) -> str:
    """Makes servers with a distributed database, of which databases for tests are copies, and stops them. Returns their
    directory, which is for this process and its children. Before it distributes the database, it runs `sql` in it, and keeps a
    copy, UNDISTRIBUTED."""
    home = home or processes.directory(mode=0o711)
    cluster = CitusCluster(home=home, workers=workers)
    migrated = service.command("migrate", database_url=cluster.create_database(MIGRATED))
    if migrated.returncode != 0:
        raise processes.Failure(f"headroom migrate: {migrated.stderr}")
    if sql:
        cluster.sql(sql, database=MIGRATED)
    cluster.create_database(UNDISTRIBUTED, copy_of=MIGRATED)
    distribute(cluster, MIGRATED)
    # A database with connections cannot be copied; when the servers start again, nothing connects to it.
    cluster.on_each(lambda node: node.sql(f"alter database {MIGRATED} allow_connections false"))
    cluster.stop()
    os.environ[PREPARED_VARIABLE] = home
    return home
