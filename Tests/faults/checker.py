"""Checks a history against the invariants of docs/contributors/faults.md. It only reads the lines that `history.py` describes."""

from __future__ import annotations

import sys

from availability import users_by_node
from balance_check import check_balances
from history import NEVER, SECOND, History, Violation, read_file
from part_check import check_parts
from user_check import UserCheck

# The allowed delay of an answer after its deadline.
GRACE = SECOND // 2
# The service must recover within this time after the database.
BACK_WITHIN = 5 * SECOND
# A request that was sent this long before a SIGTERM was certainly accepted.
SURELY_ACCEPTED = SECOND // 10

# Answers of a service that could not count just now.
UNAVAILABLE = ("UNAVAILABLE", "OVERLOADED", "DRAINING", "INTERNAL")


# Connections and instances --------------------------------------------------------------------------------------------


def lag(history: History) -> int:
    """How long the machine delayed the clients, and a flush of its disk: nanoseconds that are not the service's."""
    return int(history.meta.get("lag_ms", 0)) * 1_000_000


def slack(history: History) -> int:
    """By how many nanoseconds an answer may be late on this machine."""
    return lag(history) + int(history.meta.get("slack_ms", 0)) * 1_000_000


def check_deadlines(history: History) -> list[Violation]:
    """I12: each request is answered or its connection closed in time."""
    deadline = history.meta.get("deadline_ms", 2000) * 1_000_000 + GRACE + slack(history)
    frozen = [event for event in history.events if event["t"] == "frozen"]
    violations = []
    for op in history.ops.values():
        if op.verb in ("RESET", "LIMIT"):
            continue
        if op.status in ("NONE", "SILENT"):
            took, text = NEVER, "was neither answered nor closed"
        else:
            took, text = (op.answered_at or NEVER) - op.sent, "took too long"
        answered = op.answered_at or NEVER
        excused = sum(
            max(min(answered, event["to"]) - max(op.sent, event["from"]), 0)
            for event in frozen if event["i"] is None or event["i"] == op.instance
        )
        if op.status in ("NONE", "SILENT") and excused > 0:
            continue
        if took - excused > deadline:
            violations.append(Violation("I12", f"a request {text} ({min(took, 10**12) / SECOND:.2f} s)", evidence=[op]))
    return violations


def check_recovery(history: History) -> list[Violation]:
    """I12: each instance serves again soon after the fault is over."""
    violations = []
    for event in history.events:
        if event["t"] == "unanswered" and event["count"] > 0:
            text = f"{event['count']} operations with keys, or billing events, got no answer within {event['seconds']} s after the load"
            violations.append(Violation("I12", text))
        if event["t"] != "healed":
            continue
        users = users_by_node(history)[event["node"]] if event.get("node") else None
        for instance in history.meta.get("instances", []):
            served = [
                op.answered_at or NEVER for op in history.ops.values()
                if op.instance == instance and op.sent >= event["at"] and op.status in ("ALLOWED", "BLOCKED", "HELD", "OK")
                and (users is None or op.user in users)
            ]
            if not served or min(served) - event["at"] > BACK_WITHIN + slack(history):
                took = f"{(min(served) - event['at']) / SECOND:.1f} s" if served else "never"
                database = event.get("node") or "the database"
                violations.append(Violation("I12", f"instance {instance} was not back within 5 s of {database}: {took}"))
    return violations


def check_replies(history: History) -> list[Violation]:
    """I15, and errors that are bugs."""
    violations = []
    for event in history.events:
        if event["t"] == "extra":
            violations.append(Violation("I15", f"a reply without a request: {event['line'][:80]}"))
    for op in history.ops.values():
        named = op.fields.get("user")
        if named is not None and op.user and named != op.user:
            violations.append(Violation("I15", f"the reply is about user {named}", evidence=[op]))
        if op.code == "INTERNAL":
            violations.append(Violation("INTERNAL", "an answer said that the service has a bug", evidence=[op]))
        elif op.code in ("ERR", "BADARG", "PROTOCOL", "TOOLONG"):
            violations.append(Violation("I11", "a sound request was called malformed", evidence=[op]))
    return violations


