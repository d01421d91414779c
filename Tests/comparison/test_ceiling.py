"""The ceiling: its program."""

import subprocess
import unittest
from pathlib import Path

from comparison.ceiling import compiled_ceiling
from support import processes


class Program(unittest.TestCase):
    def test_it_compiles_without_warnings_and_needs_a_port_and_a_database(self):
        program = compiled_ceiling(Path(processes.directory()) / "ceiling", "-Werror")
        done = subprocess.run([program], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (2, "usage: ceiling PORT CONNINFO\n"))

    def test_it_ends_without_a_database(self):
        program = compiled_ceiling(Path(processes.directory()) / "ceiling")
        done = subprocess.run([program, "1", "host=/nowhere"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere", done.stderr)
