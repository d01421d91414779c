"""Tests of the checker: correct histories pass, and the histories of bugs do not."""

from __future__ import annotations

import random
import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import checker
from history import read

USER = "00000001-0001-4000-8000-000000000001"
OTHER = "00000002-0001-4000-8000-000000000002"
MS = 1_000_000


class HistoryBuilder:
    """Writes a history by hand, in milliseconds."""

    def __init__(self, limit: int = 5) -> None:
        self.lines: list[dict[str, Any]] = [
            {"t": "meta", "deadline_ms": 2000, "instances": []}, {"t": "user", "user": USER, "limit": limit}
        ]
        self.limit = limit
        self.op = 0

    def send(self, at: float, verb: str = "CONSUME", n: int = 1, key: str | None = None, **more: Any) -> HistoryBuilder:
        """Requests are numbered from 1."""
        self.op += 1
        entry = {"t": "send", "at": int(at * MS), "op": self.op, "c": 0, "i": 0, "verb": verb, "user": USER, "n": n, "key": key}
        return self.event(**entry | more)

    def reply(self, op: int, at: float, status: str, used: int | None = None, code: str | None = None, **fields: Any) -> HistoryBuilder:
        shown = {name: str(value) for name, value in fields.items()}
        if used is not None:
            limit = fields.get("limit", self.limit)
            shown |= {"used": str(used), "limit": str(limit), "period": fields.get("period", "2026-11")}
            shown.setdefault("remaining", str(max(limit - used - int(fields.get("held", 0)), 0)))
        entry: dict[str, Any] = {"t": "reply", "at": int(at * MS), "op": op, "status": status, "fields": shown}
        return self.event(**entry, **({"code": code} if code else {}))

    def operation(self, at: float, until: float, status: str, used: int | None = None, **more: Any) -> HistoryBuilder:
        """A request and its reply."""
        sending = {name: more.pop(name) for name in ("verb", "n", "key", "ttl", "i", "new_limit") if name in more}
        return self.send(at, **sending).reply(self.op, until, status, used, **more)

    def allowed(self, *used: int, **more: Any) -> HistoryBuilder:
        """Messages that are allowed, one after the other: the first from 10 to 15 ms, the next from 20 on."""
        for number, count in enumerate(used, start=1):
            self.operation(number * 10, number * 10 + 5, "ALLOWED", count, **more)
        return self

    def reserve(self, key: str = "a", at: float = 10, n: int = 1, held: int | None = None) -> HistoryBuilder:
        return self.operation(at, at + 5, "HELD", 0, verb="RESERVE", n=n, key=key, ttl=2, held=held or n)

    def release(self, key: str, at: float, used: int, released: int = 1, **more: Any) -> HistoryBuilder:
        return self.operation(at, at + 5, "OK", used, verb="RELEASE", n=0, key=key, released=released, **more)

    def row(self, count: int, generation: int = 1) -> HistoryBuilder:
        return self.event(t="row", user=USER, period="2026-11", count=count, held=0, limit=self.limit, generation=generation)

    def key(
        self, name: str, used: int, verb: str = "c", status: str = "c", n: int = 1, generation: int = 1, committed: int | None = None
    ) -> HistoryBuilder:
        return self.event(
            t="key", user=USER, key=name, verb=verb, status=status, messages=n, used=used, committed=committed, period="2026-11",
            generation=generation,
        )  # fmt: skip

    def event(self, **entry: Any) -> HistoryBuilder:
        self.lines.append(entry)
        return self

    def end(self) -> HistoryBuilder:
        return self.event(t="end", at=100_000 * MS)

    def violated(self) -> set[str]:
        return {violation.invariant for violation in checker.check(read(self.lines))}


def history(limit: int = 5) -> HistoryBuilder:
    return HistoryBuilder(limit)


def late(status: str, **more: Any) -> HistoryBuilder:
    """A released key that is used again."""
    return history().allowed(1, key="a").release("a", 20, 0).operation(30, 35, status, key="a", **more).row(0).key("a", 1, status="r").end()


def held_again(status: str, **more: Any) -> HistoryBuilder:
    again = history().reserve().operation(2500, 2505, status, verb="RESERVE", key="a", ttl=2, **more)
    return again.row(0).key("a", 0, "r", "h").end()