def check_shutdown(history: History) -> list[Violation]:
    """I17: requests accepted before a SIGTERM are answered; the process ends with status 0 in time."""
    violations = []
    for event in history.events:
        if event["t"] != "sigterm":
            continue
        if event["code"] != 0 or event["exited"] - event["at"] > 10 * SECOND + GRACE + slack(history):
            took = (event["exited"] - event["at"]) / SECOND
            violations.append(Violation("I17", f"SIGTERM ended with status {event['code']} after {took:.1f} s"))
        for op in history.ops.values():
            if (
                op.instance == event["i"] and op.status == "CLOSED" and op.sent < event["at"] - SURELY_ACCEPTED - lag(history)
                and (op.answered_at or 0) > event["at"]
            ):
                violations.append(Violation("I17", "an accepted request was lost in the shutdown", evidence=[op]))
    return violations


def check_deadlocks(history: History) -> list[Violation]:
    """I13"""
    violations = []
    for event in history.events:
        if event["t"] != "deadlocks":
            continue
        if event["count"] > 0:
            violations.append(Violation("I13", f"PostgreSQL saw {event['count']} deadlocks"))
    return violations


def check_events(history: History) -> list[Violation]:
    """I18: a billing event that was answered with 200 is stored, and each stored one has taken effect once."""
    sent = {event["id"]: event for event in history.events if event["t"] == "event"}
    answered = {event["id"] for event in history.events if event["t"] == "event_reply" and event["status"] == 200}
    refused = {event["id"]: event for event in history.events if event["t"] == "event_reply" and 400 <= event["status"] < 500}
    violations = [Violation("I11", f"billing event {name} was refused: {reply}") for name, reply in refused.items()]
    if not history.is_final:
        return violations
    stored = {event["id"]: event["outcome"] for event in history.events if event["t"] == "stored_event"}
    for name in sorted(answered - {name for name, outcome in stored.items() if outcome == "applied"}):
        violations.append(Violation("I18", f"billing event {name} was answered with 200 and is {stored.get(name, 'not stored')}"))
    for name in sorted(set(stored) - set(sent)):
        violations.append(Violation("I18", f"billing event {name} is stored, but was never sent"))
    granted = {event["user"]: int(event["messages"]) for event in history.events if event["t"] == "granted"}
    for user in {event["user"] for event in sent.values()}:
        expected = sum(sent[name]["messages"] for name in stored if name in sent and sent[name]["user"] == user)
        if granted.get(user, 0) != expected:
            text = f"user {user} was granted {granted.get(user, 0)} messages, the stored events grant {expected}"
            violations.append(Violation("I18", text))
    return violations


def check(history: History) -> list[Violation]:
    violations = check_replies(history) + check_deadlines(history) + check_recovery(history)
    violations += check_shutdown(history) + check_deadlocks(history) + check_events(history)
    for user, ops in history.by_user():
        account = UserCheck(history=history, user=user, ops=ops)
        violations += account.check()
        violations += check_parts(account)
        violations += check_balances(account)
    return violations


def summary(history: History) -> dict[str, int]:
    ops = [op for op in history.ops.values() if op.verb not in ("RESET", "LIMIT")]
    return {
        "ops": len(ops),
        "allowed": sum(op.status in ("ALLOWED", "HELD") and not op.is_replay for op in ops),
        "blocked": sum(op.status == "BLOCKED" for op in ops),
        "unknowns": sum(op.is_unknown for op in ops),
        "replays": sum(op.is_replay for op in ops),
        "errors": sum(op.code in UNAVAILABLE for op in ops),
        "events": sum(event["t"] == "event" for event in history.events),
    }


def main(paths: list[str]) -> int:
    failures = 0
    for path in paths:
        violations = check(read_file(path))
        for violation in violations:
            print(violation)
        print(f"{path}: {len(violations)} violations")
        failures += len(violations)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
