"""Balances: messages that are granted until a date or for good, and are taken when a period's allowance is used up. Tables of
requests and answers, over the line protocol, HTTP and SQL."""

import datetime
import json

from support.case import MID_MONTH
from support.postgres import SQLError

from . import http_counting
from .http_counting import HTTP, Line

START = datetime.datetime.fromisoformat("2026-03-15T09:30:00+00:00")
APRIL = "2026-04-01T00:00:00Z"
http_counting.NUMBERS |= {"extra"}
PLANS = """
insert into headroom.plans (plan, label, cycle, allowance, enforced) values
    ('ten', 'Ten', 'monthly', 10, true), ('five', 'Five', 'monthly', 5, true), ('endless', 'Endless', 'monthly', null, true),
    ('lax', 'Lax', 'monthly', 10, false);
insert into headroom.plans (plan, label, cycle, allowance, window_messages, window_seconds) values
    ('hour', 'Hour', 'monthly', 10, 4, 3600);
insert into headroom.plans (plan, label, cycle, allowance) values ('heavy', 'Heavy', 'monthly', 10);
insert into headroom.plan_limits (plan, kind, name, allowance, weight) values ('heavy', 'model', 'opus', 100, 3);
"""


def instant(days=0, seconds=0):
    return (START + datetime.timedelta(days=days, seconds=seconds)).isoformat().replace("+00:00", "Z")


class SQL:
    """Calls functions in SQL, which have no keys and no holds."""

    def __init__(self, case):
        self.case = case

    def request(self, verb, user, n=None, key=None, **options):
        expires = options.get("expires")
        end = "null" if expires is None else f"'{'infinity' if expires == 'never' else expires}'"
        call = {
            "CONSUME": f"increment_and_check_usage('{user}', {n or 1}, {self.text(options.get('model'))})",
            "USAGE": f"headroom.current_answer('{user}')",
            "GRANT": f"grant_messages('{user}', {n}, p_key => {self.text(key)}, p_expires_at => {end})",
            "SETPLAN": f"set_plan('{user}', '{options.get('plan')}')",
            "RESETUSAGE": f"reset_usage('{user}')",
        }[verb]
        self.case.psql.run("set client_min_messages = warning")
        try:
            answer = json.loads(self.case.psql.run(f"select to_json(answer) from {call} as answer")[0][0])
        except SQLError as error:
            return "CONFLICT" if "key granted" in str(error) else "BADARG"
        answer["allowed"] = answer["status"] != "BLOCKED"
        return {name: value for name, value in answer.items() if value is not None}

    def text(self, value):
        return "null" if value is None else f"'{value}'"


class USAGE(HTTP):
    """Over HTTP, with USAGE as a request."""

    def request(self, verb, user, n=None, key=None, **options):
        if verb == "USAGE":
            return self.service.http("GET", f"/v1/usage/{user}").json
        return super().request(verb, user, n, key, **options)


class Balances(http_counting.Counting):
    CLOCK = MID_MONTH
    PLANS = PLANS

    def ports(self, *, with_sql=True):
        return [Line(self.service), USAGE(self.service)] + ([SQL(self)] if with_sql else [])

    def move(self, days=0, seconds=0):
        self.set_clock(instant(days, seconds))

    def numbers(self, answer):
        """used, limit, remaining, extra and extra_expires; an error as it is."""
        if isinstance(answer, str):
            return answer
        return tuple(answer.get(name) for name in ("used", "limit", "remaining", "extra", "extra_expires"))

    def play(self, port, user, *table):
        """Makes requests: the verb and its arguments, and of the answer whether it is allowed (None: it tells nothing), and its
        numbers."""
        for index, (verb, arguments, allowed, *numbers) in enumerate(table):
            with self.subTest(port=type(port).__name__, step=index, verb=verb, arguments=arguments):
                if verb == "MOVE":
                    self.move(**arguments)
                    continue
                answer = port.request(verb, user, **arguments)
                self.assertEqual(self.numbers(answer), tuple(numbers) if len(numbers) > 1 else numbers[0])
                if allowed is not None:
                    self.assertEqual(answer["allowed"], allowed)

    def taken(self, user):
        rows = self.psql.run(f"select key, taken from headroom.grants where user_id = '{user}' and expires_at is not null order by key")
        return {key: int(taken) for key, taken in rows}