def several(*replies: tuple[str, int], **more: Any) -> HistoryBuilder:
    """With 5 remaining, requests of 4, 3 and 1 at once: 4 and 1 fit. A running sum would refuse the 1 as well."""
    built = history().send(10, n=4).send(10, n=3).send(10, n=1)
    for op, (status, used) in enumerate(replies, start=1):
        built.reply(op, 20, status, used, **(more if op == 3 else {}))
    return built


def committed() -> HistoryBuilder:
    """One of two messages that are held."""
    return history().reserve(n=2).operation(20, 25, "ALLOWED", 1, verb="COMMIT", key="a")


def away(node: str) -> HistoryBuilder:
    """Another user than ours is on worker 1."""
    built = history().event(t="meta", instances=[0]).event(t="user", user=OTHER, limit=5)
    built.event(t="node", user=OTHER, node="worker 1").event(t="node", user=USER, node="worker 2")
    return built.event(t="healed", at=10 * MS, node=node).operation(20, 30, "ALLOWED", 1).row(1).end()


def billed(*stored: str, granted: int) -> HistoryBuilder:
    """Two events that grant two messages each, of which the first was answered."""
    built = history()
    for name in ("a", "b"):
        built.event(t="event", at=0, id=name, user=USER, messages=2)
    built.event(t="event_reply", at=1, id="a", i=0, status=200, outcome="applied")
    for name in stored:
        built.event(t="stored_event", id=name, outcome="applied")
    return built.event(t="granted", user=USER, messages=granted).end()


SOUND = {
    "counts up to the limit": history(3).allowed(1, 2, 3).operation(50, 55, "BLOCKED", 3).row(3).end(),
    "concurrent requests may be counted in any order":
        history().send(10).send(11).reply(2, 20, "ALLOWED", 1).reply(1, 21, "ALLOWED", 2).row(2).end(),
    "unknown without a key may not count": history().operation(10, 20, "CLOSED").operation(30, 40, "ALLOWED", 1).row(1).end(),
    "unknown without a key may count": history().operation(10, 20, "CLOSED").operation(30, 40, "ALLOWED", 2).row(2).end(),
    "unknown with a key is answered by its retry":
        history().operation(10, 20, "CLOSED", key="a").operation(30, 40, "ALLOWED", 1, key="a", replayed=1)
        .operation(50, 60, "ERROR", key="a", n=2, code="CONFLICT").row(1).key("a", 1).end(),
    "holds committed, released and expired":
        history().reserve("a", 0).reserve("b", 10, held=2).reserve("c", 20, held=3)
        .operation(50, 55, "ALLOWED", 1, verb="COMMIT", key="a", held=2).release("b", 60, 1, held=1)
        .operation(2500, 2505, "ERROR", verb="COMMIT", key="c", code="EXPIRED").operation(3000, 3005, "OK", 1, verb="CHECK")
        .row(1).key("a", 0, "r", "c", committed=1).key("b", 0, "r", "r").key("c", 0, "r", "h").end(),
    "a commit of nothing at the time of another":
        history().reserve("a", 10).reserve("b", 20, n=2, held=3).send(30, verb="COMMIT", n=0, key="a")
        .operation(31, 35, "ALLOWED", 2, verb="COMMIT", n=2, key="b", held=1).reply(3, 40, "ALLOWED", 2)
        .row(2).key("a", 0, "r", "c", committed=0).key("b", 0, "r", "c", n=2, committed=2).end(),
    "a released key is refused": late("ERROR", code="CONFLICT"),
    "an expired hold is not held again": held_again("ERROR", code="EXPIRED"),
    "reset and lowered limit":
        history(10).operation(10, 15, "ALLOWED", 1, key="k1").operation(20, 25, "ALLOWED", 2, key="k2")
        .operation(30, 35, "ALLOWED", 3, key="k3").operation(50, 60, "OK", verb="LIMIT", new_limit=2)
        .operation(70, 75, "BLOCKED", 3, limit=2, remaining=0).operation(80, 90, "OK", verb="RESET")
        .operation(100, 105, "ALLOWED", 1, limit=2, key="k4").row(1, generation=2)
        .key("k1", 1).key("k2", 2).key("k3", 3).key("k4", 1, generation=2).end(),
    "a late answer within the slack of a busy machine": history().event(t="meta", slack_ms=1000).operation(10, 3100, "ALLOWED", 1),
    "what was not committed is given back": committed().release("a", 30, 0, released=1),
    "a worker that was away without our user": away("worker 2"),
    "billing events that took effect once": billed("a", granted=2),
    "a billing event without an answer that took effect": billed("a", "b", granted=4),
}  # fmt: skip

