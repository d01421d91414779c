"""Unenforced plans: messages beyond their limit are counted and allowed, with shadow=1."""

import re

from support.case import MID_MONTH
from support.waiting import wait_until
from support.wire import Answer

from . import http_counting


class UnenforcedPlans(http_counting.Counting):
    CLOCK = MID_MONTH

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run("insert into headroom.plans (plan, label, cycle, allowance, enforced) values ('new', 'New', 'monthly', 10, false)")

    def user_of_plan(self, used=0):
        user = self.user()
        self.assertTrue(self.send_command(f"SETPLAN {user} new").startswith("+OK"))
        if used:
            self.assertTrue(self.send_command(f"CONSUME {user} {used}").startswith("+ALLOWED"))
        return user

    def answers(self, name):
        return int(self.service.info().get(name, 0))

    def test_holds_and_keys(self):
        for port in self.ports():
            user = self.user_of_plan(used=9)
            held = port.request("RESERVE", user, 5, key="hold")
            self.assertEqual((held["allowed"], held["held"], "shadow" in held), (True, 5, True))
            self.assertIn("shadow", port.request("RESERVE", user, 5, key="hold"), "a repetition is the first answer")
            committed = port.request("COMMIT", user, 3, key="hold")
            self.assertEqual((committed["used"], "shadow" in committed), (12, False))
            first, again = (port.request("CONSUME", user, 2, key="message") for _ in range(2))
            self.assertEqual((first["used"], again["used"], again["replayed"]), (14, 14, True))
            self.assertTrue("shadow" in first and "shadow" in again)
            self.assertEqual(port.request("RELEASE", user, key="message")["used"], 12)

    def test_sql_answers_alike(self):
        user = self.user_of_plan(used=11)
        self.assertEqual(
            self.psql.run(f"select status, message_count, remaining, tier, shadow from current_usage where user_id = '{user}'"),
            [["ALLOWED", "11", "0", "prominent", "t"]],
        )
        # The caller's own limit is another one.
        month = self.psql.value("select to_char(headroom.now(), 'YYYY-MM')")
        for limit, allowed in (("null", "true"), (13, "true"), (13, "false")):
            answer = f"increment_and_check_usage('{user}', '{month}', {limit})"
            self.assertEqual(self.psql.value(f"select {answer} ->> 'allowed'"), allowed, limit)
        self.assertEqual(self.count(user), 13)

    def test_an_edit_takes_effect_with_the_next_message(self):
        name = "edited"
        self.psql.run(f"insert into headroom.plans (plan, label, cycle, allowance) values ('{name}', 'Edited', 'monthly', 2)")
        user = self.user()
        self.send_command(f"SETPLAN {user} {name}")
        self.send_command(f"CONSUME {user} 2")
        consume = lambda: Answer(self.send_command(f"CONSUME {user}"))  # noqa: E731
        self.assertEqual(consume().status, "BLOCKED")
        self.psql.run(f"update headroom.plans set enforced = false where plan = '{name}'")
        self.assertEqual([(consume().status, consume().fields.get("shadow"))], [("ALLOWED", "1")])
        self.psql.run(f"update headroom.plans set enforced = true where plan = '{name}'")
        blocked = consume()
        self.assertEqual((blocked.status, blocked.fields["reason"], blocked.fields["used"]), ("BLOCKED", "limit_reached", "4"))

    def test_nobody_is_counted_as_blocked(self):
        user = self.user_of_plan(used=30)
        before = self.answers("answers_shadow")
        for _ in range(3):
            self.send_command(f"CONSUME {user}")
        self.assertEqual(self.answers("answers_shadow") - before, 3)
        metrics = self.service.http("GET", "/metrics").text
        self.assertEqual(int(re.search(r"(?m)^headroom_shadow_answers_total (\d+)$", metrics)[1]), self.answers("answers_shadow"))
        self.assertEqual(self.psql.value(f"select tier from headroom.usage_rows where user_id = '{user}'"), "prominent")

    def test_the_dashboard_says_which_plans_are_unenforced(self):
        self.send_command(f"CONSUME {self.user_of_plan(used=30)}")

        def page():
            return self.service.http("GET", "/dashboard").text

        wait_until(lambda: "Not enforced: the limit of New." in page(), "the plans are loaded")
        self.assertRegex(page(), r"This instance has allowed [1-9]\d* messages? since its start that enforced limits would have refused")
        user = self.user_of_plan(used=11)
        self.assertIn("not enforced", self.service.http("GET", f"/dashboard/users/{user}").text)

    def test_a_plan_without_messages_may_be_introduced(self):
        service = self.serve("--unknown-users", "free")
        user = self.user()
        with self.subTest("enforced"):
            self.assertIn(" reason=no_subscription", service.send_command(f"CONSUME {user}"))
        self.psql.run("update headroom.plans set enforced = false where plan = 'free'")
        try:
            answer = Answer(service.send_command(f"CONSUME {user}"))
            self.assertEqual((answer.status, answer.fields["used"], answer.fields["shadow"]), ("ALLOWED", "1", "1"))
            self.assertNotIn(" reason=", service.send_command(f"USAGE {user}"))
        finally:
            self.psql.run("update headroom.plans set enforced = true where plan = 'free'")
        self.assertIn("+BLOCKED", service.send_command(f"CONSUME {user}"))
