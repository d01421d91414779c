"""/metrics: its format passes promtool, and its numbers equal what the service did."""

import re

from support import processes
from support.case import Case
from support.reference import documented
from support.service import command
from support.waiting import wait_until

SAMPLE = re.compile(r'([a-z_]+)(?:\{(.*)\})? (\S+)')
LABEL = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"')


def samples(text):
    """(name, labels) → number."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = SAMPLE.fullmatch(line).groups()
        key = (name, frozenset(LABEL.findall(labels or "")))
        assert key not in found, f"{line} appears twice"
        found[key] = float(value)
    return found


class Metrics(Case):
    FLAGS = ("--lanes", "1", "--authentication", "off")

    def read(self, service=None):
        answer = (service or self.service).http("GET", "/metrics")
        self.assertEqual(answer.status, 200, answer.text)
        self.assertEqual(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        return answer.text

    def difference(self, act):
        """What an act adds to each sample."""
        before = samples(self.read())
        act()
        after = samples(self.read())
        return lambda name, **labels: round(after[(name, frozenset(labels.items()))] - before.get((name, frozenset(labels.items())), 0), 6)

    def test_promtool_has_no_complaint(self):
        user = self.subscriber(used=1)
        self.service.http("GET", f"/v1/usage/{user}")
        self.service.http("GET", "/nothing")
        token = command("token", "create", "back-end.1", "--scope", "chat", database_url=self.database_url).stdout.strip()
        with self.service.connect() as connection:
            wait_until(lambda: connection.send_command(f"AUTH {token}") == "+OK", "the service has read the token")
            text = self.read()
        self.assertIn('headroom_token_connections{token="back-end.1"} 1\n', text)
        checked = processes.completed(["promtool", "check", "metrics"], input=text)
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    def test_requests_answers_and_errors_are_counted_by_kind(self):
        user, blocked = self.subscriber(used=1), self.subscriber(used=800)

        def act():
            for _ in range(3):
                self.send_command(f"CONSUME {user} 2")
            self.send_command(f"CONSUME {user} 5 key=a")
            self.send_command(f"CONSUME {user} 5 key=a")
            self.send_command(f"CONSUME {blocked}")
            self.send_command(f"CHECK {blocked}")
            self.send_command(f"USAGE {user}")
            self.send_command("CONSUME nobody")

        added = self.difference(act)
        self.assertEqual(added("headroom_requests_total", verb="consume"), 6)
        self.assertEqual(added("headroom_requests_total", verb="usage"), 1)
        self.assertEqual(added("headroom_answers_total", status="allowed", tier="silent"), 5)
        self.assertEqual(added("headroom_answers_total", status="blocked", tier="blocked"), 2)
        self.assertEqual(added("headroom_answers_total", status="ok", tier="silent"), 1)
        self.assertEqual(added("headroom_errors_total", code="badarg"), 1)
        self.assertEqual(added("headroom_messages_counted_total"), 11)
        self.assertEqual(added("headroom_requests_blocked_total", reason="limit_reached"), 1)
        self.assertEqual(added("headroom_answer_duration_seconds_count"), 8)
        self.assertGreater(added("headroom_answer_duration_seconds_sum"), 0)
        self.assertEqual(added("headroom_batch_requests_sum"), 8)
        self.assertEqual(added("headroom_batch_requests_count"), added("headroom_queue_wait_seconds_count"))
        self.assertEqual(added("headroom_connections_accepted_total"), 9)
        self.assertEqual(added("headroom_http_requests_total", route="/metrics", method="GET", status="2xx"), 1)
        self.assertEqual(added("headroom_http_request_duration_seconds_count", route="/metrics"), 1)

    def test_requests_over_http_are_counted_by_the_pattern_of_their_path(self):
        def act():
            self.service.http("GET", f"/v1/usage/{self.user()}")
            self.service.http("HEAD", "/v1/usage/nobody")
            self.service.http("POST", "/v1/report")
            self.service.http("GET", "/" + self.user())

        added = self.difference(act)
        name = "headroom_http_requests_total"
        self.assertEqual(added(name, route="/v1/usage/{user}", method="GET", status="2xx"), 1)
        self.assertEqual(added(name, route="/v1/usage/{user}", method="HEAD", status="4xx"), 1)
        self.assertEqual(added(name, route="none", method="POST", status="4xx"), 1)
        self.assertEqual(added(name, route="none", method="GET", status="4xx"), 1)
        self.assertNotRegex(self.read(), r"[0-9a-f]{8}-[0-9a-f]{4}", "no user is named")

    def test_gauges_are_what_info_says(self):
        with self.service.connect() as connection:
            connection.send_command("PING")
            # The service may not have noticed yet that earlier tests' connections are closed.
            wait_until(lambda: self.service.info()["connections"] == "2", "only this connection and that of INFO are open")
            wait_until(lambda: samples(self.read())[("headroom_connections", frozenset())] == 1, "only this connection is open")
            found, info = samples(self.read()), self.service.info()
        self.assertEqual(found[("headroom_build_info", frozenset({("version", info["version"])}))], 1)
        self.assertEqual(found[("headroom_database_info", frozenset({("version", info["database_version"])}))], 1)
        for name, of_info in (
            ("headroom_lanes", "lanes"), ("headroom_lanes_connected", "lanes_connected"),
            ("headroom_schema_version", "schema_version"), ("headroom_batch_requests_count", "batches"),
            ("headroom_batch_requests_sum", "requests"), ("headroom_database_reconnects_total", "reconnects"),
        ):  # fmt: skip
            self.assertEqual(found[(name, frozenset())], float(info[of_info]), name)
        self.assertEqual(found[("headroom_connections", frozenset())], 1)
        self.assertEqual((found[("headroom_database_up", frozenset())], found[("headroom_draining", frozenset())]), (1, 0))
        self.assertEqual(found[("headroom_lane_queue_requests", frozenset({("lane", "0")}))], 0)

    def test_the_process_metrics_agree_with_proc(self):
        found = samples(self.read())
        with open(f"/proc/{self.service.process.pid}/status") as file:
            status = dict(line.split(":", 1) for line in file)
        resident = int(status["VmRSS"].split()[0]) * 1024
        self.assertAlmostEqual(found[("process_resident_memory_bytes", frozenset())] / resident, 1, delta=0.3)
        self.assertGreater(found[("process_cpu_seconds_total", frozenset())], 0)
        self.assertGreaterEqual(found[("process_max_fds", frozenset())], found[("process_open_fds", frozenset())])

    def test_a_reconnect_of_a_lane_is_counted(self):
        lanes = f"from pg_stat_activity where application_name = 'headroom lane' and datname = '{self.database}'"
        ended = self.cluster.rows_of_each(f"select pg_terminate_backend(pid) {lanes}", self.database)
        self.assertEqual(len(ended), int(self.service.info()["lanes"]))
        reconnects = ("headroom_database_reconnects_total", frozenset())
        wait_until(lambda: samples(self.read())[reconnects] >= len(ended), "each lane has reconnected")

    def test_every_family_is_documented(self):
        self.assertLessEqual(set(re.findall(r"^# TYPE (\S+) ", self.read(), flags=re.M)), set(documented("family")))


class Days(Case):
    """The statistic that the housekeeper keeps."""

    def test_an_instance_that_ends_writes_what_it_has_counted(self):
        service = self.serve()
        user = self.subscriber(used=1)
        for _ in range(4):
            service.send_command(f"CONSUME {user} 3")
        self.set_count(user, 800)
        service.send_command(f"CONSUME {user}")
        service.stop()
        rows = "select messages, blocked from headroom.daily_activity where day = (now() at time zone 'UTC')::date"
        self.assertEqual(self.psql.run(rows), [["12", "1"]])
        wait_until(lambda: self.psql.run(rows) == [["13", "1"]], "the other instance adds what it counted meanwhile")
