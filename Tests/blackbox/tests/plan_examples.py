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

    def send_messages(self, plan, *counts, parts=""):
        user = self.subscriber(plan)
        return [self.ask(f"CONSUME {user} {n} {parts}") for n in counts]

    def ask(self, request):
        return Answer(self.send_command(request.strip()))

    def assert_page_says(self, text):
        page = " ".join(self.page.split()).replace("November", "March").replace("December", "April")
        self.assertIn(re.sub(r"\d+", "N", text), re.sub(r"\d+", "N", page))

    def assert_page_shows(self, answer, first, last):
        """The page has these fields of an answer, and all between them."""
        names = list(answer.fields)
        shown = " ".join(f"{name}={answer[name]}" for name in names[names.index(first) : names.index(last) + 1])
        self.assertIn(shown, self.page.replace("2026-11-15T", "2026-03-15T"))

    def test_every_plan_of_the_page_is_tried(self):
        plans = set(re.findall(r"values \('(\w+)'", self.page))
        self.assertEqual(plans, {"daily20", "plus", "assistant", "fair", "creator", "credits", "team", "family", "tokens", "max"})

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

    def test_a_models_window_beside_a_month_and_a_model_to_go_on_with(self):
        silent, gentle, last, refused = self.send_messages("creator", 39, 1, 10, 1, parts="model=large")
        self.assertEqual((silent["tier"], gentle["tier"], last["tier"]), ("silent", "gentle", "blocked"))
        self.assert_page_shows(gentle, "used", "model_resets")
        self.assert_page_says(gentle["banner"])
        self.assertEqual((refused["reason"], refused["retry_after"], refused["fallback"]), ("model_limit_reached", "10800", "small"))
        self.set_clock("2026-03-15T10:20:00Z")
        self.assert_page_says(self.ask(f"CHECK {refused['user']} model=large")["banner"])
        again = self.ask(f"CONSUME {refused['user']} model=small")
        self.assertEqual((again["used"], again["model"], again["model_used"], again.get("model_limit")), ("51", "small", "1", None))
        self.ask(f"CONSUME {refused['user']} 749 model=small")
        alone = self.ask(f"CHECK {refused['user']} model=large")
        self.assertEqual((alone["reason"], alone.get("fallback")), ("limit_reached", None))

    def test_a_large_model_that_counts_five(self):
        user = self.subscriber("credits")
        self.assert_page_shows(self.ask(f"CONSUME {user} model=large-thinking"), "used", "model_used")
        self.ask(f"CONSUME {user} 492 model=small")
        refused = self.ask(f"CONSUME {user} model=large")
        self.assertEqual((refused["reason"], refused["remaining"]), ("exceeds_remaining", "3"))
        self.assert_page_says(refused["banner"])
        self.assertEqual(self.ask(f"CONSUME {user} 3 model=other")["remaining"], "0")

    def test_a_team_with_a_cap_for_each_member(self):
        team, ann, bob, eve = self.subscriber("team"), self.user(), self.user(), self.user()
        for member, n in ((bob, 500), (eve, 250), (ann, 450)):
            answer = self.ask(f"CONSUME {team} {n} member={member}")
        self.assert_page_shows(answer, "used", "remaining")
        self.assert_page_shows(answer, "member_limit", "member_remaining")
        refused = self.ask(f"CONSUME {team} member={bob}")
        self.assertEqual(refused["reason"], "member_limit_reached")
        self.assert_page_says(refused["banner"])
        self.ask(f"RESETUSAGE {team} member={bob}")
        self.assertEqual(self.ask(f"CONSUME {team} member={bob}")["member_used"], "1")
        rows = self.psql.run(f"select name, used from headroom.usage_by_member where user_id = '{team}'")
        self.assertEqual({name: int(used) for name, used in rows}, {ann: 450, bob: 1, eve: 250})

    def test_a_family(self):
        family, ann, bob = self.subscriber("family"), self.user(), self.user()
        self.assertEqual(self.ask(f"CONSUME {family} 30 member={ann} model=large")["member_remaining"], "0")
        self.set_clock("2026-03-15T10:20:00Z")
        refused = self.ask(f"CONSUME {family} member={ann}")
        self.assertEqual((refused["reason"], refused["retry_after"]), ("member_limit_reached", "7800"))
        self.assert_page_says(refused["banner"])
        other = self.ask(f"CONSUME {family} member={bob} model=large")
        self.assertEqual((other["member_remaining"], other["model_remaining"], other["remaining"]), ("29", "169", "1469"))

    def test_tokens_by_model(self):
        user = self.subscriber("tokens")
        self.assert_page_shows(self.ask(f"RESERVE {user} 4096 key=message-1 model=large"), "used", "model_remaining")
        self.assert_page_shows(self.ask(f"COMMIT {user} 850 key=message-1"), "used", "model_remaining")

    def test_unlimited_but_50_of_the_large_one_in_three_hours(self):
        user = self.subscriber("max")
        self.ask(f"CONSUME {user} 262 model=small")
        self.ask(f"CONSUME {user} 50 model=large-thinking")
        self.set_clock("2026-03-15T10:20:00Z")
        refused = self.ask(f"CONSUME {user} model=large-thinking")
        self.assert_page_shows(refused, "used", "model_remaining")
        self.assert_page_shows(refused, "reason", "retry_after")
        self.assert_page_says(refused["banner"])