class Taking(Balances):
    def test_a_balance_is_used_after_the_allowance(self):
        for port in self.ports():
            user = self.subscriber("ten", used=8)
            self.play(
                port, user,
                ("USAGE", {}, None, 8, 10, 2, None, None),
                ("GRANT", {"n": 5, "key": "a", "expires": "never"}, None, 8, 15, 7, 5, None),
                ("USAGE", {}, None, 8, 15, 7, 5, None),
                ("CONSUME", {"n": 2}, True, 10, 15, 5, 5, None),
                ("CONSUME", {"n": 1}, True, 11, 15, 4, 4, None),
                ("CONSUME", {"n": 5}, False, 11, 15, 4, 4, None),
                ("CONSUME", {"n": 4}, True, 15, 15, 0, None, None),
                ("CONSUME", {}, False, 15, 15, 0, None, None),
                ("USAGE", {}, None, 15, 15, 0, None, None),
            )  # fmt: skip

    def test_the_one_that_ends_first_is_used_first(self):
        for port in self.ports():
            self.move()
            user = self.subscriber("ten", used=10)
            week, month = instant(7), instant(30)
            self.play(
                port, user,
                ("GRANT", {"n": 3, "key": "never", "expires": "never"}, None, 10, 13, 3, 3, None),
                ("GRANT", {"n": 2, "key": "month", "expires": month}, None, 10, 15, 5, 5, month),
                ("GRANT", {"n": 2, "key": "week", "expires": week}, None, 10, 17, 7, 7, week),
                ("CONSUME", {}, True, 11, 17, 6, 6, week),
                ("CONSUME", {}, True, 12, 17, 5, 5, month),
                ("CONSUME", {"n": 3}, True, 15, 17, 2, 2, None),
                ("USAGE", {}, None, 15, 17, 2, 2, None),
            )  # fmt: skip
            port.request("GRANT", user, 1, "settle", expires="never")
            self.assertEqual(self.taken(user), {"month": 2, "never": 1, "settle": 0, "week": 2})

    def test_one_that_has_ended_is_not_used(self):
        for port in self.ports():
            self.move()
            user = self.subscriber("ten", used=9)
            self.play(
                port, user,
                ("GRANT", {"n": 4, "key": "a", "expires": instant(seconds=60)}, None, 9, 14, 5, 4, instant(seconds=60)),
                ("CONSUME", {"n": 2}, True, 11, 14, 3, 3, instant(seconds=60)),
                ("MOVE", {"seconds": 59}, None),
                ("USAGE", {}, None, 11, 14, 3, 3, instant(seconds=60)),
                ("MOVE", {"seconds": 60}, None),
                ("USAGE", {}, None, 11, 11, 0, None, None),
                ("CONSUME", {}, False, 11, 11, 0, None, None),
                ("GRANT", {"n": 1, "key": "b", "expires": "never"}, None, 11, 12, 1, 1, None),
                ("CONSUME", {}, True, 12, 12, 0, None, None),
            )  # fmt: skip
            self.assertEqual(self.taken(user)["a"], 1)

    def test_what_is_left_goes_over_the_border_of_a_period(self):
        for port in self.ports():
            self.move()
            user = self.subscriber("ten", used=10)
            self.play(
                port, user,
                ("GRANT", {"n": 20, "key": "a", "expires": instant(60)}, None, 10, 30, 20, 20, instant(60)),
                ("CONSUME", {"n": 5}, True, 15, 30, 15, 15, instant(60)),
                ("MOVE", {"days": 20}, None),
                ("USAGE", {}, None, 0, 25, 25, 15, instant(60)),
                ("CONSUME", {"n": 12}, True, 12, 25, 13, 13, instant(60)),
                ("MOVE", {"days": 50}, None),
                ("CONSUME", {}, True, 1, 23, 22, 13, instant(60)),
                ("MOVE", {"days": 60}, None),
                ("USAGE", {}, None, 1, 10, 9, None, None),
            )  # fmt: skip
            past = self.psql.run(
                f'select billing_period, used, "limit", tier from monthly_usage where user_id = \'{user}\' order by 1'
            )
            march, april = ["2026-03", "15", "15", "blocked"], ["2026-04", "12", "12", "blocked"]
            self.assertEqual(past, [march, april, ["2026-05", "1", "10", "silent"]])

    def test_under_any_plan_with_access(self):
        for port in self.ports():
            self.move()
            user = self.subscriber("ten", used=10)
            self.play(
                port, user,
                ("GRANT", {"n": 6, "key": "a", "expires": "never"}, None, 10, 16, 6, 6, None),
                ("CONSUME", {}, True, 11, 16, 5, 5, None),
                # Of a smaller plan more is used already than it allows. The balance can be used all the same.
                ("SETPLAN", {"plan": "five"}, None, 11, 16, 5, 5, None),
                ("CONSUME", {"n": 2}, True, 13, 16, 3, 3, None),
                ("SETPLAN", {"plan": "ten"}, None, 13, 16, 3, 3, None),
                ("SETPLAN", {"plan": "endless"}, None, 13, None, None, 3, None),
                ("CONSUME", {"n": 50}, True, 63, None, None, 3, None),
                ("SETPLAN", {"plan": "lax"}, None, 63, 66, 3, 3, None),
                ("CONSUME", {"n": 4}, True, 67, 16, 0, None, None),
            )  # fmt: skip

    def test_beside_a_window(self):
        for port in self.ports():
            self.move()
            user = self.subscriber("hour")
            self.play(
                port, user,
                ("GRANT", {"n": 5, "key": "a", "expires": "never"}, None, 0, 15, 15, 5, None),
                ("CONSUME", {"n": 4}, True, 4, 15, 11, 5, None),
                ("CONSUME", {}, False, 4, 15, 11, 5, None),
                ("MOVE", {"seconds": 3600}, None),
                ("CONSUME", {"n": 4}, True, 8, 15, 7, 5, None),
                ("MOVE", {"seconds": 7200}, None),
                ("CONSUME", {"n": 4}, True, 12, 15, 3, 3, None),
            )  # fmt: skip

    def test_a_model_takes_its_weight(self):
        for port in self.ports():
            self.move()
            user = self.subscriber("heavy", used=8)
            self.play(
                port, user,
                ("GRANT", {"n": 5, "key": "a", "expires": "never"}, None, 8, 15, 7, 5, None),
                ("CONSUME", {"n": 2, "model": "opus"}, True, 14, 15, 1, 1, None),
                ("CONSUME", {"n": 1, "model": "opus"}, False, 14, 15, 1, 1, None),
            )  # fmt: skip

    def test_a_reset_takes_nothing_back(self):
        for port in self.ports():
            self.move()
            user = self.subscriber("ten", used=10)
            self.play(
                port, user,
                ("GRANT", {"n": 5, "key": "a", "expires": "never"}, None, 10, 15, 5, 5, None),
                ("CONSUME", {"n": 2}, True, 12, 15, 3, 3, None),
                ("RESETUSAGE", {}, None, 0, 15, 15, 3, None),
                ("CONSUME", {"n": 12}, True, 12, 15, 3, 3, None),
                ("CONSUME", {}, True, 13, 15, 2, 2, None),
            )  # fmt: skip

    def test_a_trial_and_a_plan_that_never_resets(self):
        for port in self.ports():
            self.move()
            user = self.user()
            self.play(
                port, user,
                ("GRANT", {"n": 2, "key": "a", "expires": "never"}, None, 0, 102, 102, 2, None),
                ("CONSUME", {"n": 101}, True, 101, 102, 1, 1, None),
                ("MOVE", {"days": 4}, None),
                ("CONSUME", {}, False, 101, 102, 0, 1, None),
                ("SETPLAN", {"plan": "ten"}, None, 0, 11, 11, 1, None),
            )  # fmt: skip


