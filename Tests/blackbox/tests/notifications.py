"""Notifications to the product's backend when users reach a tier."""

import contextlib
import json
import os
import re
import shutil
import signal
import threading
import time
import unittest
import uuid
from pathlib import Path

from support import processes, settings
from support.case import MID_MONTH, Case
from support.printed import blocks
from support.receiver import OTHER_SECRET, SECRET, Receiver, signature
from support.service import Service, command, environment, succeed
from support.waiting import wait_until

OWN_LOCK = """select count(*) from pg_locks join pg_database on pg_database.oid = pg_locks.database
    where locktype = 'advisory' and granted and datname = current_database()"""

PLANS = """
insert into headroom.plans (plan, label, cycle, allowance, window_messages, window_seconds) values
    ('team', 'Team', 'monthly', 100, null, null), ('hours', 'Hours', 'monthly', 100, 10, 3600);
insert into headroom.plan_limits (plan, kind, name, label, allowance) values
    ('team', 'model', 'opus-*', 'Opus', 5), ('team', 'member', '*', null, 10), ('hours', 'model', 'burst', null, 10);
"""


class WithReceiver(Case):
    """A service that sends its notifications to a receiver of the class."""

    FLAGS = None
    CLOCK = MID_MONTH
    SECRETS = SECRET

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.set_clock(cls.CLOCK)
        cls.receiver = Receiver()
        cls.service = cls.serve(env=cls.receiver.settings(cls.SECRETS))

    @classmethod
    def tearDownClass(cls):
        # Services first: one that ends waits for what it has sent.
        for gate in cls.receiver.gates.values():
            gate.set()
        super().tearDownClass()
        cls.receiver.close()

    def stored(self, user):
        """The user's notifications: tier, status, attempts, problem."""
        return self.psql.run(
            "select tier, status, attempts, coalesce(problem, '') from headroom.notifications"
            f" where user_id = '{user}' order by created_at, tier"
        )

    def wait_until_stored(self, user, *rows):
        expected = [list(row) for row in rows]
        wait_until(lambda: self.stored(user) == expected, lambda: f"{expected}; it is {self.stored(user)}")

    def advance_to_next_attempt(self, user):
        """Sets the clock to the next attempt."""
        self.set_clock(
            self.psql.value(
                "select to_char(next_attempt_at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
                f" from headroom.notifications where user_id = '{user}' and status = 'p'"
            )
        )

    def lines(self, *arguments, status=0):
        ran = command("notifications", *arguments, "--json", database_url=self.database_url)
        self.assertEqual(ran.returncode, status, ran.stdout + ran.stderr)
        return [json.loads(line) for line in ran.stdout.splitlines()]


