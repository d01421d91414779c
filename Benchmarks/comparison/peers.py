"""The three that are measured: PostgreSQL with a plain function, Redis with a script, and Headroom."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import ssl
from pathlib import Path

from .generators import user_id
from .processes import Failure, Server, free_port, run, wait_until

ALLOWANCE = 1_000_000_000

# What the service sets for its private PostgreSQL, with more connections, for pgbench, and with the write-ahead log that
# README.md advises for ten million rows.
SETTINGS = """
listen_addresses = ''
port = 5432
unix_socket_directories = '{socket}'
max_connections = 100
shared_buffers = {buffers}MB
fsync = on
synchronous_commit = on
full_page_writes = on
max_wal_size = 16GB
min_wal_size = 1GB
checkpoint_timeout = 15min
autovacuum_naptime = 15s
jit = off
timezone = 'UTC'
log_timezone = 'UTC'
log_checkpoints = off
lc_messages = 'C'
"""

# What one would write: one row per user and month, checked and counted in one statement. The rows are there before, and
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
    """A query of so many users, in their order."""
    return (
        "select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid as user_id "
        f"from generate_series({first}, {first + count - 1}) as n"
    )


class Peer:
    """What runs as a process of its own, once `start` has set `server`."""

    server: Server | None = None
    #: What redis-benchmark needs to be let in.
    access: tuple[str, ...] = ()

    def end(self, server: Server) -> None:
        server.end()

    def stop(self) -> None:
        if self.server:
            self.end(self.server)
            self.server = None

    @property
    def pid(self) -> int:
        assert self.server is not None
        return self.server.pid


# PostgreSQL -----------------------------------------------------------------------------------------------------------


def postgres_programs() -> Path:
    """The same PostgreSQL as the service would take: the one named, else Debian's newest, else that in PATH."""
    named = os.environ.get("HEADROOM_POSTGRES_BIN")
    if named:
        candidates = [Path(named)]
    else:
        numbered = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.parent.name.isdigit()]
        candidates = sorted(numbered, key=lambda path: -int(path.parent.name))
        found = shutil.which("postgres")
        candidates += [Path(found).parent] if found else []
    for path in candidates:
        if os.access(path / "initdb", os.X_OK) and os.access(path / "pgbench", os.X_OK):
            return path
    raise Failure("no PostgreSQL with pgbench was found; install postgresql, or set HEADROOM_POSTGRES_BIN")