class Granting(Balances):
    def test_a_key_grants_once_and_only_the_same(self):
        for port in self.ports():
            self.move()
            user = self.subscriber("ten", used=9)
            week = instant(7)
            self.play(
                port, user,
                ("GRANT", {"n": 5, "key": "a", "expires": week}, None, 9, 15, 6, 5, week),
                ("GRANT", {"n": 5, "key": "a", "expires": week}, None, 9, 15, 6, 5, week),
                ("GRANT", {"n": 6, "key": "a", "expires": week}, None, "CONFLICT"),
                ("GRANT", {"n": 5, "key": "a", "expires": "never"}, None, "CONFLICT"),
                ("GRANT", {"n": 5, "key": "a"}, None, "CONFLICT"),
                ("GRANT", {"n": 5, "key": "b"}, None, 9, 20, 11, 5, week),
                ("GRANT", {"n": 5, "key": "b", "expires": week}, None, "CONFLICT"),
                ("GRANT", {"n": 5, "key": "c", "expires": MID_MONTH}, None, "BADARG"),
                ("GRANT", {"n": 5, "key": "c", "expires": "2026-03-15"}, None, "BADARG"),
                ("MOVE", {"days": 8}, None),
                ("GRANT", {"n": 5, "key": "a", "expires": week}, None, 9, 15, 6, None, None),
                ("CONSUME", {"n": 6}, True, 15, 15, 0, None, None),
            )  # fmt: skip

    def test_bad_ends_are_refused(self):
        for port in self.ports(with_sql=False):
            user = self.subscriber("ten")
            for end in ("soon", "0", "infinity", "Never", "1999-12-31", "2026-13-01"):
                self.assertEqual(port.request("GRANT", user, 1, "k", expires=end), "BADARG", end)
        line = self.send_command(f"GRANT {user} 1 key=k expires=soon")
        self.assertEqual(line, "-BADARG expires= must be an ISO 8601 date or instant in the years 2000 to 9999, or never")
        line = self.send_command(f"GRANT {user} 1 key=k expires=2026-03-01")
        self.assertEqual(line, "-BADARG expires= must be in the future; without it, the messages end with the current period")

    def test_the_audit_trail_says_who_gave_what_until_when(self):
        user = self.subscriber("ten", used=1)
        self.send_command(f"GRANT {user} 5 key=a expires=never reason=sorry")
        rows = self.psql.run(f"select detail, reason from audit_trail where user_id = '{user}' and action = 'grant'")
        self.assertEqual(rows, [["expires never, messages 5", "sorry"]])

    def test_forget_deletes_balances(self):
        for port in self.ports(with_sql=False):
            user = self.subscriber("ten", used=10)
            port.request("GRANT", user, 5, "a", expires="never")
            port.request("FORGET", user)
            self.assertEqual(self.psql.number(f"select count(*) from headroom.grants where user_id = '{user}'"), 0)
            self.assertEqual(self.numbers(port.request("SETPLAN", user, plan="ten")), (0, 10, 10, None, None))


