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

    def send(self, at: float, verb: str = "CONSUME", n: int = 1, key: str | None = None, **more: Any) -> int:
        self.op += 1
        entry = {"t": "send", "at": int(at * MS), "op": self.op, "c": 0, "i": 0, "verb": verb, "user": USER, "n": n, "key": key}
        self.lines.append(entry | more)
        return self.op

    def reply(self, op: int, at: float, status: str, used: int | None = None, code: str | None = None, **fields: Any) -> None:
        shown = {name: str(value) for name, value in fields.items()}
        if used is not None:
            limit = fields.get("limit", self.limit)
            shown |= {"used": str(used), "limit": str(limit), "period": fields.get("period", "2026-11")}
            shown.setdefault("remaining", str(max(limit - used - int(fields.get("held", 0)), 0)))
        entry: dict[str, Any] = {"t": "reply", "at": int(at * MS), "op": op, "status": status, "fields": shown}
        if code:
            entry["code"] = code
        self.lines.append(entry)

    def operation(self, at: float, until: float, status: str, used: int | None = None, **more: Any) -> int:
        """A request and its reply."""
        sending = {name: more.pop(name) for name in ("verb", "n", "key", "ttl", "i", "new_limit") if name in more}
        op = self.send(at, **sending)
        self.reply(op, until, status, used, **more)
        return op

    def row(self, count: int, period: str = "2026-11", generation: int = 1, held: int = 0) -> None:
        self.lines.append({
            "t": "row", "user": USER, "period": period, "count": count, "held": held, "limit": self.limit,
            "generation": generation,
        })

    def key(self, name: str, used: int, verb: str = "c", status: str = "c", n: int = 1, generation: int = 1,
            committed: int | None = None) -> None:
        self.lines.append({
            "t": "key", "user": USER, "key": name, "verb": verb, "status": status, "messages": n, "used": used,
            "committed": committed, "period": "2026-11", "generation": generation,
        })

    def event(self, **entry: Any) -> None:
        self.lines.append(entry)

    def end(self, at: float = 100_000) -> None:
        self.lines.append({"t": "end", "at": int(at * MS)})

    def violated(self) -> set[str]:
        return {violation.invariant for violation in checker.check(read(self.lines))}


