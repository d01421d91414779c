"""A history of what clients sent and what came back, read for the checker.

A history is a list of JSON objects, one a line, times in monotonic nanoseconds:

    {"t": "meta", "deadline_ms": 2000, ...}                    first line; what the run was
    {"t": "user", "user": U, "limit": 5, "parts": …}           the limit a user starts with; of an account also those of models and
                                                               members, {"model fast*": {"limit": 3, "weight": 1}, "member *": …}
    {"t": "send", "at": …, "op": 7, "c": client, "i": instance, "verb": "CONSUME", "user": U, "n": 1, "key": K, "ttl": 2}
                                                               of an account also with "model" and "member"; or the operator's
                                                               verb "RESET", perhaps of these alone, or "LIMIT" with "new_limit"
    {"t": "reply", "at": …, "op": 7, "status": "ALLOWED", "fields": {…}}     or status "ERROR" with "code",
                                                               "CLOSED" (connection lost), "SILENT" (client gave up)
    {"t": "extra", "at": …, "i": instance, "line": …}          a reply without a request
    {"t": "frozen", "from": …, "to": …, "i": instance|None}    the harness kept this instance from answering in time
    {"t": "healed", "at": …}                                   the fault is over
    {"t": "stopped", "at": …}                                  the load is over
    {"t": "unanswered", "count": 0, "seconds": 20}             operations with keys that got no answer in this time afterwards
    {"t": "sigterm", "at": …, "i": …, "exited": …, "code": 0}  an instance got SIGTERM
    {"t": "node", "user": U, "node": "worker 1"}               in a distributed database: where the user's bucket was at first
    {"t": "deadlocks", "count": 0}                             deadlocks in PostgreSQL's log
    {"t": "event", "at": …, "id": …, "user": U, "messages": 2}   a billing event that grants messages, sent until it is answered
    {"t": "event_reply", "at": …, "id": …, "i": instance, "status": 200, "outcome": …}   an answer to one of its attempts
    {"t": "stored_event", "id": …, "outcome": …} {"t": "granted", "user": U, "messages": 5}   what is in the database of these
    {"t": "row", …} {"t": "part", …} {"t": "key", …} {"t": "end", "at": …}      the final state of the database

An operation without an answer has an unknown outcome: it may take effect at any instant after it was sent, or never. The
checks are interval arithmetic over that.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NEVER = 1 << 62
SECOND = 1_000_000_000


@dataclass
class Op:
    """One attempt: a request and its outcome."""

    id: int
    client: int
    instance: int | None
    verb: str
    user: str
    n: int
    key: str | None
    ttl: int
    sent: int
    new_limit: int | None = None
    model: str | None = None
    member: str | None = None
    # How many messages of the allowance each of the n takes.
    weight: int = 1
    replied: int = NEVER
    answered_at: int | None = None
    status: str = "NONE"
    code: str | None = None
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def messages(self) -> int:
        """Of the allowance."""
        return self.n * self.weight

    @property
    def released(self) -> int:
        return (self.number("released") or 0) * self.weight

    @property
    def request(self) -> tuple[int, str | None, str | None]:
        """What must be the same to repeat a key."""
        return self.n, self.model, self.member

    @property
    def is_unknown(self) -> bool:
        return self.status in ("CLOSED", "SILENT", "NONE") or self.code == "UNKNOWN"

    @property
    def is_replay(self) -> bool:
        return self.fields.get("replayed") == "1"

    @property
    def is_grant(self) -> bool:
        return self.status in ("ALLOWED", "HELD") and "degraded" not in self.fields

    def number(self, name: str) -> int | None:
        text = self.fields.get(name)
        return int(text) if text is not None and text.isdigit() else None

    @property
    def held(self) -> int:
        return self.number("held") or 0

    def __str__(self) -> str:
        request = " ".join(
            part
            for part in (
                self.verb,
                self.user[:2] + "…" + self.user[-6:],
                str(self.n) if self.n or self.verb == "COMMIT" else "",
                f"key={self.key}" if self.key else "",
                f"model={self.model} member={self.member[-17:]}" if self.model and self.member else "",
                f"limit={self.new_limit}" if self.new_limit is not None else "",
            )
            if part
        )
        shown = ("used", "held", "limit", "remaining", "period", "reason", "released", "replayed", "text")
        outcome = " ".join([self.status, self.code or ""] + [f"{k}={self.fields[k]}" for k in shown if k in self.fields])
        until = "never" if self.answered_at is None else f"{self.answered_at / SECOND:.4f}"
        return f"op {self.id} client {self.client} instance {self.instance} [{self.sent / SECOND:.4f} – {until}] {request} → {outcome}"


@dataclass
class Violation:
    invariant: str
    text: str
    evidence: list[Op] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.invariant}: {self.text}"]
        lines += [f"    {op}" for op in self.evidence[:8]]
        return "\n".join(lines)


@dataclass
class Effect:
    """The certain or possible effect on a count of one operation without a key, or of all attempts with one key."""

    # Messages of the allowance.
    n: int
    first: int
    last: int
    is_certain: bool
    used: int | None
    period: str | None
    attempts: list[Op]
    key: str | None = None

    @property
    def grant(self) -> Op:
        return next((op for op in self.attempts if op.is_grant), self.attempts[0])


@dataclass
class History:
    meta: dict[str, Any] = field(default_factory=dict)
    ops: dict[int, Op] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    # Of accounts: the limits and weights of parts.
    part_limits: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    # The messages of a user's balances, which are beyond the limit, and of each what is left.
    granted: dict[str, int] = field(default_factory=dict)
    balances: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    parts: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    keys: dict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: defaultdict(dict))
    events: list[dict[str, Any]] = field(default_factory=list)
    end: int | None = None

    @property
    def is_final(self) -> bool:
        """Whether the database was read at the end."""
        return self.end is not None

    def model_limit(self, op: Op) -> str | None:
        """The name of the limit that counts the operation's model: the exact one, or else the longest beginning."""
        limits = [name.removeprefix("model ") for name in self.part_limits.get(op.user, {}) if name.startswith("model ")]
        if op.model is None or op.model in limits:
            return op.model
        return max((name for name in limits if name[-1] == "*" and op.model.startswith(name[:-1])), key=len, default=None)

    def weight(self, op: Op) -> int:
        """How many of the account's messages, and of the member's, each of the operation's takes."""
        limit = self.part_limits.get(op.user, {}).get(f"model {self.model_limit(op)}")
        return limit["weight"] if limit else 1

    def by_user(self) -> Iterator[tuple[str, list[Op]]]:
        users: dict[str, list[Op]] = defaultdict(list)
        for op in self.ops.values():
            if op.user:
                users[op.user].append(op)
        for user, ops in users.items():
            ops.sort(key=lambda op: op.sent)
            yield user, ops