def shared_buffers_megabytes() -> int:
    """A quarter of the memory, at most 4 GB, as the service does."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(max(memory // 4 >> 20, 128), 4096)


class Postgres(Peer):
    """A cluster of our own, and the function in it."""

    def __init__(self, work: Path) -> None:
        self.work, self.programs = work, postgres_programs()
        self.cluster, self.socket = work / "postgres", work / "socket"
        # It refuses to run as root. setpriv becomes the program it starts, so that the process id stays.
        self.account: list[str] = []
        if os.geteuid() == 0:
            try:
                pwd.getpwnam("postgres")
            except KeyError:
                raise Failure("as root this needs a user postgres for PostgreSQL to run as") from None
            self.account = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--"]

    def create(self) -> None:
        for directory in (self.cluster, self.socket):
            directory.mkdir(mode=0o700)
            if self.account:
                shutil.chown(directory, "postgres", pwd.getpwnam("postgres").pw_gid)
        run(
            [
                *self.account,
                str(self.programs / "initdb"),
                f"--pgdata={self.cluster}",
                "--username=headroom",
                "--data-checksums",
                "--encoding=UTF8",
                "--locale=C",
                "--auth-local=trust",
                "--auth-host=reject",
            ],
            120,
            self.work / "initdb.log",
        )
        with open(self.cluster / "postgresql.conf", "a", encoding="utf-8") as settings:
            settings.write(SETTINGS.format(socket=self.socket, buffers=shared_buffers_megabytes()))

    def start(self, preload: dict[str, str] | None = None) -> None:
        self.server = Server(
            [*self.account, str(self.programs / "postgres"), "-D", str(self.cluster)],
            self.work / "postgres.log",
            environment=dict(os.environ) | (preload or {}),
        )
        ready = [str(self.programs / "pg_isready"), "--quiet", f"--host={self.socket}"]

        def answers() -> bool:
            try:
                run(ready, 5)
            except Failure:
                return False
            return True

        if not wait_until(answers, 60, self.server.process):
            raise Failure("PostgreSQL did not start")

    def end(self, server: Server) -> None:
        server.end(signal.SIGINT, 60)  # a fast shutdown

    def restart(self, preload: dict[str, str] | None = None) -> None:
        self.stop()
        self.start(preload)

    def conninfo(self, database: str) -> str:
        return f"host={self.socket} port=5432 dbname={database} user=headroom"

    def sql(self, *statements: str, database: str = "bench", seconds: float = 300) -> str:
        """What the statements answer, columns with | between; each is a transaction of its own."""
        command = [
            str(self.programs / "psql"),
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "--set=ON_ERROR_STOP=1",
            f"--host={self.socket}",
            "--username=headroom",
            f"--dbname={database}",
        ]
        return run([*command, *(f"--command={text}" for text in statements)], seconds).strip()

    def wal_position(self) -> int:
        return int(self.sql("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint", database="postgres"))

    @property
    def version(self) -> str:
        return self.sql("show server_version", database="postgres").split()[0]

    def age(self) -> None:
        """What a cluster has after its first hours: files of WAL to use again.

        A new one makes them as it goes, and every commit waits 10 to 40 ms for each.
        """
        self.sql(
            "select count(pg_logical_emit_message(false, 'bench', repeat('x', 1000000))) from generate_series(1, 1000)"
        )
        self.sql("checkpoint", database="postgres", seconds=900)

    def prepare_function(self, users: int) -> None:
        self.sql(
            PLAIN_FUNCTION,
            f"select count(plain.increment_and_check(user_id, {ALLOWANCE})) from ({users_sql(users)}) as users",
        )
        for name, draw in (("function", f"random(0, {users - 1})"), ("function_one_user", "0")):
            (self.work / f"{name}.sql").write_text(
                f"\\set n {draw}\n"
                "select plain.increment_and_check(('00000000-0000-4000-8000-' || lpad(:n::text, 12, '0'))::uuid, "
                f"{ALLOWANCE});\n"
            )


# Redis ----------------------------------------------------------------------------------------------------------------


class Redis(Peer):
    def __init__(self, directory: Path, log: Path) -> None:
        self.directory, self.log = directory, log
        self.port = 0
        self.script = ""

    def start(self, preload: dict[str, str] | None = None) -> None:
        self.directory.mkdir(exist_ok=True)
        # Somebody may take the port before it does.
        for _ in range(5):
            self.port = free_port()
            self.server = Server(
                [
                    "redis-server",
                    "--bind",
                    "127.0.0.1",
                    "--port",
                    str(self.port),
                    "--dir",
                    str(self.directory),
                    "--appendonly",
                    "yes",
                    "--appendfsync",
                    "always",
                    "--save",
                    "",
                    "--daemonize",
                    "no",
                ],
                self.log,
                environment=dict(os.environ) | (preload or {}),
            )
            if wait_until(self._answers, 15, self.server.process):
                self.script = self.ask("SCRIPT", "LOAD", REDIS_SCRIPT)
                return
            self.stop()
        raise Failure("Redis did not start")

    def ask(self, *words: str) -> str:
        return run(["redis-cli", "-h", "127.0.0.1", "-p", str(self.port), *words], 60).strip()

    def _answers(self) -> bool:
        try:
            return self.ask("PING") == "PONG"
        except Failure:
            return False

    def request(self, key: str) -> list[str]:
        return ["EVALSHA", self.script, "1", key, str(ALLOWANCE)]


def redis_version() -> str:
    words = run(["redis-server", "--version"], 30).split()
    return next((word[2:] for word in words if word.startswith("v=")), "unknown")


# Headroom -------------------------------------------------------------------------------------------------------------


class Certificate:
    """One that signed itself, for this machine's loopback."""

    def __init__(self, directory: Path) -> None:
        self.file, self.key = directory / "server.pem", directory / "server.key"
        run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1",
                "-keyout",
                str(self.key),
                "-out",
                str(self.file),
            ],
            30,
        )


