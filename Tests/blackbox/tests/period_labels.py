"""A user's second period in a month has the label 2026-03.2: for this user it is a period of its own, and the reports of the
month over all users include it."""

import json

from support.case import Case
from support.pages import DashboardClient, visible_text
from support.service import command
from support.wire import Answer

TIERS = ("silent", "gentle", "prominent", "blocked")


class NumberedPeriods(Case):
    CLOCK = "2026-03-28T09:00:00Z"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # The first user's limit was reached in the first period, and the third's in the second.
        cls.users = sorted(cls.user() for _ in range(3))
        cls.counts = {
            (0, "2025-03"): 800, (0, "2025-03.2"): 5, (1, "2025-03"): 760, (2, "2025-03"): 10, (2, "2025-03.2"): 800,
            (1, "2025-W12"): 1, (1, "2025-W12.2"): 2, (0, "2025-03-15"): 4, (0, "2025-04"): 1,
        }  # fmt: skip
        cls.counts |= {(1, f"2025-01{number}"): 3 for number in ("", *(f".{number}" for number in range(2, 12)))}
        for (user, label), count in cls.counts.items():
            cls.psql.run(
                'insert into message_usage (bucket, user_id, billing_period, message_count, "limit", plan) values'
                f" (headroom.bucket_of('{cls.users[user]}'), '{cls.users[user]}', '{label}', {count}, 800, 'paid')"
            )

    def list_of(self, request):
        with self.service.connect() as connection:
            return [Answer(line) for line in connection.send_list_command(request)]

    def report(self, label):
        """Users, messages and tiers, everywhere the same."""
        fields = Answer(self.send_command(f"REPORT {label}")).fields
        numbers = {name: int(value) for name, value in fields.items() if name != "period"}
        self.assertEqual(self.service.http("GET", f"/v1/report/{label}").json, {"period": label, **numbers})
        ran = command("report", label, "--json", "--target", f"127.0.0.1:{self.service.port}")
        self.assertEqual(json.loads(ran.stdout), {"period": label, **numbers})
        return numbers["users"], numbers["messages"], [numbers[tier] for tier in TIERS]

    def test_a_label_is_one_period_of_a_user(self):
        for label, used in (("2025-03", 800), ("2025-03.2", 5)):
            for answer in (
                Answer(self.send_command(f"USAGE {self.users[0]} {label}")).fields,
                self.service.http("GET", f"/v1/usage/{self.users[0]}?period={label}").json,
            ):
                self.assertEqual((answer["period"], int(answer["used"])), (label, used))
        self.assertIn("-NOTFOUND", self.send_command(f"USAGE {self.users[0]} 2025-03.3"))

    def test_history_has_the_newest_first(self):
        history = self.list_of(f"HISTORY {self.users[1]} 20")
        labels = ["2025-W12.2", "2025-W12", *(f"2025-01.{number}" for number in range(11, 1, -1)), "2025-01"]
        self.assertEqual([one["period"] for one in history if one["period"] != "2025-03"], labels)

    def test_a_report_of_the_month_counts_each_user_once_with_all_messages(self):
        self.assertEqual(self.report("2025-03"), (3, 2375, [1, 0, 1, 1]))
        self.assertEqual(self.report("2025-03.2"), (2, 805, [1, 0, 0, 1]))
        self.assertEqual(self.report("2025-W12"), (1, 3, [1, 0, 0, 0]))
        self.assertEqual(self.report("2025-01"), (1, 33, [1, 0, 0, 0]))
        rows = self.psql.run(
            f"select billing_period, users, messages, {', '.join(TIERS)} from billing_period_report order by billing_period collate \"C\""
        )
        self.assertEqual(
            [[row[0], *map(int, row[1:])] for row in rows],
            [
                ["2025-01", 1, 33, 1, 0, 0, 0], ["2025-03", 3, 2375, 1, 0, 1, 1], ["2025-03-15", 1, 4, 1, 0, 0, 0],
                ["2025-04", 1, 1, 1, 0, 0, 0], ["2025-W12", 1, 3, 1, 0, 0, 0],
            ],
        )  # fmt: skip

    def test_the_top_of_a_month_has_each_period_with_its_label(self):
        top = [(one["user"], one["period"], one.used) for one in self.list_of("TOP 2025-03")]
        first, second, third = self.users
        expected = [(first, "2025-03", 800), (third, "2025-03.2", 800), (second, "2025-03", 760), (third, "2025-03", 10)]
        self.assertEqual(top, [*expected, (first, "2025-03.2", 5)])
        self.assertEqual([one["period"] for one in self.list_of("TOP 2025-03.2")], ["2025-03.2"] * 2)

    def test_the_dashboard_shows_the_month_and_its_second_periods(self):
        client = DashboardClient(self.service)
        month = client.get_loaded("/dashboard?period=2025-03")
        text = visible_text(month)
        self.assertIn("2,375", text)
        self.assertIn("March 2025 (2)", text, "a top user's second period")
        self.assertNotIn('value="2025-03.2"', month.text)
        second = client.get_loaded("/dashboard?period=2025-03.2")
        self.assertIn('<option value="2025-03.2" selected>March 2025 (2)</option>', second.text)
        self.assertIn("805", visible_text(second))
        self.assertEqual(client.get("/dashboard?period=2025-03.7").status, 404)
        self.assertIn("Week 12 of 2025 (2)", visible_text(client.get(f"/dashboard/users/{self.users[1]}")))


class ResetOfNumberedPeriods(Case):
    def test_a_reset_of_one_user_is_of_one_period_and_that_of_all_users_of_the_month(self):
        user, other = self.user(), self.user()
        for one, label in ((user, "2025-05"), (user, "2025-05.2"), (user, "2025-05-02"), (other, "2025-05"), (other, "2025-06")):
            self.psql.run(
                'insert into message_usage (bucket, user_id, billing_period, message_count, "limit", plan)'
                f" values (headroom.bucket_of('{one}'), '{one}', '{label}', 9, 800, 'paid')"
            )
        self.assertEqual(Answer(self.send_command(f"RESETUSAGE {user} 2025-05.2"))["period"], "2025-05.2")
        counts = "select message_count from message_usage where user_id = '{}' order by billing_period collate \"C\""
        self.assertEqual(self.psql.run(counts.format(user)), [["9"], ["9"], ["0"]])
        self.psql.run(f"update message_usage set message_count = 9 where user_id = '{user}'")
        self.assertEqual(self.psql.number("select reset_billing_period('2025-05')"), 3)
        self.assertEqual(self.psql.run(counts.format(user)), [["0"], ["9"], ["0"]])
        self.assertEqual(self.psql.run(counts.format(other)), [["0"], ["9"]])
        self.assertEqual(
            self.psql.run("select billing_period from headroom.audit_log where action = 'reset_period' order by 1"),
            [["2025-05"], ["2025-05"], ["2025-05.2"]],
        )
