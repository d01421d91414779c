"""A PostgreSQL for tests: in a directory of its own, on a Unix socket, as a user other than root."""

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
    # No machine loses power in these tests, so nothing is lost without fsync.
    "fsync": "off",
    "max_connections": "150",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    # It would visit the databases of all tests in turn, which live for seconds.
    "autovacuum": "off",
    # As the service's own server has it.
    "jit": "off",
    # Tests of the leeway set it.
    "headroom.renewal_leeway": "'0'",
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
"""Settings for tests of durability and for measurements: acknowledged commits are on the disk."""

TEMPLATE_VARIABLE = "HEADROOM_TEST_CLUSTER_TEMPLATE"
MIGRATED = "migrated"


def programs():
    """The directory of PostgreSQL's programs, found as the service finds it: HEADROOM_POSTGRES_BIN, else Debian's newest, else
    that in PATH."""
    named = os.environ.get("HEADROOM_POSTGRES_BIN")
    candidates = [named] if named else sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: -float(p.split("/")[4]))
    in_path = shutil.which("postgres")
    if in_path and not named:
        candidates.append(os.path.dirname(os.path.realpath(in_path)))
    for directory in candidates:
        if all(os.access(f"{directory}/{name}", os.X_OK) for name in ("initdb", "postgres", "psql", "pg_basebackup")):
            return directory
    raise processes.Failure("PostgreSQL's programs were not found; install postgresql, or set HEADROOM_POSTGRES_BIN")


def psql(url):
    """A psql command that stops at the first failed statement."""
    return [programs() + "/psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url]


def as_postgres_user():
    """Popen options to run a program as a user that PostgreSQL accepts; it refuses root."""
    if os.geteuid() != 0:
        return {}
    try:
        account = pwd.getpwnam("postgres")
    except KeyError:
        account = pwd.getpwnam("nobody")
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def chown_to_postgres(path):
    """Changes the owner of a file or directory to PostgreSQL's user."""
    account = as_postgres_user()
    if account:
        os.chown(path, account["user"], account["group"])


def make_directory(path):
    """Makes a directory of PostgreSQL's user; returns its path."""
    os.mkdir(path)
    chown_to_postgres(path)
    return path


def template():
    """A data directory made by initdb, once for this process and its children: initdb takes a second or two, a copy does not."""
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

    `home` contains its data, socket and log; by default it is a temporary directory. The data is a copy of the directory `like`,
    else of the Cluster `primary` as its standby, else empty, with (`has_roles`) the roles of `headroom roles` and the
    services' login.
    """

    _shared = None

    @classmethod
    def shared(cls):
        """The cluster that most test classes share; each has a database in it."""
        if cls._shared is None:
            cls._shared = cls()
        return cls._shared

    def __init__(self, settings=VOLATILE, home=None, like=None, primary=None, has_roles=True):
        self.bin = programs()
        self.home = str(home) if home else processes.directory()
        self.data, self.log = self.home + "/data", self.home + "/postgres.log"
        self.process = None
        self.databases = 0
        self._has_migrated = False
        os.makedirs(self.home, exist_ok=True)
        # Its user creates the socket there, and other users connect through it.
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
            # Later settings override earlier ones.
            file.writelines(f"{name} = {value}\n" for name, value in {**self.address(), **settings}.items())
        self.start()
        if has_roles and not like and not primary:
            self._create_roles()

    def address(self):
        """The settings of its address."""
        return {"listen_addresses": "''", "unix_socket_directories": f"'{self.home}'"}

    def url(self, database):
        return f"host={self.home} user=postgres dbname={database}"

    def _create_roles(self):
        """Creates the roles as docs/reference/sql.md says."""
        script = service.command("roles")
        assert script.returncode == 0, script.stderr
        session = self.session("postgres")
        session.run(script.stdout)
        session.run("create role backend login in role headroom_service")
        session.close()

    # Starting and stopping

    def launch(self, environment=None):
        """Starts it without waiting until it accepts connections."""
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
        """As `pg_ctl stop -m fast`: ends sessions and writes everything."""
        self._end(signal.SIGINT)

    def stop_immediately(self):
        """As `pg_ctl stop -m immediate`: cuts every session; the next start recovers."""
        self._end(signal.SIGQUIT)

    def end(self):
        """Stops all that it consists of, for good."""
        self.stop_immediately()

    def _end(self, stop_signal):
        if self.is_running:
            # It waits for its children, also for those stopped by SIGSTOP.
            Cluster.signal_all(self, signal.SIGCONT)
        processes.stop(self.process, TIMEOUT_SECONDS, stop_signal)

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
        """Creates a database, empty or migrated by the owner; returns its name."""
        self.databases += 1
        name = f"t{self.databases}"
        self.create_database(name, self.migrated() if is_migrated else None)
        return name

    def drop_database(self, name):
        """Nothing: a database that nobody uses costs nothing while the tests run."""

    def migrated(self):
        """The name of a template database, migrated at the first call."""
        if not self._has_migrated:
            outcome = service.command("migrate", database_url=self.create_database(MIGRATED))
            assert outcome.returncode == 0, outcome.stderr
            # A database with connections cannot be copied.
            self.sql(f"alter database {MIGRATED} allow_connections false")
            self._has_migrated = True
        return MIGRATED

    def sql(self, *statements, database="postgres", seconds=300):
        """The rows of the statements, columns separated by |; each statement is a transaction of its own."""
        return processes.run([*psql(self.url(database)), *(f"--command={text}" for text in statements)], seconds).strip()

    def on_each(self, action):
        """The results of an action on each server."""
        return [action(self)]

    def rows_of_each(self, query, database):
        """The rows of a query on all servers together."""
        texts = self.on_each(lambda server: server.sql(query, database=database))
        return [line.split("|") for text in texts for line in text.splitlines()]

    def number(self, query, database):
        """The number that a query yields, of all servers together."""
        return sum(int(row[0]) for row in self.rows_of_each(query, database))

    def session(self, database):
        return Session(self.bin, self.url(database))


class PortCluster(Cluster):
    """A server that others reach by host and port, on 127.0.0.1, by default on a free port."""

    def __init__(self, settings=VOLATILE, home=None, like=None, port=None):
        self.port = port or processes.free_port()
        super().__init__(settings, home, like)

    def address(self):
        return {**super().address(), "listen_addresses": "'127.0.0.1'", "port": str(self.port)}

    def url(self, database):
        return f"host=127.0.0.1 port={self.port} user=postgres dbname={database}"


class SQLError(Exception):
    """A statement failed; the text is the server's message."""


class Session:
    """An open psql, which keeps locks and transactions between statements."""

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
        """Sends a statement without waiting for its result, for example if it waits for a lock."""
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
        """A statement's only value; None for null."""
        rows = self.run(sql)
        return rows[0][0] if rows else None

    def number(self, sql):
        return int(self.value(sql))

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        processes.stop(self.process)
