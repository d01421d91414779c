"""SQL functions and plain statements, beside a running service whose next answer includes the change."""

import json

from support.case import MID_MONTH, Case, needs_one_machine
from support.postgres import SQLError
from support.wire import Answer


class SQLFunctions(Case):
    CLOCK = MID_MONTH

    def row(self, call):
        """A function's row as a dictionary without nulls."""
        row = json.loads(self.psql.value(f"select to_jsonb(answer) from {call} as answer"))
        return {name: value for name, value in row.items() if value is not None}

    def test_increment_and_check_usage_and_the_service_share_one_count(self):
        user = self.subscriber("paid", used=639)
        self.assertEqual(self.row(f"increment_and_check_usage('{user}')")["used"], 640)
        self.assertEqual(Answer(self.send_command(f"CONSUME {user}")).used, 641)
        self.assertEqual(self.row(f"increment_and_check_usage(p_user_id => '{user}', p_messages => 159)")["used"], 800)
        self.assertIn("+BLOCKED ", self.send_command(f"CONSUME {user}"))

    def test_increment_and_check_usage_starts_a_trial_that_the_service_continues(self):
        user = self.user()
        self.assertEqual(self.row(f"increment_and_check_usage('{user}')")["plan"], "trial")
        answer = Answer(self.send_command(f"CONSUME {user}"))
        self.assertEqual((answer["plan"], answer.used), ("trial", 2))

    def test_increment_and_check_usage_with_a_period_and_a_limit_answers_existing_callers(self):
        user = self.user()
        call = f"select increment_and_check_usage('{user}', '2026-03', 3)"
        for count in (1, 2, 3):
            self.assertEqual(
                json.loads(self.psql.value(call)),
                {"allowed": True, "current_count": count, "limit": 3, "remaining": 3 - count},
            )
        self.assertEqual(json.loads(self.psql.value(call)), {"allowed": False, "current_count": 3, "limit": 3, "remaining": 0})
        self.assertEqual(self.count(user), 3)
        self.assertEqual(self.psql.value(f"select pg_typeof(increment_and_check_usage('{user}', '2026-03', 3))"), "jsonb")

    def test_existing_callers_and_the_service_share_one_count(self):
        user = self.subscriber("paid", used=798)
        old = f"select increment_and_check_usage(p_user_id := '{user}', p_billing_period := '2026-03', p_limit := 800)"
        self.assertEqual(json.loads(self.psql.value(old))["current_count"], 799)
        self.assertEqual(Answer(self.send_command(f"CONSUME {user}")).used, 800)
        self.assertFalse(json.loads(self.psql.value(old))["allowed"])
        self.assertEqual(Answer(self.send_command(f"CHECK {user}"))["limit"], "800")

    @needs_one_machine("in a distributed database an inserted row needs its bucket")
    def test_an_inserted_row_counts_only_if_its_period_is_the_open_one(self):
        def insert(user, period):
            self.psql.run(f"insert into message_usage (user_id, billing_period, message_count) values ('{user}', '{period}', 50)")

        unknown = self.user()
        insert(unknown, "2026-03")
        answer = Answer(self.send_command(f"CONSUME {unknown}"))
        self.assertEqual((answer["plan"], answer["period"], answer.used), ("trial", "trial", 1))
        # The plan's open period is that of the row.
        self.send_command(f"SETPLAN {unknown} paid")
        self.assertEqual(Answer(self.send_command(f"CONSUME {unknown}")).used, 51)
        begun = self.user()
        insert(begun, "trial")
        self.assertEqual(Answer(self.send_command(f"CONSUME {begun}")).used, 51)
        # As operations.md says: set_plan writes the row, and an UPDATE changes it.
        paid = self.user()
        self.psql.run(f"select set_plan('{paid}', 'paid')")
        self.assertEqual(self.psql.run(f"select billing_period from current_usage where user_id = '{paid}'"), [["2026-03"]])
        self.psql.run(f"update message_usage set message_count = 50 where user_id = '{paid}' and billing_period = '2026-03'")
        self.assertEqual(Answer(self.send_command(f"CONSUME {paid}")).used, 51)

    def old(self, user, period, limit):
        """The JSON answer of the form with a period and a limit."""
        return json.loads(self.psql.value(f"select increment_and_check_usage('{user}', '{period}', {limit})"))

    def test_existing_callers_count_a_subscriber_in_the_open_period_whichever_label_they_pass(self):
        # On 15 March, the period that began on 25 February is open.
        user = self.subscriber("paid", "anchor=25", used=10)
        for count, name in enumerate(("2026-02", "2026-03", "trial"), start=11):
            expected = {"allowed": True, "current_count": count, "limit": 800, "remaining": 800 - count}
            self.assertEqual(self.old(user, name, 800), expected, name)
        self.assertEqual(self.psql.run(f"select billing_period from message_usage where user_id = '{user}'"), [["2026-02"]])
        self.assertEqual(self.old(user, "2026-02", 20), {"allowed": True, "current_count": 14, "limit": 20, "remaining": 6})
        refused = {"allowed": False, "current_count": 14, "limit": 14, "remaining": 0}
        self.assertEqual(self.old(user, "2026-02", 14), refused)
        unlimited = self.old(user, "2026-02", "null")
        self.assertEqual(unlimited, {"allowed": True, "current_count": 15, "limit": 800, "remaining": 785})
        pro = self.old(self.subscriber("pro"), "2026-03", "null")
        self.assertEqual(pro, {"allowed": True, "current_count": 1, "limit": None, "remaining": None})
        for name in ("2026-01", "2026-04", "free"):
            with self.assertRaisesRegex(SQLError, "open period is 2026-02"):
                self.old(user, name, 800)
        self.assertEqual(self.count(user), 15)
        self.assertEqual(Answer(self.send_command(f"CONSUME {user}")).used, 16)

    def test_existing_callers_are_never_allowed_what_consume_refuses(self):
        for plan, options, used in (
            ("paid", "", 800), ("paid", "state=expired", None), ("paid", "state=revoked", None), ("paid", "state=billing_retry", None),
            ("trial", "state=expired", None), ("trial", "", 100), ("free", "", None),
        ):  # fmt: skip
            user = self.subscriber(plan, options, used)
            self.assertIn("+BLOCKED ", self.send_command(f"CONSUME {user}"))
            for period in ("2026-03", "trial"):
                self.assertFalse(self.old(user, period, 1_000_000)["allowed"], (plan, options, period))
            self.assertEqual(self.count(user), used or 0)
        # A trial that was forgotten stays spent.
        user = self.user()
        self.assertIn("+ALLOWED ", self.send_command(f"CONSUME {user} 100"))
        self.assertIn("+OK", self.send_command(f"FORGET {user}"))
        self.assertFalse(self.old(user, "2026-03", 800)["allowed"])
        # A user without a plan, in the row in which CONSUME would count.
        user = self.user()
        self.psql.run(f"select increment_and_check_usage('{user}', 'trial', 1000) from generate_series(1, 99)")
        self.assertEqual(self.old(user, "trial", 1000), {"allowed": True, "current_count": 100, "limit": 100, "remaining": 0})
        self.assertIn("+BLOCKED ", self.send_command(f"CHECK {user}"))
        self.assertFalse(self.old(user, "trial", 1000)["allowed"])
        # Users without a plan, where these are denied.
        for setting in ("deny", "free"):
            user = self.user()
            self.psql.run(f"set headroom.unknown_users = '{setting}'")
            self.assertFalse(self.old(user, "2026-03", 800)["allowed"], setting)
            self.psql.run("reset headroom.unknown_users")
            self.assertEqual(self.count(user), 0)

    def test_reset_usage_sets_the_count_to_0_and_the_next_message_is_allowed(self):
        user = self.subscriber("paid", used=800)
        self.assertIn("+BLOCKED ", self.send_command(f"CONSUME {user}"))
        self.assertEqual(self.row(f"reset_usage('{user}')")["used"], 0)
        self.assertEqual(Answer(self.send_command(f"CONSUME {user}")).used, 1)
        self.assertEqual(self.row(f"reset_usage('{user}', '2026-03')")["used"], 0)
        with self.assertRaises(SQLError):
            self.psql.run(f"select reset_usage('{user}', '2020-01')")

    def test_reset_billing_period_resets_all_users_of_the_period_only(self):
        paid = [self.subscriber("paid", used=800) for _ in range(3)]
        trial = self.subscriber("trial", used=100)
        for user in (*paid, trial):
            self.assertIn("+BLOCKED ", self.send_command(f"CONSUME {user}"))
        expected = self.psql.number("select count(*) from message_usage where billing_period = '2026-03' and message_count > 0")
        self.assertGreaterEqual(expected, 3)
        self.assertEqual(self.psql.number("select reset_billing_period('2026-03')"), expected)
        for user in paid:
            self.assertEqual(Answer(self.send_command(f"CONSUME {user}")).used, 1)
        self.assertIn("+BLOCKED ", self.send_command(f"CONSUME {trial}"))
        self.assertEqual(self.psql.number("select reset_billing_period('2019-01')"), 0)
        with self.assertRaises(SQLError):
            self.psql.run("select reset_billing_period('2026-13')")

    def test_set_plan_takes_effect_on_the_next_message(self):
        user = self.user()
        self.send_command(f"CONSUME {user} 100")
        self.assertIn("+BLOCKED ", self.send_command(f"CONSUME {user}"))
        row = self.row(f"set_plan('{user}', 'paid')")
        self.assertEqual((row["plan"], row["state"], row["used"]), ("paid", "active", 0))
        self.assertIn(" plan=paid ", self.send_command(f"CONSUME {user}"))
        self.row(f"set_plan('{user}', 'paid', p_state => 'cancelled', p_expires => '2026-03-20T00:00:00Z', p_anchor => 10)")
        answer = Answer(self.send_command(f"CONSUME {user}"))
        self.assertEqual((answer["expires"], answer["resets"]), ("2026-03-20T00:00:00Z", "2026-04-10T00:00:00Z"))
        for call in (
            f"set_plan('{user}', 'nosuch')", f"set_plan('{user}', 'paid', 'trial')", "set_plan(null, 'paid')",
            f"set_plan('{user}', 'paid', p_anchor => 32)", f"set_plan('{user}', 'paid', p_expires => 'infinity')",
        ):  # fmt: skip
            with self.assertRaises(SQLError, msg=call):
                self.psql.run(f"select {call}")

    def test_a_plain_update_of_the_count_applies_from_the_next_answer(self):
        user = self.subscriber("paid", used=800)
        self.assertIn("+BLOCKED ", self.send_command(f"CONSUME {user}"))
        self.set_count(user, 300)
        self.assertEqual(Answer(self.send_command(f"CHECK {user}")).used, 300)
        self.assertEqual(Answer(self.send_command(f"CONSUME {user}")).used, 301)
        self.set_count(user, 800)
        self.assertIn("+BLOCKED ", self.send_command(f"CONSUME {user}"))

    def test_a_plain_update_of_the_limit_applies_from_the_next_answer_and_stays(self):
        user = self.subscriber("paid", used=800)
        self.assertIn("+BLOCKED ", self.send_command(f"CONSUME {user}"))
        self.psql.run(f"update message_usage set \"limit\" = 1000 where user_id = '{user}'")
        for _ in range(2):
            answer = Answer(self.send_command(f"CONSUME {user}"))
            self.assertEqual((answer.status, answer["limit"]), ("ALLOWED", "1000"))
        self.send_command(f"SETPLAN {user} paid")
        self.assertEqual(Answer(self.send_command(f"CONSUME {user}"))["limit"], "1000", "the plan's own allowance did not change")
        self.psql.run(f"update message_usage set \"limit\" = 10 where user_id = '{user}'")
        answer = Answer(self.send_command(f"CONSUME {user}"))
        self.assertEqual((answer.status, answer.used, answer["limit"]), ("BLOCKED", 803, "10"))
        self.psql.run(f"update message_usage set \"limit\" = null where user_id = '{user}'")
        self.assertEqual(Answer(self.send_command(f"CONSUME {user}"))["limit"], "unlimited")

    def test_a_plain_delete_applies_from_the_next_answer(self):
        user = self.subscriber("paid", used=800)
        self.assertIn("+BLOCKED ", self.send_command(f"CONSUME {user}"))
        self.psql.run(f"delete from message_usage where user_id = '{user}'")
        answer = Answer(self.send_command(f"CONSUME {user}"))
        self.assertEqual((answer.status, answer.used, answer["limit"]), ("ALLOWED", 1, "800"))

    def test_deleting_a_trials_row_resets_the_count_but_not_the_days(self):
        user = self.user()
        started = Answer(self.send_command(f"CONSUME {user}"))
        self.psql.run(f"delete from message_usage where user_id = '{user}'")
        self.set_clock("2026-03-16T12:00:00Z")
        answer = Answer(self.send_command(f"CONSUME {user}"))
        self.assertEqual((answer.used, answer["day"], answer["expires"]), (1, "2", started["expires"]))

    def test_a_row_as_json_has_the_five_names_that_clients_decode(self):
        user = self.subscriber("paid", used=1)
        row = json.loads(self.psql.value(f"select to_jsonb(u) from message_usage as u where user_id = '{user}'"))
        self.assertEqual(row["user_id"], user)
        self.assertEqual((row["billing_period"], row["message_count"], row["limit"]), ("2026-03", 1, 800))
        self.assertTrue(row["updated_at"].startswith("2026-03-15T09:30:00"), row["updated_at"])
        types = dict(self.psql.run(
            "select column_name, data_type from information_schema.columns where table_schema = 'public'"
            " and table_name = 'message_usage'"
        ))  # fmt: skip
        self.assertEqual(
            [types[name] for name in ("user_id", "billing_period", "message_count", "limit", "updated_at")],
            ["uuid", "text", "integer", "integer", "timestamp with time zone"],
        )

    def test_monthly_usage_has_a_row_per_user_and_period_with_tier_and_remaining(self):
        user = self.subscriber("paid", used=760)
        row = json.loads(self.psql.value(f"select to_jsonb(m) from monthly_usage as m where user_id = '{user}'"))
        self.assertEqual((row["billing_period"], row["used"], row["limit"]), ("2026-03", 760, 800))
        self.assertEqual((row["tier"], row["remaining"]), ("prominent", 40))
        self.set_count(user, 900)
        self.assertEqual(self.psql.run(f"select tier, remaining from monthly_usage where user_id = '{user}'"), [["blocked", "0"]])
        unlimited = self.subscriber("pro", used=5)
        row = json.loads(self.psql.value(f"select to_jsonb(m) from monthly_usage as m where user_id = '{unlimited}'"))
        self.assertEqual((row["limit"], row["remaining"], row["tier"]), (None, None, "silent"))

    def test_arguments_out_of_range_are_refused_with_the_documented_state(self):
        user = self.user()
        for call, state in [
            (f"increment_and_check_usage('{user}', 0)", "22023"),
            (f"increment_and_check_usage('{user}', -1)", "22023"),
            (f"increment_and_check_usage('{user}', 1000001)", "22023"),
            ("increment_and_check_usage(null::uuid)", "22004"),
            (f"increment_and_check_usage('{user}', '2026-13', 5)", "22023"),
            (f"increment_and_check_usage('{user}', '2026-03', -1)", "22023"),
            (f"set_plan('{user}', 'nosuch')", "P0002"),
        ]:
            with self.subTest(call=call):
                block = f"do $$ begin perform {call}; exception when sqlstate '{state}' then return; end $$"
                self.psql.run(block)
                with self.assertRaises(SQLError):
                    self.psql.run(f"select {call}")
        self.assertEqual(self.psql.number(f"select count(*) from message_usage where user_id = '{user}'"), 0)

    def test_an_error_of_a_message_in_a_callers_transaction_rolls_back_with_it(self):
        user = self.subscriber("paid", used=5)
        self.psql.run("begin")
        self.assertEqual(self.row(f"increment_and_check_usage('{user}')")["used"], 6)
        self.psql.run("rollback")
        self.assertEqual(self.count(user), 5)
