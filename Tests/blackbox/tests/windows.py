"""Windows: a second, shorter limit beside that of the period. Every case on both ports, and in SQL."""

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
            "insert into headroom.plans (plan, label, cycle, allowance, trial_days, window_messages, window_seconds, time_zone) values"
            " ('three_hours', 'Plus', 'monthly', 100, null, 10, 10800, null), ('hour', 'Hour', 'monthly', 100, null, 20, 3600, null),"
            " ('day', 'Day', 'daily', 15, null, 10, 10800, 'UTC'), ('unlimited', 'Endless', 'monthly', null, null, 10, 7800, null),"
            " ('few', 'Few', 'monthly', 12, null, 10, 10800, null),"
            " ('rare', 'Rare', 'monthly', 100, null, 10, 86400, null)"
        )

    def user_of(self, plan, *options):
        user = self.user()
        self.assertTrue(self.send_command(" ".join([f"SETPLAN {user} {plan}", *options])).startswith("+OK"))
        return user

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
            user = self.user_of("three_hours")
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
        self.send_command(f"CONSUME {self.user_of('paid')} 5")
        self.assertEqual(self.psql.number("select count(window_opened_at) from message_usage where plan = 'paid'"), 0)

    def test_holds_count_in_the_window_in_which_they_were_made(self):
        for port in self.ports():
            user = self.user_of("three_hours")
            self.set_clock(instant())
            held = port.request("RESERVE", user, 9, key="a", ttl=3_600)
            self.assertEqual(self.window(held), (10, 0, 1, instant(10_800)))
            self.assertEqual((held["held"], held["tier"], held["banner"]), (9, "gentle", "1 message left for the next 3 hours"))
            self.assertEqual(port.request("CONSUME", user, 2)["reason"], "window_exceeds_remaining")
            committed = port.request("COMMIT", user, 4, key="a")
            self.assertEqual((self.window(committed), committed["used"]), ((10, 4, 6, instant(10_800)), 4))
            self.assertEqual(self.window(port.request("RESERVE", user, 3, key="b", ttl=3_600)), (10, 4, 3, instant(10_800)))
            released = port.request("RELEASE", user, key="b")
            self.assertEqual((self.window(released), released["released"]), ((10, 4, 6, instant(10_800)), 3))
            self.set_clock(instant(10_799))
            port.request("RESERVE", user, 5, key="c", ttl=3_600)
            port.request("RESERVE", user, 1, key="d", ttl=3_600)
            self.set_clock(instant(10_801))
            # The window is over; the holds count in the month only.
            other = port.request("CONSUME", user, 2)
            self.assertEqual((self.window(other), other["held"], other["used"]), ((10, 2, 8, instant(21_601)), 6, 6))
            committed = port.request("COMMIT", user, key="c")
            self.assertEqual((self.window(committed), committed["used"], committed["held"]), ((10, 2, 8, instant(21_601)), 11, 1))
            released = port.request("RELEASE", user, key="d")
            self.assertEqual((self.window(released), released["released"]), ((10, 2, 8, instant(21_601)), 1))

    def test_a_hold_is_committed_after_its_window_when_none_is_open(self):
        for port in self.ports():
            user = self.user_of("three_hours")
            self.set_clock(instant())
            port.request("RESERVE", user, 5, key="a", ttl=3_600)
            port.request("RESERVE", user, 2, key="b", ttl=3_600)
            self.set_clock(instant(1))
            self.psql.run(f"update message_usage set window_ends_at = headroom.now() where user_id = '{user}'")
            committed = port.request("COMMIT", user, key="a")
            self.assertEqual((self.window(committed), committed["used"], committed["held"]), ((10, 0, 10, None), 5, 2))
            self.assertEqual(port.request("RELEASE", user, key="b")["released"], 2)
            self.assertEqual(self.window(port.request("CONSUME", user)), (10, 1, 9, instant(10_801)))

    def test_an_expired_hold_gives_the_window_back(self):
        for port in self.ports():
            user = self.user_of("three_hours")
            self.set_clock(instant())
            port.request("RESERVE", user, 10, key="a", ttl=60)
            self.assertEqual(port.request("CONSUME", user)["reason"], "window_limit_reached")
            self.set_clock(instant(61))
            self.assertEqual(self.window(self.usage(user)), ("10", "0", "10", instant(10_800)))
            self.assertEqual(self.window(port.request("CONSUME", user, 10)), (10, 10, 0, instant(10_800)))

    def test_a_repetition_has_the_first_answers_window(self):
        for port in self.ports():
            user = self.user_of("three_hours")
            self.set_clock(instant())
            first = port.request("CONSUME", user, 3, key="a")
            port.request("CONSUME", user, 2)
            again = port.request("CONSUME", user, 3, key="a")
            self.assertEqual((again["replayed"], self.window(again)), (True, self.window(first)))
            port.request("RESERVE", user, 2, key="b", ttl=3_600)
            committed = port.request("COMMIT", user, 1, key="b")
            port.request("CONSUME", user)
            again = port.request("COMMIT", user, 1, key="b")
            self.assertEqual((again["replayed"], self.window(again)), (True, self.window(committed)))
            self.set_clock(instant(10_800))
            again = port.request("CONSUME", user, 3, key="a")
            self.assertEqual((again["replayed"], self.window(again)), (True, (10, 3, 7, None)))

    def test_release_gives_back_only_while_the_window_is_open(self):
        for port in self.ports():
            user = self.user_of("three_hours")
            self.set_clock(instant())
            for key in "ab":
                port.request("CONSUME", user, 4, key=key)
            released = port.request("RELEASE", user, key="a")
            self.assertEqual((released["used"], self.window(released)), (4, (10, 4, 6, instant(10_800))))
            self.set_clock(instant(10_800))
            port.request("CONSUME", user, 3)
            released = port.request("RELEASE", user, key="b")
            self.assertEqual((released["used"], self.window(released)), (3, (10, 3, 7, instant(21_600))))

    def test_reset_closes_the_window_and_grant_does_not_change_it(self):
        for port in self.ports():
            user = self.user_of("three_hours")
            self.set_clock(instant())
            port.request("CONSUME", user, 10, key="a")
            granted = port.request("GRANT", user, 50, key="g")
            self.assertEqual((granted["limit"], self.window(granted)), (150, (10, 10, 0, instant(10_800))))
            self.assertEqual(port.request("CONSUME", user)["reason"], "window_limit_reached")
            reset = port.request("RESETUSAGE", user)
            self.assertEqual((reset["used"], self.window(reset)), (0, (10, 0, 10, None)))
            self.set_clock(instant(60))
            self.assertEqual(self.window(port.request("CONSUME", user)), (10, 1, 9, instant(10_860)))
            self.assertEqual(port.request("RELEASE", user, key="a")["released"], 0)
            self.assertEqual(self.window(self.usage(user))[1], "1")

    def test_the_window_alone_is_closed_and_its_keys_count_in_no_window(self):
        for port in [*self.ports(), None]:
            user = self.user_of("three_hours")
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
            self.assertEqual(self.audit(user)[2:], [["reset", "period 2026-03, window_count 4 → 0"]])

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
            "update headroom.plans set plan = 'window' where plan = 'few'",
        ):
            with self.assertRaisesRegex(SQLError, "a plan cannot be named window"):
                self.psql.run(statement)

    def test_a_change_of_plan_keeps_the_count_of_an_open_window(self):
        for port in self.ports():
            user = self.user_of("three_hours")
            self.set_clock(instant())
            port.request("CONSUME", user, 9)
            changed = port.request("SETPLAN", user, plan="unlimited")
            # A window of the new plan lasts 7,800 seconds.
            self.assertEqual(self.window(changed), (10, 9, 1, instant(7_800)))
            # Without a window, nothing counts in it; it is still open afterwards.
            self.assertEqual(self.window(port.request("SETPLAN", user, plan="paid")), (None, None, None, None))
            self.assertNotIn("window_used", port.request("CONSUME", user, 30))
            self.assertNotIn("window_used", port.request("CONSUME", user, 30))
            changed = port.request("SETPLAN", user, plan="hour")
            self.assertEqual(self.window(changed), (20, 9, 11, instant(3_600)))
            # Another row: that of a day. A longer window of another plan does not extend one that is open.
            changed = port.request("SETPLAN", user, plan="day")
            self.assertEqual((changed["period"], self.window(changed)), ("2026-03-15", (10, 9, 1, instant(3_600))))
            self.assertEqual(port.request("CONSUME", user, 2)["reason"], "window_exceeds_remaining")
            self.assertEqual(self.window(port.request("CONSUME", user)), (10, 10, 0, instant(3_600)))
            back = port.request("SETPLAN", user, plan="three_hours")
            self.assertEqual((back["period"], self.window(back)), ("2026-03", (10, 10, 0, instant(3_600))))
            self.assertEqual(port.request("CONSUME", user)["reason"], "window_limit_reached")
            self.assertEqual(self.count(user), 70)

    def test_a_shorter_window_of_another_plan_ends_an_open_one_for_good(self):
        for refuse in ("RELEASE", "CONSUME", "SQL"):
            self.set_clock(instant())
            user = self.user_of("rare")
            self.send_command(f"CONSUME {user} 9")
            self.send_command(f"CONSUME {user} 1 key=k")
            # Three hours later, a window of an hour is over, and one of a day is not.
            self.set_clock(instant(10_800))
            self.send_command(f"SETPLAN {user} hour")
            with self.subTest(refuse=refuse):
                # Each writes the row and opens no window.
                if refuse == "SQL":
                    self.psql.run(f"select increment_and_check_usage('{user}', 21)")
                elif refuse == "CONSUME":
                    self.send_command(f"CONSUME {user} 21")
                else:
                    self.assertIn(" released=1", self.send_command(f"RELEASE {user} key=k"))
                self.assertEqual(self.window(self.usage(user)), ("20", "0", "20", None))
                answers = [Answer(self.send_command(f"CONSUME {user} {n}")) for n in (15, 5, 1)]
                self.assertEqual([answer.status for answer in answers], ["ALLOWED", "ALLOWED", "BLOCKED"])
                self.assertEqual((answers[2]["reason"], answers[2]["retry_after"]), ("window_limit_reached", "3600"))
                self.send_command(f"SETPLAN {user} rare")
                self.assertEqual(self.window(self.usage(user)), ("10", "20", "0", instant(14_400)))

    def test_a_change_to_a_plan_with_shorter_windows_ends_an_open_one_without_a_message(self):
        for port in self.ports():
            for shorter, left in (("hour", ("10", "0", "10", None)), ("three_hours", ("10", "10", "0", instant(10_800)))):
                self.set_clock(instant())
                user = self.user_of("rare")
                port.request("CONSUME", user, 10)
                self.set_clock(instant(3_600))
                for plan in (shorter, "paid", "rare"):
                    port.request("SETPLAN", user, plan=plan)
                self.assertEqual(self.window(self.usage(user)), left)

    def test_a_caller_with_a_limit_of_its_own_meets_the_window_too(self):
        self.psql.run("update headroom.plans set window_messages = 2, window_seconds = 600 where plan = 'trial'")
        self.addCleanup(self.psql.run, "update headroom.plans set window_messages = null, window_seconds = null where plan = 'trial'")
        user = self.user()
        self.send_command(f"CONSUME {user} 2")
        self.assertEqual(self.psql.value(f"select increment_and_check_usage('{user}', 'trial', 50) ->> 'allowed'"), "false")

    def test_a_window_lasts_beyond_the_end_of_a_period(self):
        late = "2026-03-31T23:00:00Z"
        for port in self.ports():
            for plan, period in (("three_hours", "2026-04"), ("day", "2026-04-01")):
                self.set_clock(late)
                user = self.user_of(plan)
                port.request("CONSUME", user, 5, key="a")
                port.request("RESERVE", user, 2, key="b", ttl=7_200)
                port.request("RESERVE", user, 1, key="c", ttl=7_200)
                self.set_clock("2026-04-01T00:30:00Z")
                resets = "2026-04-01T02:00:00Z"
                usage = self.usage(user)
                self.assertEqual((usage["period"], usage["used"], self.window(usage)), (period, "0", ("10", "5", "2", resets)))
                refused = port.request("CONSUME", user, 3)
                self.assertEqual((refused["reason"], refused["retry_after"]), ("window_exceeds_remaining", 5_400))
                # Before a row of the new period exists, the window is changed where it is.
                committed = port.request("COMMIT", user, key="b")
                self.assertEqual((committed["used"], self.window(self.usage(user))), (7, ("10", "7", "2", resets)))
                counted = port.request("CONSUME", user, 1)
                self.assertEqual((counted["used"], self.window(counted)), (1, (10, 8, 1, resets)))
                self.assertEqual(port.request("RELEASE", user, key="c")["released"], 1)
                self.assertEqual(self.window(self.usage(user)), ("10", "8", "2", resets))
                self.assertEqual(port.request("RELEASE", user, key="a")["released"], 5)
                self.assertEqual(self.window(port.request("CONSUME", user, 2)), (10, 5, 5, resets))
                rows = self.psql.number(f"select count(window_opened_at) from message_usage where user_id = '{user}'")
                self.assertEqual(rows, 1, "one row has the window")
                self.set_clock(resets)
                self.assertEqual(self.window(port.request("CONSUME", user, 10)), (10, 10, 0, "2026-04-01T05:00:00Z"))

    def test_edits_of_the_plan_take_effect_with_the_next_message(self):
        self.psql.run("insert into headroom.plans (plan, label, cycle, allowance) values ('edited', 'Edited', 'monthly', 100)")
        user = self.user_of("edited")
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
        user = self.user_of("three_hours")
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
        user = self.user_of("three_hours")
        for n in range(1, 6):
            self.send_command(f"CONSUME {user}")
            self.psql.run(f"select increment_and_check_usage('{user}')")
            self.assertEqual(self.count_in_window(user), (2 * n, 0))
        self.assertEqual(Answer(self.send_command(f"CONSUME {user}"))["reason"], "window_limit_reached")

    def test_pipelined_messages_stop_at_the_windows_limit(self):
        user = self.user_of("three_hours")
        with self.service.connect() as connection:
            connection.send(f"CONSUME {user}\r\n".encode() * 25)
            answers = connection.read_lines(25)
        self.assertEqual([answer[:8] for answer in answers], ["+ALLOWED"] * 10 + ["+BLOCKED"] * 15)
        self.assertEqual((self.count(user), self.count_in_window(user)), (10, (10, 0)))

    def test_rate_limit_fields_have_both_policies(self):
        user = self.user_of("three_hours")
        answer = self.service.http("POST", f"/v1/usage/{user}/consume", '{"n": 4}')
        self.assertEqual(answer.headers["RateLimit-Policy"], '"three_hours";q=100;w=2678400, "three_hours.window";q=10;w=10800')
        self.assertEqual(answer.headers["RateLimit"], '"three_hours";r=96;t=1434600, "three_hours.window";r=6;t=10800')

    def test_the_dashboard_shows_the_window(self):
        user = self.user_of("three_hours")
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
