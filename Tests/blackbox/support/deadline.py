"""Waiting for conditions. Nothing here waits for time to pass."""

import time


class TooLate(AssertionError):
    pass


def wait_until(condition, seconds, what):
    """Polls until `condition` returns something true, and returns that."""
    until = time.monotonic() + seconds
    pause = 0.001
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise TooLate(f"not within {seconds} s: {what}")
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
