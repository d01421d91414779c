"""The measured systems: PostgreSQL with a plain function, Redis with a script, and Headroom."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from support import processes
from support.certificates import Authority
from support.postgres import DURABLE, Cluster
from support.processes import Failure, free_port, run
from support.service import Service, information
from support.users import numbered_user
from support.waiting import wait_until
from support.wire import LineConnection

ALLOWANCE = 1_000_000_000

# The settings of the service's private PostgreSQL, with more connections for pgbench, and with the write-ahead log that
# README.md advises for ten million rows.
SETTINGS = {
    **DURABLE,
    "max_connections": "100",
    "max_wal_size": "16GB",
    "min_wal_size": "1GB",
    "checkpoint_timeout": "15min",
    "autovacuum_naptime": "15s",
}

# The obvious solution: one row per user and month, checked and counted in one statement. The rows exist before, and
# have the same room for updates as headroom's.
PLAIN_FUNCTION = """
create schema plain;
create table plain.message_usage (
    user_id uuid not null,
    billing_period text not null,
    message_count integer not null,
    "limit" integer not null,
    updated_at timestamptz not null default now(),
    primary key (user_id, billing_period)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
create function plain.increment_and_check(p_user_id uuid, p_limit integer) returns jsonb
    language plpgsql
as $$
declare
    v_period constant text := to_char(now(), 'YYYY-MM');
    v_count integer;
begin
    insert into plain.message_usage as usage (user_id, billing_period, message_count, "limit")
    values (p_user_id, v_period, 1, p_limit)
    on conflict (user_id, billing_period) do update
    set message_count = usage.message_count + 1, "limit" = excluded."limit", updated_at = now()
    where usage.message_count < excluded."limit"
    returning usage.message_count into v_count;
    if v_count is null then
        return jsonb_build_object('allowed', false, 'limit', p_limit, 'remaining', 0);
    end if;
    return jsonb_build_object(
        'allowed', true, 'current_count', v_count, 'limit', p_limit, 'remaining', p_limit - v_count
    );
end
$$;
"""

REDIS_SCRIPT = """
local used = tonumber(redis.call("GET", KEYS[1]) or "0")
local limit = tonumber(ARGV[1])
if used + 1 > limit then return {0, used, limit} end
return {1, redis.call("INCR", KEYS[1]), limit}
"""


def users_sql(count: int, first: int = 0) -> str:
    """A query that returns users in order."""
    return (
        "select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid as user_id "
        f"from generate_series({first}, {first + count - 1}) as n"
    )


# PostgreSQL -----------------------------------------------------------------------------------------------------------


def shared_buffers_megabytes() -> int:
    """A quarter of the memory, at most 4 GB, as the service sets it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(max(memory // 4 >> 20, 128), 4096)


class Postgres(Cluster):
    """A separate cluster with the function."""

    def __init__(self, work: Path) -> None:
        self.work = work
        super().__init__({**SETTINGS, "shared_buffers": f"{shared_buffers_megabytes()}MB"}, work / "postgres", has_roles=False)
        if not os.access(self.pgbench, os.X_OK):
            raise Failure("no PostgreSQL with pgbench was found; install postgresql, or set HEADROOM_POSTGRES_BIN")
        # Copied data is on the disk before the measurements.
        run(["sync", "--file-system", self.home])

    @property
    def pgbench(self) -> Path:
        return Path(self.bin) / "pgbench"

    def restart(self, environment: dict[str, str] | None = None) -> None:
        self.stop()
        self.start(environment)

    def wal_position(self) -> int:
        return int(self.sql("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"))

    @property
    def version(self) -> str:
        return self.sql("show server_version").split()[0]

    def create_wal_files(self) -> None:
        """Creates the WAL files that a cluster reuses after its first hours.

        A new cluster would create them during the measurement, and a commit would wait 10 to 40 ms for each.
        """
        self.sql(
            "select count(pg_logical_emit_message(false, 'bench', repeat('x', 1000000))) from generate_series(1, 1000)"
        )
        self.sql("checkpoint", seconds=900)

    def prepare_function(self, users: int) -> None:
        self.sql(
            PLAIN_FUNCTION,
            f"select count(plain.increment_and_check(user_id, {ALLOWANCE})) from ({users_sql(users)}) as users",
            database="bench",
        )
        for name, draw in (("function", f"random(0, {users - 1})"), ("function_one_user", "0")):
            (self.work / f"{name}.sql").write_text(
                f"\\set n {draw}\n"
                "select plain.increment_and_check(('00000000-0000-4000-8000-' || lpad(:n::text, 12, '0'))::uuid, "
                f"{ALLOWANCE});\n"
            )


# Redis ----------------------------------------------------------------------------------------------------------------


class Redis:
    #: The flags with which redis-benchmark authenticates.
    access: tuple[str, ...] = ()

    def __init__(self, directory: Path, log: Path) -> None:
        self.directory, self.log = directory, log
        self.port = 0
        self.script = ""
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, preload: dict[str, str] | None = None) -> None:
        self.directory.mkdir(exist_ok=True)
        self.port = free_port()
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.directory)]
        command += ["--appendonly", "yes", "--appendfsync", "always", "--save", "", "--daemonize", "no"]
        self.process = processes.start(command, log=self.log, env=dict(os.environ) | (preload or {}))
        wait_until(self._answers, "Redis answers")
        self.script = self.send_command("SCRIPT", "LOAD", REDIS_SCRIPT)

    def stop(self) -> None:
        if self.process:
            processes.stop(self.process)
            self.process = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def send_command(self, *words: str) -> str:
        return run(["redis-cli", "-h", "127.0.0.1", "-p", str(self.port), *words], 60).strip()

    def _answers(self) -> bool:
        if self.process is None or self.process.poll() is not None:
            raise Failure("Redis did not start")
        try:
            return self.send_command("PING") == "PONG"
        except Failure:
            return False

    def request(self, key: str) -> list[str]:
        return ["EVALSHA", self.script, "1", key, str(ALLOWANCE)]


