"""Plans are rows: operators add and change them while the service runs."""

from support.case import MID_MONTH, Case
from support.wire import Answer


class PlansInRows(Case):
    CLOCK = MID_MONTH

    def test_an_update_of_a_plans_allowance_changes_the_next_answer(self):
        self.psql.run("insert into headroom.plans (plan, label, cycle, allowance) values ('a', 'A', 'monthly', 10)")
        user = self.subscriber("a", used=10)
        with self.service.connect() as connection:
            self.assertEqual(connection.answer(f"CONSUME {user}").status, "BLOCKED")
            self.psql.run("update headroom.plans set allowance = 20 where plan = 'a'")
            answer = connection.answer(f"CONSUME {user}")
            self.assertEqual((answer.status, answer.used, answer["limit"]), ("ALLOWED", 11, "20"))
            self.psql.run("update headroom.plans set allowance = 11 where plan = 'a'")
            answer = connection.answer(f"CONSUME {user}")
            self.assertEqual((answer.status, answer["limit"]), ("BLOCKED", "11"))
            self.psql.run("update headroom.plans set allowance = null where plan = 'a'")
            self.assertEqual(connection.answer(f"CONSUME {user}")["limit"], "unlimited")

    def test_an_update_of_a_plans_percentages_and_label_changes_the_next_answer(self):
        self.psql.run(
            "insert into headroom.plans (plan, label, cycle, allowance, gentle_percent, prominent_percent)"
            " values ('b', 'Team \"B\"', 'monthly', 100, 50, 75)"
        )
        user = self.subscriber("b", used=48)
        with self.service.connect() as connection:
            self.assertEqual(connection.answer(f"CONSUME {user}")["tier"], "silent")
            self.assertEqual(connection.answer(f"CONSUME {user}").get("crossed"), "gentle")
            self.assertEqual(connection.answer(f"USAGE {user}")["label"], 'Team "B"')
            self.psql.run("update headroom.plans set gentle_percent = 40, prominent_percent = 50, label = 'B' where plan = 'b'")
            answer = connection.answer(f"USAGE {user}")
            self.assertEqual((answer["tier"], answer["label"]), ("prominent", "B"))
            self.assertEqual(connection.answer(f"CONSUME {user}")["tier"], "prominent")

    def test_a_plan_that_was_added_while_the_service_runs_can_be_set_at_once(self):
        self.psql.run("insert into headroom.plans (plan, label, cycle, allowance) values ('c', 'C', 'lifetime', 2)")
        user = self.subscriber("c")
        answers = [Answer(self.send_command(f"CONSUME {user}")) for _ in range(3)]
        self.assertEqual([a.status for a in answers], ["ALLOWED", "ALLOWED", "BLOCKED"])
        self.assertEqual((answers[2]["period"], answers[2]["reason"]), ("c", "limit_reached"))

    def test_a_longer_trial_reaches_trials_under_way(self):
        user = self.user()
        self.send_command(f"CONSUME {user}")
        self.psql.run("update headroom.plans set trial_days = 7, allowance = 50 where plan = 'trial'")
        try:
            answer = Answer(self.send_command(f"CONSUME {user}"))
            self.assertEqual((answer["days"], answer["expires"], answer["limit"]), ("7", "2026-03-22T09:30:00Z", "50"))
        finally:
            self.psql.run("update headroom.plans set trial_days = 3, allowance = 100 where plan = 'trial'")

    def test_an_instance_that_answered_before_the_edit_follows_it_too(self):
        self.psql.run("insert into headroom.plans (plan, label, cycle, allowance) values ('d', 'D', 'monthly', 5)")
        other = self.serve()
        user = self.subscriber("d", used=5)
        for service in (self.service, other):
            self.assertIn("+BLOCKED ", service.send_command(f"CONSUME {user}"))
        self.psql.run("update headroom.plans set allowance = 7 where plan = 'd'")
        for service in (self.service, other):
            self.assertIn(" limit=7 ", service.send_command(f"CONSUME {user}"))
        self.assertEqual(self.count(user), 7)
