"""The rules and dashboards in deploy/ for Prometheus and Grafana, with a Prometheus that scrapes a service."""

import json
import os
import re
import subprocess
import urllib.parse
import urllib.request

import yaml
from support import http, processes
from support.case import Case
from support.receiver import Receiver
from support.reference import documented
from support.service import command
from support.waiting import TIMEOUT_SECONDS, wait_until

ROOT = __file__.rsplit("/Tests/", 1)[0]
PROMETHEUS = ROOT + "/deploy/prometheus"
DASHBOARD = ROOT + "/deploy/grafana/dashboards/headroom.json"


def read_yaml(path):
    with open(path) as file:
        return yaml.safe_load(file)


def dashboard():
    with open(DASHBOARD) as file:
        return json.load(file)


def expressions():
    """(panel's title, expression) with the variables filled in."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")


class Shipped(Case):
    FLAGS = None

    def promtool(self, *arguments):
        ran = processes.completed(["promtool", *arguments])
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        return ran.stdout

    def test_promtool_takes_configuration_and_rules_and_the_rules_fire_when_they_should(self):
        self.promtool("check", "config", PROMETHEUS + "/prometheus.yml")
        self.promtool("check", "rules", PROMETHEUS + "/rules.yml")
        self.promtool("test", "rules", PROMETHEUS + "/rules_test.yml")

    def test_the_dashboard_is_one_that_grafana_can_draw(self):
        board = dashboard()
        taken = set()
        ids = [panel["id"] for panel in board["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        for panel in board["panels"]:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(cells & taken, f"{panel['title']} lies over another one")
            taken |= cells
            if panel["type"] != "row":
                self.assertTrue(panel["description"] and panel["targets"], panel["title"])
        self.assertEqual({v["name"] for v in board["templating"]["list"]}, {"datasource", "instance"})

    def test_the_dashboard_shows_each_metric_of_notifications(self):
        shown = " ".join(expression for _, expression in expressions())
        names = {name for name in documented("family") if name.startswith("headroom_notification")}
        self.assertGreaterEqual(len(names), 4)
        self.assertEqual({name for name in names if not re.search(rf"\b{name}\b", shown)}, set())

    def test_compose_mounts_what_there_is_and_opens_nothing_beyond_this_machine(self):
        compose = read_yaml(ROOT + "/docker-compose.yml")
        services = compose["services"]
        for name, service in services.items():
            self.assertEqual(service.get("profiles"), ["monitoring"] if name in ("prometheus", "grafana") else None, name)
            for port in service.get("ports", []):
                self.assertRegex(port, r"^127\.0\.0\.1:(\d+):\1$", name)
            for volume in service.get("volumes", []):
                source = volume.split(":")[0]
                if source.startswith("."):
                    self.assertTrue(os.path.isdir(os.path.join(ROOT, source)), volume)
                else:
                    self.assertIn(source, compose["volumes"])
            for other in service.get("depends_on", {}):
                self.assertIn(other, services)
        mounted = dict(volume.split(":")[:2] for volume in services["prometheus"]["volumes"])
        self.assertIn("--config.file=" + mounted["./deploy/prometheus"] + "/prometheus.yml", services["prometheus"]["command"])
        targets = read_yaml(PROMETHEUS + "/prometheus.yml")["scrape_configs"][0]["static_configs"][0]["targets"]
        self.assertEqual(targets, ["headroom:" + services["headroom"]["environment"]["HEADROOM_HTTP"].split(":")[1]])
        provider = read_yaml(ROOT + "/deploy/grafana/provisioning/dashboards/headroom.yml")["providers"][0]
        mounted = dict(volume.split(":")[:2] for volume in services["grafana"]["volumes"])
        self.assertEqual(provider["options"]["path"], mounted["./deploy/grafana/dashboards"])
        source = read_yaml(ROOT + "/deploy/grafana/provisioning/datasources/prometheus.yml")["datasources"][0]
        self.assertEqual((source["type"], source["url"]), ("prometheus", "http://prometheus:9090"))


class Running(Case):
    """Prometheus itself, with the rules and a token, as docs/monitoring.md has it."""

    FLAGS = None
    EMPTY = {"Replication lag", "Events of stores"}
    """Panels that have nothing to show here."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.receiver = Receiver()
        cls.service = cls.serve(env=cls.receiver.settings())

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.receiver.close()

    def prometheus(self, token):
        directory = processes.directory()
        with open(directory + "/headroom.token", "w") as file:
            file.write(token + "\n")
        job = {
            "job_name": "headroom", "scrape_interval": "1s",
            "authorization": {"credentials_file": directory + "/headroom.token"},
            "static_configs": [{"targets": [f"127.0.0.1:{self.service.http_port}"]}],
        }  # fmt: skip
        with open(directory + "/prometheus.yml", "w") as file:
            yaml.safe_dump({"rule_files": [PROMETHEUS + "/rules.yml"], "scrape_configs": [job]}, file)
        with open(directory + "/log", "w") as log:
            process = processes.start(
                ["prometheus", f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data",
                 "--web.listen-address=127.0.0.1:0"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=directory,
            )  # fmt: skip

        def address():
            with open(directory + "/log") as file:
                found = re.search(r"Listening on\" address=127\.0\.0\.1:(\d+)", file.read())
            return found and found[1]

        port = int(wait_until(address, "Prometheus listens"))
        wait_until(lambda: http.request(port, "GET", "/-/ready").status == 200, "Prometheus has read its own data")
        return process, f"http://127.0.0.1:{port}/api/v1"

    def send_command(self, api, path, **parameters):
        with urllib.request.urlopen(f"{api}/{path}?" + urllib.parse.urlencode(parameters), timeout=TIMEOUT_SECONDS) as response:
            answer = json.load(response)
        self.assertEqual(answer["status"], "success")
        return answer["data"]

    def test_reads_the_service_and_every_panel_and_rule_has_something_to_go_by(self):
        scopes = [argument for scope in ("chat", "dashboard", "operator") for argument in ("--scope", scope)]
        token = command("token", "create", "prometheus", *scopes, database_url=self.database_url).stdout.strip()
        connection = self.service.connect()
        wait_until(lambda: connection.send_command(f"AUTH {token}") == "+OK", "the service has read the token")
        user = self.user()
        self.assertIn("+OK", connection.send_command(f"SETPLAN {user} paid"))
        process, api = self.prometheus(token)
        try:
            wait_until(lambda: [t["health"] for t in self.send_command(api, "targets")["activeTargets"]] == ["up"], "it reads the service")
            def empty_panels():
                self.assertIn("ALLOWED", connection.send_command(f"CONSUME {user}"))
                connection.send_command("CONSUME nobody")
                shown = {}
                for title, expression in expressions():
                    found = self.send_command(api, "query", query=expression)["result"]
                    shown[title] = shown.get(title, 0) + len([each for each in found if each["value"][1] != "NaN"])
                return {title for title, count in shown.items() if count == 0}

            # A rate is of two readings, and some figures are there only once there was something.
            wait_until(lambda: empty_panels() == self.EMPTY, "all panels show something", seconds=2 * TIMEOUT_SECONDS)
            rules = self.send_command(api, "rules")["groups"][0]["rules"]
            self.assertGreater(len(rules), 10)
            names = set(self.send_command(api, "label/__name__/values"))
            for rule in rules:
                self.assertNotEqual(rule["health"], "err", f"{rule['name']}: {rule.get('lastError')}")
                for name in re.findall(r"\b(?:headroom|process)_[a-z_]+", rule["query"]):
                    # These two are there only where there is a standby, and once a store has sent something.
                    if name not in ("headroom_replication_lag_seconds", "headroom_webhook_requests_total"):
                        self.assertIn(name, names, rule["name"])
        finally:
            connection.close()
            processes.stop(process)
