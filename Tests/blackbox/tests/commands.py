"""The commands that show a running service and its database."""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import termios
import threading
import time

from support import processes, settings
from support.case import MID_MONTH, Case, needs_one_machine
from support.postgres import Cluster
from support.reference import documented
from support.service import command, environment
from support.waiting import TIMEOUT_SECONDS, wait_until
from support.wire import Answer

MISSING = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"


class Commands(Case):
    CLOCK = MID_MONTH

    def headroom(self, *arguments, target=True):
        if target:
            arguments += ("--target", f"127.0.0.1:{self.service.port}")
        return command(*arguments)

    def json(self, *arguments):
        ran = self.headroom(*arguments, "--json")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""), arguments)
        return json.loads(ran.stdout)

    def refused(self, status, pattern, ran):
        self.assertEqual(ran.returncode, status, ran.stdout + ran.stderr)
        self.assertRegex(ran.stderr, pattern)

    def test_every_command_and_every_name_of_info_is_documented(self):
        listed = re.search(r"SUBCOMMANDS:\n(.*?)\n\n", command("--help").stdout, re.S)[1]
        commands = re.findall(r"^  ([a-z]+)\b", listed, re.M)
        self.assertIn("audit", commands)
        self.assertEqual({name.split()[1] for name in documented("command")}, set(commands) - {"help"})
        self.send_command("NONSENSE")
        names = documented("name of INFO")
        for name in self.json("status"):
            self.assertIn(re.sub(r"^(verb|errors|node)_.*", r"\1_…", name), names)

    # status and INFO

    def test_status_shows_the_values_of_info(self):
        user = self.subscriber("paid", used=639)
        self.send_command(f"CONSUME {user}")
        self.send_command("CONSUME nobody")
        wait_until(lambda: "schema_version" in self.service.info(), "the database was looked at")
        shown = self.json("status")
        info = self.service.info()
        steady = {"version", "database", "lanes", "lanes_connected", "database_version", "schema_version", "errors",
                  "errors_badarg", "answers_allowed", "answers_ok", "tier_gentle", "verb_consume", "reconnects"}  # fmt: skip
        self.assertLessEqual(steady, set(info))
        self.assertGreaterEqual(set(shown), set(info) - {"latency_p50_us", "latency_p99_us", "verb_info"})
        for name in steady:
            self.assertEqual(str(shown[name]), info[name], name)
        self.assertIsInstance(shown["schema_version"], int)
        self.assertIsInstance(shown["database_version"], str)
        self.assertEqual(shown["schema_version"], self.psql.number("select max(number) from headroom.migrations"))
        self.assertEqual(shown["database_version"], self.psql.value("select split_part(version(), ' ', 2)"))
        self.assertNotIn("replication_lag_s", shown, "there is no standby")
        text = self.headroom("status").stdout
        self.assertIn(f"service      {shown['version']} at 127.0.0.1:{self.service.port}, up ", text)
        self.assertIn(f"database     up, PostgreSQL {shown['database_version']}, schema {shown['schema_version']}\n", text)
        self.assertIn(f"lanes        {shown['lanes']} of {shown['lanes']} connected, ", text)

    def test_info_counts_answers_by_outcome_and_tier_and_requests_by_verb(self):
        before = self.service.info()
        user = self.subscriber("paid", used=638)
        with self.service.connect() as connection:
            for request in ("CONSUME", "CONSUME", "CHECK", "CONSUME 1000", "RESERVE 1 key=a", "COMMIT key=a", "USAGE"):
                verb, *rest = request.split(" ")
                connection.send_command(" ".join([verb, user, *rest]))
            connection.send_command(f"CONSUME {user} 0")
            connection.send_command("NONSENSE")
            connection.send_command(f"COMMIT {user} key=none")
        after = self.service.info()

        def grown(name):
            return int(after.get(name, 0)) - int(before.get(name, 0))

        self.assertEqual(
            {name: grown(name) for name in after if name.startswith(("answers_", "tier_", "errors")) and "second" not in name
             and grown(name)},
            # The SETPLAN and the CONSUME of subscriber() are in the tier silent, and so is our first message.
            {"answers_allowed": 5, "answers_blocked": 1, "answers_held": 1, "answers_ok": 2, "tier_silent": 3,
             "tier_gentle": 6, "errors": 3, "errors_badarg": 1, "errors_err": 1, "errors_notfound": 1},
        )  # fmt: skip
        self.assertEqual(
            [grown(f"verb_{verb}") for verb in ("consume", "check", "reserve", "commit", "usage", "setplan", "info")],
            [4, 1, 1, 2, 1, 1, 1],
        )

    def test_info_has_rate_and_latency_of_the_last_seconds_only(self):
        service = self.serve()
        self.assertNotIn("latency_p50_us", service.info())
        user = self.user()
        service.send_command(f"SETPLAN {user} pro")

        def measured():
            service.send_command(f"CONSUME {user}")
            info = service.info()
            return "latency_p50_us" in info and float(info["answers_per_second"]) > 0 and info

        info = wait_until(measured, "a rate and a latency")
        self.assertLess(0, int(info["latency_p50_us"]))
        self.assertLessEqual(int(info["latency_p50_us"]), int(info["latency_p99_us"]))
        wait_until(lambda: "latency_p50_us" not in service.info(), "the last seconds are over")
        self.assertEqual(service.info()["answers_per_second"], "0.0")

    def test_a_request_that_waits_for_the_database_shows_in_the_latency(self):
        service = self.serve()
        user = self.user()
        started_at = time.monotonic()
        service.send_command(f"SETPLAN {user} pro")
        service.send_command(f"CONSUME {user}")
        session = self.lock_rows(user)
        with service.connect() as connection:
            connection.send(f"CONSUME {user}\n")
            self.wait_until_blocked()
            self.assertFalse(connection.readable(0.2))
            session.close()
            self.assertIn("+ALLOWED", connection.read_line())
            passed = time.monotonic() - started_at
        slowest = int(service.info()["latency_p99_us"])
        self.assertGreaterEqual(slowest, 200_000)
        # No request waited longer than the whole test, up to the width of the histogram's buckets.
        self.assertLessEqual(slowest, (passed * 1.1 + 0.1) * 1e6)

    def test_an_invalid_target_is_reported_with_status_64(self):
        for arguments in (("status",), ("user", MISSING), ("report",), ("top", "--once")):
            for target in ("nowhere", "127.0.0.1:0", "127.0.0.1:99999"):
                self.refused(64, "--target must be host:port", command(*arguments, "--target", target))

    def test_another_server_on_the_port_is_reported_and_its_reply_not_shown(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()

            def answer():
                while True:
                    try:
                        connection, _ = other.accept()
                    except OSError:
                        return
                    connection.recv(100)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    connection.close()

            threading.Thread(target=answer, daemon=True).start()
            for arguments in (("status",), ("user", MISSING), ("report",)):
                ran = command(*arguments, "--target", f"127.0.0.1:{other.getsockname()[1]}")
                self.refused(1, "the service's answer cannot be read", ran)
                self.assertEqual(ran.stdout, "")
            other.shutdown(socket.SHUT_RDWR)

    # user

    def test_user_shows_usage_and_periods_as_text(self):
        user = self.subscriber("paid", used=640)
        self.psql.run(
            "insert into message_usage (bucket, user_id, billing_period, message_count, \"limit\")"
            f" values (headroom.bucket_of('{user}'), '{user}', '2026-02', 41, 800)"
        )
        self.assertEqual(
            self.headroom("user", user).stdout,
            f"""\
user       {user}
plan       Premium (paid), active
usage      640 of 800 messages used this month
remaining  160, the allowance comes back 2026-04-01T00:00:00Z
tier       gentle, shown as compact
banner     You have 160 conversations left this month

period   used  limit  tier
2026-03   640    800  gentle
2026-02    41    800  silent
""",
        )
        shown = self.json("user", user)
        fields = Answer(self.send_command(f"USAGE {user}")).fields
        self.assertEqual({name: str(value) for name, value in shown["usage"].items()}, fields)
        self.assertEqual([shown["usage"][name] for name in ("used", "limit", "remaining")], [640, 800, 160])
        self.assertEqual(
            shown["history"],
            [{"user": user, "period": period, "used": used, "limit": 800, "tier": tier}
             for period, used, tier in (("2026-03", 640, "gentle"), ("2026-02", 41, "silent"))],
        )  # fmt: skip
        self.assertEqual(len(self.json("user", user, "--months", "1")["history"]), 1)

    def test_user_shows_the_models_and_the_members_of_an_account(self):
        self.limit_parts("family")
        user, member = self.subscriber("family"), self.user()
        self.send_command(f"CONSUME {user} 7 model=top-large-1 member={member}")
        text = self.headroom("user", user).stdout
        self.assertRegex(text, r"\nmodel +top-large-\* +7 +0 +10 +silent +7 of 20, until 2026-03-\S+ +2  -\n")
        self.assertRegex(text, r"\nmodel +top-small +0 +0 +unlimited +silent +- +1  -\n")
        self.assertRegex(text, rf"\nmember +{member} +14 +0 +100 +silent +- +1  -\n")
        shown = self.json("user", user)["allowances"]
        self.assertEqual([part["name"] for part in shown], ["top-large-*", "top-small", member])
        self.assertEqual([shown[0][name] for name in ("used", "limit", "window_limit", "window_used", "weight")], [7, 10, 20, 7, 2])

    def test_user_shows_unlimited_as_null_and_a_new_user_without_periods(self):
        shown = self.json("user", self.subscriber("pro", used=3))
        self.assertEqual([shown["usage"][name] for name in ("used", "limit", "remaining")], [3, None, None])
        self.assertIsNone(shown["history"][0]["limit"])
        new = self.user()
        self.assertEqual(self.json("user", new)["history"], [])
        self.assertIn("\nno messages yet\n", self.headroom("user", new).stdout)

    def test_a_bad_argument_is_reported_with_status_64_and_sends_nothing(self):
        for arguments in (
            ("user", "nobody"), ("user", MISSING[:-1]), ("user",), ("user", MISSING + "\nRESETUSAGE"), ("audit", "no body"),
            ("user", MISSING, "--months", "0"), ("report", "2026-13"), ("report", "March"), ("report", "trial\nQUIT"),
            ("top", "--users", "1001"), ("top", "--by", "plan"), ("top", "--period", "2026-03"),
            ("top", "--by", "model", "--period", "March"), ("audit", MISSING, "--limit", "0"),
        ):  # fmt: skip
            with self.subTest(arguments=arguments):
                ran = self.headroom(*arguments, target=arguments[0] != "audit")
                self.assertEqual((ran.returncode, ran.stdout), (64, ""), ran.stderr)
                self.assertRegex(ran.stderr, "Error: ")

    # report

    def test_report_sums_up_a_period(self):
        for used in (0, 640, 760, 800, 800):
            user = self.subscriber("paid", used=1)
            self.psql.run(
                "insert into message_usage (bucket, user_id, billing_period, message_count, \"limit\", plan)"
                f" values (headroom.bucket_of('{user}'), '{user}', '2025-07', {used}, 800, 'paid')"
            )
        expected = {"period": "2025-07", "users": 5, "messages": 3_000, "silent": 1, "gentle": 1, "prominent": 1, "blocked": 2}
        self.assertEqual(self.json("report", "2025-07"), expected)
        row = json.loads(self.psql.value("select to_jsonb(r) from billing_period_report as r where billing_period = '2025-07'"))
        self.assertEqual({"period": row.pop("billing_period"), **row}, expected)
        self.assertEqual(
            self.headroom("report", "2025-07").stdout,
            """\
2025-07
users          5
messages   3,000
silent         1  20.0 %
gentle         1  20.0 %
prominent      1  20.0 %
blocked        2  40.0 %
""",
        )
        self.assertEqual(self.json("report")["period"], "open")

    def test_a_report_of_a_period_without_usage_says_so_with_status_1(self):
        ran = self.headroom("report", "1999-01", "--json")
        self.refused(1, "^Error: there is no usage in period 1999-01$", ran)
        self.assertEqual(json.loads(ran.stdout)["users"], 0)

    # top

    def test_top_once_prints_one_sample_with_the_busiest_users(self):
        users = [self.subscriber("paid", used=used) for used in (2_147_483_641, 2_147_483_642, 2_147_483_643)]
        shown = self.json("top", "--once", "--users", "2")
        self.assertEqual([user["user"] for user in shown["busiest"]], [users[2], users[1]])
        self.assertEqual(shown["busiest"][0], {"user": users[2], "period": "2026-03", "used": 2_147_483_643, "limit": 800,
                                               "tier": "blocked"})  # fmt: skip
        self.assertEqual(shown["info"]["database"], "up")
        self.assertGreaterEqual(shown["per_second"], 0)
        text = self.headroom("top", "--once").stdout
        self.assertRegex(text, rf"{users[2]}  2026-03  2,147,483,643 +800  blocked\n")
        self.assertRegex(text, r"answers a second, p50 ")

    def top_by(self, *arguments):
        return command("top", "--by", *arguments, database_url=self.database_url)

    def test_top_by_lists_the_models_and_the_members_of_all_accounts(self):
        self.limit_parts("teams")
        accounts = [self.subscriber("teams"), self.subscriber("teams")]
        member, other = self.user(), self.user()
        for account, n, model, who in [(accounts[0], 7, "top-large-2", member), (accounts[1], 10, "top-large-1", member),
                                       (accounts[1], 3, "top-small", other)]:  # fmt: skip
            self.assertIn("+ALLOWED ", self.send_command(f"CONSUME {account} {n} model={model} member={who}"))
        # A trial that went over into a plan is not open any more.
        self.psql.run("insert into headroom.plan_limits (plan, kind, name) values ('trial', 'model', 'top-tried')")
        tried = self.user()
        self.assertIn("+ALLOWED ", self.send_command(f"CONSUME {tried} model=top-tried"))
        self.assertIn("+OK ", self.send_command(f"SETPLAN {tried} teams"))
        self.assertIn("\ntop-tried ", self.top_by("model", "--period", "trial").stdout)
        models = [json.loads(line) for line in self.top_by("model", "--json").stdout.splitlines()]
        self.assertEqual(
            models,
            [{"name": "top-large-*", "label": "Large", "period": "open", "used": 17, "held": 0, "accounts": 2, "blocked": 1,
              "account": None},
             {"name": "top-small", "label": "top-small", "period": "open", "used": 3, "held": 0, "accounts": 1, "blocked": 0,
              "account": accounts[1]}],
        )  # fmt: skip
        # With this model, a message takes two of the member's.
        self.assertRegex(self.top_by("member").stdout, rf"\n{member} +- +open +34 +0 +2 +0  -\n{other} .* {accounts[1]}\n\Z")
        self.assertEqual(len(self.top_by("model", "--users", "1", "--period", "2026-03").stdout.splitlines()), 2)
        self.refused(1, "^Error: no messages of a model are counted in period 1999-01$", self.top_by("model", "--period", "1999-01"))

    def limit_parts(self, plan):
        """A plan with limits of models and members."""
        self.psql.run(f"insert into headroom.plans (plan, label, cycle, allowance) values ('{plan}', 'Teams', 'monthly', 2000)")
        self.psql.run(
            "insert into headroom.plan_limits (plan, kind, name, label, allowance, window_messages, window_seconds, weight)"
            f" values ('{plan}', 'model', 'top-large-*', 'Large', 10, 20, 3600, 2),"
            f" ('{plan}', 'model', 'top-small', null, null, null, null, 1), ('{plan}', 'member', '*', null, 100, null, null, 1)"
        )

    def test_top_without_a_terminal_prints_a_line_a_second_and_continues_after_a_restart(self):
        # The kernel does not give this port to connections while the service is down.
        port = processes.free_port()
        service = self.serve("--listen", f"127.0.0.1:{port}")
        out = processes.directory() + "/out"
        with open(out, "w") as file:
            top = processes.start(
                [settings.binary, "top", "--target", f"127.0.0.1:{service.port}"],
                stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment(),
            )  # fmt: skip

        def lines():
            with open(out) as file:
                return file.read().splitlines()

        wait_until(lambda: len(lines()) >= 3, "a header and two lines")
        self.assertRegex(lines()[0], r"^ +time +a second +p50 ms +p99 ms +silent +gentle +prominent +blocked +errors +waiting$")
        for line in lines()[1:3]:
            self.assertRegex(line, r"^\d\d:\d\d:\d\d +[\d.,]+( +([\d.,]+|-)){8}$")
        service.stop()
        wait_until(lambda: any("cannot be reached" in line for line in lines()), "the lost service is reported")
        printed = len(lines())
        again = self.serve("--listen", f"127.0.0.1:{port}")
        wait_until(lambda: any(re.match(r"\d\d:", line) for line in lines()[printed:]), "it continues")
        again.stop()
        top.send_signal(signal.SIGINT)
        self.assertEqual(top.wait(TIMEOUT_SECONDS), 0)
        self.assertNotIn("\x1b", "\n".join(lines()))

    def test_top_on_a_terminal_draws_ends_with_q_and_restores_the_terminal(self):
        for end in (b"q", b"\x03", signal.SIGTERM):
            with self.subTest(end=end):
                ours, theirs = pty.openpty()
                before = termios.tcgetattr(theirs)
                top = processes.start(
                    [settings.binary, "top", "--target", f"127.0.0.1:{self.service.port}"],
                    stdin=theirs, stdout=theirs, stderr=theirs, env=environment(TERM="xterm"), start_new_session=True,
                )  # fmt: skip
                seen = b""

                def drawn():
                    nonlocal seen
                    while select.select([ours], [], [], 0)[0]:
                        seen += os.read(ours, 65_536)
                    return seen.count(b"\x1b[H") >= 2

                wait_until(drawn, "it draws twice")
                self.assertTrue(seen.startswith(b"\x1b[?1049h\x1b[?25l"), seen[:40])
                self.assertIn(b"answers a second", seen)
                self.assertNotEqual(termios.tcgetattr(theirs), before)
                if end == b"\x03":
                    # Without a controlling terminal the driver sends no signal, so send it here.
                    top.send_signal(signal.SIGINT)
                elif isinstance(end, bytes):
                    os.write(ours, end)
                else:
                    top.send_signal(end)
                self.assertEqual(top.wait(TIMEOUT_SECONDS), 0)
                drawn()
                self.assertTrue(seen.endswith(b"\x1b[?25h\x1b[?1049l"), seen[-40:])
                self.assertEqual(termios.tcgetattr(theirs), before)
                os.close(ours)
                os.close(theirs)

    # audit

    def audit(self, *arguments, url=None):
        return command("audit", *arguments, database_url=url or self.database_url)

    def test_audit_lists_a_users_changes_in_order(self):
        times = ["2026-03-15T09:30:00Z", "2026-03-15T09:30:01Z", "2026-03-15T09:30:02Z"]
        user = self.subscriber("paid", used=700)
        self.psql.run("set headroom.actor = 'ann'")
        try:
            self.set_clock(times[1])
            self.psql.run(f"select reset_usage('{user}')")
            self.set_clock(times[2])
            self.psql.run(f"select grant_messages('{user}', 50, 'an outage')")
        finally:
            self.psql.run("reset headroom.actor")
        ran = self.audit(user, "--json")
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        events = [json.loads(line) for line in ran.stdout.splitlines()]
        self.assertEqual([event["what"] for event in events][-2:], ["reset", "grant"])
        for event in events:
            self.assertEqual(set(event), {"at", "what", "detail", "actor", "reason"})
            self.assertIn(event["at"], times)
        self.assertEqual([event["at"] for event in events][-2:], times[1:])
        self.assertEqual((events[-1]["actor"], events[-1]["reason"]), ("ann", "an outage"))
        self.assertIsNone(events[-2]["reason"])
        rows = self.psql.run(f"select action, detail, actor, reason from audit_trail where user_id = '{user}' order by at, id")
        self.assertEqual([[e["what"], e["detail"], e["actor"], e["reason"]] for e in events], rows)
        text = self.audit(user).stdout.splitlines()
        self.assertRegex(text[0], r"^at +what +by +why +detail$")
        self.assertRegex(text[-1], rf"^{times[2]}  grant +ann +an outage +.*850")
        newest = self.audit(user, "--json", "--limit", "1").stdout.splitlines()
        self.assertEqual([json.loads(line)["what"] for line in newest], ["grant"])

    def test_audit_of_a_user_without_a_record_says_so_with_status_1(self):
        ran = self.audit(self.user())
        self.refused(1, "^Error: there is no record of this user$", ran)
        self.assertEqual(ran.stdout, "")

    def test_audit_reports_an_unreachable_database_and_a_missing_schema(self):
        self.refused(69, "^Error: the database cannot be reached: ", self.audit(MISSING, url="host=/nowhere dbname=x"))
        empty = self.cluster.url(self.cluster.new_database())
        self.refused(1, "headroom migrate", self.audit(MISSING, url=empty))
        self.psql.run("create role guest_of_commands login")
        try:
            guest = self.database_url.replace("user=postgres", "user=guest_of_commands")
            self.refused(1, "may not read audit_trail", self.audit(MISSING, url=guest))
        finally:
            self.psql.run("drop role guest_of_commands")


class WithoutItsDatabase(Case):
    OWN_CLUSTER = True
    # The first requests wait for this long.
    FLAGS = ("--request-timeout-ms", "500")

    def test_commands_report_a_lost_database_and_recover_with_it(self):
        target = ("--target", f"127.0.0.1:{self.service.port}")
        user = self.user()
        self.cluster.stop_immediately()
        try:
            wait_until(lambda: self.service.info()["database"] == "down", "the service notices")
            status = command("status", "--json", *target)
            self.assertEqual(status.returncode, 69)
            self.assertRegex(status.stderr, "^Error: the service at [0-9.:]+ cannot reach its database$")
            self.assertEqual(json.loads(status.stdout)["database"], "down")
            wait_until(lambda: "schema_version" not in self.service.info(), "what it does not know it does not tell")
            for arguments in (("user", user), ("report",), ("top", "--once")):
                with self.subTest(arguments=arguments):
                    ran = command(*arguments, *target)
                    self.assertEqual((ran.returncode, ran.stdout), (69, ""), ran.stderr)
                    self.assertRegex(ran.stderr, "^Error: the service at [0-9.:]+ cannot answer now: UNAVAILABLE ")
        finally:
            self.cluster.start()
        wait_until(lambda: command("status", *target).returncode == 0, "status is well again")
        wait_until(lambda: "schema_version" in self.service.info(), "the database was looked at")


@needs_one_machine("its second server is a standby of the only one")
class WithAStandby(Case):
    OWN_CLUSTER = True
    FLAGS = None

    def test_status_shows_the_replication_lag(self):
        service = self.serve()
        standby = Cluster(primary=self.cluster)
        # The service's role may not read the standby's lag.
        self.cluster.session("postgres").run("grant pg_read_all_stats to headroom_service")
        lag = wait_until(lambda: service.info().get("replication_lag_s"), "the standby is seen")
        self.assertRegex(lag, r"^\d+\.\d{3}$")
        target = ("--target", f"127.0.0.1:{service.port}")
        self.assertIsInstance(json.loads(command("status", "--json", *target).stdout)["replication_lag_s"], (int, float))
        self.assertRegex(command("status", *target).stdout, r"the slowest standby \d+\.\d{3} s behind")
        # A standby that does not replay falls behind while messages are counted.
        user = self.user()
        service.send_command(f"SETPLAN {user} pro")
        replica = standby.session(self.database)
        replica.run("select pg_wal_replay_pause()")

        def behind():
            service.send_command(f"CONSUME {user}")
            return float(service.info().get("replication_lag_s", 0)) > 0.5

        wait_until(behind, "the lag grows")
        replica.close()
        standby.stop_immediately()
        wait_until(lambda: "replication_lag_s" not in service.info(), "there is no standby any more")