class SoundHistories(unittest.TestCase):
    def test_counts_up_to_the_limit(self) -> None:
        history = HistoryBuilder(limit=3)
        for used in (1, 2, 3):
            history.operation(used * 10, used * 10 + 5, "ALLOWED", used)
        history.operation(50, 55, "BLOCKED", 3)
        history.row(3)
        history.end()
        self.assertEqual(history.violated(), set())

    def test_concurrent_requests_may_be_counted_in_any_order(self) -> None:
        history = HistoryBuilder()
        first, second = history.send(10), history.send(11)
        history.reply(second, 20, "ALLOWED", 1)
        history.reply(first, 21, "ALLOWED", 2)
        history.row(2)
        history.end()
        self.assertEqual(history.violated(), set())

    def test_unknown_without_a_key_may_count_or_not(self) -> None:
        for count in (1, 2):
            history = HistoryBuilder()
            lost = history.send(10)
            history.reply(lost, 20, "CLOSED")
            history.operation(30, 40, "ALLOWED", count)
            history.row(count)
            history.end()
            self.assertEqual(history.violated(), set(), count)

    def test_unknown_with_a_key_is_answered_by_its_retry(self) -> None:
        history = HistoryBuilder()
        lost = history.send(10, key="a")
        history.reply(lost, 20, "CLOSED")
        history.operation(30, 40, "ALLOWED", 1, key="a", replayed=1)
        history.operation(50, 60, "ERROR", key="a", n=2, code="CONFLICT")
        history.row(1)
        history.key("a", 1)
        history.end()
        self.assertEqual(history.violated(), set())

    def test_holds_committed_released_and_expired(self) -> None:
        history = HistoryBuilder()
        for number, key in enumerate("abc"):
            history.operation(10 * number, 10 * number + 5, "HELD", 0, verb="RESERVE", key=key, ttl=2, held=number + 1)
        history.operation(50, 55, "ALLOWED", 1, verb="COMMIT", key="a", held=2)
        history.operation(60, 65, "OK", 1, verb="RELEASE", n=0, key="b", held=1, released=1)
        history.operation(2500, 2505, "ERROR", verb="COMMIT", key="c", code="EXPIRED")
        history.operation(3000, 3005, "OK", 1, verb="CHECK", n=1)
        history.row(1)
        history.key("a", 0, "r", "c", committed=1)
        history.key("b", 0, "r", "r")
        history.key("c", 0, "r", "h")
        history.end()
        self.assertEqual(history.violated(), set())

    def test_a_commit_of_nothing_at_the_time_of_another(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 15, "HELD", 0, verb="RESERVE", key="a", ttl=2, held=1)
        history.operation(20, 25, "HELD", 0, verb="RESERVE", n=2, key="b", ttl=2, held=3)
        nothing = history.send(30, verb="COMMIT", n=0, key="a")
        history.operation(31, 35, "ALLOWED", 2, verb="COMMIT", n=2, key="b", held=1)
        history.reply(nothing, 40, "ALLOWED", 2)
        history.row(2)
        history.key("a", 0, "r", "c", committed=0)
        history.key("b", 0, "r", "c", n=2, committed=2)
        history.end()
        self.assertEqual(history.violated(), set())

    def test_released_and_expired_keys_are_refused(self) -> None:
        for late in ("ERROR", "ALLOWED"):
            history = HistoryBuilder()
            history.operation(10, 15, "ALLOWED", 1, key="a")
            history.operation(20, 25, "OK", 0, verb="RELEASE", n=0, key="a", released=1)
            if late == "ALLOWED":
                history.operation(30, 35, late, 1, key="a", replayed=1)
            else:
                history.operation(30, 35, late, key="a", code="CONFLICT")
            history.row(0)
            history.key("a", 1, status="r")
            history.end()
            self.assertEqual(history.violated(), {"I4"} if late == "ALLOWED" else set())

    def test_expired_holds_are_not_held_again(self) -> None:
        for late in ("ERROR", "HELD"):
            history = HistoryBuilder()
            history.operation(10, 15, "HELD", 0, verb="RESERVE", key="a", ttl=2, held=1)
            if late == "HELD":
                history.operation(2500, 2505, late, 0, verb="RESERVE", key="a", ttl=2, held=1, replayed=1)
            else:
                history.operation(2500, 2505, late, verb="RESERVE", key="a", ttl=2, code="EXPIRED")
            history.row(0)
            history.key("a", 0, "r", "h")
            history.end()
            self.assertEqual(history.violated(), {"I8"} if late == "HELD" else set())

    def test_reset_and_lowered_limit(self) -> None:
        history = HistoryBuilder(limit=10)
        for used in (1, 2, 3):
            history.operation(used * 10, used * 10 + 5, "ALLOWED", used, key=f"k{used}")
        history.operation(50, 60, "OK", verb="LIMIT", new_limit=2)
        history.operation(70, 75, "BLOCKED", 3, limit=2, remaining=0)
        history.operation(80, 90, "OK", verb="RESET")
        history.operation(100, 105, "ALLOWED", 1, limit=2, key="k4")
        history.row(1, generation=2)
        for used in (1, 2, 3):
            history.key(f"k{used}", used)
        history.key("k4", 1, generation=2)
        history.end()
        self.assertEqual(history.violated(), set())

    def test_random_sound_histories(self) -> None:
        """A simulated correct service, with lost replies, retries, refusals and overlap."""
        for seed in range(200):
            self.assertEqual(simulate(seed), set(), f"seed {seed}")