PLANTED = {
    "reply before commit": ({"I5"}, history().allowed(1).row(0).end()),
    "reply before commit with a key": ({"I5"}, history().allowed(1, key="a").row(0).end()),
    "key not recorded": ({"I2", "I4"}, history().allowed(1, 2, key="a")),
    "key not recorded is seen in the database too": ({"I2", "I5"}, history().allowed(1, key="a").row(1).end()),
    "less or equal": ({"I1"}, history(2).allowed(1, 2).operation(30, 35, "ALLOWED", 3, remaining=0)),
    "less for less or equal": ({"I6"}, history(2).allowed(1).operation(20, 25, "BLOCKED", 1)),
    "unsorted locks": ({"I13"}, history().event(t="deadlocks", count=2)),
    "unsorted locks are seen as late answers": ({"I12"}, history().operation(10, 3100, "ALLOWED", 1)),
    "window sum grants": ({"I6"}, several(("ALLOWED", 4), ("BLOCKED", 4), ("BLOCKED", 4))),
    "window sum grants whose refusal claims the sum": ({"I2", "I6"}, several(("ALLOWED", 4), ("BLOCKED", 4), ("BLOCKED", 8), remaining=0)),
    "a released key counts again": ({"I4"}, late("ALLOWED", used=1, replayed=1)),
    "an expired hold is held again": ({"I8"}, held_again("HELD", used=0, held=1, replayed=1)),
    "release across a reset": ({"I9"},
        history(10).allowed(1, key="a").operation(20, 30, "OK", verb="RESET").operation(40, 45, "ALLOWED", 1, key="b")
        .release("a", 50, 0).row(0, generation=2).key("a", 1, status="r").key("b", 1, generation=2).end()),
    "counted twice by a resent batch": ({"I2", "I3"}, history().operation(10, 500, "ALLOWED", 2).row(2).end()),
    "unavailable but counted": ({"I2"}, history().operation(10, 2010, "ERROR", code="UNAVAILABLE").row(1).end()),
    "unavailable but counted with a key":
        ({"I2"}, history().operation(10, 2010, "ERROR", key="a", code="UNAVAILABLE").row(1).key("a", 1).end()),
    "used out of real time order": ({"I2", "I3"}, history().allowed(2, 1)),
    "the same used twice": ({"I3"}, history().send(10).send(10).reply(1, 20, "ALLOWED", 1).reply(2, 20, "ALLOWED", 1)),
    "stale read through the other instance": ({"I7"}, history().allowed(1).operation(20, 25, "OK", 0, verb="USAGE", n=0, i=1)),
    "different replay": ({"I4"}, history().allowed(1, key="a").operation(20, 25, "ALLOWED", 2, key="a", replayed=1)),
    "no conflict": ({"I3", "I4"}, history().allowed(1, key="a").operation(20, 25, "ALLOWED", 1, key="a", n=2, replayed=1)),
    "hold ends twice": ({"I8"}, history().reserve().release("a", 20, 0).operation(30, 35, "ALLOWED", 1, verb="COMMIT", key="a")),
    "hold gives back more than was committed": ({"I8"}, committed().release("a", 30, 0, released=2)),
    "commit of two numbers": ({"I3", "I4"}, committed().operation(30, 35, "ALLOWED", 1, verb="COMMIT", n=2, key="a", replayed=1)),
    "commit stored with another number": ({"I2", "I5"}, committed().row(1).key("a", 0, "r", "c", n=2, committed=2).end()),
    "hold committed after its time": ({"I8"}, history().reserve().operation(2100, 2105, "ALLOWED", 1, verb="COMMIT", key="a")),
    # It still counts as used, and refuses messages that fit.
    "hold forgotten": ({"I6"}, history(1).reserve().operation(5000, 5005, "BLOCKED", 0, held=1)),
    "period goes back": ({"I10"}, history().allowed(1, period="2026-12").operation(20, 25, "ALLOWED", 1, period="2026-11")),
    "silence": ({"I12"}, history().operation(10, 8010, "SILENT")),
    "not back in time":
        ({"I12"}, history().event(t="meta", instances=[0]).event(t="healed", at=10 * MS)
         .operation(20, 30, "ERROR", code="UNAVAILABLE").operation(7000, 7005, "ALLOWED", 1)),
    "not back in time for the users of the worker that was away": ({"I12"}, away("worker 1")),
    "a billing event that was answered and is lost": ({"I18"}, billed("b", granted=2)),
    "a billing event that took effect twice": ({"I18"}, billed("a", granted=4)),
    "a billing event that was never sent": ({"I18"}, billed("a", "c", granted=2)),
    "a key that got no answer after the load": ({"I12"}, history().event(t="unanswered", count=1, seconds=20)),
    "replies out of order": ({"I15"}, history().allowed(1, user=OTHER)),
    "extra reply": ({"I15"}, history().event(t="extra", at=10, i=0, line="+ALLOWED")),
    "lost in shutdown":
        ({"I17"}, history().send(10).event(t="sigterm", at=500 * MS, exited=600 * MS, i=0, code=0).reply(1, 550, "CLOSED")),
}  # fmt: skip


