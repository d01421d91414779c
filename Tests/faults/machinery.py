"""What the faults are done to: PostgreSQL clusters and instances of the service, each ended by its process id."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Callable

# The database's clock, ahead by what a table says. `create or replace` keeps the functions that call it working.
TEST_CLOCK = """
create table headroom.clock (ahead interval not null);
insert into headroom.clock values ('0');
grant select on headroom.clock to public;
create or replace function headroom.now() returns timestamptz language sql stable parallel safe
    return pg_catalog.now() + (select ahead from headroom.clock);
"""


def postgres_programs() -> Path:
    named = os.environ.get("HEADROOM_POSTGRES_BIN")
    candidates = [Path(named)] if named else sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -int(path.parent.name) if path.parent.name.isdigit() else 0
    )
    found = shutil.which("initdb")
    candidates += [Path(found).parent] if found else []
    for path in candidates:
        if (path / "initdb").exists() and (path / "pg_basebackup").exists():
            return path
    raise SystemExit("faults: PostgreSQL's programs were not found; set HEADROOM_POSTGRES_BIN")


def as_postgres(command: list[str]) -> list[str]:
    # PostgreSQL refuses to run as root. setpriv becomes what it starts, so the process id stays.
    if os.geteuid() != 0:
        return command
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--"] + command


def own(path: Path) -> None:
    if os.geteuid() == 0:
        account = pwd.getpwnam("postgres")
        os.chown(path, account.pw_uid, account.pw_gid)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def state_of(pid: int) -> str:
    """The letter in /proc: T is stopped, empty is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return ""


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


async def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.02)
    return True


class Output:
    """What a program left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


async def run(command: list[str], seconds: float = 30, stdin: str = "") -> Output:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd="/"
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(stdin.encode()), seconds)
    except (asyncio.TimeoutError, TimeoutError):
        process.kill()
        await process.wait()
        return Output(-9, "", "timed out")
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    return Output(process.returncode or 0, out.decode(), err.decode())


class Cluster:
    """One PostgreSQL, its postmaster a child of ours."""

    SETTINGS = """