def redis_version() -> str:
    words = run(["redis-server", "--version"]).split()
    return next((word[2:] for word in words if word.startswith("v=")), "unknown")


# Headroom -------------------------------------------------------------------------------------------------------------


class CountingPeer:
    """A server with a database whose message_usage verifies that each message was counted once."""

    #: The flags with which redis-benchmark authenticates.
    access: tuple[str, ...] = ()

    def __init__(self, postgres: Postgres, database: str) -> None:
        self.postgres, self.database = postgres, database
        #: The expected sum of message_count.
        self.sent = 0

    @property
    def port(self) -> int:
        raise NotImplementedError

    @property
    def pid(self) -> int:
        raise NotImplementedError

    def counted(self, what: str, messages: int, unanswered_at_most: int = 0) -> None:
        """Fails the run if an answer was not counted, or counted twice.

        unanswered_at_most: how many more messages the load may have sent without reading their answers.
        """
        self.sent += messages
        total = self.counts()
        if not self.sent <= total <= self.sent + unanswered_at_most:
            raise Failure(f"after {what} message_count adds up to {total}, but {self.sent} messages were sent")
        self.sent = total

    def counts(self) -> int:
        statement = "select coalesce(sum(message_count), 0) from public.message_usage"
        return int(self.postgres.sql(statement, database=self.database))


