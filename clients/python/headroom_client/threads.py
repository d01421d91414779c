"""The client for any number of threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar

from .answers import HeadroomError, failure
from .client import AsyncHeadroom, Away, Hold
from .transports import Name

T = TypeVar("T")
P = ParamSpec("P")
log = logging.getLogger("headroom_client")


class Runner:
    """A client and the thread that runs it, for which other threads wait."""

    def __init__(self, make: Callable[[], AsyncHeadroom]) -> None:
        self.client, self.process = make(), os.getpid()
        self._loop, self._lock, self._is_open = asyncio.new_event_loop(), threading.Lock(), True
        self._waiting: set[concurrent.futures.Future[Any]] = set()
        self._thread = threading.Thread(target=self._run, name="headroom", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(self._cancel_all())
        self._loop.close()

    @staticmethod
    async def _cancel_all() -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("`when_away` was called by the client, and cannot call it")
        with self._lock:
            if not self._is_open:
                work.close()
                raise closed()
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
            self._waiting.add(future)
        try:
            return future.result()
        except concurrent.futures.CancelledError as error:
            raise closed() from error
        except BaseException:
            future.cancel()  # if the wait was interrupted
            raise
        finally:
            with self._lock:
                self._waiting.discard(future)

    def close(self, seconds: float) -> None:
        """Calls that wait have their time limits. What is left after that ends with an error."""
        with self._lock:
            waiting = set(self._waiting)
        concurrent.futures.wait(waiting, seconds)
        try:
            self.wait(self.client.aclose())
        finally:
            with self._lock:
                self._is_open = False
                waiting = set(self._waiting)
            for future in waiting:
                future.cancel()
            self._loop.call_soon_threadsafe(self._loop.stop)


def closed() -> HeadroomError:
    return failure("UNKNOWN", "the client was closed before an answer came")


def waiting(method: Callable[Concatenate[AsyncHeadroom, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Headroom, P], T]:
    @functools.wraps(method)
    def call(self: Headroom, /, *arguments: P.args, **options: P.kwargs) -> T:
        runner = self._ready()
        return runner.wait(method(runner.client, *arguments, **options))

    return call


class Headroom:
    """`AsyncHeadroom` for any number of threads. All of them wait for one that runs it, so every wait has its time limit."""

    def __init__(
        self, url: str | Sequence[str], token: str | None = None, *, timeout: float = 3.0, attempt_timeout: float = 1.0,
        spread: bool = False, when_away: Away | Callable[[HeadroomError], Away] = "raise", **options: Any,
    ) -> None:  # fmt: skip
        """As of `AsyncHeadroom`."""
        self._make: Callable[[], AsyncHeadroom] = lambda: AsyncHeadroom(
            url, token, timeout=timeout, attempt_timeout=attempt_timeout, spread=spread, when_away=when_away, **options
        )
        self._timeout, self._lock = timeout, threading.Lock()
        self._runner: Runner | None = Runner(self._make)

    consume = waiting(AsyncHeadroom.consume)
    check = waiting(AsyncHeadroom.check)
    reserve = waiting(AsyncHeadroom.reserve)
    commit = waiting(AsyncHeadroom.commit)
    release = waiting(AsyncHeadroom.release)
    usage = waiting(AsyncHeadroom.usage)
    allowances = waiting(AsyncHeadroom.allowances)

    @contextmanager
    def hold(
        self, user: Name, n: int = 1, *, key: Name | None = None, ttl: int = 120, model: str | None = None,
        member: Name | None = None, lang: str | None = None, tz: str | None = None,
    ) -> Iterator[Hold]:  # fmt: skip
        """As of `AsyncHeadroom`."""
        runner = self._ready()
        held = runner.client.hold(user, n, key=key, ttl=ttl, model=model, member=member, lang=lang, tz=tz)
        hold = runner.wait(held.__aenter__())
        try:
            yield hold
        except BaseException as error:
            self._end(runner, hold, held.__aexit__(type(error), error, error.__traceback__))
            raise
        self._end(runner, hold, held.__aexit__(None, None, None))

    @staticmethod
    def _end(runner: Runner, hold: Hold, work: Coroutine[Any, Any, Any]) -> None:
        try:
            runner.wait(work)
        except HeadroomError as error:  # the client was closed; the hold ends by itself
            hold.error = error
            log.warning("the end of a hold: %s", error)

    def close(self) -> None:
        """Waits for calls, and for holds without an outcome, for `timeout` seconds at most, and closes the connections. Do not close
        it inside of `hold`: the messages would be given back when their time is over."""
        with self._lock:
            runner, self._runner = self._runner, None  # a later call begins anew
        if runner is not None and runner.process == os.getpid():
            runner.close(self._timeout)

    def __enter__(self) -> Headroom:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ready(self) -> Runner:
        with self._lock:
            # The child of a fork has no threads.
            if self._runner is None or self._runner.process != os.getpid():
                self._runner = Runner(self._make)
            return self._runner
