"""Daily and weekly plans: when their periods begin, what they are called, and every place that takes the label."""

import datetime
import json

from support.case import Case
from support.pages import DashboardClient, visible_text
from support.postgres import SQLError
from support.service import command
from support.wire import Answer

HOUR = 3_600


def seconds(instant):
    return datetime.datetime.fromisoformat(instant.replace("Z", "+00:00")).timestamp()


def text(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat()


def middle(begins, ends):
    return text((seconds(begins) + seconds(ends)) // 2)


def just_before(instant):
    return text(seconds(instant) - 1)


class BillingCycles(Case):
    """In Berlin, clocks go back on Sunday 25 October 2026 at 03:00: 02:00 in UTC, then 01:00."""

    CLOCK = "2026-10-23T10:00:00Z"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run(
            "insert into headroom.plans (plan, label, cycle, allowance, time_zone) values"
            " ('day', '20 a day', 'daily', 20, 'Europe/Berlin'), ('week', 'Weekly', 'weekly', 100, 'Europe/Berlin'),"
            " ('utc', 'Utc', 'daily', 20, null), ('azores', 'Azores', 'daily', 20, 'Atlantic/Azores'),"
            " ('apia', 'Apia', 'weekly', 9, 'Pacific/Apia')"
        )

    def at(self, instant, user, request="CONSUME {}"):
        self.set_clock(instant)
        return Answer(self.send_command(request.format(user)))

    def test_periods_begin_at_midnight_and_on_monday_in_the_plans_time_zone(self):
        for plan, days in {
            # From the given instant on, the period is the one of the label, until the next instant.
            "day": [
                ("2026-10-22T22:00:00Z", "2026-10-23"), ("2026-10-23T22:00:00Z", "2026-10-24"),
                # 25 hours.
                ("2026-10-24T22:00:00Z", "2026-10-25"), ("2026-10-25T23:00:00Z", "2026-10-26"), ("2026-10-26T23:00:00Z", None),
                # 23 hours.
                ("2027-03-27T23:00:00Z", "2027-03-28"), ("2027-03-28T22:00:00Z", "2027-03-29"), ("2027-03-29T22:00:00Z", None),
            ],
            "utc": [("2026-10-23T00:00:00Z", "2026-10-23"), ("2026-10-24T00:00:00Z", "2026-10-24"), ("2026-10-25T00:00:00Z", None)],
            # Clocks go back to midnight: the day has two of them. They go forward at midnight: the day has none.
            "azores": [
                ("2026-10-24T00:00:00Z", "2026-10-24"), ("2026-10-25T00:00:00Z", "2026-10-25"), ("2026-10-26T01:00:00Z", None),
                ("2027-03-27T01:00:00Z", "2027-03-27"), ("2027-03-28T01:00:00Z", "2027-03-28"), ("2027-03-29T00:00:00Z", None),
            ],
            "week": [
                ("2026-10-18T22:00:00Z", "2026-W43"), ("2026-10-25T23:00:00Z", "2026-W44"), ("2026-11-01T23:00:00Z", None),
                ("2026-12-27T23:00:00Z", "2026-W53"), ("2027-01-03T23:00:00Z", "2027-W01"), ("2027-01-10T23:00:00Z", None),
            ],
            # 13 hours ahead of UTC.
            "apia": [("2026-10-25T11:00:00Z", "2026-W44"), ("2026-11-01T11:00:00Z", "2026-W45"), ("2026-11-08T11:00:00Z", None)],
        }.items():  # fmt: skip
            self.set_clock(days[0][0])
            user = self.subscriber(plan)
            for (begins, label), (ends, _) in zip(days, days[1:]):
                if label is None:
                    continue
                for used, instant in enumerate((begins, middle(begins, ends), just_before(ends)), start=1):
                    with self.subTest(plan=plan, instant=instant):
                        answer = self.at(instant, user)
                        self.assertEqual((answer["period"], answer["resets"], answer.used), (label, ends, used))

    def test_a_used_up_day_says_when_the_messages_come_back(self):
        user = self.subscriber("day", used=20)
        # In Berlin it is 20:00, and the day ends at 22:00 in UTC.
        self.assertEqual(self.at("2026-10-23T18:00:00Z", user)["retry_after"], str(4 * HOUR))
        answer = self.service.http("POST", f"/v1/usage/{user}/consume")
        self.assertEqual((answer.status, answer.headers["Retry-After"]), (200, str(4 * HOUR)))
        self.assertIn(f'"day";r=0;t={4 * HOUR}', answer.headers["RateLimit"])
        self.assertEqual(self.at("2026-10-23T22:00:00Z", user).used, 1)
        past = Answer(self.send_command(f"USAGE {user} 2026-10-23"))
        self.assertEqual((past.used, past["accessible"]), (20, "20 of 20 messages used in 2026-10-23"))

    def test_access_that_ends_with_the_day_has_expired_then(self):
        user = self.subscriber("day", "state=cancelled", used=17)
        self.assertEqual(self.at(self.CLOCK, user, "USAGE {}")["expires"], "2026-10-23T22:00:00Z")
        self.assertEqual(self.at("2026-10-23T22:00:00Z", user)["reason"], "expired")

    def test_every_place_that_takes_a_period_takes_a_day_and_a_week(self):
        self.psql.run("delete from message_usage")
        daily, weekly = self.subscriber("day"), self.subscriber("week")
        for day in (23, 24, 26):
            self.at(f"2026-10-{day}T10:00:00Z", daily, "CONSUME {} " + str(day))
            self.at(f"2026-10-{day}T10:00:00Z", daily, "CONSUME {} 7")
            self.at(f"2026-10-{day}T10:00:00Z", weekly, "CONSUME {} 30")
        with self.service.connect() as connection:
            history = [Answer(line) for line in connection.send_list_command(f"HISTORY {daily}")]
            self.assertEqual([(a["period"], a.used) for a in history], [("2026-10-26", 7), ("2026-10-24", 7), ("2026-10-23", 7)])
            top = {label: [Answer(line) for line in connection.send_list_command(f"TOP {label}")] for label in ("2026-10-24", "2026-W43")}
        self.assertIn((daily, 7), [(a["user"], a.used) for a in top["2026-10-24"]])
        self.assertIn((weekly, 60), [(a["user"], a.used) for a in top["2026-W43"]])
        for label, used in (("2026-10-24", 7), ("2026-10-26", 7)):
            self.assertEqual(Answer(self.send_command(f"USAGE {daily} {label}")).used, used)
            self.assertEqual(self.service.http("GET", f"/v1/usage/{daily}?period={label}").json["used"], used)
        for label in ("2026-10-23", "2026-W43"):
            report = Answer(self.send_command(f"REPORT {label}")).fields
            self.assertEqual(report["period"], label)
            self.assertGreaterEqual(int(report["users"]), 1)
            over_http = self.service.http("GET", f"/v1/report/{label}").json
            self.assertEqual(over_http, {name: value if name == "period" else int(value) for name, value in report.items()})
            ran = command("report", label, "--json", "--target", f"127.0.0.1:{self.service.port}")
            self.assertEqual((ran.returncode, json.loads(ran.stdout)["messages"]), (0, int(report["messages"])))
            row = self.psql.run(f"select users, messages from billing_period_report where billing_period = '{label}'")
            self.assertEqual(row, [[report["users"], report["messages"]]])
        numbered = ("2026-10.1", "2026-W43.02", "2026-10-24.2", "2026-10.1000", "trial.2")
        for label in ("2026-10-32", "2026-02-29", "2026-W00", "2026-W54", "2025-W53", "2026-w43", "2026-1-1", *numbered):
            refused = self.send_command(f"USAGE {daily} {label}")
            self.assertIn("-BADARG period must be a month as YYYY-MM, a week as YYYY-Www (YYYY-MM.2 and YYYY-Www.2 are", refused)
            self.assertEqual(self.service.http("GET", f"/v1/report/{label}").status, 400, label)
        self.assertEqual(self.psql.number("select reset_billing_period('2026-10-24')"), 1)
        self.assertEqual(Answer(self.send_command(f"RESETUSAGE {daily} 2026-10-23"))["period"], "2026-10-23")
        with self.service.connect() as connection:
            history = [Answer(line).used for line in connection.send_list_command(f"HISTORY {daily}")]
        self.assertEqual(history, [7, 0, 0])

    def test_reports_without_a_period_cover_months_weeks_days_and_trials(self):
        self.psql.run("delete from message_usage")
        self.set_clock("2026-10-23T10:00:00Z")
        open_users = {self.subscriber("paid"): "2026-10", self.subscriber("week"): "2026-W43", self.user(): "trial"}
        daily = self.subscriber("day")
        for user in (*open_users, daily):
            self.send_command(f"CONSUME {user} 5")
        self.set_clock("2026-10-24T10:00:00Z")
        # The day of yesterday is over; today's begins with the first message.
        self.assertEqual(Answer(self.send_command("REPORT"))["users"], "3")
        self.send_command(f"CONSUME {daily}")
        open_users[daily] = "2026-10-24"
        report = Answer(self.send_command("REPORT"))
        self.assertEqual((report["users"], report["messages"]), ("4", "16"))
        self.assertEqual(self.service.http("GET", "/v1/report").json["users"], 4)
        with self.service.connect() as connection:
            top = [Answer(line) for line in connection.send_list_command("TOP")]
        self.assertEqual({a["user"]: a["period"] for a in top}, open_users)
        rows = self.psql.run("select user_id, billing_period from monthly_usage where is_open")
        self.assertEqual(dict(rows), open_users)
        # An edit makes every row out of date. Then the plans decide which row is open.
        self.psql.run("update headroom.plans set allowance = 21 where plan = 'day'")
        self.addCleanup(self.psql.run, "update headroom.plans set allowance = 20 where plan = 'day'")
        rows = self.psql.run("select user_id, billing_period from monthly_usage where is_open")
        self.assertEqual(dict(rows), open_users)
        page = DashboardClient(self.service).get_loaded("/dashboard")
        text = visible_text(page)
        for name in ("Open now", "October 2026 (this month)", "Week 43 of 2026", "24 October 2026", "23 October 2026", "trial"):
            self.assertIn(name, text)
        self.assertIn("21 a day (Europe/Berlin)", text)
        for user in open_users:
            self.assertIn(f"/dashboard/users/{user}", page.text)
        day = DashboardClient(self.service).get_loaded("/dashboard?period=2026-10-23")
        self.assertIn('<option value="2026-10-23" selected>', day.text)
        self.assertIn("It begins at midnight in the time zone of each user’s plan.", visible_text(day))

    def test_a_row_of_yesterday_is_not_taken_for_an_ended_month(self):
        # In New York it is still 31 October, and the user's anchor day is the first.
        self.psql.run(
            "insert into headroom.plans (plan, label, cycle, allowance, time_zone) values ('york', 'York', 'daily', 20, 'America/New_York')"
        )
        self.addCleanup(self.psql.run, "delete from headroom.plans where plan = 'york'")
        user = self.subscriber("york")
        self.addCleanup(self.send_command, f"FORGET {user}")
        self.assertEqual(self.at("2026-11-01T03:00:00Z", user)["period"], "2026-10-31")
        self.psql.run("update headroom.plans set allowance = 30 where plan = 'york'")
        rows = self.psql.run(f"select billing_period, \"limit\" from monthly_usage where is_open and user_id = '{user}'")
        self.assertEqual(rows, [["2026-10-31", "30"]])

    def test_a_wrong_time_zone_or_cycle_is_refused_when_it_is_written(self):
        for zone in ("Europe/Berln", "Berlin", "FOO1", "+02:00", ""):
            with self.assertRaisesRegex(SQLError, f"there is no time zone '{zone}'".replace("+", r"\+")):
                self.psql.run(f"update headroom.plans set time_zone = '{zone}' where plan = 'day'")
        for cycle in ("monthly", "lifetime"):
            with self.assertRaisesRegex(SQLError, "only_daily_and_weekly_plans_have_a_time_zone"):
                self.psql.run(
                    f"insert into headroom.plans (plan, label, cycle, allowance, time_zone) values ('zoned', 'Zoned', '{cycle}', 1, 'UTC')"
                )
        with self.assertRaisesRegex(SQLError, "cycle_is_known"):
            self.psql.run("update headroom.plans set cycle = 'yearly' where plan = 'utc'")

    def test_callers_of_the_sql_function_may_name_days_and_weeks(self):
        def counted(user, label):
            return json.loads(self.psql.value(f"select increment_and_check_usage('{user}', '{label}', 15)"))["current_count"]

        self.set_clock("2026-10-24T22:30:00Z")
        daily, weekly = self.subscriber("day"), self.subscriber("week")
        for count, label in enumerate(("2026-10-25", "2026-10", "trial"), start=1):
            self.assertEqual(counted(daily, label), count, label)
        self.assertEqual([counted(weekly, label) for label in ("2026-W43", "2026-10", "trial")], [1, 2, 3])
        self.assertEqual(Answer(self.send_command(f"CONSUME {daily}"))["period"], "2026-10-25")
        for user, label in ((daily, "2026-10-24"), (daily, "2026-W43"), (weekly, "2026-10-25"), (daily, "2026-10-26")):
            with self.assertRaisesRegex(SQLError, "this user's open period is"):
                counted(user, label)
        # Nobody told Headroom about this user. A day may have begun up to 14 hours ahead of UTC.
        unknown = self.user()
        for label in ("2026-10-24", "2026-10-25", "2026-W43", "2025-01-01", "2026-10"):
            self.assertEqual(counted(unknown, label), 1, label)
        for label in ("2026-10-26", "2026-W44", "2026-02-30", "2025-W53", "2026-10-1", "day", "26-10-24"):
            with self.assertRaisesRegex(SQLError, "there is no period"):
                counted(unknown, label)

    def test_rows_that_callers_count_by_the_day_are_open_on_that_day_until_another_row_is(self):
        user = self.user()
        open_row = f"select billing_period, used from monthly_usage where is_open and user_id = '{user}'"
        self.psql.run(f"select increment_and_check_usage('{user}', '2026-10-22', 9)")
        self.assertEqual(self.psql.run(open_row), [])
        self.psql.run(f"select increment_and_check_usage('{user}', '2026-10-23', 9)")
        self.assertEqual(self.psql.run(open_row), [["2026-10-23", "1"]])
        self.set_clock("2026-10-23T10:00:01Z")
        self.psql.run(f"select increment_and_check_usage('{user}', '2026-10', 9)")
        self.assertEqual(self.psql.run(open_row), [["2026-10", "1"]])
        self.send_command(f"CONSUME {user}")
        self.assertEqual(self.psql.run(open_row), [["trial", "1"]])

    def test_users_without_a_plan_may_be_on_a_daily_plan(self):
        self.psql.run("update headroom.plans set cycle = 'daily', allowance = 3, time_zone = 'Europe/Berlin' where plan = 'free'")
        restored = "update headroom.plans set cycle = 'lifetime', allowance = 0, time_zone = null where plan = 'free'"
        self.addCleanup(self.psql.run, restored)
        service = self.serve("--unknown-users", "free")
        user = self.user()
        self.assertEqual([Answer(service.send_command(f"CONSUME {user}")).status for _ in range(4)], ["ALLOWED"] * 3 + ["BLOCKED"])
        self.set_clock("2026-10-23T22:00:00Z")
        answer = Answer(service.send_command(f"CONSUME {user}"))
        self.assertEqual((answer.status, answer["plan"], answer["period"], answer.used), ("ALLOWED", "free", "2026-10-24", 1))
        denying = self.serve("--unknown-users", "deny")
        refused = Answer(denying.send_command(f"CONSUME {self.user()}"))
        self.assertEqual((refused.status, refused["reason"]), ("BLOCKED", "no_subscription"))
        self.assertEqual(refused["banner"], "Ready to begin? A subscription opens our conversations.")