class Notifications(WithReceiver):
    SECRETS = f"{SECRET} {OTHER_SECRET}"

    def test_each_tier_is_sent_once_and_signed_with_each_secret(self):
        user = self.subscriber(used=639)
        self.assertIn(" crossed=gentle", self.send_command(f"CONSUME {user}"))
        (gentle,) = self.receiver.wait_for(user)
        self.assertIn(" crossed=prominent", self.send_command(f"CONSUME {user} 120"))
        self.receiver.wait_for(user, 2)
        self.assertIn(" crossed=blocked", self.send_command(f"CONSUME {user} 40"))
        _, prominent, blocked = self.receiver.wait_for(user, 3)
        self.assertIn("+BLOCKED ", self.send_command(f"CONSUME {user}"))
        self.assertEqual(
            gentle.json,
            {
                "type": "usage.crossed",
                "timestamp": MID_MONTH,
                "data": {
                    "user": user, "plan": "paid", "state": "active", "period": "2026-03", "allowance": "period",
                    "tier": "gentle", "used": 640, "held": 0, "limit": 800, "remaining": 160,
                    "resets": "2026-04-01T00:00:00Z",
                },
            },
        )  # fmt: skip
        self.assertEqual([each.json["data"]["tier"] for each in (prominent, blocked)], ["prominent", "blocked"])
        self.assertEqual([each.json["type"] for each in (prominent, blocked)], ["usage.crossed", "usage.blocked"])
        for each in (gentle, prominent, blocked):
            self.assertEqual(each.path, "/hooks")
            self.assertEqual(each.headers["content-type"], "application/json")
            self.assertRegex(each.headers["user-agent"], r"^Headroom/\d")
            self.assertEqual(each.signatures, [each.expected_signature(secret) for secret in (SECRET, OTHER_SECRET)])
        self.assertEqual(len({each.id for each in (gentle, prominent, blocked)}), 3)
        self.wait_until_stored(user, *[(tier, "d", "1", "") for tier in ("blocked", "gentle", "prominent")])
        self.send_command(f"RESETUSAGE {user}")
        self.assertIn(" crossed=gentle", self.send_command(f"CONSUME {user} 700"))
        # Another user's comes later, so this user's would have come.
        other = self.subscriber(used=799)
        self.send_command(f"CONSUME {other}")
        self.receiver.wait_for(other)
        self.assertEqual(len(self.receiver.of(user)), 3)

    def test_a_message_that_skips_tiers_is_one_notification_and_a_hold_is_one_too(self):
        user, holder = self.subscriber(used=1), self.subscriber(used=1)
        self.assertIn(" crossed=blocked", self.send_command(f"CONSUME {user} 799"))
        self.assertIn(" crossed=gentle", self.send_command(f"RESERVE {holder} 640 key=k1"))
        (blocked,) = self.receiver.wait_for(user)
        self.assertEqual(blocked.json["data"]["tier"], "blocked")
        (held,) = self.receiver.wait_for(holder)
        self.assertEqual([held.json["data"][name] for name in ("used", "held", "remaining")], [1, 640, 159])

    def test_an_imported_tier_is_not_sent_and_a_higher_one_is(self):
        users = {used: str(uuid.uuid4()) for used in (0, 639, 640, 760, 800)}
        path = Path(processes.directory()) / "tiers.csv"
        path.write_text("user,plan,used\n" + "".join(f"{user},paid,{used}\n" for used, user in users.items()))
        succeed("import", str(path), database_url=self.database_url)
        for used, tiers in {0: [], 639: [], 640: ["gentle"], 760: ["prominent"], 800: ["blocked"]}.items():
            self.assertEqual(self.stored(users[used]), [[tier, "s", "0", ""] for tier in tiers])
        # What the sweep calls for each user at a tier.
        ids = ",".join(users.values())
        self.assertEqual(self.psql.number(f"select headroom.record_notifications('{{{ids}}}', 'p')"), 0)
        self.assertIn(" crossed=prominent", self.send_command(f"CONSUME {users[640]} 120"))
        (sent,) = self.receiver.wait_for(users[640])
        self.assertEqual(sent.json["data"]["tier"], "prominent")
        (skipped,) = self.lines("list", "--user", users[800])
        self.assertEqual((skipped["status"], skipped["next_attempt_at"]), ("skipped", None))
        command("notifications", "replay", skipped["id"], database_url=self.database_url)
        self.receiver.wait_for(users[800])

    def test_over_http_too(self):
        user = self.subscriber(used=639)
        self.assertEqual(self.service.http("POST", f"/v1/usage/{user}/consume", {}).json["crossed"], "gentle")
        self.receiver.wait_for(user)

    def test_an_error_and_a_redirect_are_tried_again_and_what_the_receiver_said_is_not_stored(self):
        for status, problem in ((500, "HTTP 500"), (302, "HTTP 302: redirects are not followed; set the final URL")):
            with self.subTest(status=status):
                user = self.subscriber(used=639)
                self.receiver.answers[user] = (status, {"Location": self.receiver.url + "/elsewhere"})
                self.send_command(f"CONSUME {user}")
                self.wait_until_stored(user, ("gentle", "p", "1", problem))
                self.assertEqual([each.path for each in self.receiver.of(user)], ["/hooks"])
                del self.receiver.answers[user]
                self.advance_to_next_attempt(user)
                first, second = self.receiver.wait_for(user, 2)
                self.assertEqual((first.id, first.body), (second.id, second.body))
                self.assertGreater(int(second.headers["webhook-timestamp"]), int(first.headers["webhook-timestamp"]))
                self.assertEqual(second.signatures[0], second.expected_signature())
                self.wait_until_stored(user, ("gentle", "d", "2", ""))

    def test_retry_after_is_followed(self):
        user = self.subscriber(used=639)
        self.receiver.answers[user] = (429, {"Retry-After": "60"})
        self.send_command(f"CONSUME {user}")
        self.wait_until_stored(user, ("gentle", "p", "1", "HTTP 429"))
        seconds = self.psql.number(
            "select extract(epoch from next_attempt_at - created_at)::integer from headroom.notifications"
            f" where user_id = '{user}'"
        )
        self.assertIn(seconds, (60, 61))
        self.receiver.answers.pop(user)

    def test_ten_attempts_fail_then_it_is_listed_and_replayed(self):
        user = self.subscriber(used=799)
        self.receiver.answers[user] = (503, {})
        self.send_command(f"CONSUME {user}")
        for attempt in range(1, 10):
            self.wait_until_stored(user, ("blocked", "p", str(attempt), "HTTP 503"))
            if attempt == 1:
                (pending,) = self.lines("list", "--pending", "--user", user)
                self.assertEqual((pending["status"], pending["attempts"]), ("pending", 1))
                self.assertIsNotNone(pending["next_attempt_at"])
                self.assertEqual(self.lines("list", "--failed", "--user", user), [])
            self.advance_to_next_attempt(user)
        self.wait_until_stored(user, ("blocked", "f", "10", "HTTP 503"))
        self.assertEqual(len(self.receiver.of(user)), 10)
        (failed,) = self.lines("list", "--failed", "--user", user)
        self.assertEqual(
            {name: failed[name] for name in ("user", "period", "plan", "allowance", "part", "tier", "status", "attempts", "problem")},
            {"user": user, "period": "2026-03", "plan": "paid", "allowance": "period", "part": None, "tier": "blocked",
             "status": "failed", "attempts": 10, "problem": "HTTP 503"},
        )  # fmt: skip
        wait_until(lambda: "is not tried again" in self.service.log(), "the log says that it is not tried again")
        del self.receiver.answers[user]
        ran = command("notifications", "replay", "--failed", database_url=self.database_url)
        self.assertEqual((ran.returncode, ran.stdout), (0, failed["id"] + "\n"), ran.stderr)
        *_, last = self.receiver.wait_for(user, 11)
        self.assertEqual((last.id, last.body), (failed["id"], self.receiver.of(user)[0].body))
        self.wait_until_stored(user, ("blocked", "d", "1", ""))
        # Also one that was delivered.
        ran = command("notifications", "replay", failed["id"].upper(), database_url=self.database_url)
        self.assertEqual(ran.stdout, failed["id"] + "\n", ran.stderr)
        self.receiver.wait_for(user, 12)

    def test_the_commands_show_notifications(self):
        user = self.subscriber(used=639)
        self.send_command(f"CONSUME {user}")
        (received,) = self.receiver.wait_for(user)
        self.wait_until_stored(user, ("gentle", "d", "1", ""))
        (listed,) = self.lines("list", "--user", user)
        (shown,) = self.lines("show", listed["id"])
        self.assertEqual({**shown, "body": None}, {**listed, "body": None})
        self.assertEqual(shown["body"], received.json)
        text = command("notifications", "show", received.id, database_url=self.database_url).stdout
        self.assertEqual(json.loads(text), shown)
        table = command("notifications", "list", "--user", user, database_url=self.database_url).stdout
        self.assertRegex(table, rf"{received.id} .*{user} .*gentle +delivered +1 ")
        for arguments in (("show", "no"), ("show", self.user()), ("replay", self.user())):
            ran = command("notifications", *arguments, database_url=self.database_url)
            self.assertEqual((ran.returncode, ran.stdout), (1, ""), arguments)
            self.assertIn("there is no such notification", ran.stderr)
        none = command("notifications", "list", "--user", self.user(), database_url=self.database_url)
        self.assertEqual((none.returncode, none.stdout), (0, "no notification\n"))
        for arguments in (("replay",), ("replay", "--failed", received.id), ("replay", "x"), ("list", "--failed", "--pending")):
            self.assertEqual(command("notifications", *arguments, database_url=self.database_url).returncode, 64, arguments)

    def test_the_test_command_sends_a_signed_request_without_a_database(self):
        ran = command("notifications", "test", env=self.receiver.settings())
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "delivered\n", ""))
        received = [each for each in self.receiver.requests if each.json["type"] == "test"][-1]
        self.assertEqual(received.signatures, [received.expected_signature()])
        self.assertLess(abs(int(received.headers["webhook-timestamp"]) - time.time()), 600)
        self.receiver.answers[None] = (404, {})
        ran = command("notifications", "test", env=self.receiver.settings())
        del self.receiver.answers[None]
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (1, "", "Error: not delivered: HTTP 404\n"))
        closed = {**self.receiver.settings(), "HEADROOM_NOTIFICATIONS_URL": "http://127.0.0.1:1/"}
        self.assertIn("nothing listens there", command("notifications", "test", env=closed).stderr)
        self.assertEqual(command("notifications", "test").returncode, 64)

    def test_forgetting_deletes_them(self):
        user = self.subscriber(used=639)
        self.send_command(f"CONSUME {user}")
        self.wait_until_stored(user, ("gentle", "d", "1", ""))
        self.assertIn("+OK", self.send_command(f"FORGET {user}"))
        self.assertEqual(self.stored(user), [])

    def test_the_metrics_count_them_and_the_log_has_no_user_and_no_secret(self):
        user = self.subscriber(used=639)
        self.send_command(f"CONSUME {user}")
        self.wait_until_stored(user, ("gentle", "d", "1", ""))

        def metric(name):
            return int(re.search(rf"^{name} (\d+)$", self.service.http("GET", "/metrics").text, re.M)[1])

        self.assertGreaterEqual(metric("headroom_notifications_delivered_total"), 1)
        metric("headroom_notification_attempts_failed_total")
        wait_until(
            lambda: "headroom_notifications_oldest_pending_seconds" in self.service.http("GET", "/metrics").text, "the backlog is read"
        )
        log = self.service.log()
        for text in (user, SECRET.removeprefix("whsec_"), OTHER_SECRET.removeprefix("whsec_")):
            self.assertNotIn(text, log)


