"""The ceiling: a bare server in C (Benchmarks/ceiling), the yardstick of what a service could reach on this machine.

With Headroom's statements it is the yardstick of what Headroom's service could reach.
"""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

from support import processes
from support.processes import Failure, free_port, run
from support.waiting import wait_until

from .machine import compiled
from .peers import ALLOWANCE, CountingPeer, Headroom, Postgres, users_sql

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "Benchmarks/ceiling/ceiling.c"
QUERIES = ROOT / "sql/queries"

# A usage row with its validity, as headroom's, without what plans and resets need. The period is part of the statement
# in ceiling.c.
TABLE = """
create table public.message_usage (
    user_id uuid not null,
    billing_period text not null,
    message_count integer not null,
    "limit" integer not null,
    updated_at timestamptz not null default now(),
    usable_until timestamptz not null,
    primary key (user_id, billing_period)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05)
"""


def compiled_ceiling(program: Path, *flags: str) -> Path:
    libpq = run(["pkg-config", "--cflags", "--libs", "libpq"]).split()
    return compiled(SOURCE, program, *flags, "-pthread", *libpq)


class Ceiling(CountingPeer):
    """The server, and its table in a database of its own."""

    def __init__(self, postgres: Postgres, work: Path, database: str = "ceiling") -> None:
        super().__init__(postgres, database)
        self.program, self.log = work / f"{database}.program", work / f"{database}.log"
        self.arguments: list[str] = []
        self._port = 0
        self.process: subprocess.Popen[bytes] | None = None

    def prepare(self, users: int) -> None:
        self.postgres.create_database(self.database)
        self.postgres.sql(
            TABLE,
            'insert into public.message_usage (user_id, billing_period, message_count, "limit", usable_until) '
            f"select user_id, '2026-11', 0, {ALLOWANCE}, now() + interval '10 days' from ({users_sql(users)}) as users",
            database=self.database,
        )

    def start(self) -> None:
        compiled_ceiling(self.program)
        self._port = free_port()
        command = [str(self.program), str(self._port), self.postgres.url(self.database), *self.arguments]
        self.process = processes.start(command, log=self.log)
        wait_until(self._accepts_connections, "the ceiling accepts connections")

    def stop(self) -> None:
        if self.process:
            processes.stop(self.process)
            self.process = None

    @property
    def port(self) -> int:
        return self._port

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def _accepts_connections(self) -> bool:
        if self.process is None or self.process.poll() is not None:
            raise Failure("the ceiling did not start")
        try:
            socket.create_connection(("127.0.0.1", self._port), 5).close()
        except ConnectionRefusedError:
            return False
        return True


class StatementCeiling(Ceiling):
    """The server with Headroom's statements, on rows that a Headroom has made."""

    def __init__(self, program: Path, postgres: Postgres, work: Path, database: str = "statement") -> None:
        super().__init__(postgres, work, database)
        self.headroom = Headroom(program, postgres, database, work)
        self.arguments = [str(QUERIES)]

    def prepare(self, users: int) -> None:
        self.postgres.create_database(self.database)
        self.headroom.start()
        self.headroom.prepare(users)
        self.headroom.stop()
        self.sent = self.headroom.sent