def read_file(path: str | Path) -> History:
    with open(path, encoding="utf-8") as lines:
        return read(lines)


def read(lines: Iterable[str | dict[str, Any]]) -> History:
    history = History()
    for line in lines:
        entry = json.loads(line) if isinstance(line, str) else line
        kind = entry["t"]
        if kind == "send":
            history.ops[entry["op"]] = Op(
                id=entry["op"],
                client=entry.get("c", 0),
                instance=entry.get("i"),
                verb=entry["verb"],
                user=entry.get("user", ""),
                n=entry.get("n", 0),
                key=entry.get("key"),
                ttl=entry.get("ttl", 0),
                sent=entry["at"],
                new_limit=entry.get("new_limit"),
                model=entry.get("model"),
                member=entry.get("member"),
            )
            history.ops[entry["op"]].weight = history.weight(history.ops[entry["op"]])
        elif kind == "reply":
            op = history.ops[entry["op"]]
            op.status, op.code = entry["status"], entry.get("code")
            op.fields = entry.get("fields", {})
            op.answered_at = entry["at"]
            # An unknown outcome may still take effect.
            op.replied = NEVER if op.is_unknown else entry["at"]
        elif kind == "meta":
            history.meta.update(entry)
        elif kind == "user":
            history.granted[entry["user"]] = entry.get("balances", 0)
            history.limits[entry["user"]] = entry["limit"] + history.granted[entry["user"]]
            history.part_limits[entry["user"]] = entry.get("parts", {})
        elif kind == "part":
            history.parts[entry["user"]].append(entry)
        elif kind == "balance":
            history.balances[entry["user"]].append(entry)
        elif kind == "row":
            history.rows[entry["user"]].append(entry)
        elif kind == "key":
            history.keys[entry["user"]][entry["key"]] = entry
        elif kind == "end":
            history.end = entry["at"]
        else:
            history.events.append(entry)
    return history
