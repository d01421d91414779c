"""Proxies between a client and a server that inject chosen faults: loss, delay, changed bytes.

A proxy is a few coroutines. With an event loop, await `start` and `stop`; without one, call `start_in_background` and `close`,
and the proxy has a loop and a thread of its own. Attributes choose the faults; setting one is atomic, also from another thread.
"""

import asyncio
import contextlib
import os
import socket
import struct
import threading

from . import processes
from .waiting import TIMEOUT_SECONDS

READY_AND_IDLE = b"Z\x00\x00\x00\x05I"
"""PostgreSQL's ReadyForQuery outside a transaction: the statements before it are committed."""


class Cut(Exception):
    """Ends a connection; bytes that were not passed on are lost."""


class Connection:
    """One client's connection through a proxy. The two methods yield the bytes for the other side, and may raise Cut."""

    def __init__(self, proxy):
        self.proxy = proxy

    async def request(self, data):
        yield data

    async def answer(self, data):
        yield data


class Proxy:
    """Passes bytes on in both directions. `target()` is a port of 127.0.0.1, the path of a Unix socket, or None while there is no
    server."""

    connection = Connection
    """The class that handles the bytes of each connection."""

    def __init__(self, target, listener=None):
        """`listener` is a listening socket; without one, the proxy takes a free port of 127.0.0.1."""
        self.target = target
        self.listener = listener or socket.create_server(("127.0.0.1", 0), backlog=512)
        self.connections = 0
        """Accepted connections."""
        self._streams = set()
        self._tasks = set()
        self._server = self._loop = self._thread = None

    @property
    def port(self):
        return self.listener.getsockname()[1]

    async def start(self):
        serve = asyncio.start_unix_server if self.listener.family == socket.AF_UNIX else asyncio.start_server
        self._server = await serve(self._accept, sock=self.listener, backlog=512)

    async def stop(self):
        self._server.close()
        self._abort_all()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self):
        """Breaks every open connection; returns their number."""
        if self._loop is None:
            return self._abort_all()
        return asyncio.run_coroutine_threadsafe(self._abort_all_here(), self._loop).result(TIMEOUT_SECONDS)

    # For callers without an event loop

    def start_in_background(self):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.start(), self._loop).result(TIMEOUT_SECONDS)
        return self

    def close(self):
        asyncio.run_coroutine_threadsafe(self.stop(), self._loop).result(TIMEOUT_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT_SECONDS)
        self._loop.close()

    # Passing bytes on

    async def _accept(self, reader, writer):
        self.connections += 1
        try:
            target = self.target()
            if target is None:
                raise OSError("there is no server")
            connect = asyncio.open_connection("127.0.0.1", target) if isinstance(target, int) else asyncio.open_unix_connection(target)
            far_reader, far_writer = await connect
        except OSError:
            _reset(writer)
            return
        streams = (writer, far_writer)
        connection = self.connection(self)
        self._streams.add(streams)
        # Either may end before the other: a client that has closed its side still reads answers.
        pumps = [
            asyncio.ensure_future(self._pump(reader, far_writer, connection.request, streams)),
            asyncio.ensure_future(self._pump(far_reader, writer, connection.answer, streams)),
        ]
        self._tasks.update(pumps)
        await asyncio.gather(*pumps, return_exceptions=True)
        self._tasks.difference_update(pumps)
        self._streams.discard(streams)
        for each in streams:
            each.close()

    async def _pump(self, source, sink, pieces, streams):
        # Bytes are sent at once: a cut loses only what comes after it.
        sink.transport.set_write_buffer_limits(0)
        try:
            while data := await source.read(1 << 16):
                async for piece in pieces(data):
                    sink.write(piece)
                    await sink.drain()
            if sink.can_write_eof():
                sink.write_eof()
        except (Cut, OSError, RuntimeError):
            self._abort(streams)

    def _abort(self, streams):
        self._streams.discard(streams)
        for writer in streams:
            _reset(writer)

    def _abort_all(self):
        count = len(self._streams)
        for streams in list(self._streams):
            self._abort(streams)
        return count

    async def _abort_all_here(self):
        return self._abort_all()


