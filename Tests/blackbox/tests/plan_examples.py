"""Runs the plans of docs/plans.md as printed, and checks that users are limited as the page says."""

import re

from support.case import MID_MONTH, Case
from support.printed import ROOT
from support.wire import Answer


class PlanExamples(Case):
    CLOCK = MID_MONTH

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(f"{ROOT}/docs/plans.md") as file:
            cls.page = file.read()
        for statement in re.findall(r"^```sql\n(.*?)^```$", cls.page, flags=re.M | re.S):
            cls.psql.run(statement)

    def send_messages(self, plan, *counts):
        user = self.subscriber(plan)
        return [Answer(self.send_command(f"CONSUME {user} {n}")) for n in counts]

    def assert_page_says(self, text):
        self.assertIn(re.sub(r"\d+", "N", text), re.sub(r"\d+", "N", " ".join(self.page.split())).replace("November", "March"))

    def test_every_plan_of_the_page_is_tried(self):
        plans = set(re.findall(r"values \('(\w+)'", self.page))
        self.assertEqual(plans, {"daily20", "plus", "assistant", "fair"})

    def test_20_a_day(self):
        *_, last, refused = self.send_messages("daily20", 19, 1, 1)
        self.assertEqual((last["tier"], refused["reason"], refused["resets"]), ("blocked", "limit_reached", "2026-03-15T23:00:00Z"))
        self.assertEqual(refused["banner"], "We've had a lot of great conversations! Your next session refreshes in 13 hours 30 minutes.")
        self.assert_page_says(refused["banner"])

    def test_80_in_three_hours_and_2000_a_month(self):
        silent, gentle, last, refused = self.send_messages("plus", 63, 1, 16, 1)
        self.assertEqual((silent["tier"], gentle["tier"], last["remaining"]), ("silent", "gentle", "1920"))
        self.assertEqual(gentle["banner"], "16 messages left for the next 3 hours")
        self.assertEqual((refused["reason"], refused["retry_after"]), ("window_limit_reached", "10800"))
        self.assertEqual(refused["banner"], "Let's take a short break. I'm here for you again in 3 hours.")
        self.set_clock("2026-03-15T10:20:00Z")
        later = Answer(self.send_command(f"CHECK {refused['user']}"))
        self.assert_page_says(later["banner"])

    def test_five_hours_and_a_week(self):
        used, refused = self.send_messages("assistant", 150, 1)
        self.assertEqual((used["period"], used["remaining"], refused["retry_after"]), ("2026-W11", "750", "18000"))

    def test_no_limit_but_a_pace(self):
        used, refused = self.send_messages("fair", 60, 1)
        self.assertEqual((used["limit"], refused["reason"], refused["window_limit"]), ("unlimited", "window_limit_reached", "60"))
