"""The invariants of docs/contributors/faults.md about the count of a model or a member of one account."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from history import History, Op, Violation
from user_check import UserCheck

UNCHANGED = ("period", "reason", "released", "replayed", "degraded")


def check_parts(account: UserCheck) -> Iterator[Violation]:
    stored = {row["part"] for row in account.history.parts.get(account.user, [])}
    for part in sorted({part for op in account.ops for part in parts(account.history, op)} | stored):
        if limit(account, part) is None:
            yield Violation("I19", f"user {account.user} has messages of {part}, for which there is no limit")
        else:
            yield from PartCheck(account, part).check()
    if account.history.is_final:
        yield from check_sums(account)


def parts(history: History, op: Op) -> list[str]:
    """The counts that an operation concerns, as they are stored."""
    names = {"model": history.model_limit(op), "member": op.member}
    return [f"{kind} {name}" for kind, name in names.items() if name]


def limit(account: UserCheck, part: str) -> dict[str, int] | None:
    return account.history.part_limits.get(account.user, {}).get("member *" if part.startswith("member ") else part)


def check_sums(account: UserCheck) -> Iterator[Violation]:
    """I19: a message counts in each of its allowances or in none, also one whose outcome is unknown."""
    if account.part_resets or not all(len(parts(account.history, op)) == 2 for op in account.ops if op.verb in ("CONSUME", "RESERVE")):
        return
    sums: dict[tuple[str, str], int] = defaultdict(int)
    for row in account.history.parts.get(account.user, []):
        kind = row["part"].partition(" ")[0]
        weight = (limit(account, row["part"]) or {"weight": 1})["weight"]
        sums[row["period"], kind] += row["count"] * weight
    for row in account.rows:
        counts = {kind: sums[row["period"], kind] for kind in ("model", "member")}
        if set(counts.values()) != {row["count"]}:
            text = f"period {row['period']} has {row['count']}, its models {counts['model']}, its members {counts['member']}"
            yield Violation("I19", f"user {account.user}: {text}")


class PartCheck(UserCheck):
    """Checks one count as that of a user who has only the messages of the part."""

    def __init__(self, account: UserCheck, part: str) -> None:
        self.history, self.user = account.history, account.user
        self.kind, _, self.counter = part.partition(" ")
        self.name = f", {part}"
        self.ops = [self.seen(op) for op in account.ops if part in parts(account.history, op)]
        self.resets = account.resets + [op for op in account.part_resets if part in parts(account.history, op)]
        self.limit_changes = []
        self.start_limit = (limit(account, part) or {}).get("limit")
        generations = {row["period"]: row["generation"] for row in account.rows}
        self.rows = [
            row | {"generation": (generations.get(row["period"]), row["generation"])}
            for row in self.history.parts.get(self.user, []) if row["part"] == part
        ]  # fmt: skip
        stored = {name: self.stored_key(key) for name, key in account.keys.items()}
        self.keys = {name: key for name, key in stored.items() if key}
        self.prepare()

    def seen(self, op: Op) -> Op:
        """An operation with the numbers of the part alone."""
        fields = {name: op.fields[name] for name in UNCHANGED if name in op.fields}
        fields |= {name: op.fields[f"{self.kind}_{name}"] for name in ("used", "limit", "remaining") if f"{self.kind}_{name}" in op.fields}
        if {"used", "limit", "remaining"} <= set(fields):
            fields["held"] = str(max(int(fields["limit"]) - int(fields["used"]) - int(fields["remaining"]), 0))
        return replace(op, fields=fields, weight=1 if self.kind == "model" else op.weight)

    def stored_key(self, key: dict[str, Any]) -> dict[str, Any] | None:
        """A key with the messages of the part; None if it has none."""
        part = (key.get("parts") or {}).get(self.kind)
        if not part or part.get("counter") != self.counter:
            return None
        # The key has the account's messages.
        weight = key["parts"].get("weight", 1) if self.kind == "model" else 1
        committed = key["committed"]
        return key | {
            "messages": key["messages"] // weight, "committed": None if committed is None else committed // weight,
            "used": part["first"].get("used"), "generation": (key["generation"], part.get("generation")),
        }  # fmt: skip

    def has_same_numbers(self, first: Op, repetition: Op) -> bool:
        # An answer about a past period has none of parts.
        return not all("used" in op.fields for op in (first, repetition)) or super().has_same_numbers(first, repetition)

    def check(self) -> list[Violation]:
        self.check_count()
        return self.violations
