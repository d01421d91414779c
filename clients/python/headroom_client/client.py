"""The client for asyncio."""

from __future__ import annotations

import asyncio
import logging
import random
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from .answers import Allowances, Answer, Blocked, HeadroomError, NotFound, Repeated, Unavailable, Unknown
from .endpoints import Endpoints
from .transports import Name, Request

Away = Literal["raise", "allow", "refuse"] | Answer
log = logging.getLogger("headroom_client")
# A request that was sent may still arrive within this time.
ARRIVAL_SECONDS = 5


@dataclass
class Hold:
    """Messages that are held while the body of `hold` runs."""

    answer: Answer
    key: str
    amount: int | None = None  # set it in the body to count less than is held (tokens, for example); the rest is given back
    outcome: Answer | None = None  # after the body: the answer to the commit or release
    error: HeadroomError | None = None  # after the body: why there is none. After `Unavailable` the client goes on trying


class AsyncHeadroom:
    """Create one for the whole process. The URL is headroom://TOKEN@HOST:PORT, headrooms:// with TLS, or http(s):// over HTTP. Of
    several instances name all, the nearest first: headroom://TOKEN@HOST:PORT,HOST:PORT, or a list of URLs."""

    def __init__(
        self, url: str | Sequence[str], token: str | None = None, *, timeout: float = 3.0, attempt_timeout: float = 1.0,
        spread: bool = False, when_away: Away | Callable[[HeadroomError], Away] = "raise", **options: Any,
    ) -> None:  # fmt: skip
        """`timeout` is for a call with all its attempts, in seconds. With `spread` each client prefers the instances in an order of
        its own, so that many spread over all. `options` are those of redis-py's connections, or of httpx."""
        self._timeout, self._attempt_timeout, self._when_away = timeout, attempt_timeout, when_away
        self._endpoints = Endpoints(url, token, options, spread)
        self._tasks: set[asyncio.Task[None]] = set()

    async def consume(
        self, user: Name, n: int = 1, *, key: Name | None = None, model: str | None = None, member: Name | None = None,
        lang: str | None = None, tz: str | None = None,
    ) -> Answer:  # fmt: skip
        """Counts n messages if they fit, all or none. Calls with the same key count once; without one, each call counts. Name the
        model that answers, and the member of the account `user` who sends, if a plan limits them."""
        own = uuid.uuid4().hex if key is None else key
        request = Request("CONSUME", user, n, own, model=model, member=member, lang=lang, tz=tz)
        return await self._decide(request, is_key_own=key is None)

    async def check(
        self, user: Name, n: int = 1, *, model: str | None = None, member: Name | None = None, lang: str | None = None,
        tz: str | None = None,
    ) -> Answer:  # fmt: skip
        """What `consume` would answer now; counts nothing."""
        return await self._decide(Request("CHECK", user, n, model=model, member=member, lang=lang, tz=tz))

    async def reserve(
        self, user: Name, n: int = 1, *, key: Name, ttl: int = 120, model: str | None = None, member: Name | None = None,
        lang: str | None = None, tz: str | None = None,
    ) -> Answer:  # fmt: skip
        """Holds n messages for ttl seconds. `hold` commits or releases them as well."""
        return await self._decide(Request("RESERVE", user, n, key, ttl, model, member, lang, tz))

    async def commit(
        self, user: Name, n: int | None = None, *, key: Name, lang: str | None = None, tz: str | None = None
    ) -> Answer:
        """Counts n of the messages that the key holds, or all, and gives back the rest."""
        return await self._call(Request("COMMIT", user, n, key, lang=lang, tz=tz))

    async def release(self, user: Name, *, key: Name, lang: str | None = None, tz: str | None = None) -> Answer:
        """Gives back the messages that the key holds or has counted, once."""
        return await self._call(Request("RELEASE", user, key=key, lang=lang, tz=tz))

    async def usage(
        self, user: Name, period: str | None = None, *, model: str | None = None, member: Name | None = None,
        lang: str | None = None, tz: str | None = None,
    ) -> Answer:  # fmt: skip
        """Usage in the present period or a past one, with the plan's label and a sentence for screen readers."""
        return await self._call(Request("USAGE", user, model=model, member=member, lang=lang, tz=tz, period=period))

    async def allowances(self, user: Name, period: str | None = None) -> Allowances:
        """The limits of the user's plan for models, and for members who have sent, with what is used of them: for a choice of models that
        shows what is left of each. Only over HTTP."""
        return cast(Allowances, await self._ask(Request("ALLOWANCES", user, period=period)))

    @asynccontextmanager
    async def hold(
        self, user: Name, n: int = 1, *, key: Name | None = None, ttl: int = 120, model: str | None = None,
        member: Name | None = None, lang: str | None = None, tz: str | None = None,
    ) -> AsyncIterator[Hold]:
        """Holds n messages while the body runs, then counts them, or gives them back if it raises. Instead of running the body it
        raises `Blocked`, or `Repeated` if the key was used before. A body that takes longer than ttl seconds is not counted."""
        hold, until = Hold(Answer("ok"), uuid.uuid4().hex if key is None else str(key)), time.monotonic() + ttl
        release = Request("RELEASE", user, key=hold.key)
        reserve = Request("RESERVE", user, n, hold.key, ttl, model, member, lang, tz)
        try:
            hold.answer = await self._call(reserve)
            if key is None and hold.answer.degraded and reserve.unsure:
                self._give_back(reserve, until)
        except BaseException as error:
            # Nobody else knows the key.
            if key is None and (not isinstance(error, HeadroomError) or error.is_silent):
                self._give_back(reserve, until)
            if not isinstance(error, Unavailable):
                raise
            hold.answer = self._answer_away(error)
        if not hold.answer.allowed:
            raise (Repeated if hold.answer.status == "repeated" else Blocked)(hold.answer)
        request = release
        try:
            yield hold
            amount = None if hold.amount is None else max(0, min(hold.amount, n))
            request = Request("COMMIT", user, amount, hold.key, lang=lang, tz=tz)
        finally:
            if not hold.answer.degraded:
                await asyncio.shield(self._start(self._settle(hold, request, until)))

    def _give_back(self, request: Request, until: float | None = None) -> None:
        """What an attempt without an answer has counted or holds. It may still be under way."""
        end = time.monotonic() + ARRIVAL_SECONDS
        release = Request("RELEASE", request.user, key=request.key)
        self._start(self._settle(Hold(Answer("ok"), request.key), release, until or end, end))

    async def _settle(
        self, hold: Hold, request: Request, until: float, may_arrive_until: float = 0, failures: int = 0
    ) -> None:
        """Sends it once. Without an outcome another task goes on, until the hold is over: the caller has the model's answer, and
        should neither wait nor get an error instead."""
        await asyncio.sleep(_backoff(failures) if failures else 0)
        try:
            hold.outcome, hold.error = await self._call(request), None
            if not hold.outcome.degraded:
                return
        except HeadroomError as error:
            hold.error = error
            log.warning("%s of a hold: %s", request.verb, error)
            may_arrive = isinstance(error, NotFound) and time.monotonic() < may_arrive_until
            if not (isinstance(error, Unavailable) or may_arrive):
                return
        if time.monotonic() < until:
            self._start(self._settle(hold, request, until, may_arrive_until, failures + 1))

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _decide(self, request: Request, is_key_own: bool = False) -> Answer:
        try:
            return await self._call(request)
        except Unavailable as error:
            answer = self._answer_away(error)
            # Otherwise a user who tries again would pay twice.
            if is_key_own and isinstance(error, Unknown) and not answer.allowed:
                self._give_back(request)
            return answer

    async def _call(self, request: Request) -> Answer:
        return cast(Answer, await self._ask(request))

    async def _ask(self, request: Request) -> Answer | Allowances:
        end, failures = time.monotonic() + self._timeout, 0
        while True:
            seconds, request.sent = min(self._attempt_timeout, end - time.monotonic()), False
            endpoint = self._endpoints.choose()
            before = endpoint.failures
            try:
                answer = await asyncio.wait_for(endpoint.transport.send(request), seconds)
                endpoint.answered(before)
                # After a lost answer it repeats this call's own attempt, whose answer nobody has received.
                if request.unsure and isinstance(answer, Answer) and answer.status == "repeated":
                    return replace(answer, status="allowed", replayed=False)
                return answer
            except asyncio.TimeoutError:
                error = request.lost(f"within {seconds:.1f} s")
            except HeadroomError as caught:
                error = caught
            if error.is_of_instance:
                endpoint.failed(before)
            request.unsure = request.unsure or request.key is not None and isinstance(error, Unknown)
            pause = max(_backoff(failures), error.retry_seconds * random.uniform(1, 1.5))
            if self._endpoints.may_ask_another(error):
                pause = 0
            is_over = not isinstance(error, Unavailable) or time.monotonic() + pause >= end
            if not is_over:
                failures += 1
                await asyncio.sleep(pause)
                # A busy machine may wake it up too late for another attempt.
                is_over = time.monotonic() >= end
            if is_over:
                if request.unsure and not error.is_about_key:
                    error = Unknown("UNKNOWN", f"an attempt was not answered; the last: {error}")
                error.user, error.key = request.user, request.key
                raise error

    def _answer_away(self, error: HeadroomError) -> Answer:
        verdict = self._when_away(error) if callable(self._when_away) else self._when_away
        if verdict == "raise":
            raise error
        log.warning("a message was answered without Headroom: %s", error)
        if isinstance(verdict, Answer):
            return replace(verdict, degraded=True)
        text = "I couldn't check your usage right now"
        if verdict == "allow":
            return Answer("allowed", error.user, banner=f"{text} — don't worry, you can keep chatting.", degraded=True)
        return Answer("blocked", error.user, banner=f"{text}. Let's try again in a moment.", degraded=True)

    async def aclose(self) -> None:
        """Waits for holds without an outcome, for `timeout` seconds at most, and closes the connections."""
        end = time.monotonic() + self._timeout
        while self._tasks and time.monotonic() < end:
            await asyncio.wait(self._tasks, timeout=end - time.monotonic())
        for task in self._tasks:
            task.cancel()
        await self._endpoints.close()

    close = aclose

    async def __aenter__(self) -> AsyncHeadroom:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _backoff(failures: int) -> float:
    """Doubles up to a second. Random, so that clients that failed together do not retry together."""
    return min(0.025 * 2.0 ** min(failures, 10), 1) * random.uniform(0.5, 1)
