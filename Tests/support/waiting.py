"""Waiting for conditions. Nothing here waits for time to pass."""

import asyncio
import inspect
import time

TIMEOUT_SECONDS = 60
"""Seconds. Whatever is waited for has come by then, also on a machine many times slower than one that is idle."""


class WaitTimeout(AssertionError):
    """What was waited for did not come."""


def wait_until(condition, what, seconds=TIMEOUT_SECONDS):
    """Polls until `condition` returns something true, and returns that. `what` completes "not within 60 s: …"; where it
    takes work to say, it may be a function that is called only when it is too late."""
    for pause in _pauses(what, seconds):
        if value := condition():
            return value
        time.sleep(pause)


async def wait_until_async(condition, what, seconds=TIMEOUT_SECONDS):
    """The same for a coroutine: other coroutines run between two looks, and the condition may be one itself."""
    for pause in _pauses(what, seconds):
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        await asyncio.sleep(pause)


def _pauses(what, seconds):
    """The pause after each look. There is a last look when the time is over: a machine may have slept through all of it."""
    until = time.monotonic() + seconds
    pause, is_last = 0.001, False
    while not is_last:
        is_last = time.monotonic() > until
        yield 0 if is_last else pause
        # A condition may cost a statement or a process, so what takes longer is looked at less often.
        pause = min(pause * 2, 0.05)
    raise WaitTimeout(f"not within {seconds:g} s: {what() if callable(what) else what}")