class Allowances(WithReceiver):
    """Of a window, a model and a member, beside the account's own."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run(PLANS)

    def told(self, user, count):
        """What each notification is of, and what it says of it."""
        names = ("allowance", "model", "model_label", "member", "window_seconds")
        data = [each.json["data"] for each in self.receiver.wait_for(user, count)]
        return [
            (*(one[name] for name in names if name in one), one["tier"], one["used"], one["limit"], one["resets"][:10])
            for one in sorted(data, key=lambda one: (one["used"], one["allowance"]))
        ]

    def test_an_account_that_was_warned_still_hears_of_a_model_and_of_a_member_by_name(self):
        user, member, other = self.subscriber("team", used=80), self.user(), self.user()
        self.psql.run(f"select headroom.record_notifications('{{{user}}}', 'p')")
        self.assertEqual(self.told(user, 1), [("period", "gentle", 80, 100, "2026-04-01")])
        answer = self.send_command(f"CONSUME {user} 4 model=opus-4 member={member}")
        self.assertNotIn(" crossed=", answer)
        own = ("model", "opus-*", "Opus", "gentle", 4, 5, "2026-04-01")
        self.assertEqual(self.told(user, 2)[0], own)
        body = {"n": 3, "model": "haiku", "member": other}
        self.assertTrue(self.service.http("POST", f"/v1/usage/{user}/consume", body).json["allowed"])
        self.send_command(f"RESERVE {user} 4 key=k model=haiku member={member}")
        shares = [("member", member, "gentle", 4, 10, "2026-04-01")]
        self.assertEqual([one for one in self.told(user, 3) if one[0] == "member"], shares)
        self.assertIn(" crossed=blocked", self.send_command(f"CONSUME {user} model=opus-mini"))
        blocked = [each for each in self.receiver.wait_for(user, 4) if each.json["type"] == "usage.blocked"]
        self.assertEqual([each.json["data"]["model"] for each in blocked], ["opus-*"])
        listed = self.lines("list", "--user", user)
        named = sorted((each["allowance"], each["part"] or "", each["tier"]) for each in listed)
        expected = [("member", member, "gentle"), ("model", "opus-*", "blocked"), ("model", "opus-*", "gentle"), ("period", "", "gentle")]
        self.assertEqual(named, expected)
        self.assertIn(f" member {member} ", command("notifications", "list", "--user", user, database_url=self.database_url).stdout)
        (shown,) = self.lines("show", blocked[0].id)
        self.assertEqual((shown["allowance"], shown["part"]), ("model", "opus-*"))
        self.assertIn("+OK", self.send_command(f"FORGET {member}"))
        self.assertNotIn("member", [each["allowance"] for each in self.lines("list", "--user", user)])

    def test_each_window_is_told_once(self):
        user = self.subscriber("hours")
        self.assertIn(" crossed=gentle", self.send_command(f"CONSUME {user} 8"))
        self.assertEqual(self.told(user, 1), [("window", 3600, "gentle", 8, 10, "2026-03-15")])
        self.send_command(f"CONSUME {user}")
        self.set_clock("2026-03-15T10:30:00Z")
        self.assertIn(" crossed=gentle", self.send_command(f"CONSUME {user} 9 model=burst"))
        self.assertEqual([one[0] for one in self.told(user, 3)[1:]], ["model", "window"])


class Sweeping(WithReceiver):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run(PLANS)
        cls.service.stop()
        cls.service = cls.serve("--notifications-sweep-seconds", "1", env=cls.receiver.settings())

    def test_messages_counted_by_sql_and_changes_by_hand_are_found(self):
        by_sql, by_hand = self.user(), self.subscriber(used=1)
        self.psql.run(f"select set_plan('{by_sql}', 'paid'); select increment_and_check_usage('{by_sql}', 640)")
        self.set_count(by_hand, 800)
        self.assertEqual(self.receiver.wait_for(by_sql)[0].json["data"]["tier"], "gentle")
        self.assertEqual(self.receiver.wait_for(by_hand)[0].json["data"]["tier"], "blocked")

    def test_models_and_members_counted_by_sql_are_found(self):
        user, member = self.subscriber("team"), self.user()
        self.psql.run(f"select increment_and_check_usage('{user}', 4, p_model => 'opus-4', p_member => '{member}')")
        self.assertEqual(self.receiver.wait_for(user)[0].json["data"]["model"], "opus-*")
        self.psql.run(f"select increment_and_check_usage('{user}', 4, p_member => '{member}')")
        self.assertEqual(self.receiver.wait_for(user, 2)[1].json["data"]["member"], member)

    def test_what_a_killed_instance_did_not_record_is_found(self):
        user = self.subscriber(used=639)
        # Without settings for notifications it records nothing, as if it had ended after the commit.
        service = self.serve()
        self.assertIn(" crossed=gentle", service.send_command(f"CONSUME {user}"))
        service.kill()
        self.receiver.wait_for(user)


class WithoutReceiver(WithReceiver):
    def test_a_receiver_that_is_down_gets_what_it_missed(self):
        user = self.subscriber(used=639)
        port = self.receiver.port
        self.receiver.close()
        self.send_command(f"CONSUME {user}")
        self.wait_until_stored(user, ("gentle", "p", "1", "nothing listens there"))
        type(self).receiver = Receiver(port)
        self.advance_to_next_attempt(user)
        self.receiver.wait_for(user)
        self.wait_until_stored(user, ("gentle", "d", "2", ""))
        wait_until(lambda: "notifications are delivered again" in self.service.log(), "the log says so")


class HangingReceiver(WithReceiver):
    def test_messages_are_counted_while_it_hangs_and_a_service_that_ends_does_not_wait_for_it(self):
        user = self.subscriber(used=639)
        gate = self.receiver.gates[user] = threading.Event()
        self.send_command(f"CONSUME {user}")
        (first,) = self.receiver.wait_for(user)
        others = [self.subscriber(used=639) for _ in range(3)]
        for other in others:
            self.assertIn(" crossed=gentle", self.send_command(f"CONSUME {other}"))
        wait_until(lambda: all(self.stored(other) for other in others), "notifications are recorded meanwhile")
        self.service.signal(signal.SIGTERM)
        self.assertEqual(self.service.wait(), 0, self.service.log())
        self.assertEqual(self.stored(user), [["gentle", "p", "0", ""]])
        gate.set()
        del self.receiver.gates[user]
        type(self).service = self.serve(env=self.receiver.settings())
        _, second = self.receiver.wait_for(user, 2)
        self.assertEqual((second.id, second.body), (first.id, first.body))
        for other in others:
            self.receiver.wait_for(other)

    def test_after_fifteen_seconds_it_is_tried_again_later(self):
        user = self.subscriber(used=639)
        gate = self.receiver.gates[user] = threading.Event()
        self.send_command(f"CONSUME {user}")
        self.wait_until_stored(user, ("gentle", "p", "1", "no answer within 15 s"))
        gate.set()
        del self.receiver.gates[user]


class TwoInstances(WithReceiver):
    def test_another_instance_delivers_when_one_is_killed(self):
        wait_until(lambda: self.psql.number(OWN_LOCK) == 1, "the first instance delivers")
        other = self.serve(env=self.receiver.settings())
        users = [self.subscriber(used=639) for _ in range(4)]
        for user in users:
            other.send_command(f"CONSUME {user}")
        for user in users:
            self.assertEqual(len(self.receiver.wait_for(user)), 1)
        self.assertEqual(self.psql.number(OWN_LOCK), 1)
        self.service.kill()
        user = users[0]
        other.send_command(f"CONSUME {user} 159")
        self.receiver.wait_for(user, 2)
        wait_until(lambda: self.psql.number(OWN_LOCK) == 1, "the other instance delivers")
        type(self).service = other


class NotificationSettings(Case):
    FLAGS = None

    def test_a_url_needs_a_secret_of_the_documented_form(self):
        url = {"HEADROOM_NOTIFICATIONS_URL": "https://example.com/"}
        empty = processes.directory() + "/empty"
        open(empty, "w").close()
        for more, text in (
            ({}, "notifications-url needs notifications-secret"),
            ({"HEADROOM_NOTIFICATIONS_SECRET": "s3cret"}, "must be whsec_ and 24 to 64 bytes in Base64"),
            ({"HEADROOM_NOTIFICATIONS_SECRET_FILE": empty}, "it is empty"),
        ):
            with self.subTest(more=more):
                service = Service(database_url=self.database_url, env={**url, **more}, wait=False)
                self.assertNotEqual(service.wait(), 0)
                self.assertIn(text, service.log())
                self.assertNotIn("s3cret", service.log())

    def test_secrets_come_from_a_file_too_and_nothing_is_recorded_without_a_url(self):
        path = processes.directory() + "/secrets"
        with open(path, "w") as file:
            file.write(f"{SECRET}\n{OTHER_SECRET}\n")
        receiver = Receiver()
        self.addCleanup(receiver.close)
        service = self.serve(
            "--notifications-sweep-seconds", "1",
            env={"HEADROOM_NOTIFICATIONS_URL": receiver.url, "HEADROOM_NOTIFICATIONS_SECRET_FILE": path},
        )  # fmt: skip
        user = self.user()
        self.psql.run(f"select set_plan('{user}', 'paid')")
        service.send_command(f"CONSUME {user} 640")
        (received,) = receiver.wait_for(user)
        self.assertEqual(received.signatures, [received.expected_signature(secret) for secret in (SECRET, OTHER_SECRET)])
        service.stop()
        service = self.serve()
        self.assertIn(" crossed=blocked", service.send_command(f"CONSUME {user} 160"))
        self.assertNotIn("headroom_notification", service.http("GET", "/metrics").text)
        service.stop()
        self.assertEqual(self.psql.number("select count(*) from headroom.notifications"), 1)


class PrintedPrograms(unittest.TestCase):
    """The programs of docs/notifications.md, as printed."""

    BODY = b'{"type":"test","timestamp":"2026-03-15T09:30:00Z","data":{}}'

    def cases(self):
        """Whether a request is to be accepted, its header fields and its body."""
        now, number = str(int(time.time())), str(uuid.uuid4())
        good, other = (signature(secret, number, now, self.BODY) for secret in (SECRET, OTHER_SECRET))
        old = str(int(time.time()) - 600)
        for accepted, sent_at, signatures, body in (
            (True, now, good, self.BODY), (True, now, f"{other} {good}", self.BODY), (False, now, other, self.BODY),
            (False, now, good, self.BODY + b" "), (False, now, "v1,", self.BODY), (False, now, "", self.BODY),
            (False, str(int(now) + 1), good, self.BODY), (False, old, signature(SECRET, number, old, self.BODY), self.BODY),
        ):  # fmt: skip
            yield accepted, {"webhook-id": number, "webhook-timestamp": sent_at, "webhook-signature": signatures}, body
        signed = {"webhook-id": number, "webhook-timestamp": now, "webhook-signature": good}
        for missing in signed:
            yield False, {name: value for name, value in signed.items() if name != missing}, self.BODY

    def program(self, language):
        (program,) = [block.text for block in blocks("docs/notifications.md") if block.language == language]
        return program

    def test_python_accepts_what_is_signed_and_nothing_else(self):
        names = {}
        exec(self.program("python"), names)  # noqa: S102
        for accepted, headers, body in self.cases():
            self.assertIs(names["verify"](SECRET, headers, body), accepted, headers)

    def test_node_accepts_what_is_signed_and_nothing_else(self):
        node = shutil.which("node") or self.fail("node is not installed")
        directory = processes.directory()
        cases = [[SECRET, headers, body.decode(), accepted] for accepted, headers, body in self.cases()]
        with open(directory + "/program.mjs", "w") as file:
            file.write(self.program("js"))
            file.write(f"for (const [secret, headers, body, accepted] of {json.dumps(cases)})\n")
            file.write("  console.log(verify(secret, headers, Buffer.from(body)) === accepted);\n")
        ran = processes.completed([node, file.name])
        self.assertEqual((ran.stdout, ran.stderr), ("true\n" * len(cases), ""))

    def test_the_page_shows_what_is_sent(self):
        (printed,) = [block.text for block in blocks("docs/notifications.md") if block.language == "json"]
        self.assertEqual(
            list(json.loads(printed)["data"]),
            ["user", "plan", "state", "period", "allowance", "tier", "used", "held", "limit", "remaining", "resets"],
        )
        help_text = command("serve", "--help").stdout
        variables = dict(line.split("=") for line in self.program("ini").splitlines())
        for name in variables:
            self.assertIn(f"--{name.removeprefix('HEADROOM_').lower().replace('_', '-')} ", help_text)
        directory = processes.directory()
        lines = [line for block in blocks("docs/notifications.md") if block.language == "sh" for line in block.lines]
        secret = Path(directory + variables["HEADROOM_NOTIFICATIONS_SECRET_FILE"])
        with contextlib.closing(Receiver()) as receiver:
            # The package makes this group.
            text = "\n".join(lines).replace("--group=headroom ", "").replace("/etc/headroom", str(secret.parent))
            text = text.replace(variables["HEADROOM_NOTIFICATIONS_URL"], receiver.url)
            path = os.pathsep.join([os.path.dirname(settings.binary), os.environ["PATH"]])
            ran = processes.completed(["bash", "-euc", text], cwd=directory, env=environment(PATH=path))
            self.assertEqual((ran.stdout, ran.stderr), ("delivered\n", ""))
            (received,) = receiver.requests
        made = secret.read_text()
        self.assertRegex(made, r"^whsec_[A-Za-z0-9+/]{43}=\n$")
        self.assertEqual(received.signatures, [received.expected_signature(made.strip())])
        self.assertEqual((secret.stat().st_mode & 0o777, os.listdir(directory)), (0o640, ["etc"]))