def _reset(writer):
    """Closes with RST instead of FIN."""
    end = writer.get_extra_info("socket")
    if end is not None and end.fileno() >= 0 and end.family != socket.AF_UNIX:
        with contextlib.suppress(OSError):  # it is already closed
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


# A faulty network -----------------------------------------------------------------------------------------------------------


BYTES_PER_ITERATION = 16


class DisturbedConnection(Connection):
    async def request(self, data):
        async for piece in self._disturbed(data):
            yield piece

    async def answer(self, data):
        proxy = self.proxy
        if proxy.cut_after_bytes is not None:
            # Only a part of the answer arrives.
            count, proxy.cut_after_bytes = proxy.cut_after_bytes, None
            proxy.fired["cut"] += 1
            yield data[:count]
            raise Cut
        async for piece in self._disturbed(data):
            yield piece

    async def _disturbed(self, data):
        proxy = self.proxy
        if not proxy.speaks.is_set():
            proxy.fired["silence"] += 1
            await proxy.speaks.wait()
        if proxy.delay:
            proxy.fired["delay"] += 1
            await asyncio.sleep(proxy.delay)
        if not proxy.is_split:
            yield data
            return
        proxy.fired["split"] += 1
        for index, byte in enumerate(data):
            yield bytes((byte,))
            # Other coroutines run in between, as on a network; not after each byte, which would delay the proxy by one
            # iteration of the event loop for each byte.
            if index % BYTES_PER_ITERATION == 0:
                await asyncio.sleep(0)


class DisturbedProxy(Proxy):
    """Injects the faults that its attributes choose. For callers with an event loop."""

    connection = DisturbedConnection

    def __init__(self, target):
        super().__init__(target)
        self.fired = {"reset": 0, "delay": 0, "split": 0, "silence": 0, "cut": 0}
        """How often each fault has happened."""
        self.speaks = asyncio.Event()
        """While it is not set, no bytes pass."""
        self.heal()

    def reset(self):
        self.fired["reset"] += self.cut()

    def heal(self):
        self.delay = 0.0
        """Seconds by which all bytes are delayed."""
        self.is_split = False
        """Whether each byte is sent separately."""
        self.cut_after_bytes = None
        """Bytes of the next answer that arrive before the connection breaks."""
        self.speaks.set()

    async def stop(self):
        self.heal()
        await super().stop()


# A database whose connections break at the worst moment ---------------------------------------------------------------------


class DatabaseConnection(Connection):
    requested = b""

    async def request(self, data):
        if self.proxy.fires("request", data):
            raise Cut
        self.requested = data
        yield data

    async def answer(self, data):
        if data.endswith(READY_AND_IDLE) and self.proxy.fires("reply", self.requested):
            raise Cut
        yield data


class DatabaseProxy(Proxy):
    """A proxy in front of a Cluster, on a Unix socket in a directory of its own."""

    connection = DatabaseConnection

    def __init__(self, cluster):
        self.home = processes.directory()
        path = "/.s.PGSQL.5432"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.home + path)
        os.chmod(self.home + path, 0o777)
        super().__init__(lambda: cluster.home + path, listener)
        self.fired = 0
        """Connections that were cut."""
        self._armed = None
        self.start_in_background()

    def url(self, database):
        return f"host={self.home} user=postgres dbname={database}"

    def cut_after_commit(self, matches):
        """Loses the reply to the next message for which matches(bytes) is true, after the database has committed it."""
        self._armed = ("reply", matches)

    def cut_before_request(self, matches):
        """Loses the next such message itself: the database does not receive it."""
        self._armed = ("request", matches)

    def fires(self, kind, data):
        """Whether the armed fault applies to these bytes; it then applies once."""
        if self._armed is None or self._armed[0] != kind or not self._armed[1](data):
            return False
        self._armed = None
        self.fired += 1
        return True


def runs(statement):
    """Returns a predicate: whether a message runs the prepared statement of this name."""
    return lambda data: data[:1] == b"B" and b"\0" + statement + b"\0" in data


def runs_any_of(*statements):
    return lambda data: any(runs(statement)(data) for statement in statements)


def commits(data):
    """Whether messages that are sent together commit a transaction, as a simple query or as an extended one."""
    return data[:1] in (b"Q", b"P") and b"COMMIT\0" in data.upper()
