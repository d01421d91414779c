"""The SQL functions and the service give the same answer for the same usage."""

import itertools
import json

from support.case import MID_MONTH, Case

DETAILS = ("price", "currency", "manage")
"""Fields of USAGE and of SQL only."""
SENTENCES = ("label", "state_label", "accessible", "steps", "notice", "banner")
"""Fields that SQL does not have."""


class SQLConsistency(Case):
    CLOCK = MID_MONTH

    OPTIONS = {
        "paid": [
            "", "anchor=31", "expires=2026-03-20", "state=cancelled", "state=cancelled expires=2026-03-20 anchor=20",
            "state=grace_period", "state=grace_period expires=2026-03-10", "state=grace_period grace_until=2026-03-20",
            "state=billing_retry", "state=expired", "state=revoked", "state=revoked expires=2026-12-01",
        ],
        "pro": ["", "state=cancelled", "state=grace_period", "state=expired"],
        "trial": [
            "", "started=2026-03-13T09:30:00Z", "started=2026-03-12T09:30:00Z", "expires=2026-03-16", "state=expired",
            "state=revoked", "started=2026-03-14 expires=2026-04-14",
        ],
        "free": ["", "state=expired", "state=revoked", "expires=2026-03-20"],
        "lifetime": ["", "state=revoked"],
        "small": ["", "state=cancelled"],
        "plus": ["", "state=cancelled expires=2026-03-15T10:30:00Z"],
    }  # fmt: skip
    COUNTS = {"paid": [639, 799, 800, 900], "pro": [799, 2**31 - 1], "trial": [79, 94, 99, 100], "lifetime": [0, 2, 3],
              "small": [0, 6], "plus": [9, 99]}  # fmt: skip
    LATER = ["2026-03-16T10:00:00Z", "2026-03-20T00:00:00Z", "2026-04-01T00:00:00Z", "2026-12-31T23:59:59.5Z"]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run(
            "insert into headroom.plans (plan, label, cycle, allowance, gentle_percent, prominent_percent, window_messages, window_seconds)"
            " values ('lifetime', 'A \"taste\" of \\ it', 'lifetime', 3, 0, 100, null, null),"
            " ('small', 'Small', 'monthly', 7, 33, 66, null, null), ('plus', 'Plus', 'monthly', 100, 80, 95, 3, 86400)"
        )

    def fields_in_sql(self, user, messages):
        """The answer of increment_and_check_usage as the fields of a line, rolled back."""
        self.psql.run("begin")
        try:
            row = json.loads(self.psql.value(f"select to_json(increment_and_check_usage('{user}', {messages}))"))
        finally:
            self.psql.run("rollback")
        row = {name: value for name, value in row.items() if value is not None or name in ("limit", "remaining")}
        return {name: self.as_on_the_wire(name, value) for name, value in row.items()}

    @staticmethod
    def as_on_the_wire(name, value):
        return "unlimited" if value is None else str(value)

    @staticmethod
    def without_sentences(answer):
        return [("status", answer.status), *((name, value) for name, value in answer.fields.items() if name not in SENTENCES)]

    def assert_same(self, connection, user, messages):
        in_sql = self.fields_in_sql(user, messages)
        check = connection.answer(f"CHECK {user} {messages}")
        usage = connection.answer(f"USAGE {user}")
        consume = connection.answer(f"CONSUME {user} {messages}")
        detail = {name: in_sql.pop(name) for name in DETAILS if name in in_sql}
        # The same names in the same order with the same values.
        self.assertEqual(list(in_sql.items()), self.without_sentences(consume), consume.text)
        self.assertEqual(check.status, consume.status)
        # CHECK and USAGE show the usage before.
        if consume.status == "BLOCKED":
            self.assertEqual(check.text, consume.text)
        unspecific = {"reason", "retry_after", "grace_until", *DETAILS, "label", "state_label", "accessible", "steps"}
        if consume.get("reason") in ("exceeds_remaining", "window_exceeds_remaining"):
            # Says what was requested.
            unspecific.add("banner")
        self.assertEqual(
            {k: v for k, v in check.fields.items() if k not in unspecific},
            {k: v for k, v in usage.fields.items() if k not in unspecific},
        )
        after = connection.answer(f"USAGE {user}")
        self.assertEqual({name: after[name] for name in DETAILS if name in after}, detail)
        if consume.status == "ALLOWED":
            for name in ("used", "tier", "display", "remaining", "banner", "notice", "state", "resets", "expires"):
                self.assertEqual(after.get(name), consume.get(name), name)

    def matrix(self):
        for plan, options in self.OPTIONS.items():
            for option, count in itertools.product(options, [None, *self.COUNTS.get(plan, [])]):
                yield plan, option, count

    def each_user(self, connection):
        for plan, option, count in self.matrix():
            user = self.user()
            if count is not None:
                # The user sends a message before the state is set, so that there is a row to change.
                connection.send_command(f"SETPLAN {user} {plan}")
                self.assertIn("+ALLOWED", connection.send_command(f"CONSUME {user}"))
                self.set_count(user, count)
            self.assertIn("+OK ", connection.send_command(f"SETPLAN {user} {plan} {option}"))
            yield user, f"{plan} {option} used={count}"

    def test_the_row_of_the_sql_function_equals_the_line_in_every_state_count_and_time(self):
        with self.service.connect() as line:
            users = list(self.each_user(line))
            self.assertGreater(len(users), 80)
            for instant in [MID_MONTH, *self.LATER]:
                self.set_clock(instant)
                for user, description in users:
                    with self.subTest(state=description, at=instant):
                        self.assert_same(line, user, 1)

    def test_the_row_of_the_sql_function_equals_the_line_for_an_unknown_user(self):
        with self.service.connect() as line:
            self.assert_same(line, self.user(), 1)
            self.assert_same(line, self.user(), 101)

    def test_set_plan_and_reset_usage_answer_as_setplan_and_resetusage_do(self):
        with self.service.connect() as connection:
            for plan, option in [("paid", ""), ("paid", "state=cancelled"), ("trial", ""), ("free", ""), ("pro", "")]:
                user = self.user()
                on_wire = connection.answer(f"SETPLAN {user} {plan} {option}")
                state = f"'{option.split('=')[1]}'" if option else "null"
                for sql, wire in [
                    (f"set_plan('{user}', '{plan}', {state})", on_wire),
                    (f"reset_usage('{user}')", connection.answer(f"RESETUSAGE {user}")),
                ]:
                    row = json.loads(self.psql.value(f"select to_json({sql})"))
                    row = {k: self.as_on_the_wire(k, v) for k, v in row.items() if v is not None or k in ("limit", "remaining")}
                    row = {k: v for k, v in row.items() if k not in DETAILS}
                    self.assertEqual(list(row.items()), self.without_sentences(wire), sql)


class SQLConsistencyForUnknownUsers(SQLConsistency):
    """The same with unknown users denied, in psql by the database's setting."""

    FLAGS = ("--unknown-users", "deny")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run(f"alter database {cls.database} set headroom.unknown_users = 'deny'")
        cls.psql.close()
        cls.psql = cls.cluster.session(cls.database)

    # The rest does not depend on the setting.
    test_the_row_of_the_sql_function_equals_the_line_in_every_state_count_and_time = None
    test_set_plan_and_reset_usage_answer_as_setplan_and_resetusage_do = None
