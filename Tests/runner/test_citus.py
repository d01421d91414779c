"""Tests of what `--citus` needs and leaves out, on a machine without the extension."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from runner import worker
from support import citus, processes
from support.case import Case, needs_one_machine

TESTS = Path(__file__).resolve().parent.parent


class ProgramsOfCitus(unittest.TestCase):
    """Of a PostgreSQL that is only a pg_config and the files that it names."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.home = Path(directory.name)
        self.pg_config = self.home / "pg_config"
        self.pg_config.write_text(f'#!/bin/sh\necho "{self.home}/${{1#--}}"\n')
        self.pg_config.chmod(0o755)
        self.make("bindir/initdb").chmod(0o755)

    def make(self, name: str, text: str = "") -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def install_extension(self, version: str) -> None:
        self.make("pkglibdir/citus.so")
        self.make("sharedir/extension/citus.control", f"comment = 'Citus'\ndefault_version = '{version}'\n")

    def assert_refused(self, reason: str, pg_config: str | None = None) -> None:
        with self.assertRaises(processes.Failure) as raised:
            citus.find(pg_config or str(self.pg_config))
        self.assertIn(reason, str(raised.exception))

    def test_are_in_the_directory_that_pg_config_names(self):
        self.install_extension("13.2-1")
        self.assertEqual(citus.find(str(self.pg_config)), f"{self.home}/bindir")

    def test_are_those_of_the_pg_config_in_PATH_if_none_is_named(self):
        self.install_extension("13.2-1")
        with mock.patch.dict(os.environ, {"PATH": f"{self.home}:{os.environ['PATH']}"}):
            self.assertEqual(citus.find(None), f"{self.home}/bindir")

    def test_are_refused_without_the_extension(self):
        self.assert_refused(f"the PostgreSQL of {self.pg_config} does not have Citus")

    def test_are_refused_with_another_version_of_it(self):
        self.install_extension("13.1-1")
        self.assert_refused(f"Citus 13.2.0 (13.2-1) is needed; the PostgreSQL of {self.pg_config} has 13.1-1")

    def test_are_refused_without_a_server(self):
        self.install_extension("13.2-1")
        (self.home / "bindir/initdb").unlink()
        self.assert_refused(f"there is no PostgreSQL server in {self.home}/bindir")

    def test_are_refused_without_a_pg_config(self):
        self.assert_refused("/nowhere/pg_config was not found", "/nowhere/pg_config")
        with mock.patch.dict(os.environ, {"PATH": "/nowhere"}), self.assertRaisesRegex(processes.Failure, "no pg_config in PATH"):
            citus.find(None)


class FlagsOfCitus(unittest.TestCase):
    def run_tests(self, *flags: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(TESTS)}
        return subprocess.run([sys.executable, "-m", "runner", *flags], capture_output=True, text=True, env=environment)

    def test_script_test_says_what_is_missing_before_it_builds(self):
        done = self.run_tests("--citus", "--pg-config", "/nowhere/pg_config")
        self.assertEqual((done.returncode, done.stderr), (2, "test: /nowhere/pg_config was not found\n"))

    def test_words_and_a_pg_config_are_for_distributed_databases_only(self):
        for flags in (["tiers"], ["--pg-config", "/nowhere/pg_config"]):
            done = self.run_tests(*flags)
            self.assertEqual(done.returncode, 2)
            self.assertIn("--pg-config and WORDS are for --citus", done.stderr)

    def test_the_swift_tests_cannot_be_chosen_beside_it(self):
        self.assertIn("--citus runs its tests, chosen by WORDS", self.run_tests("--citus", "--filter", "TierTests").stderr)


class TestsThatNeedOneMachine(unittest.TestCase):
    @needs_one_machine("of the class")
    class Marked(Case):
        def test_a(self):
            self.fail("only its reason is read")

    class Partly(Case):
        def test_a(self):
            self.fail("only its reason is read")

        @needs_one_machine("of the test")
        def test_b(self):
            self.fail("only its reason is read")

    class Empty(Partly):
        MIGRATED = False

    class WithoutDatabase(unittest.TestCase):
        def test_a(self):
            self.fail("only its reason is read")

    def test_have_the_reason_of_their_class_or_of_themselves(self):
        for kind, name, reason in (
            (self.Marked, "test_a", "of the class"),
            (self.Partly, "test_a", None),
            (self.Partly, "test_b", "of the test"),
            (self.WithoutDatabase, "test_a", ""),
        ):
            self.assertEqual(worker.reason_for_one_machine(kind(name)), reason)

    def test_are_those_that_begin_with_an_empty_database(self):
        self.assertIn("empty database", worker.reason_for_one_machine(self.Empty("test_b")) or "")

    def test_are_counted_by_class_and_reason(self):
        tests = {"m.Partly": [self.Partly("test_a"), self.Partly("test_b")], "m.Marked": [self.Marked("test_a")]}
        with mock.patch.object(worker, "by_class", lambda: tests):
            self.assertEqual(worker.left_out_lines(True), ["m.Partly: of the test (1 test)", "m.Marked: of the class (1 test)"])


class TestsThatNeedCitus(unittest.TestCase):
    def test_run_only_with_it(self):
        name = "restoring_citus.FromADump"
        self.assertEqual([list(worker.chosen([name], is_distributed)) for is_distributed in (False, True)], [[], [name]])


class FaultsOfCitus(unittest.TestCase):
    def test_script_faults_says_what_is_missing(self):
        command = [sys.executable, str(TESTS / "faults/run.py"), "--binary", "none", "--citus", "--pg-config", "/nowhere/pg_config"]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(TESTS)})
        self.assertEqual((done.returncode, done.stderr), (2, "faults: /nowhere/pg_config was not found\n"))


class ClusterOfCitus(unittest.TestCase):
    def test_script_cluster_says_what_is_missing(self):
        command = [sys.executable, str(TESTS / "cluster/live.py"), "--binary", "none", "--citus", "--pg-config", "/nowhere/pg_config"]
        environment = {**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS / 'faults'}"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        self.assertEqual((done.returncode, done.stderr), (1, "cluster: /nowhere/pg_config was not found\n"))

    def test_standbys_are_for_a_distributed_database(self):
        command = [sys.executable, str(TESTS / "cluster/live.py"), "--binary", "none", "--standbys"]
        environment = {**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS / 'faults'}"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--standbys is for --citus", done.stderr)
