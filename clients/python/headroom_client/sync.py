"""The client without asyncio."""

from __future__ import annotations

import asyncio
import functools
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar

from .answers import HeadroomError
from .client import AsyncHeadroom, Away, Hold

T = TypeVar("T")
P = ParamSpec("P")


def _waiting(method: Callable[Concatenate[AsyncHeadroom, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Headroom, P], T]:
    @functools.wraps(method)
    def call(self: Headroom, /, *arguments: P.args, **options: P.kwargs) -> T:
        return self._wait(method(self._ready(), *arguments, **options))

    return call


class Headroom:
    """`AsyncHeadroom` for any number of threads. All of them wait for one that runs it, so every wait has its time limit."""

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 3.0, attempt_timeout: float = 1.0,
        when_away: Away | Callable[[HeadroomError], Away] = "raise", **options: Any,
    ) -> None:  # fmt: skip
        """As of `AsyncHeadroom`."""
        self._make: Callable[[], AsyncHeadroom] = lambda: AsyncHeadroom(
            url, token, timeout=timeout, attempt_timeout=attempt_timeout, when_away=when_away, **options
        )
        self._lock, self._process = threading.Lock(), 0
        self._ready()

    consume = _waiting(AsyncHeadroom.consume)
    check = _waiting(AsyncHeadroom.check)
    reserve = _waiting(AsyncHeadroom.reserve)
    commit = _waiting(AsyncHeadroom.commit)
    release = _waiting(AsyncHeadroom.release)
    usage = _waiting(AsyncHeadroom.usage)

    @contextmanager
    def hold(self, user: str, n: int = 1, *, key: str | None = None, ttl: int = 120, lang: str | None = None) -> Iterator[Hold]:
        """As of `AsyncHeadroom`."""
        held = self._ready().hold(user, n, key=key, ttl=ttl, lang=lang)
        hold = self._wait(held.__aenter__())
        try:
            yield hold
        except BaseException as error:
            self._wait(held.__aexit__(type(error), error, error.__traceback__))
            raise
        self._wait(held.__aexit__(None, None, None))

    def close(self) -> None:
        """Waits for holds without an outcome, for `timeout` seconds at most, and closes the connections."""
        self._wait(self._ready().aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._process = 0  # a later call begins anew

    def __enter__(self) -> Headroom:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ready(self) -> AsyncHeadroom:
        with self._lock:
            if self._process != os.getpid():  # at the start, and in the child of a fork, which has no threads
                self._client, self._loop, self._process = self._make(), asyncio.new_event_loop(), os.getpid()
                threading.Thread(target=self._loop.run_forever, name="headroom", daemon=True).start()
        return self._client

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # if the wait was interrupted
            raise