fsync = on
synchronous_commit = on
full_page_writes = on
max_connections = 120
shared_buffers = 64MB
min_wal_size = 32MB
max_wal_size = 256MB
autovacuum_naptime = 10s
wal_level = replica
max_wal_senders = 4
hot_standby = on
jit = off
timezone = 'UTC'
log_timezone = 'UTC'
lc_messages = 'C'
log_checkpoints = off
"""

    def __init__(self, directory: Path, bin: Path) -> None:
        self.directory, self.bin = directory, bin
        self.data = directory / "data"
        self.log = directory / "postgres.log"
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    async def create(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.directory.chmod(0o711)
        (self.directory / "socket").mkdir()
        self.data.mkdir(mode=0o700)
        own(self.directory / "socket")
        own(self.data)
        result = await run(as_postgres([
            str(self.bin / "initdb"), f"--pgdata={self.data}", "--username=headroom", "--data-checksums", "--encoding=UTF8",
            "--locale=C", "--auth=trust",
        ]), 120)
        if result.code != 0:
            raise RuntimeError(f"initdb: {result.err}")
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as settings:
            settings.write(self.SETTINGS)

    async def copy_from(self, primary: "Cluster") -> None:
        """Becomes a standby of another cluster."""
        self.directory.mkdir(parents=True)
        self.directory.chmod(0o711)
        (self.directory / "socket").mkdir()
        own(self.directory / "socket")
        own(self.directory)
        result = await run(as_postgres([
            str(self.bin / "pg_basebackup"), "-D", str(self.data), "-R", "-X", "stream", "-c", "fast", "-d",
            f"host=127.0.0.1 port={primary.port} user=headroom application_name=standby",
        ]), 120)
        if result.code != 0:
            raise RuntimeError(f"pg_basebackup: {result.err}")

    async def start(self, seconds: float = 60) -> None:
        command = as_postgres([
            str(self.bin / "postgres"), "-D", str(self.data), "-c", f"port={self.port}", "-c", "listen_addresses=127.0.0.1",
            "-c", f"unix_socket_directories={self.directory}/socket",
        ])
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True)
        until = time.monotonic() + seconds
        while True:
            if (await self.sql("select 1", database="postgres", seconds=3)).code == 0:
                return
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"PostgreSQL did not start: {self.log.read_text(errors='replace')[-800:]}")
            await asyncio.sleep(0.05)

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    async def stop(self, how: signal.Signals = signal.SIGQUIT, seconds: float = 30) -> None:
        """SIGQUIT is `-m immediate`: no checkpoint, the next start recovers. SIGINT is `-m fast`."""
        if self.process is None:
            return
        if self.process.poll() is None:
            for pid in [self.pid] + children_of(self.pid):
                resume(pid)
            self.process.send_signal(how)
            process = self.process
            if not await wait_for(lambda: process.poll() is not None, seconds):
                self.process.kill()
        self.process.wait()
        self.process = None

    def conninfo(self, database: str) -> str:
        return f"host=127.0.0.1 port={self.port} dbname={database} user=headroom"

    async def sql(self, text: str, database: str = "postgres", seconds: float = 30) -> Output:
        return await psql(self.bin, f"host={self.directory}/socket port={self.port} dbname={database} user=headroom", text, seconds)

    async def lanes(self, database: str) -> list[int]:
        """Process ids of the backends that carry the service's batches."""
        result = await self.sql(
            f"select pid from pg_stat_activity where application_name = 'headroom lane' and datname = '{database}'"
        )
        return [int(line) for line in result.out.split()] if result.code == 0 else []

    def log_count(self, text: str, since: int = 0) -> int:
        with open(self.log, "rb") as log:
            log.seek(since)
            return log.read().count(text.encode())

    def log_size(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0


async def psql(bin: Path, conninfo: str, text: str, seconds: float = 30) -> Output:
    command = [str(bin / "psql"), "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-d", conninfo + " connect_timeout=2"]
    return await run(command, seconds, text)


def resume(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass


class Instance:
    """One `headroom serve`."""

    def __init__(self, index: int, binary: Path, directory: Path, environment: dict[str, str]) -> None:
        self.index, self.binary, self.directory = index, binary, directory
        self.environment = environment
        self.process: subprocess.Popen[bytes] | None = None
        self.port: int | None = None
        self.conninfo = ""
        self.starts = 0

    async def start(self, seconds: float = 30) -> None:
        self.starts += 1
        ready = self.directory / f"ready-{self.index}-{self.starts}"
        log = open(self.directory / f"headroom-{self.index}.log", "ab")
        environment = {"PATH": os.environ["PATH"], "HEADROOM_DATABASE_URL": self.conninfo} | self.environment
        with log, open(ready, "wb") as out:
            self.process = subprocess.Popen(
                [str(self.binary), "serve", "--listen", "127.0.0.1:0", "--http", "off"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=log, env=environment, cwd=self.directory, start_new_session=True,
            )
        process = self.process
        if not await wait_for(lambda: process.poll() is not None or ready.read_text().startswith("ready "), seconds):
            raise RuntimeError(f"instance {self.index} did not become ready")
        text = ready.read_text()
        if not text.startswith("ready "):
            raise RuntimeError(f"instance {self.index} ended at start: {self.last_log()}")
        self.port = int(text.split("listen=")[1].split()[0].rsplit(":", 1)[1])

    def last_log(self) -> str:
        return (self.directory / f"headroom-{self.index}.log").read_text(errors="replace")[-1500:]

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    async def terminate(self, seconds: float = 13) -> int:
        """SIGTERM; the exit status, -9 if it had to be killed."""
        if self.process is None:
            return 0
        process = self.process
        if process.poll() is None:
            resume(process.pid)
            process.terminate()
            if not await wait_for(lambda: process.poll() is not None, seconds):
                process.kill()
        self.port = None
        return process.wait()

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.port = None


class Tracer:
    """strace, attached to one process, which injects a fault into a system call."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def is_there() -> bool:
        return shutil.which("strace") is not None

    def attach(self, pid: int, call: str, injection: str, threads: bool = False) -> None:
        command = ["strace", "-qq", "-o", str(self.log), "-e", f"trace={call}", "-e", f"inject={call}:{injection}"]
        command += ["-f"] if threads else []
        self.process = subprocess.Popen(
            command + ["-p", str(pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def injected(self) -> int:
        """How often the fault was put in, which strace notes beside each call."""
        if not self.log.exists():
            return 0
        text = self.log.read_text(errors="replace")
        return text.count("(INJECTED)") + text.count("(DELAYED)")

    async def detach(self) -> None:
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.terminate()
            process = self.process
            if not await wait_for(lambda: process.poll() is not None, 3):
                self.process.kill()
        self.process.wait()
        self.process = None


class Proxy:
    """Passes bytes between the service and its peer, and disturbs them on demand."""

    def __init__(self, target: Callable[[], int | None]) -> None:
        self.target = target
        self.server: asyncio.AbstractServer | None = None
        self.port = 0
        self.delay = 0.0
        self.is_split = False
        self.is_silent = False
        self.cut_after_bytes: int | None = None
        self.pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self.counts = {"reset": 0, "delay": 0, "split": 0, "silence": 0, "cut": 0}
        self.tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", 0, backlog=512)
        self.port = self.server.sockets[0].getsockname()[1]

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = self.target()
        try:
            if port is None:
                raise OSError("nobody there")
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.transport.abort()
            return
        pair = (writer, far_writer)
        self.pairs.add(pair)
        for source, sink, is_answer in ((reader, far_writer, False), (far_reader, writer, True)):
            task = asyncio.create_task(self.pump(source, sink, pair, is_answer))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter,
        pair: tuple[asyncio.StreamWriter, asyncio.StreamWriter], is_answer: bool,
    ) -> None:
        try:
            while data := await source.read(65536):
                while self.is_silent:
                    self.counts["silence"] += 1
                    await asyncio.sleep(0.05)
                if self.delay:
                    self.counts["delay"] += 1
                    await asyncio.sleep(self.delay)
                if is_answer and self.cut_after_bytes is not None:
                    # A reply that arrives in part only.
                    sink.write(data[: self.cut_after_bytes])
                    self.cut_after_bytes = None
                    self.counts["cut"] += 1
                    self.abort(pair)
                    return
                if self.is_split:
                    self.counts["split"] += 1
                    for byte in data:
                        sink.write(bytes((byte,)))
                        await asyncio.sleep(0)
                else:
                    sink.write(data)
                await sink.drain()
            if sink.can_write_eof():
                sink.write_eof()
        except (OSError, RuntimeError):
            self.abort(pair)

    def abort(self, pair: tuple[asyncio.StreamWriter, asyncio.StreamWriter]) -> None:
        self.pairs.discard(pair)
        for writer in pair:
            sock = writer.get_extra_info("socket")
            if sock is not None and sock.fileno() >= 0:
                # Linger 0 makes the close a reset.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            writer.transport.abort()

    def reset(self) -> None:
        for pair in list(self.pairs):
            self.counts["reset"] += 1
            self.abort(pair)

    def heal(self) -> None:
        self.delay, self.is_split, self.is_silent, self.cut_after_bytes = 0.0, False, False, None

    async def stop(self) -> None:
        self.heal()
        if self.server:
            self.server.close()
        self.reset()
        for task in list(self.tasks):
            task.cancel()


def json_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]
