"""Changes that follow from the clock alone, such as the end of a trial. The tests set the database's clock."""

from support.case import MID_MONTH, Case
from support.wire import Answer


class TimePassing(Case):
    CLOCK = MID_MONTH

    def at(self, instant, user, request="CONSUME"):
        self.set_clock(instant)
        return Answer(self.send_command(f"{request} {user}"))

    def test_a_monthly_allowance_comes_back_at_the_announced_instant(self):
        user = self.subscriber("paid", used=800)
        refused = self.at("2026-03-31T23:59:59.5Z", user)
        self.assertEqual((refused.status, refused["retry_after"]), ("BLOCKED", "1"))
        allowed = self.at("2026-04-01T00:00:00Z", user)
        self.assertEqual((allowed.status, allowed.used, allowed["period"]), ("ALLOWED", 1, "2026-04"))
        self.assertEqual(allowed["resets"], "2026-05-01T00:00:00Z")
        rows = self.psql.run(f"select billing_period, message_count from message_usage where user_id = '{user}' order by 1")
        self.assertEqual(rows, [["2026-03", "800"], ["2026-04", "1"]])

    def test_a_trial_counts_its_days_in_24_hours_and_ends_after_the_third(self):
        user = self.user()
        self.send_command(f"CONSUME {user}")
        for instant, day in [
            ("2026-03-16T09:29:59Z", "1"), ("2026-03-16T09:30:00Z", "2"), ("2026-03-17T09:30:00Z", "3"),
            ("2026-03-18T09:29:59.999Z", "3"),
        ]:  # fmt: skip
            with self.subTest(instant=instant):
                answer = self.at(instant, user)
                self.assertEqual((answer.status, answer["day"]), ("ALLOWED", day))
                self.assertEqual(Answer(self.send_command(f"USAGE {user}"))["label"], f"Trial — Day {day} of 3")
        over = self.at("2026-03-18T09:30:00Z", user)
        self.assertEqual((over.status, over["reason"], over["state"]), ("BLOCKED", "trial_ended", "trial"))
        self.assertEqual(over["banner"], "Your trial has ended — ready to continue?", "messages are left")
        self.assertEqual((over["day"], over["remaining"]), ("3", "0"))
        self.send_command(f"SETPLAN {user} trial")
        self.assertEqual(Answer(self.send_command(f"CONSUME {user}"))["reason"], "trial_ended", "not started again")

    def test_a_clock_set_back_does_not_move_a_user_to_an_earlier_period(self):
        user = self.subscriber("paid", used=5)
        self.assertEqual(self.at("2026-04-01T00:00:01Z", user)["period"], "2026-04")
        back = self.at("2026-03-31T23:59:59Z", user)
        self.assertEqual((back["period"], back.used), ("2026-04", 2))