class Headroom(Peer):
    """A service over one database, whose every message is accounted for."""

    def __init__(self, program: Path, postgres: Postgres, database: str, work: Path) -> None:
        self.program, self.postgres, self.database, self.work = program, postgres, database, work
        self.port = 0
        #: 0 where the HTTP side is off.
        self.http_port = 0
        self.users = 0
        #: What message_count must add up to.
        self.sent = 0
        self.token = ""
        self.tls: ssl.SSLContext | None = None

    def start(self, *settings: str, token: str = "", tls: Certificate | None = None, http: str = "off") -> None:
        self.token, self.tls, self.access = token, None, ()
        if token:
            self.access += ("-a", token)
        if tls:
            settings += ("--tls-certificate", str(tls.file), "--tls-key", str(tls.key))
            self.tls = ssl.create_default_context(cafile=tls.file)
            self.access += ("--tls", "--cacert", str(tls.file))
        ready = self.work / f"{self.database}.ready"
        ready.unlink(missing_ok=True)
        self.server = Server(
            [
                str(self.program),
                "serve",
                "--database-url",
                self.postgres.conninfo(self.database),
                "--listen",
                "127.0.0.1:0",
                "--http",
                http,
                *settings,
            ],
            self.work / "headroom.log",
            ready,
            # Nothing of ours: settings are read from the environment, too.
            environment={"PATH": os.environ["PATH"]},
        )
        if not wait_until(lambda: ready.read_text().startswith("ready listen="), 60, self.server.process):
            raise Failure("headroom did not become ready")
        _, listen, http = ready.read_text().split()
        self.port = int(listen.rpartition(":")[2])
        self.http_port = 0 if http == "http=off" else int(http.rpartition(":")[2])

    @property
    def version(self) -> str:
        return run([str(self.program), "--version"], 30).strip()

    def info(self) -> dict[str, str]:
        with self.connect() as connection:
            connection.sendall(b"INFO\nQUIT\n")
            with connection.makefile("r", encoding="utf-8") as lines:
                fields = (line.strip().lstrip("+").partition("=") for line in lines)
                return {name: value for name, equals, value in fields if equals}

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), 60)
        if self.tls:
            connection = self.tls.wrap_socket(connection, server_hostname="localhost")
        if self.token:
            connection.sendall(f"AUTH {self.token}\n".encode())
            if connection.recv(64) != b"+OK\r\n":
                raise Failure("headroom did not take the token")
        return connection

    @property
    def knows_tokens(self) -> bool:
        return "token" in run([str(self.program), "--help"], 30)

    def create_token(self) -> str:
        """One that may do what is measured. It is written by itself on standard output, in a line of its own or not."""
        words = run(
            [
                str(self.program),
                "token",
                "create",
                "bench",
                "--scope",
                "chat",
                "--scope",
                "operator",
                "--database-url",
                self.postgres.conninfo(self.database),
            ],
            60,
        ).split()
        return next(word for word in words if word.startswith("headroom_"))

    def wait_for_database(self) -> None:
        if not wait_until(lambda: self.info().get("database") == "up", 60):
            raise Failure("headroom did not find its database again")

    def prepare(self, users: int) -> None:
        """A plan with room for everything, its subscribers, and a first message of each, which makes its row."""
        self.users = users
        self.make_plan()
        self.make_subscribers(users)
        allowed = self._first_messages(users)
        if allowed != users:
            raise Failure(f"of {users} first messages {allowed} were allowed")
        self.counted("the first messages", users)

    def prepare_rows(self, users: int, portion: int = 1_000_000) -> None:
        """The same for a great many: all but the first user's rows are copies of that one's."""
        self.users = users
        self.make_plan()
        self.make_subscribers(1)
        if self._first_messages(1) != 1:
            raise Failure("the first message was not allowed")
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
                # Without the triggers, which would put each row into the audit log.
                "set session_replication_role = replica; "
                f"insert into public.message_usage (user_id, {columns}) select users.user_id, {columns} "
                f"from ({users_sql(count, first)}) as users, (select {columns} from public.message_usage "
                f"where user_id = '{user_id(0)}') as model",
                database=self.database,
                seconds=900,
            )
        self.counted(f"{users} rows", users)

    def map_product(self, source: str, product: str) -> None:
        """What a store sells is the benchmark's plan."""
        run(
            [
                str(self.program),
                "product",
                "map",
                source,
                product,
                "--plan",
                "bench",
                "--database-url",
                self.postgres.conninfo(self.database),
            ],
            60,
        )

    def make_plan(self) -> None:
        self.postgres.sql(
            "insert into headroom.plans (plan, label, cycle, allowance) "
            f"values ('bench', 'Bench', 'monthly', {ALLOWANCE})",
            database=self.database,
        )

    def make_subscribers(self, count: int, first: int = 0) -> None:
        # Without a trigger's call for each of millions of foreign keys.
        self.postgres.sql(
            f"""
            set session_replication_role = replica;
            insert into headroom.subscribers (user_id) {users_sql(count, first)};
            insert into headroom.subscriptions (user_id, original_transaction_id, plan, started_at)
            select user_id, 'operator', 'bench', now() from ({users_sql(count, first)}) as users""",
            database=self.database,
            seconds=900,
        )

    def _first_messages(self, users: int) -> int:
        """How many of the users' first messages were allowed; a thousand are on their way at a time."""
        allowed = 0
        with self.connect() as connection, connection.makefile("rb") as replies:
            for first in range(0, users, 1000):
                numbers = range(first, min(first + 1000, users))
                connection.sendall("".join(f"CONSUME {user_id(number)}\n" for number in numbers).encode())
                allowed += sum(replies.readline().startswith(b"+ALLOWED ") for _ in numbers)
        return allowed

    def counted(self, what: str, messages: int) -> None:
        """An answer that was not counted, or counted twice, fails the run."""
        self.sent += messages
        total = self.counts()
        if total != self.sent:
            raise Failure(f"after {what} message_count adds up to {total}, but {self.sent} messages were sent")

    def counts(self) -> int:
        statement = "select coalesce(sum(message_count), 0) from public.message_usage"
        return int(self.postgres.sql(statement, database=self.database))
