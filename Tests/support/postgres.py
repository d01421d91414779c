"""A PostgreSQL of our own: in a directory of its own, on a Unix socket, as a user who is not root."""

import contextlib
import glob
import os
import pwd
import queue
import shutil
import signal
import subprocess
import threading

from . import processes, service
from .waiting import TIMEOUT_SECONDS, wait_until

VOLATILE = {
    # No machine loses power in these tests, so nothing is lost without fsync; all else is as in production.
    "fsync": "off",
    "max_connections": "150",
    "shared_buffers": "64MB",
    "autovacuum_naptime": "60",
}
"""Settings for tests that are not about durability."""

DURABLE = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "jit": "off",
    "timezone": "'UTC'",
    "log_timezone": "'UTC'",
    "lc_messages": "'C'",
    "log_checkpoints": "off",
}
"""For those that are, and for whatever is measured: what is acknowledged is on the disk."""

TEMPLATE_VARIABLE = "HEADROOM_TEST_CLUSTER_TEMPLATE"
MIGRATED = "migrated"


def programs():
    """The directory of PostgreSQL's programs, found as the service finds it: the one that is named, else Debian's newest, else
    that in PATH."""
    named = os.environ.get("HEADROOM_POSTGRES_BIN")
    candidates = [named] if named else sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: -float(p.split("/")[4]))
    found = shutil.which("postgres")
    if found and not named:
        candidates.append(os.path.dirname(os.path.realpath(found)))
    for directory in candidates:
        if all(os.access(f"{directory}/{name}", os.X_OK) for name in ("initdb", "postgres", "psql", "pg_basebackup")):
            return directory
    raise processes.Failure("PostgreSQL's programs were not found; install postgresql, or set HEADROOM_POSTGRES_BIN")


