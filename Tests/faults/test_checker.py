"""Tests of the checker: correct histories pass, and the histories of bugs do not."""

from __future__ import annotations

import random
import sys
import unittest
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import checker
from history import read

USER = "00000001-0001-4000-8000-000000000001"
OTHER = "00000002-0001-4000-8000-000000000002"
ANN, BEN = "00000001-0001-4001-8000-000000000001", "00000001-0001-4002-8000-000000000001"
PARTS = {"model deep": {"limit": 2, "weight": 2}, "model fast*": {"limit": 4, "weight": 1}, "member *": {"limit": 5, "weight": 1}}
KINDS = ("model", "member")
MS = 1_000_000


class HistoryBuilder:
    """Writes a history by hand, in milliseconds."""

    def __init__(self, limit: int = 5, parts: dict[str, dict[str, int]] | None = None) -> None:
        self.lines: list[dict[str, Any]] = [
            {"t": "meta", "deadline_ms": 2000, "instances": []}, {"t": "user", "user": USER, "limit": limit, "parts": parts or {}}
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
        sending = {name: more.pop(name) for name in ("verb", "n", "key", "ttl", "i", "new_limit", *KINDS) if name in more}
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

    def balances(self, granted: int, left: int) -> HistoryBuilder:
        self.lines[1]["balances"] = granted
        return self.event(t="balance", user=USER, key="pack", left=left)

    def charged(self, messages: int) -> HistoryBuilder:
        """What the last key has taken from a balance."""
        self.lines[-1]["parts"] = {"weight": 1, "charges": {"pack": messages}}
        return self

    def row(self, count: int, generation: int = 1) -> HistoryBuilder:
        return self.event(t="row", user=USER, period="2026-11", count=count, held=0, limit=self.limit, generation=generation)

    def key(
        self, name: str, used: int, verb: str = "c", status: str = "c", n: int = 1, generation: int = 1, committed: int | None = None
    ) -> HistoryBuilder:
        return self.event(
            t="key", user=USER, key=name, verb=verb, status=status, messages=n, used=used, committed=committed, period="2026-11",
            generation=generation,
        )  # fmt: skip

    def sent(self, at: float, model: str, member: str, *used: int, status: str = "ALLOWED", **more: Any) -> HistoryBuilder:
        """A message of an account: what is used then of the account's, of the model's and of the member's allowance."""
        for kind, limit, count in zip(("model", "member"), (PARTS[counter(model)]["limit"], 5), used[1:]):
            more |= {f"{kind}_used": count, f"{kind}_limit": limit, f"{kind}_remaining": max(limit - count, 0)}
        return self.operation(at, at + 5, status, used[0], **{"model": model, "member": member} | more)

    def parts(self, generation: int = 1, **counts: int) -> HistoryBuilder:
        names = {"deep": "model deep", "fast": "model fast*", "ann": f"member {ANN}", "ben": f"member {BEN}"}
        for name, count in counts.items():
            self.event(t="part", user=USER, period="2026-11", part=names[name], count=count, held=0, limit=9, generation=generation)
        return self

    def key_of(self, name: str, model: str, member: str, *used: int, **more: Any) -> HistoryBuilder:
        self.key(name, used[0], n=PARTS[counter(model)]["weight"], **more)
        parts = {"model": (model, counter(model).removeprefix("model ")), "member": (member, member)}
        counts = {kind: {"name": names[0], "counter": names[1], "generation": 1, "first": {"used": count}}
                  for (kind, names), count in zip(parts.items(), used[1:])}  # fmt: skip
        self.lines[-1]["parts"] = {"weight": self.lines[-1]["messages"], **counts}
        return self

    def member_generation(self, generation: int) -> HistoryBuilder:
        """That of the member's count when the last key was used."""
        self.lines[-1]["parts"]["member"]["generation"] = generation
        return self

    def event(self, **entry: Any) -> HistoryBuilder:
        self.lines.append(entry)
        return self

    def end(self) -> HistoryBuilder:
        return self.event(t="end", at=100_000 * MS)

    def violated(self) -> set[str]:
        return {violation.invariant for violation in checker.check(read(self.lines))}


def history(limit: int = 5) -> HistoryBuilder:
    return HistoryBuilder(limit)


def counter(model: str) -> str:
    return "model deep" if model == "deep" else "model fast*"


def account() -> HistoryBuilder:
    return HistoryBuilder(10, PARTS)


def two_models(**more: Any) -> HistoryBuilder:
    """Two messages of one member and one of another."""
    return account().sent(10, "deep", ANN, 2, 1, 2).sent(20, "fast-1", ANN, 3, 1, 3, **more).sent(30, "fast-2", BEN, 4, 2, 1)


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
    "an account's messages count in all allowances": two_models().row(4).parts(deep=1, fast=2, ann=3, ben=1).end(),
    "a model's refusal, with room for others":
        account().sent(10, "deep", ANN, 2, 1, 2).sent(20, "deep", BEN, 4, 2, 2)
        .sent(30, "deep", BEN, 4, 2, 2, status="BLOCKED", reason="model_limit_reached").sent(40, "fast-1", BEN, 5, 1, 3)
        .row(5).parts(deep=2, fast=1, ann=2, ben=3).end(),
    "a member's refusal by the weight of a model":
        account().sent(10, "fast-1", ANN, 4, 4, 4, n=4)
        .sent(20, "deep", ANN, 4, 0, 4, status="BLOCKED", reason="member_exceeds_remaining").row(4).parts(fast=4, ann=4).end(),
    "an account's message of unknown outcome counts in all": account().operation(10, 20, "CLOSED", model="deep", member=ANN)
        .sent(30, "fast-1", ANN, 3, 1, 3).row(3).parts(deep=1, fast=1, ann=3).end(),
    "or in none": account().operation(10, 20, "CLOSED", model="deep", member=ANN)
        .sent(30, "fast-1", ANN, 1, 1, 1).row(1).parts(fast=1, ann=1).end(),
    "an account's key, repeated, in a conflict and released":
        account().sent(10, "deep", ANN, 2, 1, 2, key="a").sent(20, "deep", ANN, 2, 1, 2, key="a", replayed=1)
        .operation(30, 35, "ERROR", key="a", code="CONFLICT", model="fast-1", member=ANN)
        .operation(40, 45, "OK", 0, verb="RELEASE", n=0, key="a", model="deep", member=ANN, released=1)
        .row(0).parts(deep=0, ann=0).key_of("a", "deep", ANN, 2, 1, 2, status="r").end(),
    "a reset of a member alone":
        account().sent(10, "deep", ANN, 2, 1, 2, key="a").operation(20, 25, "OK", verb="RESET", n=0, member=ANN)
        .sent(30, "fast-1", ANN, 3, 1, 1, key="b")
        .operation(40, 45, "OK", 1, verb="RELEASE", n=0, key="a", model="deep", member=ANN, released=1)
        .row(1).parts(deep=0, fast=1).parts(2, ann=1).key_of("a", "deep", ANN, 2, 1, 2, status="r").key_of("b", "fast-1", ANN, 3, 1, 1)
        .member_generation(2).end(),
    "an account's key, repeated in the next period": account().sent(10, "deep", ANN, 2, 1, 2, key="a")
        .operation(20, 25, "ALLOWED", 2, key="a", model="deep", member=ANN, replayed=1)
        .row(2).parts(deep=1, ann=2).key_of("a", "deep", ANN, 2, 1, 2).end(),
    "a late answer within the slack of a busy machine": history().event(t="meta", slack_ms=1000).operation(10, 3100, "ALLOWED", 1),
    "what was not committed is given back": committed().release("a", 30, 0, released=1),
    "a worker that was away without our user": away("worker 2"),
    "billing events that took effect once": billed("a", granted=2),
    "a billing event without an answer that took effect": billed("a", "b", granted=4),
}  # fmt: skip

