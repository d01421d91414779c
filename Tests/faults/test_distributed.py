"""Tests of what the faults of distributed databases need, without servers."""

from __future__ import annotations

import io
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import Assignment, ServerCase
from citus_case import CitusCase
from citus_faults import CITUS_FAULTS
from cluster_case import ClusterCase
from failover_case import FailoverCase
from failover_faults import FAILOVER_FAULTS
from recorder import Recorder
from side_by_side import kind
from support.patroni import Group


def assignment(fault: str, is_distributed: bool, patroni: Path | None) -> Assignment:
    return Assignment(fault, 1, 1, "headroom", Path(), Path(), Path(), patroni=patroni, is_distributed=is_distributed)


class Faults(unittest.TestCase):
    def test_the_name_of_a_fault_decides_whether_its_servers_have_standbys(self) -> None:
        patroni = Path("patroni")
        self.assertIs(kind(assignment("kill-worker", True, patroni)), CitusCase)
        self.assertIs(kind(assignment("worker-failover", True, patroni)), FailoverCase)
        self.assertIs(kind(assignment("kill-primary", False, patroni)), ClusterCase)
        self.assertIs(kind(assignment("kill-backend", False, None)), ServerCase)

    def test_each_fault_of_a_distributed_database_has_a_name_of_its_own(self) -> None:
        names = [fault.name for fault in CITUS_FAULTS] + [fault.name for fault in FAILOVER_FAULTS]
        self.assertEqual(len(names), len(set(names)))


class Groups(unittest.TestCase):
    def test_are_numbered_as_in_Citus_and_the_coordinator_is_the_first(self) -> None:
        groups = [Group(number, "chat", 2379, {}) for number in range(3)]
        self.assertEqual([group.name for group in groups], ["coordinator", "worker1", "worker2"])
        self.assertEqual(groups[2].of_patroni, {"citus": {"group": 2, "database": "chat"}})

    def test_have_their_settings_below_their_number(self) -> None:
        self.assertEqual(Group(2, "chat", 2379, {}).path, "2/")


class Recovery(unittest.TestCase):
    def test_users_that_an_instance_has_served_since_the_fault_are_known(self) -> None:
        recorder = Recorder(io.StringIO())
        before, waiting = recorder.send(0, 0, "CONSUME", "ada"), recorder.send(0, 1, "CONSUME", "bob")
        recorder.reply(before, "ALLOWED")
        recorder.healed("worker 1")
        refused, served = recorder.send(0, 1, "CONSUME", "bob"), recorder.send(0, 1, "CONSUME", "eve")
        recorder.reply(waiting, "ALLOWED")
        recorder.reply(refused, "ERROR", "UNAVAILABLE")
        recorder.reply(served, "ALLOWED")
        self.assertEqual(recorder.users_served, {(1, "eve")})


if __name__ == "__main__":
    unittest.main()