class PlantedBugs(unittest.TestCase):
    def test_reply_before_commit(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 15, "ALLOWED", 1)
        history.row(0)
        history.end()
        self.assertEqual(history.violated(), {"I5"})

    def test_reply_before_commit_with_a_key(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 15, "ALLOWED", 1, key="a")
        history.row(0)
        history.end()
        self.assertIn("I5", history.violated())

    def test_key_not_recorded(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 15, "ALLOWED", 1, key="a")
        history.operation(20, 25, "ALLOWED", 2, key="a")
        self.assertIn("I4", history.violated())

    def test_key_not_recorded_is_seen_in_the_database_too(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 15, "ALLOWED", 1, key="a")
        history.row(1)
        history.end()
        self.assertIn("I5", history.violated())

    def test_less_or_equal(self) -> None:
        history = HistoryBuilder(limit=2)
        for used in (1, 2, 3):
            history.operation(used * 10, used * 10 + 5, "ALLOWED", used, remaining=max(2 - used, 0))
        self.assertIn("I1", history.violated())

    def test_less_for_less_or_equal(self) -> None:
        history = HistoryBuilder(limit=2)
        history.operation(10, 15, "ALLOWED", 1)
        history.operation(20, 25, "BLOCKED", 1)
        self.assertIn("I6", history.violated())

    def test_unsorted_locks(self) -> None:
        history = HistoryBuilder()
        history.event(t="deadlocks", count=2)
        self.assertEqual(history.violated(), {"I13"})

    def test_a_late_answer_within_the_slack_of_a_busy_machine(self) -> None:
        for slack_ms, expected in ((0, {"I12"}), (1000, set())):
            with self.subTest(slack_ms=slack_ms):
                history = HistoryBuilder()
                history.event(t="meta", slack_ms=slack_ms)
                history.operation(10, 3100, "ALLOWED", 1)
                self.assertEqual(history.violated(), expected)

    def test_unsorted_locks_are_seen_as_late_answers(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 3100, "ALLOWED", 1)
        self.assertEqual(history.violated(), {"I12"})

    def test_window_sum_grants(self) -> None:
        """With 5 remaining, requests of 4, 3 and 1 at once: 4 and 1 fit. A running sum would refuse the 1 as well."""
        history = HistoryBuilder(limit=5)
        ops = [(history.send(10, n=n), n) for n in (4, 3, 1)]
        history.reply(ops[0][0], 20, "ALLOWED", 4)
        history.reply(ops[1][0], 20, "BLOCKED", 4)
        history.reply(ops[2][0], 20, "BLOCKED", 4)
        self.assertEqual(history.violated(), {"I6"})

    def test_window_sum_grants_whose_refusal_claims_the_sum(self) -> None:
        history = HistoryBuilder(limit=5)
        ops = [(history.send(10, n=n), n) for n in (4, 3, 1)]
        history.reply(ops[0][0], 20, "ALLOWED", 4)
        history.reply(ops[1][0], 20, "BLOCKED", 4)
        history.reply(ops[2][0], 20, "BLOCKED", 8, remaining=0)
        self.assertTrue(history.violated() & {"I2", "I6"})

    def test_release_across_a_reset(self) -> None:
        history = HistoryBuilder(limit=10)
        history.operation(10, 15, "ALLOWED", 1, key="a")
        history.operation(20, 30, "OK", verb="RESET")
        history.operation(40, 45, "ALLOWED", 1, key="b")
        history.operation(50, 55, "OK", 0, verb="RELEASE", n=0, key="a", released=1)
        history.row(0, generation=2)
        history.key("a", 1, status="r")
        history.key("b", 1, generation=2)
        history.end()
        self.assertIn("I9", history.violated())

    def test_counted_twice_by_a_resent_batch(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 500, "ALLOWED", 2)
        history.row(2)
        history.end()
        self.assertTrue(history.violated() >= {"I2", "I3"})

    def test_unavailable_but_counted(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 2010, "ERROR", code="UNAVAILABLE")
        history.row(1)
        history.end()
        self.assertEqual(history.violated(), {"I2"})

    def test_unavailable_but_counted_with_a_key(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 2010, "ERROR", key="a", code="UNAVAILABLE")
        history.row(1)
        history.key("a", 1)
        history.end()
        self.assertIn("I2", history.violated())

    def test_used_out_of_real_time_order(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 15, "ALLOWED", 2)
        history.operation(20, 25, "ALLOWED", 1)
        self.assertIn("I3", history.violated())

    def test_the_same_used_twice(self) -> None:
        history = HistoryBuilder()
        first, second = history.send(10), history.send(10)
        history.reply(first, 20, "ALLOWED", 1)
        history.reply(second, 20, "ALLOWED", 1)
        self.assertEqual(history.violated(), {"I3"})

    def test_stale_read_through_the_other_instance(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 15, "ALLOWED", 1)
        history.operation(20, 25, "OK", 0, verb="USAGE", n=0, i=1)
        self.assertEqual(history.violated(), {"I7"})

    def test_different_replay(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 15, "ALLOWED", 1, key="a")
        history.operation(20, 25, "ALLOWED", 2, key="a", replayed=1)
        self.assertIn("I4", history.violated())

    def test_no_conflict(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 15, "ALLOWED", 1, key="a")
        history.operation(20, 25, "ALLOWED", 1, key="a", n=2, replayed=1)
        self.assertIn("I4", history.violated())

    def test_hold_ends_twice(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 15, "HELD", 0, verb="RESERVE", key="a", ttl=2, held=1)
        history.operation(20, 25, "OK", 0, verb="RELEASE", n=0, key="a", released=1)
        history.operation(30, 35, "ALLOWED", 1, verb="COMMIT", key="a")
        self.assertIn("I8", history.violated())

    def test_hold_gives_back_more_than_was_committed(self) -> None:
        for given, violated in ((1, set()), (2, {"I8"})):
            history = HistoryBuilder()
            history.operation(10, 15, "HELD", 0, verb="RESERVE", n=2, key="a", ttl=2, held=2)
            history.operation(20, 25, "ALLOWED", 1, verb="COMMIT", key="a")
            history.operation(30, 35, "OK", 0, verb="RELEASE", n=0, key="a", released=given)
            self.assertEqual(history.violated(), violated)

    def test_commit_of_two_numbers(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 15, "HELD", 0, verb="RESERVE", n=2, key="a", ttl=2, held=2)
        history.operation(20, 25, "ALLOWED", 1, verb="COMMIT", key="a")
        history.operation(30, 35, "ALLOWED", 1, verb="COMMIT", n=2, key="a", replayed=1)
        self.assertIn("I4", history.violated())

    def test_commit_stored_with_another_number(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 15, "HELD", 0, verb="RESERVE", n=2, key="a", ttl=2, held=2)
        history.operation(20, 25, "ALLOWED", 1, verb="COMMIT", key="a")
        history.row(1)
        history.key("a", 0, "r", "c", n=2, committed=2)
        history.end()
        self.assertEqual(history.violated(), {"I2", "I5"})

    def test_hold_committed_after_its_time(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 15, "HELD", 0, verb="RESERVE", key="a", ttl=2, held=1)
        history.operation(2100, 2105, "ALLOWED", 1, verb="COMMIT", key="a")
        self.assertEqual(history.violated(), {"I8"})

    def test_hold_forgotten(self) -> None:
        """An expired hold that still counts as used refuses messages that fit."""
        history = HistoryBuilder(limit=1)
        history.operation(10, 15, "HELD", 0, verb="RESERVE", key="a", ttl=2, held=1)
        history.operation(5000, 5005, "BLOCKED", 0, held=1)
        self.assertEqual(history.violated(), {"I6"})

    def test_period_goes_back(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 15, "ALLOWED", 1, period="2026-12")
        history.operation(20, 25, "ALLOWED", 1, period="2026-11")
        self.assertEqual(history.violated(), {"I10"})

    def test_silence(self) -> None:
        history = HistoryBuilder()
        op = history.send(10)
        history.reply(op, 8010, "SILENT")
        self.assertEqual(history.violated(), {"I12"})

    def test_not_back_in_time(self) -> None:
        history = HistoryBuilder()
        history.event(t="meta", instances=[0])
        history.event(t="healed", at=10 * MS)
        history.operation(20, 30, "ERROR", code="UNAVAILABLE")
        history.operation(7000, 7005, "ALLOWED", 1)
        self.assertEqual(history.violated(), {"I12"})

    def test_not_back_in_time_for_the_users_of_the_worker_that_was_away(self) -> None:
        for node, violated in (("worker 1", {"I12"}), ("worker 2", set())):
            history = HistoryBuilder()
            history.lines[0]["instances"] = [0]
            history.event(t="user", user=OTHER, limit=5)
            history.event(t="node", user=OTHER, node="worker 1")
            history.event(t="node", user=USER, node="worker 2")
            history.event(t="healed", at=10 * MS, node=node)
            history.operation(20, 30, "ALLOWED", 1)
            history.row(1)
            history.end()
            self.assertEqual(history.violated(), violated)

    def billed(self, *stored: str, granted: int) -> set[str]:
        """Two events that grant two messages each, of which the first was answered."""
        history = HistoryBuilder()
        for name in ("a", "b"):
            history.event(t="event", at=0, id=name, user=USER, messages=2)
        history.event(t="event_reply", at=1, id="a", i=0, status=200, outcome="applied")
        for name in stored:
            history.event(t="stored_event", id=name, outcome="applied")
        history.event(t="granted", user=USER, messages=granted)
        history.end()
        return history.violated()

    def test_a_billing_event_that_was_answered_and_is_lost_or_took_effect_twice(self) -> None:
        self.assertEqual(self.billed("a", granted=2), set())
        self.assertEqual(self.billed("a", "b", granted=4), set())
        self.assertEqual(self.billed("b", granted=2), {"I18"})
        self.assertEqual(self.billed("a", granted=4), {"I18"})
        self.assertEqual(self.billed("a", "c", granted=2), {"I18"})

    def test_a_key_that_got_no_answer_after_the_load(self) -> None:
        history = HistoryBuilder()
        history.event(t="unanswered", count=1, seconds=20)
        self.assertEqual(history.violated(), {"I12"})

    def test_replies_out_of_order(self) -> None:
        history = HistoryBuilder()
        history.operation(10, 15, "ALLOWED", 1, user=OTHER)
        self.assertIn("I15", history.violated())

    def test_extra_reply(self) -> None:
        history = HistoryBuilder()
        history.event(t="extra", at=10, i=0, line="+ALLOWED")
        self.assertEqual(history.violated(), {"I15"})

    def test_lost_in_shutdown(self) -> None:
        history = HistoryBuilder()
        op = history.send(10)
        history.event(t="sigterm", at=500 * MS, exited=600 * MS, i=0, code=0)
        history.reply(op, 550, "CLOSED")
        self.assertEqual(history.violated(), {"I17"})


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
        pending.append((history.send(now, n=n, key=key), n, key, now, chance.random() < 0.2))
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
