"""REPORT, TOP, /v1/report, the dashboard and the views cover all open periods by default: months, trials and lifetime
plans. A user has at most one open period: the one that counts for the user now."""

import re

from support.case import Case
from support.pages import DashboardClient, visible_text
from support.wire import Answer


class OpenPeriods(Case):
    """setUpClass moves the clock from November 26 to December 10. `open` maps each user with an open period to its
    label and number of messages."""

    CLOCK = "2026-11-26T09:00:00Z"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run(
            "insert into headroom.plans (plan, label, cycle, allowance) values"
            " ('founder', 'Founder', 'lifetime', 50), ('team', 'Team', 'monthly', 100)"
        )
        cls.open = {}
        # The first two users' periods, a month and a trial, end before December 10. The third user's month began on
        # November 25.
        ended, tried, anchored = cls.user(), cls.user(), cls.user()
        cls.send(f"SETPLAN {ended} paid", f"CONSUME {ended} 5", f"CONSUME {tried} 6")
        cls.send_and_expect(anchored, "2026-11", 800, "SETPLAN {} paid anchor=25", "CONSUME {} 800")
        cls.set_clock("2026-12-08T09:00:00Z")
        cls.send_and_expect(cls.user(), "trial", 81, "CONSUME {} 81")
        cls.send_and_expect(cls.user(), "founder", 50, "SETPLAN {} founder", "CONSUME {} 50")
        cls.send_and_expect(cls.user(), "2026-12", 7, "CONSUME {} 20", "SETPLAN {} paid", "CONSUME {} 7")
        # Neither the lifetime period nor the month has ended, but the plan has: no message can be counted in either.
        # The month is open, because it is newer.
        lapsed = ["SETPLAN {} founder", "CONSUME {}", "SETPLAN {} paid expires=2026-12-09", "CONSUME {} 9"]
        cls.send_and_expect(cls.user(), "2026-12", 9, *lapsed)
        # The plan's cycle changes. The row of the previous cycle is usable until the month ends, but is no longer open.
        moved = cls.user()
        cls.send(f"SETPLAN {moved} team", f"CONSUME {moved} 4")
        cls.psql.run("update headroom.plans set cycle = 'lifetime' where plan = 'team'")
        cls.send_and_expect(moved, "team", 2, "CONSUME {} 2")
        # Rows of clients that count without Headroom.
        adopted, before = cls.user(), cls.user()
        cls.psql.run(
            "insert into message_usage (bucket, user_id, billing_period, message_count, \"limit\")"
            " select headroom.bucket_of(given.user_id), given.* from (values"
            f" ('{adopted}'::uuid, '2026-12', 3, 800), ('{adopted}', '2026-11', 700, 800), ('{before}', '2026-11', 700, 800)"
            ") as given (user_id, billing_period, message_count, \"limit\")"
        )
        cls.open[adopted] = ("2026-12", 3)
        # A user who was counted without Headroom, and now has a plan and uses it.
        known_user = cls.user()
        cls.psql.run(f"insert into message_usage (bucket, user_id, billing_period, message_count, \"limit\")"
                     f" values (headroom.bucket_of('{known_user}'), '{known_user}', '2026-12', 60, 800)")
        cls.send_and_expect(known_user, "founder", 1, "SETPLAN {} founder", "CONSUME {}")
        cls.set_clock("2026-12-10T09:00:00Z")

    @classmethod
    def send(cls, *requests):
        for request in requests:
            reply = cls.service.send_command(request)
            assert reply.startswith(("+OK ", "+ALLOWED ")), reply

    @classmethod
    def send_and_expect(cls, user, period, used, *requests):
        """Sends the requests with the user's id, and records the open period that they lead to."""
        cls.send(*[request.format(user) for request in requests])
        cls.open[user] = (period, used)

    def expected_totals(self):
        # In the tier blocked: the subscriber with anchor day 25, the user whose lifetime allowance is used up, and the
        # user whose plan has ended. In the tier gentle: the trial with 81 messages.
        messages = sum(used for _, used in self.open.values())
        users = len(self.open)
        return {"period": "open", "users": users, "messages": messages, "silent": users - 4, "gentle": 1, "prominent": 0, "blocked": 3}

    def test_a_report_covers_open_periods(self):
        for request in ("REPORT", "REPORT open"):
            fields = Answer(self.send_command(request)).fields
            totals = {name: value if name == "period" else int(value) for name, value in fields.items()}
            self.assertEqual(totals, self.expected_totals(), request)
        for path in ("/v1/report", "/v1/report/open"):
            self.assertEqual(self.service.http("GET", path).json, self.expected_totals(), path)

    def test_top_lists_each_user_once_with_the_current_period(self):
        expected = sorted(((used, user, period) for user, (period, used) in self.open.items()), key=lambda row: (-row[0], row[1]))
        with self.service.connect() as connection:
            for request, count in (("TOP", 10), ("TOP open", 10), ("TOP 1000", 1_000), ("TOP open 1000", 1_000), ("TOP 2", 2)):
                listed = [Answer(entry) for entry in connection.send_list_command(request)]
                self.assertEqual([(a.used, a["user"], a["period"]) for a in listed], expected[:count], request)

    def test_a_named_period_covers_its_label_only(self):
        november = Answer(self.send_command("REPORT 2026-11"))
        self.assertEqual((november["period"], november["users"], november["blocked"]), ("2026-11", "4", "1"))
        with self.service.connect() as connection:
            self.assertEqual(len(connection.send_list_command("TOP 2026-11")), 4)
            self.assertEqual(len(connection.send_list_command("TOP trial")), 3)

    def test_views_mark_open_periods(self):
        rows = self.psql.run("select user_id, billing_period, used from monthly_usage where is_open")
        self.assertEqual({user: (period, int(used)) for user, period, used in rows}, self.open)
        self.assertEqual(len(rows), len(self.open))
        names = list(self.expected_totals())[1:]
        row = self.psql.run(f"select {', '.join(names)} from billing_period_report where billing_period = 'open'")[0]
        self.assertEqual([int(number) for number in row], list(self.expected_totals().values())[1:])

    def test_current_usage_shows_each_user_as_check_answers(self):
        names = ["plan", "state", "tier", "display", "used", "limit", "remaining", "period", "reason", "retry_after"]
        columns = ", ".join(f"coalesce(\"{name}\"::text, '-')" for name in ["user_id", "status", *names])
        rows = self.psql.run(f"select {columns} from current_usage")
        self.assertLess(set(self.open), {row[0] for row in rows})
        for user, status, *values in rows:
            answer = Answer(self.send_command(f"CHECK {user}"))
            # A line says "unlimited" where SQL has null. The wait of a refusal is in both, by the stopped clock.
            shown = ["-" if answer.get(name) in (None, "unlimited") else answer[name] for name in names]
            self.assertEqual([status, *values], [answer.status, *shown], user)

    def test_the_dashboards_first_page_shows_open_periods_and_links_to_others(self):
        for path in ("/dashboard", "/dashboard?period=open"):
            page = DashboardClient(self.service).get_loaded(path)
            figures = re.findall(r"<dt>(Messages|Users|Blocked users)</dt><dd>([\d,]+)</dd>", page.text)
            totals = self.expected_totals()
            self.assertEqual(
                dict(figures),
                {"Messages": f"{totals['messages']:,}", "Users": str(totals["users"]), "Blocked users": "3"},
                path,
            )
            self.assertIn('<option value="open" selected>Open now</option>', page.text)
            for label in ("2026-12", "2026-11", "trial", "founder"):
                self.assertIn(f'<option value="{label}">', page.text)
            for user in self.open:
                self.assertIn(f"/dashboard/users/{user}", page.text)
        month = DashboardClient(self.service).get_loaded("/dashboard?period=2026-11")
        self.assertIn('<option value="2026-11" selected>', month.text)
        self.assertIn("Periods that begin in this month", visible_text(month))
