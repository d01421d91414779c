"""Waits for conditions, never for time to pass."""

import asyncio
import inspect
import time

TIMEOUT_SECONDS = 600
"""The default timeout of what takes some seconds at most on an idle machine. A test that reaches it hangs, however slow the
machine is."""


class WaitTimeout(AssertionError):
    """A condition did not become true in time."""


def wait_until(condition, expectation, seconds=TIMEOUT_SECONDS):
    """Polls until `condition` returns a true value, and returns it. `expectation` completes "not within 600 s: …"; it may
    be a function that returns the text."""
    for pause in _pauses(expectation, seconds):
        if value := condition():
            return value
        time.sleep(pause)


async def wait_until_async(condition, expectation, seconds=TIMEOUT_SECONDS):
    """As `wait_until`, in a coroutine; the condition may be a coroutine function."""
    for pause in _pauses(expectation, seconds):
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        await asyncio.sleep(pause)


def _pauses(expectation, seconds):
    """The pause after each check. There is a last check after the deadline: the process may have slept until then."""
    until = time.monotonic() + seconds
    pause, is_last = 0.001, False
    while not is_last:
        is_last = time.monotonic() > until
        yield 0 if is_last else pause
        # A check may cost a statement or a process, so later checks are less frequent.
        pause = min(pause * 2, 0.05)
    raise WaitTimeout(f"not within {seconds:g} s: {expectation() if callable(expectation) else expectation}")
