"""Several instances of one service: which of them a call asks."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from urllib.parse import SplitResult, unquote, urlsplit

from .answers import HeadroomError
from .transports import OverHTTP, OverTCP


def addresses(url: str | Sequence[str]) -> list[SplitResult]:
    """One for each host: a URL may have several, as in headroom://TOKEN@a:6747,b:6747."""
    found = []
    for each in [url] if isinstance(url, str) else url:
        address = urlsplit(each)
        login, at, hosts = address.netloc.rpartition("@")
        if address.scheme not in ("headroom", "headrooms", "redis", "rediss", "http", "https"):
            raise ValueError("the address of the service must begin with headroom://, headrooms:// (TLS), http:// or https://")
        if not all(hosts.split(",")):
            raise ValueError("the address of the service names no host")
        found += [address._replace(netloc=login + at + host) for host in hosts.split(",")]
    return found


class Endpoint:
    """An instance. One that drains or is away is left at once, and asked again after a pause."""

    def __init__(self, address: SplitResult, token: str | None, options: dict[str, object]) -> None:
        kind = OverHTTP if address.scheme in ("http", "https") else OverTCP
        self.transport = kind(address, token or unquote(address.password or address.username or ""), options)
        self.failures, self.rests_until = 0, 0.0

    def rest(self) -> None:
        # One second, doubled by each failure in a row; random, so that clients that left together do not return together.
        self.rests_until = time.monotonic() + 2 ** min(max(self.failures - 1, 0), 5) * random.uniform(1, 1.5)

    def answered(self, failures: int) -> None:
        """`failures` is the number when the call began: calls that were under way when it was left say nothing about now."""
        if failures == self.failures:
            self.failures, self.rests_until = 0, 0.0

    def failed(self, failures: int) -> None:
        if failures == self.failures:
            self.failures += 1
            self.rest()


class Endpoints:
    """Calls ask the first instance that does not rest. With `spread` each client has an order of its own."""

    def __init__(self, url: str | Sequence[str], token: str | None, options: dict[str, object], spread: bool) -> None:
        self.all = [Endpoint(address, token, options) for address in addresses(url)]
        if spread:
            random.shuffle(self.all)

    def _rested(self) -> list[Endpoint]:
        now = time.monotonic()
        return [each for each in self.all if each.rests_until <= now]

    def choose(self) -> Endpoint:
        rested = self._rested()
        if not rested:
            return min(self.all, key=lambda each: each.rests_until)
        if rested[0].failures and len(rested) > 1:
            rested[0].rest()  # one call finds out whether it is back, while others ask the next one
        return rested[0]

    def may_ask_another(self, error: HeadroomError) -> bool:
        """Whether another instance may answer at once what this one has not."""
        return error.is_of_instance and bool(self._rested())

    async def close(self) -> None:
        for each in self.all:
            await each.transport.close()
