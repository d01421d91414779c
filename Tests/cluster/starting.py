"""What a person sees while a cluster starts, which takes a minute on a slow machine."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator

INTERVAL_SECONDS = float(os.environ.get("HEADROOM_PROGRESS_SECONDS", "10"))
"""As script/progress has it."""


def say(text: str) -> None:
    print(f"cluster: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(text: str) -> Iterator[None]:
    """Says what begins, and as long as it goes on, every ten seconds for how long it has."""
    say(text)
    began, ended = time.monotonic(), threading.Event()

    def tell() -> None:
        while not ended.wait(INTERVAL_SECONDS):
            say(f"{text}, for {time.monotonic() - began:.0f} s")

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
