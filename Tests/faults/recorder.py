"""Records requests and replies of clients."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import IO, Any


class Recorder:
    """Writes the history, one line for each event."""

    def __init__(self, out: IO[str]) -> None:
        self.out = out
        self.next_op = 0
        self.known_users: set[str] = set()
        # Instance, time and user of the operations that wait for an answer.
        self.open: dict[int, tuple[int | None, int, str]] = {}
        self.healed_at = 0
        # How many operations each instance has served since then.
        self.served: Counter[int | None] = Counter()
        # And of which users.
        self.users_served: set[tuple[int | None, str]] = set()
        self.counts: dict[str, int] = {"ops": 0, "allowed": 0, "unknowns": 0, "replays": 0}

    def write(self, **entry: Any) -> None:
        self.out.write(json.dumps(entry, separators=(",", ":")) + "\n")

    def user(self, user: str, limit: int, parts: dict[str, dict[str, int]], balances: int = 0) -> None:
        if user not in self.known_users:
            self.known_users.add(user)
            more: dict[str, Any] = ({"parts": parts} if parts else {}) | ({"balances": balances} if balances else {})
            self.write(t="user", user=user, limit=limit, **more)

    def send(self, client: int, instance: int | None, verb: str, user: str, **more: Any) -> int:
        self.next_op += 1
        self.counts["ops"] += 1
        # The time is taken before the bytes are sent, so that no reply seems to precede its request.
        at = time.monotonic_ns()
        self.open[self.next_op] = (instance, at, user)
        self.write(t="send", at=at, op=self.next_op, c=client, i=instance, verb=verb, user=user, **more)
        return self.next_op

    def healed(self, node: str | None = None) -> None:
        """Records the end of the fault; of a node, in a distributed database, if the others were not concerned."""
        self.healed_at = time.monotonic_ns()
        self.served.clear()
        self.users_served.clear()
        self.write(t="healed", at=self.healed_at, node=node)

    def reply(self, op: int, status: str, code: str | None = None, fields: dict[str, str] | None = None) -> None:
        entry: dict[str, Any] = {"t": "reply", "at": time.monotonic_ns(), "op": op, "status": status}
        if code:
            entry["code"] = code
        if fields:
            entry["fields"] = fields
            if fields.get("replayed") == "1":
                self.counts["replays"] += 1
        if status in ("ALLOWED", "HELD"):
            self.counts["allowed"] += 1
        if status in ("CLOSED", "SILENT") or code == "UNKNOWN":
            self.counts["unknowns"] += 1
        instance, sent, user = self.open.pop(op)
        if code is None and sent >= self.healed_at and status not in ("CLOSED", "SILENT"):
            self.served[instance] += 1
            self.users_served.add((instance, user))
        self.write(**entry)