class Keys(Balances):
    def test_a_released_message_goes_back_where_it_came_from(self):
        for port in self.ports(with_sql=False):
            self.move()
            user = self.subscriber("ten", used=9)
            week = instant(7)
            self.play(
                port, user,
                ("GRANT", {"n": 1, "key": "week", "expires": week}, None, 9, 11, 2, 1, week),
                ("GRANT", {"n": 5, "key": "never", "expires": "never"}, None, 9, 16, 7, 6, week),
                ("CONSUME", {"n": 1, "key": "allowance"}, True, 10, 16, 6, 6, week),
                ("CONSUME", {"n": 1, "key": "one"}, True, 11, 16, 5, 5, None),
                ("CONSUME", {"n": 2, "key": "two"}, True, 13, 16, 3, 3, None),
                ("RELEASE", {"key": "one"}, None, 12, 16, 4, 4, week),
                ("RELEASE", {"key": "allowance"}, None, 11, 16, 5, 4, week),
                ("CONSUME", {}, True, 12, 16, 4, 4, week),
                ("CONSUME", {"n": 2, "key": "two"}, True, 13, 16, 3, 3, None),
                ("RELEASE", {"key": "two"}, None, 10, 16, 6, 6, week),
            )  # fmt: skip
            self.assertEqual(self.taken(user), {"never": 0, "week": 0})

    def test_a_message_may_take_of_the_allowance_and_of_two_balances(self):
        for port in self.ports(with_sql=False):
            self.move()
            user = self.subscriber("ten", used=9)
            week = instant(7)
            port.request("GRANT", user, 2, "week", expires=week)
            self.play(
                port, user,
                ("GRANT", {"n": 5, "key": "never", "expires": "never"}, None, 9, 17, 8, 7, week),
                ("CONSUME", {"n": 5, "key": "k"}, True, 14, 17, 3, 3, None),
                ("CONSUME", {"n": 5, "key": "k"}, True, 14, 17, 3, 3, None),
                ("MOVE", {"days": 8}, None),
                # What had come from the one that has ended is lost.
                ("RELEASE", {"key": "k"}, None, 9, 15, 6, 5, None),
            )  # fmt: skip

    def test_holds_take_and_give_back(self):
        for port in self.ports(with_sql=False):
            self.move()
            user = self.subscriber("ten", used=9)
            self.play(
                port, user,
                ("GRANT", {"n": 10, "key": "a", "expires": "never"}, None, 9, 20, 11, 10, None),
                ("RESERVE", {"n": 4, "key": "k", "ttl": 60}, True, 9, 20, 7, 7, None),
                ("RESERVE", {"n": 2, "key": "l", "ttl": 60}, True, 9, 20, 5, 5, None),
                # The message that is not counted goes back to the balance first.
                ("COMMIT", {"n": 3, "key": "k"}, True, 12, 20, 6, 6, None),
                ("COMMIT", {"n": 3, "key": "k"}, True, 12, 20, 6, 6, None),
                ("RELEASE", {"key": "l"}, None, 12, 20, 8, 8, None),
                ("RESERVE", {"n": 8, "key": "m", "ttl": 60}, True, 12, 20, 0, None, None),
                ("CONSUME", {}, False, 12, 20, 0, None, None),
                ("MOVE", {"seconds": 60}, None),
                ("USAGE", {}, None, 12, 20, 8, 8, None),
                ("CONSUME", {}, True, 13, 20, 7, 7, None),
                ("RELEASE", {"key": "k"}, None, 10, 20, 10, 9, None),
            )  # fmt: skip
            self.assertEqual(self.taken(user), {"a": 1})

    def test_a_hold_over_the_border_of_a_period_gives_back(self):
        for port in self.ports(with_sql=False):
            for ending in ("RELEASE", "COMMIT", "expiry"):
                self.move(days=16, seconds=52_000)
                user = self.subscriber("ten", used=10)
                self.play(
                    port, user,
                    ("GRANT", {"n": 5, "key": "a", "expires": "never"}, None, 10, 15, 5, 5, None),
                    ("RESERVE", {"n": 3, "key": "k", "ttl": 1200}, True, 10, 15, 2, 2, None),
                    ("MOVE", {"days": 16, "seconds": 52_300}, None),
                    ("CONSUME", {}, True, 1, 12, 11, 2, None),
                )  # fmt: skip
                if ending == "expiry":
                    self.move(days=16, seconds=53_200)
                else:
                    port.request(ending, user, key="k")
                left = 2 if ending == "COMMIT" else 5
                self.play(port, user, ("USAGE", {}, None, 1, 10 + left, 9 + left, left, None))
                port.request("CONSUME", user)
                limit = self.psql.number(f"select \"limit\" from monthly_usage where user_id = '{user}' and billing_period = '2026-03'")
                self.assertEqual(limit, 13 if ending == "COMMIT" else 10)


