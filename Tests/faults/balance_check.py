"""The invariant of docs/contributors/faults.md about balances: each message beyond the limit of a period is taken from one, once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from history import Violation
from user_check import UserCheck


def check_balances(user: UserCheck) -> Iterator[Violation]:
    history = user.history
    granted = history.granted.get(user.user, 0)
    if not granted or not history.is_final:
        return
    balances = history.balances.get(user.user, [])
    if any(balance["left"] < 0 for balance in balances):
        yield Violation("I20", f"user {user.user} has balances of which more was taken than they had: {balances}")
    taken = granted - sum(balance["left"] for balance in balances)
    charged = sum(charges(key) for key in user.keys.values())
    if any(op.verb == "CONSUME" and op.key is None for op in user.ops):
        # Only messages with a key know from which balance they were taken.
        if charged > taken:
            yield Violation("I20", f"user {user.user}: keys have taken {charged} messages from balances, which lack {taken}")
    elif charged != taken:
        yield Violation("I20", f"user {user.user}: balances lack {taken} messages, and keys have taken {charged}")
    if not any(op.verb in ("RESERVE", "RELEASE") for op in user.ops):
        limit = history.limits[user.user] - granted
        beyond = sum(max(row["count"] - limit, 0) for row in user.rows)
        if beyond != taken:
            yield Violation("I20", f"user {user.user}: {beyond} messages are beyond the limit {limit}, and balances lack {taken}")


def charges(key: dict[str, Any]) -> int:
    """What a key that is counted or held has taken from balances."""
    if key["status"] == "r" or key["status"] == "h" and key.get("is_over"):
        return 0
    return sum(((key.get("parts") or {}).get("charges") or {}).values())
