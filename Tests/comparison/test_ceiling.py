"""The ceiling: its program, and that it counts with Headroom's statements."""

import re
import subprocess
import unittest
from pathlib import Path

from comparison.ceiling import ROOT, SOURCE, StatementCeiling, compiled_ceiling
from support import processes, settings
from support.case import Case, needs_one_machine
from support.users import numbered_user
from support.wire import LineConnection


class Program(unittest.TestCase):
    def test_it_compiles_without_warnings_and_needs_a_port_and_a_database(self):
        program = compiled_ceiling(Path(processes.directory()) / "ceiling", "-Werror")
        done = subprocess.run([program], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (2, "usage: ceiling PORT CONNINFO [QUERIES]\n"))

    def test_it_ends_without_a_database(self):
        program = compiled_ceiling(Path(processes.directory()) / "ceiling")
        done = subprocess.run([program, "1", "host=/nowhere"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere", done.stderr)

    def test_its_sessions_have_the_settings_of_the_lanes(self):
        text, _ = (ROOT / "Sources/Engine/Lanes/LaneSettings.swift").read_text().split("static func lockTimeout")
        # Values with an interpolation are times.
        lanes = re.findall(r'\("(\w+)", "(\w*)', text)
        self.assertIn(("plan_cache_mode", "force_generic_plan"), lanes)
        source = SOURCE.read_text()
        self.assertEqual([setting for setting in lanes if "set {} = {}".format(*setting) not in source], [])


def requests(*commands):
    return "".join(
        f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
        for words in (command.split() for command in commands)
    )


@needs_one_machine("The ceiling counts in the only bucket of a database that is not divided.")
class Statements(Case):
    def test_it_counts_with_headrooms_statements(self):
        first, second = (numbered_user(number) for number in range(2))
        for user in (first, second):
            self.send_command(f"SETPLAN {user} paid")
            self.send_command(f"CONSUME {user}")
        ceiling = StatementCeiling(settings.binary, self.cluster, Path(processes.directory()), self.database)
        ceiling.start()
        self.addCleanup(ceiling.stop)
        with LineConnection(ceiling.port) as line:

            def used(*commands):
                line.send(requests(*commands))
                return [int(re.match(r"\+ALLOWED .* used=(\d+) ", reply)[1]) for reply in line.read_lines(len(commands))]

            self.assertEqual(used(f"CONSUME {first}", f"CONSUME {second}", f"CONSUME {first}"), [2, 2, 3])
            keyed = [f"CONSUME {user} key={number:032x}" for number, user in enumerate((first, second, first, first))]
            self.assertEqual(used(*keyed), [4, 3, 5, 6])
        self.assertEqual((self.count(first), self.count(second)), (6, 3))
        self.assertEqual(self.psql.number("select count(*) from headroom.message_keys"), 4)