def psql(url):
    """The command of a psql that fails with the first statement that does."""
    return [programs() + "/psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url]


def as_postgres_user():
    """How to run a program as somebody whom PostgreSQL accepts: root it refuses."""
    if os.geteuid() != 0:
        return {}
    try:
        account = pwd.getpwnam("postgres")
    except KeyError:
        account = pwd.getpwnam("nobody")
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def chown_to_postgres(path):
    """Gives a file or a directory to whom PostgreSQL runs as."""
    account = as_postgres_user()
    if account:
        os.chown(path, account["user"], account["group"])


def template():
    """A data directory as initdb leaves it: made once for this process and all that it starts after this, since initdb takes
    a second or two and a copy of what it made does not."""
    path = os.environ.get(TEMPLATE_VARIABLE)
    if path is None or not os.path.exists(path):
        home = processes.directory()
        chown_to_postgres(home)
        path = home + "/data"
        subprocess.run(
            [programs() + "/initdb", "-D", path, "--data-checksums", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C",
             "--no-sync", "-N"],
            check=True, capture_output=True, cwd="/", **as_postgres_user(),
        )  # fmt: skip
        os.environ[TEMPLATE_VARIABLE] = path
    return path


class Cluster:
    """One server. It is our child, not a daemon, so that it cannot outlive us.

    `home` is where its data, its socket and its log are, a temporary directory unless it is said. It begins as a copy of the
    data directory `like`, else as a standby of the Cluster `primary`, else empty, with the roles that `headroom roles` makes
    and the login that services use, or without either.
    """

    _shared = None

    @classmethod
    def shared(cls):
        """The one that nobody stops; each class of tests has a database in it."""
        if cls._shared is None:
            cls._shared = Cluster()
        return cls._shared

    def __init__(self, settings=VOLATILE, home=None, like=None, primary=None, has_roles=True):
        self.bin = programs()
        self.home = str(home) if home else processes.directory()
        self.data, self.log = self.home + "/data", self.home + "/postgres.log"
        self.process = None
        self.databases = 0
        self._has_migrated = False
        os.makedirs(self.home, exist_ok=True)
        # Its account makes the socket there, and whoever else connects passes through.
        chown_to_postgres(self.home)
        os.chmod(self.home, 0o711)
        if primary:
            subprocess.run(
                [self.bin + "/pg_basebackup", "-D", self.data, "--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream",
                 "--no-sync", "-d", primary.url("postgres") + " application_name=standby"],
                check=True, capture_output=True, cwd="/", **as_postgres_user(),
            )  # fmt: skip
        else:
            subprocess.run(["cp", "-a", like or template(), self.data], check=True)
        with open(self.data + "/postgresql.conf", "a") as file:
            # What stands last counts.
            file.writelines(f"{name} = {value}\n" for name, value in {**self.address(), **settings}.items())
        self.start()
        if has_roles and not like and not primary:
            self._create_roles()

    def address(self):
        """The settings that say where it listens."""
        return {"listen_addresses": "''", "unix_socket_directories": f"'{self.home}'"}

    def url(self, database):
        return f"host={self.home} user=postgres dbname={database}"

    def _create_roles(self):
        """As an administrator does who follows the reference."""
        script = service.command("roles")
        assert script.returncode == 0, script.stderr
        session = self.session("postgres")
        session.run(script.stdout)
        session.run("create role backend login in role headroom_service")
        session.close()

    # Its life

    def launch(self, environment=None):
        """Starts it and does not wait until it can be used."""
        # SIGQUIT is the immediate shutdown: nothing of a test's database is worth a checkpoint.
        self.process = processes.start(
            [self.bin + "/postgres", "-D", self.data], signal.SIGQUIT, self.log, env={**os.environ, **(environment or {})},
            **as_postgres_user(),
        )  # fmt: skip

    def start(self, environment=None):
        self.launch(environment)
        self.wait_until_ready()

    def wait_until_ready(self):
        check = [self.bin + "/pg_isready", "-q", "-d", self.url("postgres")]

        def answers():
            if not self.is_running:
                with open(self.log) as log:
                    raise processes.Failure(f"PostgreSQL ended:\n{log.read()[-2000:]}")
            return subprocess.run(check, capture_output=True).returncode == 0

        wait_until(answers, "PostgreSQL accepts connections")

    def stop(self):
        """As `pg_ctl stop -m fast`: sessions are ended, and all is written."""
        self._end(signal.SIGINT)

    def stop_immediately(self):
        """As `pg_ctl stop -m immediate`: every session is cut where it is, and the next start has to recover."""
        self._end(signal.SIGQUIT)

    def _end(self, how):
        if self.is_running:
            # It waits for its children, also for those that somebody has stopped.
            self.signal_all(signal.SIGCONT)
        processes.stop(self.process, TIMEOUT_SECONDS, how)

    @property
    def pid(self):
        return self.process.pid

    @property
    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def processes(self):
        """Ids of the postmaster and of its children."""
        return [self.pid, *processes.children(self.pid)]

    def signal_all(self, number):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    # Its databases

    def create_database(self, name, copy_of=None, **settings):
        origin = f' template "{copy_of}"' if copy_of else ""
        changes = [f'alter database "{name}" set {setting} = {value}' for setting, value in settings.items()]
        self.sql(f'create database "{name}"{origin}', *changes)
        return self.url(name)

    def new_database(self, is_migrated=False):
        """Its name. An empty one, or one that the owner has migrated."""
        self.databases += 1
        name = f"t{self.databases}"
        self.create_database(name, self.migrated() if is_migrated else None)
        return name

    def migrated(self):
        """The name of a database that is migrated once, when it is first wanted, and only there to be copied."""
        if not self._has_migrated:
            outcome = service.command("migrate", database_url=self.create_database(MIGRATED))
            assert outcome.returncode == 0, outcome.stderr
            # One that somebody is connected to cannot be copied.
            self.sql(f"alter database {MIGRATED} allow_connections false")
            self._has_migrated = True
        return MIGRATED

    def sql(self, *statements, database="postgres", seconds=300):
        """What the statements answer, columns with | between; each is a transaction of its own."""
        return processes.run([*psql(self.url(database)), *(f"--command={text}" for text in statements)], seconds).strip()

    def session(self, database):
        return Session(self.bin, self.url(database))


class SQLError(Exception):
    """A statement failed; the text is the server's message."""


class Session:
    """One psql, kept open: statements go in, rows come out. It holds locks and transactions as a person's psql does."""

    def __init__(self, programs_directory, url):
        self.end = "end of answer"
        self.process = processes.start(
            [programs_directory + "/psql", "-X", "-q", "-A", "-t", "-F", "\x1f", "-P", "null=\x1e", url],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1,
        )  # fmt: skip
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.pid = int(self.value("select pg_backend_pid()"))

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def send(self, sql):
        """Sends without waiting for the answer: for statements that are to wait for a lock."""
        self.process.stdin.write(f"{sql.strip().rstrip(';')}\n;\n\\echo {self.end}\n")
        self.process.stdin.flush()

    def receive(self, timeout=TIMEOUT_SECONDS):
        rows, errors = [], []
        while True:
            try:
                line = self.lines.get(timeout=timeout)
            except queue.Empty:
                raise AssertionError(f"psql did not answer within {timeout} s") from None
            if line is None:
                raise SQLError("psql ended: " + "\n".join(errors))
            if line == self.end:
                break
            if errors or line.startswith(("ERROR:", "FATAL:", "psql:", "server closed", "WARNING:", "PANIC:")):
                errors.append(line)
            else:
                rows.append([None if field == "\x1e" else field for field in line.split("\x1f")])
        if errors and not errors[0].startswith("WARNING:"):
            raise SQLError("\n".join(errors))
        return rows

    def run(self, sql):
        self.send(sql)
        return self.receive()

    def value(self, sql):
        """The one value of a statement; None for null."""
        rows = self.run(sql)
        return rows[0][0] if rows else None

    def number(self, sql):
        return int(self.value(sql))

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        processes.stop(self.process)
