"""docker-compose.citus.yml, without Docker: what it starts agrees with the servers of `script/test --citus`."""

import re
import unittest
from pathlib import Path

import yaml
from support import citus, service

ROOT = Path(__file__).resolve().parents[3]
NODES = ("coordinator", "worker-1", "worker-2")


class CitusCompose(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.file = yaml.safe_load((ROOT / "docker-compose.citus.yml").read_text(encoding="utf-8"))
        cls.services = cls.file["services"]

    def test_the_servers_have_the_version_and_the_settings_that_are_tested(self):
        least = {name: value for name, value in citus.SETTINGS.items() if name != "max_worker_processes"}
        for node in NODES:
            described = self.services[node]
            self.assertEqual(described["image"], f"citusdata/citus:{citus.VERSION}")
            given = dict(argument.removeprefix("--").split("=", 1) for argument in described["command"][1:])
            for name, value in least.items():
                self.assertEqual(given[name], value.strip("'"), name)

    def test_the_database_is_distributed_once_and_over_all_workers(self):
        distribute = self.services["distribute"]
        self.assertEqual((distribute["profiles"], distribute["restart"], distribute["ports"]), (["distribute"], "no", []))
        arguments = dict(argument.removeprefix("--").split("=", 1) for argument in distribute["command"][1:])
        self.assertEqual(re.findall(r"@([\w-]+):5432/headroom", arguments["workers"]), list(NODES[1:]))
        self.assertEqual(arguments["coordinator"], "coordinator:5432")
        # The command knows these flags.
        help_text = service.command("distribute", "--help").stdout
        for name in arguments:
            self.assertIn(f"--{name} <{name}>", help_text)

    def test_it_opens_nothing_beyond_this_machine(self):
        for name, described in self.services.items():
            for port in described.get("ports", []):
                self.assertRegex(port, r"^127\.0\.0\.1:(\d+):\1$", name)
            self.assertLessEqual(set(described.get("depends_on", {})), set(NODES))
            if name in NODES:
                self.assertNotIn("ports", described)
                self.assertIn(described["volumes"][0].split(":")[0], self.file["volumes"])