class Headroom(CountingPeer):
    """A service on one database."""

    def __init__(self, program: Path, postgres: Postgres, database: str, work: Path) -> None:
        super().__init__(postgres, database)
        self.program, self.work = program, work
        self.service: Service | None = None
        self.users = 0
        self.token = ""

    def start(self, *settings: str, token: str = "", tls: Authority | None = None, http: str = "off") -> None:
        self.token, self.access = token, ()
        if token:
            self.access += ("-a", token)
        if tls:
            certificate, key = tls.server()
            settings += ("--tls-certificate", certificate, "--tls-key", key)
            self.access += ("--tls", "--cacert", tls.certificate)
        self.service = Service(
            "--http", http, *settings, database_url=self.postgres.url(self.database), as_owner=True, binary=str(self.program),
            directory=self.work / self.database,
        )  # fmt: skip
        self.service.tls = tls.client_context() if tls else None

    def stop(self) -> None:
        if self.service:
            self.service.stop()
            self.service = None

    @property
    def running(self) -> Service:
        assert self.service is not None
        return self.service

    @property
    def port(self) -> int:
        return self.running.port

    @property
    def http_port(self) -> int:
        return self.running.http_port

    @property
    def pid(self) -> int:
        return self.running.process.pid

    @property
    def version(self) -> str:
        return run([self.program, "--version"]).strip()

    def info(self) -> dict[str, str]:
        with self.connect() as line:
            return information(line)

    def connect(self) -> LineConnection:
        line = self.running.connect()
        if self.token and line.send_command(f"AUTH {self.token}") != "+OK":
            raise Failure("headroom did not take the token")
        return line

    def command(self, *arguments: str) -> str:
        return run([self.program, *arguments, "--database-url", self.postgres.url(self.database)])

    @property
    def knows_tokens(self) -> bool:
        return "token" in run([self.program, "--help"])

    def create_token(self) -> str:
        """Creates a token with the scopes of the measurement. The command prints only the token on standard output."""
        words = self.command("token", "create", "bench", "--scope", "chat", "--scope", "operator").split()
        return next(word for word in words if word.startswith("headroom_"))

    def holds_nothing(self, what: str) -> None:
        """Fails the run if a RESERVE is neither committed nor released."""
        held, keys = self.postgres.sql(
            "select (select sum(held) from public.message_usage), "
            "(select count(*) from headroom.message_keys where status = 'h')",
            database=self.database,
        ).split("|")
        if (held, keys) != ("0", "0"):
            raise Failure(f"after {what} {held} messages are held, by {keys} keys")

    def wait_for_database(self) -> None:
        wait_until(lambda: self.info().get("database") == "up", "headroom has found its database again")

    def prepare(self, users: int) -> None:
        """Creates a plan without practical limit, its subscribers, and each one's usage row by a first message."""
        self.users = users
        self.make_plan()
        self.make_subscribers(users)
        self.send_first_messages(users)

    def prepare_rows(self, users: int, portion: int = 1_000_000) -> None:
        """The same for millions of users: the rows are copies of the first user's."""
        self.users = users
        self.make_plan()
        self.make_subscribers(1)
        self.send_first_messages(1)
        columns = self.postgres.sql(
            "select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute "
            "where attrelid = 'public.message_usage'::regclass and attnum > 0 and not attisdropped "
            "and attname not in ('user_id', 'generation')",
            database=self.database,
        )
        for first in range(1, users, portion):
            count = min(portion, users - first)
            self.make_subscribers(count, first)
            self.postgres.sql(
                # Without the triggers, which would write each row to the audit log.
                "set session_replication_role = replica; "
                f"insert into public.message_usage (user_id, {columns}) select users.user_id, {columns} "
                f"from ({users_sql(count, first)}) as users, (select {columns} from public.message_usage "
                f"where user_id = '{numbered_user(0)}') as model",
                database=self.database,
                seconds=900,
            )
        self.counted(f"{users} rows", users - 1)

    def map_product(self, source: str, product: str) -> None:
        """Maps the store's product to the benchmark's plan."""
        self.command("product", "map", source, product, "--plan", "bench")

    def make_plan(self) -> None:
        self.postgres.sql(
            "insert into headroom.plans (plan, label, cycle, allowance) "
            f"values ('bench', 'Bench', 'monthly', {ALLOWANCE})",
            database=self.database,
        )

    def make_subscribers(self, count: int, first: int = 0) -> None:
        # Without a trigger call for each of millions of foreign keys.
        self.postgres.sql(
            f"""
            set session_replication_role = replica;
            insert into headroom.subscribers (user_id) {users_sql(count, first)};
            insert into headroom.subscriptions (user_id, original_transaction_id, plan, started_at)
            select user_id, 'operator', 'bench', now() from ({users_sql(count, first)}) as users""",
            database=self.database,
            seconds=900,
        )

    def send_first_messages(self, users: int) -> None:
        """Sends each user's first message, a thousand in flight."""
        allowed = 0
        with self.connect() as line:
            for first in range(0, users, 1000):
                numbers = range(first, min(first + 1000, users))
                line.send("".join(f"CONSUME {numbered_user(number)}\n" for number in numbers))
                allowed += sum(reply.startswith("+ALLOWED ") for reply in line.read_lines(len(numbers)))
        if allowed != users:
            raise Failure(f"of {users} first messages {allowed} were allowed")
        self.counted("the first messages", users)
