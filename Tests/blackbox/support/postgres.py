"""A PostgreSQL of the suite's own: in a temporary directory, on a Unix socket, as a user who is not root."""

import glob
import os
import pwd
import queue
import re
import shutil
import signal
import subprocess
import threading

from . import processes, service
from .deadline import wait_until


def programs():
    """The directory of PostgreSQL's server programs."""
    candidates = []
    if shutil.which("pg_config"):
        candidates.append(subprocess.check_output(["pg_config", "--bindir"], text=True).strip())
    candidates += sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: -int(re.search(r"(\d+)/bin", p)[1]))
    for directory in candidates:
        if os.path.exists(directory + "/initdb") and os.path.exists(directory + "/postgres"):
            return directory
    raise RuntimeError("PostgreSQL's server programs (initdb, postgres) were not found; install postgresql")


def unprivileged():
    """How to run a program as somebody whom PostgreSQL accepts: root it refuses."""
    if os.getuid() != 0:
        return {}
    try:
        account = pwd.getpwnam("postgres")
    except KeyError:
        account = pwd.getpwnam("nobody")
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


class Cluster:
    """One server. It is a child of the suite, not a daemon, so that it cannot outlive it."""

    # The machine does not lose power in these tests, so nothing is lost without fsync; all else is as in production.
    SETTINGS = {
        "listen_addresses": "''",
        "fsync": "off",
        "max_connections": "150",
        "shared_buffers": "64MB",
        "log_min_messages": "warning",
        "log_line_prefix": "'%m [%p] '",
        "restart_after_crash": "on",
        "autovacuum_naptime": "60",
    }

    _template = None
    _shared = None

    @classmethod
    def shared(cls):
        """The one that nobody stops; each class of tests has a database in it."""
        if cls._shared is None:
            cls._shared = Cluster()
        return cls._shared

    def __init__(self, has_roles=True):
        self.bin = programs()
        self.home = processes.directory()
        self.data = self.home + "/data"
        self.log = self.home + "/log"
        os.chmod(self.home, 0o777)
        self._initialize()
        self.process = None
        self.databases = 0
        self.start()
        if has_roles:
            self._create_roles()

    def _initialize(self):
        # initdb takes a second or two; a copy of what it made does not.
        if Cluster._template is None:
            template = processes.directory(0o777) + "/data"
            subprocess.run(
                [self.bin + "/initdb", "-D", template, "--data-checksums", "-A", "trust", "-U", "postgres", "-E", "UTF8",
                 "--locale=C", "--no-sync", "-N"],
                check=True, capture_output=True, cwd="/", **unprivileged(),
            )  # fmt: skip
            with open(template + "/postgresql.conf", "a") as file:
                file.writelines(f"{name} = {value}\n" for name, value in self.SETTINGS.items())
            Cluster._template = template
        subprocess.run(["cp", "-a", Cluster._template, self.data], check=True)

    def _create_roles(self):
        """As an administrator does who follows the reference."""
        script = service.command("roles")
        assert script.returncode == 0, script.stderr
        session = self.session("postgres")
        session.run(script.stdout)
        session.run("create role backend login in role headroom_service")
        session.close()

    def start(self):
        with open(self.log, "a") as log:
            # SIGQUIT is the immediate shutdown: nothing of a test's database is worth a checkpoint.
            self.process = processes.start(
                [self.bin + "/postgres", "-D", self.data, "-k", self.home],
                signal.SIGQUIT, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/", **unprivileged(),
            )  # fmt: skip
        self.wait_until_ready()

    def wait_until_ready(self):
        def answers():
            if self.process.poll() is not None:
                raise RuntimeError(f"PostgreSQL ended at once:\n{open(self.log).read()}")
            check = [self.bin + "/pg_isready", "-q", "-h", self.home, "-U", "postgres", "-d", "postgres"]
            return subprocess.run(check, capture_output=True).returncode == 0

        wait_until(answers, 30, "PostgreSQL accepts connections")

    def stop_immediately(self):
        """As `pg_ctl stop -m immediate`: every session is cut where it is."""
        processes.stop(self.process)

    def processes(self):
        """Ids of the postmaster and of its children."""
        postmaster = self.process.pid
        with open(f"/proc/{postmaster}/task/{postmaster}/children") as file:
            return [postmaster] + [int(pid) for pid in file.read().split()]

    def signal_all(self, number):
        for pid in self.processes():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def create_database(self, name, **settings):
        session = self.session("postgres")
        session.run(f'create database "{name}"')
        for setting, value in settings.items():
            session.run(f'alter database "{name}" set {setting} = {value}')
        session.close()
        return self.url(name)

    def new_database(self):
        self.databases += 1
        name = f"t{self.databases}"
        self.create_database(name)
        return name

    def url(self, database):
        return f"host={self.home} user=postgres dbname={database}"

    def session(self, database):
        return Session(self, database)


class SQLError(Exception):
    """A statement failed; the text is the server's message."""


class Session:
    """One psql, kept open: statements go in, rows come out. It holds locks and transactions as a person's psql does."""

    def __init__(self, cluster, database):
        self.end = "end of answer"
        self.process = processes.start(
            [cluster.bin + "/psql", "-X", "-q", "-A", "-t", "-F", "\x1f", "-P", "null=\x1e", "-h", cluster.home,
             "-U", "postgres", database],
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

    def receive(self, timeout=30):
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
        try:
            self.process.stdin.close()
        except OSError:
            pass
        processes.stop(self.process)
