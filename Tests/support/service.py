"""A running `headroom serve`."""

import os
import re
import signal
import subprocess

from . import http, processes, settings
from .waiting import TIMEOUT_SECONDS, wait_until
from .wire import LineConnection

READY = re.compile(r"^ready listen=127\.0\.0\.1:(\d+) http=(?:127\.0\.0\.1:(\d+)|off)\n")


def environment(**more):
    """Our environment without variables that configure the service or libpq."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HEADROOM_", "DATABASE_", "PG"))}
    return {**kept, **more}


class Service:
    """Starts `headroom serve` on a free port; `ready` waits for the line that says so.

    With the URL of the schema's owner it runs as in production: the database is migrated, and the service logs in with a role that
    is granted only headroom_service. With `as_owner` the service logs in as the owner, and migrates. Its output is in
    `directory`, by default a temporary one. With a `manager` (`support.service_manager`) it inherits that one's sockets.
    """

    def __init__(
        self, *flags, database_url=None, as_owner=False, wait=True, cwd="/", env=None, binary=None, directory=None, manager=None,
        **options,
    ):  # fmt: skip
        if database_url and not as_owner:
            database_url = least_privileged(database_url)
        self.directory = str(directory) if directory else processes.directory()
        os.makedirs(self.directory, exist_ok=True)
        self.stdout, self.stderr = self.directory + "/ready", self.directory + "/headroom.log"
        # The default port would be shared by all concurrent tests.
        http_flags = [] if "--http" in flags or "HEADROOM_HTTP" in (env or {}) else ["--http", "127.0.0.1:0"]
        line_flags = ["--listen", "127.0.0.1:0"]
        if manager is not None:
            line_flags = [] if "line" in manager.sockets else line_flags
            http_flags = [] if "http" in manager.sockets else http_flags
            binary, env = manager.launcher, {**manager.environment, **(env or {})}
            options = {"pass_fds": manager.descriptors, **options}
        # In the environment, as in production, because the URL may contain a password.
        variables = {"DATABASE_URL": database_url} if database_url else {}
        # The directory may have the log of an ended service.
        open(self.stderr, "wb").close()
        with open(self.stdout, "wb") as out:
            self.process = processes.start(
                [binary or settings.binary, "serve", *line_flags, *http_flags, *flags], log=self.stderr, stdout=out,
                cwd=cwd, env=environment(**variables, **(env or {})), **options,
            )  # fmt: skip
        self.port = None
        self.http_port = None
        """None if the HTTP server is off."""
        self.tls = None
        """The SSLContext for connections, if the service speaks TLS."""
        if wait:
            self.ready()

    def ready(self, seconds=TIMEOUT_SECONDS):
        wait_until(self.is_ready, lambda: f"the ready line; the log says\n{self.log()}", seconds)
        return self

    def is_ready(self):
        """Whether it has written its ready line, which has its ports. Fails if it has ended instead."""
        line = READY.search(self.output())
        if line is None:
            if not self.is_running:
                raise AssertionError(f"headroom ended with {self.process.returncode}:\n{self.log()}")
            return False
        self.port, self.http_port = int(line[1]), line[2] and int(line[2])
        return True

    @property
    def is_running(self):
        return self.process.poll() is None

    @property
    def address(self):
        """The URL of the HTTP server."""
        return f"http://127.0.0.1:{self.http_port}"

    def http(self, method, path, body=None, headers=None, timeout=TIMEOUT_SECONDS):
        """Sends one request to the HTTP server, on a connection of its own; see `support.http.Answer`."""
        return http.request(self.http_port, method, path, body, headers, timeout, self.tls)

    def output(self):
        with open(self.stdout) as file:
            return file.read()

    def log(self):
        with open(self.stderr) as file:
            return file.read()

    def connect(self, timeout=TIMEOUT_SECONDS):
        return LineConnection(self.port, timeout=timeout, tls=self.tls)

    def send_command(self, request):
        """Sends one command on a connection of its own; returns the reply's line."""
        with self.connect() as connection:
            return connection.send_command(request)

    def info(self):
        with self.connect() as connection:
            return information(connection)

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, seconds=TIMEOUT_SECONDS):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"headroom was still running after {seconds} s:\n{self.log()}") from None

    def stop(self, seconds=TIMEOUT_SECONDS):
        return processes.stop(self.process, seconds)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def information(connection):
    """INFO's fields, requested on this connection."""
    return dict(entry[1:].split("=", 1) for entry in connection.send_list_command("INFO"))


OWNER, BACKEND = "user=postgres ", "user=backend "
"""The logins in the URLs of a Cluster, which creates the second."""


def least_privileged(database_url):
    return database_url.replace(OWNER, BACKEND)


def command(*arguments, database_url=None, timeout=TIMEOUT_SECONDS, env=None):
    """Runs another command of the binary."""
    variables = {**({"DATABASE_URL": database_url} if database_url else {}), **(env or {})}
    return subprocess.run(
        [settings.binary, *arguments], capture_output=True, text=True, env=environment(**variables), cwd="/", timeout=timeout
    )


def succeed(*arguments, **options):
    """Runs another command of the binary, which must end with status 0."""
    outcome = command(*arguments, **options)
    assert outcome.returncode == 0, f"headroom {arguments}: {outcome.stdout}{outcome.stderr}"
    return outcome


def limited(command):
    """A script that runs a shell command (such as ulimit) and then the binary."""
    path = processes.directory() + "/headroom"
    with open(path, "w") as file:
        file.write(f'#!/bin/sh\n{command}\nexec "{settings.binary}" "$@"\n')
    os.chmod(path, 0o755)
    return path
