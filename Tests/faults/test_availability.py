"""Tests of the figures in the rows of a cluster's faults."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from availability import measured
from history import read
from test_checker import MS, USER, HistoryBuilder


def figures(history: HistoryBuilder) -> dict[str, int]:
    history.lines[0]["instances"] = [0, 1]
    return measured(read(history.lines))


class Gaps(unittest.TestCase):
    def test_the_longest_time_without_an_allowed_message_is_found_for_each_instance_and_for_both(self) -> None:
        history = HistoryBuilder(limit=10)
        for used, (at, instance) in enumerate([(0, 0), (100, 1), (500, 0), (900, 1)], start=1):
            history.operation(at, at, "ALLOWED", used, i=instance)
        history.event(t="stopped", at=1000 * MS)
        measured = figures(history)
        self.assertEqual((measured["gap"], measured["gap 0"], measured["gap 1"]), (400, 500, 800))

    def test_the_users_of_each_node_of_a_distributed_database_have_a_gap_of_their_own(self) -> None:
        history = HistoryBuilder()
        history.operation(0, 0, "ALLOWED", 1)
        history.operation(300, 300, "ALLOWED", 2)
        history.event(t="node", user=USER, node="worker 1")
        history.event(t="node", user="another", node="worker 2")
        history.event(t="stopped", at=500 * MS)
        measured = figures(history)
        self.assertEqual((measured["gap"], measured["gap worker 1"], measured["gap worker 2"]), (300, 300, 0))

    def test_refusals_and_errors_end_no_gap(self) -> None:
        history = HistoryBuilder(limit=1)
        history.operation(0, 0, "ALLOWED", 1)
        history.operation(100, 100, "BLOCKED", 1)
        history.operation(200, 200, "ERROR", code="UNAVAILABLE")
        history.event(t="stopped", at=700 * MS)
        self.assertEqual(figures(history)["gap"], 700)

    def test_what_is_answered_after_the_load_does_not_count(self) -> None:
        history = HistoryBuilder()
        history.operation(0, 10, "ALLOWED", 1)
        history.event(t="stopped", at=300 * MS)
        history.operation(200, 9000, "ALLOWED", 2)
        self.assertEqual(figures(history)["gap"], 290)


class Counts(unittest.TestCase):
    def test_keys_are_compared_with_the_stored_ones(self) -> None:
        history = HistoryBuilder()
        history.operation(0, 10, "ALLOWED", 1, key="a")
        history.operation(20, 30, "ALLOWED", 2, key="b")
        history.key("a", 1)
        measured = figures(history)
        self.assertEqual((measured["keys answered"], measured["keys stored"]), (2, 1))

    def test_messages_without_a_key_are_between_the_answered_and_the_possible(self) -> None:
        history = HistoryBuilder()
        history.operation(0, 10, "ALLOWED", 2, n=2)
        history.operation(20, 30, "ALLOWED", 3, key="a")
        history.operation(40, 50, "CLOSED", n=2)
        history.row(5)
        history.key("a", 3)
        measured = figures(history)
        self.assertEqual((measured["answered"], measured["counted"], measured["most"]), (2, 4, 4))

    def test_users_whose_counts_were_reset_are_left_out(self) -> None:
        history = HistoryBuilder()
        history.operation(0, 10, "ALLOWED", 1)
        history.operation(20, 30, "OK", verb="RESET")
        history.row(0)
        measured = figures(history)
        self.assertEqual((measured["answered"], measured["counted"], measured["most"]), (0, 0, 0))


if __name__ == "__main__":
    unittest.main()