SOUND |= {
    "messages beyond the limit that are taken from a balance":
        history(2).allowed(1, 2, 3, limit=7).row(3).balances(5, left=4).end(),
    "a message with a key that takes from a balance":
        history(2).allowed(1, 2, limit=7).operation(40, 45, "ALLOWED", 4, n=2, key="a", limit=7).row(4).key("a", 4, n=2).charged(2)
        .balances(5, left=3).end(),
}  # fmt: skip

PLANTED = {
    "a message beyond the limit that no balance lacks": ({"I20"},
        history(2).allowed(1, 2, 3, limit=7).row(3).balances(5, left=5).end()),
    "a message that is taken from a balance before the allowance": ({"I20"},
        history(2).allowed(1, limit=7).row(1).balances(5, left=4).end()),
    "a key that has taken more than its balance lacks": ({"I20"},
        history(2).allowed(1, 2, limit=7).operation(40, 45, "ALLOWED", 3, key="a", limit=7).row(3).key("a", 3).charged(2)
        .balances(5, left=4).end()),
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
    "counted for the account and the model, not for the member":
        ({"I5", "I19"}, two_models().row(4).parts(deep=1, fast=2, ann=2, ben=1).end()),
    "of unknown outcome, counted in one of two": ({"I19"},
        account().operation(10, 20, "CLOSED", model="deep", member=ANN).row(2).parts(deep=0, ann=2).end()),
    "more than the model's limit": ({"I1"}, account().sent(10, "fast-1", ANN, 5, 5, 5, n=5)),
    "a model's weight that is not counted": ({"I2", "I3"}, account().sent(10, "deep", ANN, 1, 1, 1).sent(20, "deep", ANN, 5, 2, 4)),
    "a member's refusal with room": ({"I6"},
        account().sent(10, "deep", ANN, 0, 0, 0, status="BLOCKED", reason="member_limit_reached")),
    "a member sees less than was counted": ({"I7"},
        account().sent(10, "deep", ANN, 2, 1, 2).sent(20, "fast-1", ANN, 2, 0, 1, status="OK", verb="CHECK")),
    "a member's messages on another one": ({"I2", "I5"}, account().sent(10, "deep", ANN, 2, 1, 2).row(2).parts(deep=1, ben=2).end()),
    "no conflict with another model": ({"I3", "I4"},
        account().sent(10, "fast-1", ANN, 1, 1, 1, key="a").sent(20, "fast-2", ANN, 1, 1, 1, key="a", replayed=1)),
    "a release across a reset of the member": ({"I9"},
        account().sent(10, "fast-1", ANN, 1, 1, 1, key="a").operation(20, 25, "OK", verb="RESET", n=0, member=ANN)
        .sent(30, "fast-1", ANN, 2, 2, 1, key="b")
        .operation(40, 45, "OK", 1, verb="RELEASE", n=0, key="a", model="fast-1", member=ANN, released=1)
        .row(1).parts(fast=1).parts(2, ann=0).key_of("a", "fast-1", ANN, 1, 1, 1, status="r").key_of("b", "fast-1", ANN, 2, 2, 1)
        .member_generation(2).end()),
    "a key that is answered with another count of the model": ({"I4"},
        account().sent(10, "fast-1", ANN, 1, 1, 1, key="a").sent(20, "fast-1", ANN, 1, 2, 1, key="a", replayed=1)),
    "a key without its parts": ({"I2", "I5"},
        account().sent(10, "fast-1", ANN, 1, 1, 1, key="a").row(1).parts(fast=1, ann=1).key("a", 1).end()),
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


class Simulation:
    """A correct service for one user, or for an account with limits of models and members."""

    def __init__(self, history: HistoryBuilder, is_account: bool) -> None:
        self.history, self.is_account = history, is_account
        self.counts: Counter[str] = Counter()
        self.keys: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}

    def limits(self, request: dict[str, Any]) -> dict[str, tuple[int, int]]:
        """What the request takes of each count, and the limit."""
        n = request["n"]
        if not self.is_account:
            return {"": (n, self.history.limit)}
        model = counter(request["model"])
        taken = n * PARTS[model]["weight"]
        member = f"member {request['member']}"
        return {"": (taken, self.history.limit), model: (n, PARTS[model]["limit"]), member: (taken, PARTS["member *"]["limit"])}

    def answer(self, request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        key = request["key"]
        if key in self.keys:
            return "ALLOWED", {**self.keys[key][1], "replayed": 1}
        limits = self.limits(request)
        refusing = [part for part, (taken, limit) in limits.items() if self.counts[part] + taken > limit]
        if refusing:
            used_up = [part for part in refusing if self.counts[part] >= limits[part][1]]
            kind = (used_up or refusing)[0].partition(" ")[0]
            reason = (kind and kind + "_") + ("limit_reached" if used_up else "exceeds_remaining")
            return "BLOCKED", {**self.shown(limits), "reason": reason}
        for part, (taken, _) in limits.items():
            self.counts[part] += taken
        if key is not None:
            self.keys[key] = (request, self.shown(limits))
        return "ALLOWED", self.shown(limits)

    def shown(self, limits: dict[str, tuple[int, int]]) -> dict[str, Any]:
        fields: dict[str, Any] = {"used": self.counts[""]}
        for part, (_, limit) in limits.items():
            if part:
                kind, used = part.partition(" ")[0], self.counts[part]
                fields |= {f"{kind}_used": used, f"{kind}_limit": limit, f"{kind}_remaining": limit - used}
        return fields

    def end(self) -> None:
        self.history.row(self.counts[""])
        for part, count in self.counts.items():
            if part:
                self.history.event(t="part", user=USER, period="2026-11", part=part, count=count, held=0, limit=0, generation=1)
        for name, (request, shown) in self.keys.items():
            if self.is_account:
                used = (shown["used"], shown["model_used"], shown["member_used"])
                self.history.key_of(name, request["model"], request["member"], *used)
                self.history.lines[-1]["messages"] *= request["n"]
            else:
                self.history.key(name, shown["used"], n=request["n"])
        self.history.end()


def simulate(seed: int) -> set[str]:
    """A correct service on a network that loses replies. Effects happen within their calls or, if the reply was lost, at any time
    later."""
    chance = random.Random(seed)
    is_account = seed % 2 == 0
    history = HistoryBuilder(chance.randrange(3, 30), PARTS if is_account else {})
    service, now = Simulation(history, is_account), 0
    pending: list[tuple[int, dict[str, Any], bool]] = []
    late: list[dict[str, Any]] = []
    unanswered: list[dict[str, Any]] = []
    for step in range(chance.randrange(5, 60)):
        now += chance.randrange(1, 5)
        request: dict[str, Any] = {"n": chance.choice((1, 1, 2)), "key": f"k{step}" if chance.random() < 0.6 else None}
        if is_account:
            request |= {"model": chance.choice(("deep", "fast-1", "fast-2")), "member": chance.choice((ANN, BEN))}
        if unanswered and chance.random() < 0.5:
            request = unanswered.pop()
        pending.append((history.send(now, **request).op, request, chance.random() < 0.2))
        while pending and chance.random() < 0.7:
            op, request, is_lost = pending.pop(chance.randrange(len(pending)))
            now += 1
            if is_lost:
                history.reply(op, now, "CLOSED")
                late.append(request)
                if request["key"]:
                    unanswered.append(request)
            else:
                status, shown = service.answer(request)
                history.reply(op, now + 1, status, **shown)
                now += 1
        if late and chance.random() < 0.5:
            service.answer(late.pop(chance.randrange(len(late))))
    for op, request, _ in pending:
        now += 1
        status, shown = service.answer(request)
        history.reply(op, now + 1, status, **shown)
        now += 1
    service.end()
    return history.violated()


if __name__ == "__main__":
    unittest.main()