class Edits(Balances):
    """An operator with psql."""

    def edit(self, user, assignment):
        self.psql.run(f"update message_usage set {assignment} where user_id = '{user}'")

    def test_an_edited_limit_includes_what_is_left(self):
        for port in self.ports():
            user = self.subscriber("ten", used=10)
            port.request("GRANT", user, 5, "a", expires="never")
            port.request("CONSUME", user, 2)
            self.edit(user, '"limit" = 20')
            self.play(
                port, user,
                ("USAGE", {}, None, 12, 20, 8, 3, None),
                ("CONSUME", {"n": 5}, True, 17, 20, 3, 3, None),
                ("CONSUME", {"n": 1}, True, 18, 20, 2, 2, None),
            )  # fmt: skip

    def test_a_count_that_is_lowered_gives_nothing_back_and_a_higher_one_takes(self):
        for port in self.ports():
            user = self.subscriber("ten", used=10)
            port.request("GRANT", user, 5, "a", expires="never")
            port.request("CONSUME", user, 2)
            self.edit(user, "message_count = 4")
            self.play(port, user, ("USAGE", {}, None, 4, 15, 11, 3, None))
            self.edit(user, "message_count = 14")
            self.play(
                port, user,
                ("USAGE", {}, None, 14, 15, 1, 1, None),
                ("CONSUME", {}, True, 15, 15, 0, None, None),
            )  # fmt: skip

    def test_a_deleted_row_gives_nothing_back(self):
        for port in self.ports():
            user = self.subscriber("ten", used=10)
            port.request("GRANT", user, 5, "a", expires="never")
            port.request("CONSUME", user, 2)
            self.psql.run(f"delete from message_usage where user_id = '{user}'")
            self.play(port, user, ("USAGE", {}, None, 0, 13, 13, 3, None), ("CONSUME", {}, True, 1, 13, 12, 3, None))

    def test_apps_that_read_the_table_see_the_limit(self):
        for port in self.ports():
            user = self.subscriber("ten", used=9)
            port.request("GRANT", user, 5, "a", expires="never")
            port.request("CONSUME", user, 3)
            row = self.psql.run(f'select message_count, "limit" from message_usage where user_id = \'{user}\'')
            self.assertEqual(row, [["12", "15"]])
            report = self.psql.run(f'select used, "limit", remaining, extra from current_usage where "user" = \'{user}\'')
            self.assertEqual(report, [["12", "15", "3", "3"]])
