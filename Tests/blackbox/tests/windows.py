"""Windows, a second and shorter limit beside that of the period: their fields on both ports, views, edits and pages. `golden_answers`
has what they refuse; the engine's histories have holds, changes of plans and the ends of periods."""

import datetime

from support.case import MID_MONTH
from support.postgres import SQLError
from support.wire import Answer

from . import http_counting

START = datetime.datetime.fromisoformat("2026-03-15T09:30:00+00:00")
FIELDS = ("window_limit", "window_used", "window_remaining", "window_resets")
http_counting.NUMBERS |= {"window_limit", "window_used", "window_remaining"}


def instant(seconds=0):
    return (START + datetime.timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


class Windows(http_counting.Counting):
    CLOCK = MID_MONTH

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run(
            "insert into headroom.plans (plan, label, cycle, allowance, window_messages, window_seconds) values"
            " ('three_hours', 'Plus', 'monthly', 100, 10, 10800), ('hour', 'Hour', 'monthly', 100, 20, 3600)"
        )

    def window(self, answer):
        return tuple(answer.get(name) for name in FIELDS)

    def usage(self, user):
        return Answer(self.send_command(f"USAGE {user}")).fields

    def count_in_window(self, user):
        rows = self.psql.run(
            f"select window_count, window_held from message_usage where user_id = '{user}' and window_ends_at > headroom.now()"
        )
        return tuple(int(value) for value in rows[0]) if rows else None

    def test_a_window_opens_with_a_message_and_ends(self):
        for port in self.ports():
            user = self.subscriber("three_hours")
            self.set_clock(instant())
            self.assertEqual(self.window(port.request("CHECK", user)), (10, 0, 10, None))
            self.assertEqual(self.window(port.request("CONSUME", user, 4)), (10, 4, 6, instant(10_800)))
            self.set_clock(instant(10_799))
            self.assertEqual(self.window(port.request("CONSUME", user, 6)), (10, 10, 0, instant(10_800)))
            refused = port.request("CONSUME", user)
            self.assertEqual((refused["reason"], refused["retry_after"]), ("window_limit_reached", 1))
            self.assertEqual((refused["used"], refused["remaining"], refused["resets"]), (10, 90, "2026-04-01T00:00:00Z"))
            self.set_clock(instant(10_800))
            self.assertEqual(self.window(self.usage(user)), ("10", "0", "10", None))
            third = port.request("CONSUME", user)
            self.assertEqual((self.window(third), third["used"]), ((10, 1, 9, instant(21_600)), 11))
        self.send_command(f"CONSUME {self.subscriber('paid')} 5")
        self.assertEqual(self.psql.number("select count(window_opened_at) from message_usage where plan = 'paid'"), 0)

    def test_holds_count_in_the_window_in_which_they_were_made(self):
        for port in self.ports():
            user = self.subscriber("three_hours")
            self.set_clock(instant())
            held = port.request("RESERVE", user, 9, key="a", ttl=3_600)
            self.assertEqual((self.window(held), held["held"]), ((10, 0, 1, instant(10_800)), 9))
            committed = port.request("COMMIT", user, 4, key="a")
            self.assertEqual((self.window(committed), committed["used"]), ((10, 4, 6, instant(10_800)), 4))
            port.request("RESERVE", user, 3, key="b", ttl=3_600)
            released = port.request("RELEASE", user, key="b")
            self.assertEqual((self.window(released), released["released"]), ((10, 4, 6, instant(10_800)), 3))

    def test_a_change_of_plan_keeps_the_count_of_an_open_window(self):
        for port in self.ports():
            user = self.subscriber("three_hours")
            self.set_clock(instant())
            port.request("CONSUME", user, 9)
            # A window of the new plan lasts 3,600 seconds.
            self.assertEqual(self.window(port.request("SETPLAN", user, plan="hour")), (20, 9, 11, instant(3_600)))
            self.assertEqual(self.window(port.request("SETPLAN", user, plan="paid")), (None, None, None, None))

    def test_the_window_alone_is_closed_and_its_keys_count_in_no_window(self):
        for port in [*self.ports(), None]:
            user = self.subscriber("three_hours")
            port, reset = (port, lambda p=port, u=user: p.request("RESETUSAGE", u, period="window")) if port else (
                self.ports()[0], lambda u=user: self.psql.run(f"select reset_usage('{u}', 'window')")
            )  # fmt: skip
            self.set_clock(instant())
            reset()
            self.assertEqual(self.audit(user)[1:], [], "none is open, and nothing happens")
            port.request("CONSUME", user, 4, key="a")
            port.request("RESERVE", user, 5, key="b", ttl=3_600)
            port.request("RESERVE", user, 1, key="c", ttl=3_600)
            self.assertEqual(port.request("CONSUME", user)["reason"], "window_limit_reached")
            # The month has room; a grant is no help.
            port.request("GRANT", user, 5, key="g")
            self.assertEqual(port.request("CONSUME", user)["reason"], "window_limit_reached")
            for _ in range(2):
                reset()
            self.assertEqual((self.window(self.usage(user)), self.usage(user)["used"]), (("10", "0", "10", None), "4"))
            # At the same instant, so that the new window begins when the old one did.
            self.assertEqual(self.window(port.request("CONSUME", user, 9)), (10, 9, 1, instant(10_800)))
            committed = port.request("COMMIT", user, key="b")
            self.assertEqual((committed["used"], committed["held"], self.window(committed)[1]), (18, 1, 9))
            for key, released in (("c", 1), ("a", 4)):
                self.assertEqual((answer := port.request("RELEASE", user, key=key))["released"], released)
                self.assertEqual(self.window(answer)[1], 9)
            resets = [event for event in self.audit(user) if event[0] == "reset"]
            self.assertEqual(resets, [["reset", "period 2026-03, window_count 4 → 0"]])

    def audit(self, user):
        return self.psql.run(f"select action, detail from audit_trail where user_id = '{user}' order by id")

    def test_no_window_to_close_is_no_error(self):
        for port in self.ports():
            paid = self.subscriber("paid", used=5)
            self.assertEqual(port.request("RESETUSAGE", paid, period="window")["used"], 5)
            self.assertEqual(port.request("RESETUSAGE", self.user(), period="window")["used"], 0)

    def test_no_plan_can_be_named_window(self):
        for statement in (
            "insert into headroom.plans (plan, label, cycle, allowance) values ('window', 'W', 'lifetime', 5)",
            "update headroom.plans set plan = 'window' where plan = 'hour'",
        ):
            with self.assertRaisesRegex(SQLError, "a plan cannot be named window"):
                self.psql.run(statement)

    def test_edits_of_the_plan_take_effect_with_the_next_message(self):
        self.psql.run("insert into headroom.plans (plan, label, cycle, allowance) values ('edited', 'Edited', 'monthly', 100)")
        user = self.subscriber("edited")
        for n in (5, 5):
            self.assertNotIn("window_used", Answer(self.send_command(f"CONSUME {user} {n}")))
        self.psql.run("update headroom.plans set window_messages = 4, window_seconds = 600 where plan = 'edited'")
        self.assertEqual(self.window(self.usage(user)), ("4", "0", "4", None))
        self.assertEqual(self.window(Answer(self.send_command(f"CONSUME {user} 4")).fields), ("4", "4", "0", instant(600)))
        self.psql.run("update headroom.plans set window_messages = 6 where plan = 'edited'")
        self.assertEqual(self.window(Answer(self.send_command(f"CONSUME {user}")).fields), ("6", "5", "1", instant(600)))
        # A longer window does not extend one that is open; a shorter one ends it earlier.
        for seconds, ends in ((6000, 600), (60, 60)):
            self.psql.run(f"update headroom.plans set window_seconds = {seconds} where plan = 'edited'")
            self.assertEqual(self.usage(user)["window_resets"], instant(ends))
        self.psql.run("update headroom.plans set window_messages = null, window_seconds = null where plan = 'edited'")
        self.assertEqual(Answer(self.send_command(f"CONSUME {user} 50")).used, 65)

    def test_views_and_callers_with_a_limit_of_their_own_meet_it_too(self):
        user = self.subscriber("three_hours")
        self.send_command(f"CONSUME {user} 10")
        columns = "status, used, tier, reason, retry_after, window_limit, window_used, window_remaining, window_resets"
        for seconds, tier in ((0, "blocked"), (10_800, "silent")):
            self.set_clock(instant(seconds))
            for table in ("monthly_usage", "current_usage", "headroom.usage_rows"):
                self.assertEqual(self.psql.value(f"select tier from {table} where user_id = '{user}'"), tier, table)
            current = self.psql.run(f"select {columns} from current_usage where user_id = '{user}'")
            if tier == "blocked":
                self.assertEqual(current, self.psql.run(f"select {columns} from increment_and_check_usage('{user}', 1)"))
            allowed = self.psql.value(f"select increment_and_check_usage('{user}', '2026-03', 1000) ->> 'allowed'")
            self.assertEqual(allowed, "false" if tier == "blocked" else "true")
        self.assertEqual(self.window(self.usage(user)), ("10", "1", "9", instant(21_600)))

    def test_both_count_in_one_window(self):
        user = self.subscriber("three_hours")
        for n in range(1, 6):
            self.send_command(f"CONSUME {user}")
            self.psql.run(f"select increment_and_check_usage('{user}')")
            self.assertEqual(self.count_in_window(user), (2 * n, 0))
        self.assertEqual(Answer(self.send_command(f"CONSUME {user}"))["reason"], "window_limit_reached")

    def test_rate_limit_fields_have_both_policies(self):
        user = self.subscriber("three_hours")
        answer = self.service.http("POST", f"/v1/usage/{user}/consume", '{"n": 4}')
        self.assertEqual(answer.headers["RateLimit-Policy"], '"three_hours";q=100;w=2678400, "three_hours.window";q=10;w=10800')
        self.assertEqual(answer.headers["RateLimit"], '"three_hours";r=96;t=1434600, "three_hours.window";r=6;t=10800')

    def test_the_dashboard_shows_the_window(self):
        user = self.subscriber("three_hours")
        self.send_command(f"CONSUME {user} 4")
        page = self.service.http("GET", f"/dashboard/users/{user}").text
        self.assertRegex(page, r"(?s)Window</dt>.{0,80}4 of 10")

    def test_a_plan_has_both_numbers_of_a_window_or_none(self):
        for values in ("10, null", "null, 600", "0, 600", "1000001, 600", "10, 59", "10, 2678401"):
            with self.subTest(values=values), self.assertRaisesRegex(Exception, "violates check constraint"):
                self.psql.run(
                    "insert into headroom.plans (plan, label, cycle, allowance, window_messages, window_seconds)"
                    f" values ('bad', 'Bad', 'monthly', 10, {values})"
                )
