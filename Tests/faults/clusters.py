"""PostgreSQL for faults: reachable by TCP, and controlled without blocking coroutines."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

from support import postgres
from support.postgres import DURABLE, Cluster
from support.processes import free_port, run, run_async
from support.service import command
from support.waiting import wait_until
from workload import setup_sql

DATABASE = "counted"

SETTINGS = {
    **DURABLE,
    "max_connections": "120",
    "shared_buffers": "64MB",
    "min_wal_size": "32MB",
    "max_wal_size": "256MB",
    "autovacuum_naptime": "10s",
    "wal_level": "replica",
    "max_wal_senders": "4",
    "hot_standby": "on",
    # Well before the service's lock_timeout of 500 ms, so that PostgreSQL itself tells a deadlock from a long wait.
    "deadlock_timeout": "100ms",
}


class FaultedCluster(Cluster):
    """A PostgreSQL for fault injection."""

    def __init__(self, home: Path, like: Path | None = None, primary: FaultedCluster | None = None, **settings: str) -> None:
        self.port = free_port()
        super().__init__({**SETTINGS, **settings}, home, like, primary, has_roles=False)

    def address(self) -> dict[str, str]:
        return {**super().address(), "listen_addresses": "'127.0.0.1'", "port": str(self.port)}

    def url(self, database: str) -> str:
        return f"host=127.0.0.1 port={self.port} user=postgres dbname={database}"

    async def recover(self) -> None:
        """Starts it again."""
        # In this thread, because the kernel stops the process when the starting thread ends.
        self.launch()
        await self.accepts_connections()

    async def accepts_connections(self) -> None:
        """Waits until it accepts connections, also after a crash recovery."""
        await asyncio.to_thread(self.wait_until_ready)

    async def crash(self) -> None:
        await asyncio.to_thread(self.stop_immediately)

    async def query(self, text: str, seconds: float = 30) -> subprocess.CompletedProcess[str]:
        """Runs a statement by psql; returns the result, also if it fails."""
        return await psql(self.url(DATABASE), text, seconds)

    async def lanes(self) -> list[int]:
        """Process ids of the backends that execute the service's batches."""
        result = await self.query("select pid from pg_stat_activity where application_name = 'headroom lane'")
        return [int(line) for line in result.stdout.split()] if result.returncode == 0 else []

    def log_count(self, text: str, since: int = 0) -> int:
        with open(self.log, "rb") as log:
            log.seek(since)
            return log.read().count(text.encode())

    def log_size(self) -> int:
        return Path(self.log).stat().st_size


async def psql(url: str, text: str, seconds: float = 30) -> subprocess.CompletedProcess[str]:
    return await run_async(postgres.psql(f"{url} connect_timeout=2"), seconds, text)


def prepare(home: Path) -> Path:
    """Prepares a data directory with plans and users. Each run copies it, so runs are independent and can run concurrently."""
    # It need not be durable before it is copied.
    cluster = FaultedCluster(home, fsync="off")
    try:
        migrated = command("migrate", database_url=cluster.create_database(DATABASE))
        if migrated.returncode != 0:
            raise RuntimeError(f"headroom migrate: {migrated.stderr}")
        cluster.sql(setup_sql(), database=DATABASE)
    finally:
        cluster.stop()
    return home / "data"


def synchronous_standby(primary: FaultedCluster, home: Path) -> FaultedCluster:
    standby = FaultedCluster(home, primary=primary)
    primary.sql("alter system set synchronous_standby_names = '*'", "select pg_reload_conf()")
    count = "select count(*) from pg_stat_replication where sync_state = 'sync'"
    wait_until(lambda: primary.sql(count) == "1", "the standby is synchronous")
    return standby


class SmallDisk:
    """A tmpfs that can be filled, in this process's own mount namespace."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True)
        run(["mount", "-t", "tmpfs", "-o", "size=320m,mode=711", "tmpfs", str(directory)])

    def unmount(self) -> None:
        run(["umount", str(self.directory)])
