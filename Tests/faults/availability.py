"""How long nothing was allowed in a history, and whether as many messages are counted as were answered."""

from __future__ import annotations

from collections.abc import Iterable

from history import History, Op

GRANTS = ("ALLOWED", "HELD")


def longest_gap(history: History, instance: int | None = None, users: set[str] | None = None) -> float:
    """The longest time without an allowed message of an instance, or of some users, or of any, in seconds; from the first one to the
    load's end."""
    times = sorted(
        op.answered_at for op in history.ops.values()
        if op.status in GRANTS and op.answered_at is not None and instance in (None, op.instance)
        and (users is None or op.user in users)
    )
    end = next((int(event["at"]) for event in history.events if event["t"] == "stopped"), 0)
    times = [*(time for time in times if time < end), end]
    return max((after - before for before, after in zip(times, times[1:])), default=0) / 1e9


def users_by_node(history: History) -> dict[str, set[str]]:
    """The users of each node that has rows of users, in a distributed database."""
    found: dict[str, set[str]] = {}
    for event in history.events:
        if event["t"] == "node":
            found.setdefault(event["node"], set()).add(event["user"])
    return found


def keyed(history: History) -> tuple[int, int]:
    """How many keys were answered as allowed or held, and how many of these are in the database."""
    answered = {(op.user, op.key) for op in history.ops.values() if op.key and op.verb in ("CONSUME", "RESERVE") and op.is_grant}
    return len(answered), sum(key in history.keys.get(user, {}) for user, key in answered)


def unkeyed(history: History) -> tuple[int, int, int]:
    """Messages without a key that were answered as allowed, those counted in the database, and the most that can be counted: with
    those of unknown outcome. Only of users whose counts nobody changed otherwise."""
    changed = {op.user for op in history.ops.values() if op.verb in ("RESET", "LIMIT", "RELEASE", "COMMIT")}
    sent = [op for op in history.ops.values() if op.verb == "CONSUME" and op.key is None and op.user not in changed]
    answered = messages(op for op in sent if op.is_grant)
    unknown = messages(op for op in sent if op.is_unknown)
    counted = 0
    for user in {op.user for op in history.ops.values()} - changed:
        counted += sum(int(row["count"]) for row in history.rows.get(user, []))
        counted -= sum(int(key["messages"]) for key in history.keys.get(user, {}).values() if key["status"] == "c")
    return answered, counted, answered + unknown


def messages(ops: Iterable[Op]) -> int:
    return sum(op.messages for op in ops)


def measured(history: History) -> dict[str, int]:
    """The figures of a run's row: times in milliseconds."""
    instances = history.meta.get("instances", [])
    figures = {"gap": longest_gap(history)} | {f"gap {i}": longest_gap(history, i) for i in instances}
    figures |= {f"gap {node}": longest_gap(history, users=users) for node, users in users_by_node(history).items()}
    names = ("keys answered", "keys stored", "answered", "counted", "most")
    return {name: round(gap * 1000) for name, gap in figures.items()} | dict(zip(names, (*keyed(history), *unkeyed(history))))