class Histories(unittest.TestCase):
    def test_sound_ones_pass(self) -> None:
        for name, sound in SOUND.items():
            with self.subTest(name):
                self.assertEqual(sound.violated(), set())

    def test_random_sound_ones_pass(self) -> None:
        """A simulated correct service, with lost replies, retries, refusals and overlap."""
        for seed in range(200):
            self.assertEqual(simulate(seed), set(), f"seed {seed}")

    def test_those_of_planted_bugs_do_not(self) -> None:
        for name, (violated, planted) in PLANTED.items():
            with self.subTest(name):
                self.assertEqual(planted.violated(), violated)


def simulate(seed: int) -> set[str]:
    """A correct service on a network that loses replies. Effects happen within their calls or, if the reply was lost, at any time
    later."""
    chance = random.Random(seed)
    history = HistoryBuilder(limit=chance.randrange(3, 30))
    used, now = 0, 0
    keys: dict[str, tuple[int, int]] = {}
    pending: list[tuple[int, int, str | None, int, bool]] = []
    late: list[tuple[int, str | None]] = []

    def count(n: int, key: str | None) -> tuple[str, int, bool]:
        nonlocal used
        if key is not None and key in keys:
            return "ALLOWED", keys[key][1], True
        if used + n > history.limit:
            return "BLOCKED", used, False
        used += n
        if key is not None:
            keys[key] = (n, used)
        return "ALLOWED", used, False

    unanswered: list[tuple[int, str]] = []
    for step in range(chance.randrange(5, 60)):
        now += chance.randrange(1, 5)
        key = f"k{step}" if chance.random() < 0.6 else None
        n = chance.choice((1, 1, 2))
        if unanswered and chance.random() < 0.5:
            n, key = unanswered.pop()
        pending.append((history.send(now, n=n, key=key).op, n, key, now, chance.random() < 0.2))
        while pending and chance.random() < 0.7:
            op, n, key, _, is_lost = pending.pop(chance.randrange(len(pending)))
            now += 1
            if is_lost:
                history.reply(op, now, "CLOSED")
                late.append((n, key))
                if key:
                    unanswered.append((n, key))
            else:
                status, shown, is_replay = count(n, key)
                history.reply(op, now + 1, status, shown, **({"replayed": 1} if is_replay else {}))
                now += 1
        if late and chance.random() < 0.5:
            count(*late.pop(chance.randrange(len(late))))
    for op, n, key, _, _ in pending:
        now += 1
        status, shown, is_replay = count(n, key)
        history.reply(op, now + 1, status, shown, **({"replayed": 1} if is_replay else {}))
        now += 1
    history.row(used)
    for name, (n, shown) in keys.items():
        history.key(name, shown, n=n)
    history.end()
    return history.violated()


if __name__ == "__main__":
    unittest.main()
