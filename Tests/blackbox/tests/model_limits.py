"""Limits for the messages with a model and of each member of an account, on both ports: which messages they refuse, the numbers and
sentences of answers, weights, fallbacks, holds, keys, resets, and the report of a user's allowances."""

import datetime
import uuid

from support.case import MID_MONTH
from support.postgres import SQLError
from support.users import new_user
from support.wire import Answer

from . import http_counting

START = datetime.datetime.fromisoformat("2026-03-15T09:30:00+00:00")
APRIL = "2026-04-01T00:00:00Z"
NUMBERS = ("limit", "used", "remaining")
http_counting.NUMBERS |= {f"{part}_{number}" for part in ("model", "member") for number in NUMBERS}
NAMESPACE = "0b1f2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d"
NO_MODEL = "must be 1 to 64 letters, digits and . _ : / @ -"

PLANS = """
insert into headroom.plans (plan, label, cycle, allowance) values
    ('chat', 'Chat', 'monthly', 100), ('team', 'Team', 'monthly', 100), ('both', 'Both', 'monthly', 100);
insert into headroom.plan_limits (plan, kind, name, label, allowance, window_messages, window_seconds, weight, fallback) values
    ('chat', 'model', 'opus-*', 'Opus', 4, null, null, 5, 'haiku'),
    ('chat', 'model', 'opus-mini', null, 10, null, null, 1, null),
    ('chat', 'model', 'haiku', 'Haiku', 3, null, null, 1, null),
    ('chat', 'model', 'burst', 'Burst', null, 2, 7200, 1, null),
    ('chat', 'model', 'counted', null, null, null, null, 1, null),
    ('team', 'member', '*', null, 10, null, null, 1, null),
    ('both', 'model', 'opus', 'Opus', 3, null, null, 2, null),
    ('both', 'member', '*', null, 8, null, null, 1, null);
"""


def instant(seconds=0):
    return (START + datetime.timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


class Limits(http_counting.Counting):
    CLOCK = MID_MONTH
    PLANS = PLANS

    def numbers(self, answer, part):
        return tuple(answer.get(f"{part}_{number}") for number in NUMBERS)

    def model(self, answer):
        return self.numbers(answer, "model")

    def member(self, answer):
        return self.numbers(answer, "member")

    def usage(self, user, query=""):
        return self.service.http("GET", f"/v1/usage/{user}{query}").json

    def refused(self, answer, reason):
        self.assertEqual((answer["allowed"], answer["reason"]), (False, reason))
        return answer


class Models(Limits):
    def test_a_models_window_beside_the_month(self):
        for port in self.ports():
            self.set_clock(instant())
            user = self.subscriber("chat")
            first = port.request("CONSUME", user, model="burst")
            self.assertEqual((first["model"], self.model(first), first["model_resets"]), ("burst", (2, 1, 1), instant(7200)))
            self.assertEqual((first["used"], first["remaining"], first["resets"], first["tier"]), (1, 99, APRIL, "silent"))
            second = port.request("CONSUME", user, model="burst")
            self.assertEqual((self.model(second), second["tier"], second["crossed"]), ((2, 2, 0), "blocked", "blocked"))
            third = self.refused(port.request("CONSUME", user, model="burst"), "model_limit_reached")
            self.assertEqual((third["retry_after"], third["used"], third["display"]), (7200, 2, "blocked"))
            self.assertEqual(third["banner"], "You've used your Burst messages for now. They're back in 2 hours.")
            # The month has room, with another model and without one.
            self.assertNotIn("model", port.request("CONSUME", user))
            self.assertTrue(port.request("CONSUME", user, model="counted")["allowed"])
            self.set_clock(instant(7200))
            again = port.request("CONSUME", user, model="burst")
            self.assertEqual((self.model(again), again["model_resets"], again["used"]), ((2, 1, 1), instant(14_400), 5))
            tiers = {port.request("CHECK", user, model=model)["tier"] for model in ("burst", "haiku")}
            self.assertEqual(tiers, {"silent"})

    def test_models_of_a_prefix_share_one_count_and_an_exact_name_comes_first(self):
        for port in self.ports():
            user = self.subscriber("chat")
            self.assertEqual(self.model(port.request("CONSUME", user, model="opus-3")), (4, 1, 3))
            self.assertEqual(self.model(port.request("CONSUME", user, 2, model="opus-4@eu")), (4, 3, 1))
            self.assertEqual(self.model(port.request("CONSUME", user, model="opus-mini")), (10, 1, 9))
            self.refused(port.request("CONSUME", user, 2, model="opus-3"), "model_exceeds_remaining")
            # The prefix does not begin this name, and names are compared byte by byte.
            for model in ("opus", "Opus-3"):
                self.assertEqual(self.model(port.request("CONSUME", user, model=model)), (None, None, None))

    def test_an_unlisted_model_is_only_named_and_one_without_a_limit_is_counted(self):
        for port in self.ports():
            user = self.subscriber("chat")
            unlisted = port.request("CONSUME", user, 3, model="openai/gpt-5:free")
            self.assertEqual((unlisted["model"], self.model(unlisted), unlisted["used"]), ("openai/gpt-5:free", (None, None, None), 3))
            counted = port.request("CONSUME", user, 3, model="counted")
            self.assertEqual((self.model(counted), counted["used"]), ((None, 3, None), 6))
            self.assertNotIn("model_resets", counted)
        self.assertEqual(self.psql.number("select count(*) from headroom.usage_parts where name like 'openai%'"), 0)

    def test_a_message_takes_its_weight_of_the_month(self):
        for port in self.ports():
            user = self.subscriber("chat")
            answer = port.request("CONSUME", user, 2, model="opus-3")
            self.assertEqual((answer["used"], self.model(answer)), (10, (4, 2, 2)))
            port.request("CONSUME", user, 86)
            # Four are left, and it takes five. The fallback takes one.
            refused = self.refused(port.request("CONSUME", user, model="opus-3"), "exceeds_remaining")
            self.assertEqual((refused["used"], self.model(refused)), (96, (4, 2, 2)))
            sentence = "That needs 5 messages, and 4 are left until April 1. We can go on with Haiku meanwhile."
            self.assertEqual((refused["fallback"], refused["banner"]), ("haiku", sentence))
            self.assertTrue(port.request("CONSUME", user, 4, model="haiku-2")["allowed"])
            self.refused(port.request("CHECK", user, model="opus-3"), "limit_reached")

    def test_a_fallback_is_offered_only_with_room(self):
        for port in self.ports():
            user = self.subscriber("chat")
            self.assertNotIn("fallback", port.request("CONSUME", user, 4, model="opus-3"))
            refused = self.refused(port.request("CONSUME", user, model="opus-3"), "model_limit_reached")
            sentence = "You've used your Opus messages for now. They're back on April 1."
            self.assertEqual((refused["fallback"], refused["banner"]), ("haiku", f"{sentence} We can go on with Haiku meanwhile."))
            self.refused(port.request("CONSUME", user, 4, model="haiku"), "model_exceeds_remaining")
            self.assertEqual(self.model(port.request("CONSUME", user, 3, model=refused["fallback"])), (3, 3, 0))
            refused = self.refused(port.request("CHECK", user, model="opus-3"), "model_limit_reached")
            self.assertEqual((refused.get("fallback"), refused["banner"]), (None, sentence))

    def test_the_banner_is_that_of_the_fullest_limit(self):
        for port in self.ports():
            user = self.subscriber("chat")
            gentle = port.request("CONSUME", user, 8, model="opus-mini")
            self.assertEqual((gentle["tier"], gentle["crossed"]), ("gentle", "gentle"))
            self.assertEqual(gentle["banner"], "2 opus-mini messages left until April 1")
            self.assertNotIn("banner", port.request("CHECK", user))
            port.request("CONSUME", user, 88)
            self.assertRegex(port.request("CHECK", user, model="opus-mini")["banner"], "^Almost there")

    def test_edits_of_limits_take_effect_with_the_next_message(self):
        self.psql.run(
            "insert into headroom.plans (plan, label, cycle, allowance) values ('edited', 'Edited', 'monthly', 100);"
            "insert into headroom.plan_limits (plan, kind, name, allowance) values ('edited', 'model', 'm', null)"
        )
        user = self.subscriber("edited")
        port = self.ports()[0]
        port.request("CONSUME", user, 3, model="m")
        self.psql.run("update headroom.plan_limits set allowance = 3 where plan = 'edited'")
        self.assertEqual(self.model(self.refused(port.request("CONSUME", user, model="m"), "model_limit_reached")), (3, 3, 0))
        self.psql.run("update headroom.plan_limits set allowance = 5 where plan = 'edited'")
        self.assertEqual(self.model(port.request("CONSUME", user, model="m")), (5, 4, 1))
        self.psql.run("delete from headroom.plan_limits where plan = 'edited'")
        self.assertEqual(self.model(port.request("CONSUME", user, 9, model="m")), (None, None, None))

    def test_malformed_names_are_refused(self):
        user = self.subscriber("chat")
        for port in self.ports():
            for model in ("", "gpt*", "gpt,5", "é", "m" * 65):
                self.assertEqual(port.request("CONSUME", user, model=model), "BADARG", model)
            for member in ("", "ann", user + "0"):
                self.assertEqual(port.request("CHECK", user, member=member), "BADARG", member)
        self.assertEqual(self.send_command(f"CHECK {user} model=gpt*"), f"-BADARG model= {NO_MODEL}")
        self.assertTrue(self.send_command(f"CHECK {user} member=ann").startswith("-BADARG member= must be a UUID"))
        for query in ("model=gpt*", "member=ann", "model=a&model=b"):
            self.assertEqual(self.service.http("GET", f"/v1/usage/{user}?{query}").json["code"], "BADARG")
        body = self.service.http("POST", f"/v1/usage/{user}/consume", '{"model": 5}')
        self.assertEqual((body.status, body.json["detail"]), (400, "model must be a text"))
        for verb in ("COMMIT {} key=a model=m", "RELEASE {} key=a member={}", "HISTORY {} model=m"):
            self.assertTrue(self.send_command(verb.format(user, user)).startswith("-BADARG"))

    def test_limits_that_cannot_be(self):
        for values in ("'model', 'a b', 5, 1", "'model', '*x', 5, 1", "'member', 'm', 5, 1", "'model', 'm', -1, 1", "'model', 'm', 5, 0"):
            with self.subTest(values=values), self.assertRaisesRegex(SQLError, "violates check constraint"):
                self.psql.run(f"insert into headroom.plan_limits (plan, kind, name, allowance, weight) values ('chat', {values})")


class Members(Limits):
    def test_each_member_has_a_share(self):
        for port in self.ports():
            account, ann, ben = self.subscriber("team"), new_user(), new_user()
            first = port.request("CONSUME", account, 8, member=ann)
            self.assertEqual((first["member"], self.member(first), first["tier"]), (ann, (10, 8, 2), "gentle"))
            self.refused(port.request("CONSUME", account, 3, member=ann), "member_exceeds_remaining")
            port.request("CONSUME", account, 2, member=ann)
            refused = self.refused(port.request("CONSUME", account, member=ann.upper()), "member_limit_reached")
            self.assertEqual((refused["member"], refused["retry_after"]), (ann, 1_434_600))
            self.assertEqual(refused["banner"], "You've used your share for now. It's back on April 1.")
            other = port.request("CONSUME", account, member=ben)
            self.assertEqual((self.member(other), other["used"]), ((10, 1, 9), 11))
            # Nobody's share.
            self.assertEqual(port.request("CONSUME", account, 80)["used"], 91)
            self.refused(port.request("CONSUME", account, 10, member=ben), "exceeds_remaining")

    def test_a_message_counts_under_all_limits_or_under_none(self):
        for port in self.ports():
            account, ann, ben = self.subscriber("both"), new_user(), new_user()
            # A message with the model takes two of the account's and of the member's.
            first = port.request("CONSUME", account, 2, model="opus", member=ann)
            self.assertEqual((first["used"], self.model(first), self.member(first)), (4, (3, 2, 1), (8, 4, 4)))
            # The member has room for two more, and the model has not.
            refused = self.refused(port.request("CONSUME", account, 2, model="opus", member=ann), "model_exceeds_remaining")
            self.assertEqual((refused["used"], self.model(refused), self.member(refused)), (4, (3, 2, 1), (8, 4, 4)))
            port.request("CONSUME", account, 3, member=ann)
            # The model has room for one more, and the member, with one message left, has not.
            refused = self.refused(port.request("CONSUME", account, model="opus", member=ann), "member_exceeds_remaining")
            self.assertEqual((refused["used"], self.model(refused), self.member(refused)), (7, (3, 2, 1), (8, 7, 1)))
            self.assertEqual(self.model(port.request("CONSUME", account, model="opus", member=ben)), (3, 3, 0))
            port.request("CONSUME", account, member=ann)
            # Both are used up: the model comes first.
            self.refused(port.request("CONSUME", account, model="opus", member=ann), "model_limit_reached")


class HoldsAndKeys(Limits):
    def test_holds_are_committed_and_given_back_in_all(self):
        for port in self.ports():
            account, ann = self.subscriber("both"), new_user()
            held = port.request("RESERVE", account, 3, key="a", ttl=3600, model="opus", member=ann)
            self.assertEqual((held["used"], held["held"], held["remaining"]), (0, 6, 94))
            self.assertEqual((self.model(held), self.member(held)), ((3, 0, 0), (8, 0, 2)))
            self.refused(port.request("RESERVE", account, key="b", model="opus"), "model_limit_reached")
            committed = port.request("COMMIT", account, 2, key="a")
            self.assertEqual((committed["used"], committed["held"]), (4, 0))
            self.assertEqual((committed["model"], committed["member"]), ("opus", ann))
            self.assertEqual((self.model(committed), self.member(committed)), ((3, 2, 1), (8, 4, 4)))
            again = port.request("COMMIT", account, 2, key="a")
            self.assertEqual((again["replayed"], self.model(again), self.member(again)), (True, (3, 2, 1), (8, 4, 4)))
            port.request("RESERVE", account, key="c", ttl=3600, model="opus", member=ann)
            released = port.request("RELEASE", account, key="c")
            self.assertEqual((released["used"], self.model(released), self.member(released)), (4, (3, 2, 1), (8, 4, 4)))
            released = port.request("RELEASE", account, key="a")
            self.assertEqual((released["used"], self.model(released), self.member(released)), (0, (3, 0, 3), (8, 0, 8)))

    def test_an_expired_hold_refuses_nothing(self):
        for port in self.ports():
            self.set_clock(instant())
            account = self.subscriber("both")
            port.request("RESERVE", account, 3, key="a", ttl=60, model="opus")
            self.refused(port.request("CHECK", account, model="opus"), "model_limit_reached")
            self.set_clock(instant(61))
            answer = port.request("CONSUME", account, 3, model="opus")
            self.assertEqual((self.model(answer), answer["used"], answer["held"]), ((3, 3, 0), 6, 0))

    def test_a_repeated_key_answers_with_the_first_numbers(self):
        for port in self.ports():
            account, ann = self.subscriber("both"), new_user()
            first = port.request("CONSUME", account, key="a", model="opus", member=ann)
            port.request("CONSUME", account, 2, model="opus", member=ann)
            again = port.request("CONSUME", account, key="a", model="opus", member=ann)
            for name in ("used", "model", "member"):
                self.assertEqual(again[name], first[name])
            self.assertEqual((again["replayed"], self.model(again), self.member(again)), (True, (3, 1, 2), (8, 2, 6)))
            for other in ({"n": 2}, {"model": "sonnet"}, {"member": new_user()}):
                request = {"n": 1, "model": "opus", "member": ann, **other}
                self.assertEqual(port.request("CONSUME", account, key="a", **request), "CONFLICT", other)


class Resets(Limits):
    def test_a_part_is_reset_alone_or_with_the_period(self):
        for port in self.ports():
            account, ann = self.subscriber("both"), new_user()
            port.request("CONSUME", account, 3, key="a", model="opus", member=ann)
            self.assertEqual(port.request("RESETUSAGE", account, model="opus")["used"], 6)
            usage = self.usage(account, f"?model=opus&member={ann}")
            self.assertEqual((usage["used"], self.model(usage), self.member(usage)), (6, (3, 0, 3), (8, 6, 2)))
            port.request("CONSUME", account, model="opus")
            # It gives back to the account and the member, and not to the count after the reset.
            released = port.request("RELEASE", account, key="a")
            self.assertEqual((released["used"], self.model(released), self.member(released)), (2, (3, 1, 2), (8, 0, 8)))
            port.request("CONSUME", account, 5, member=ann)
            port.request("RESETUSAGE", account, member=ann)
            usage = self.usage(account, f"?model=opus&member={ann}")
            self.assertEqual((usage["used"], self.model(usage), self.member(usage)), (7, (3, 1, 2), (8, 0, 8)))
            port.request("CONSUME", account, 5, member=ann)
            port.request("RESETUSAGE", account)
            usage = self.usage(account, f"?model=opus&member={ann}")
            self.assertEqual((usage["used"], self.model(usage), self.member(usage)), (0, (3, 0, 3), (8, 0, 8)))

    def test_a_models_window_is_closed_alone(self):
        for port in self.ports():
            self.set_clock(instant())
            user = self.subscriber("chat")
            port.request("CONSUME", user, 2, model="burst")
            port.request("RESETUSAGE", user, period="window", model="burst")
            self.set_clock(instant(60))
            answer = port.request("CONSUME", user, model="burst")
            self.assertEqual((self.model(answer), answer["model_resets"], answer["used"]), ((2, 1, 1), instant(7260), 3))

    def test_a_new_period_begins_at_zero(self):
        for port in self.ports():
            self.set_clock(instant())
            account, ann = self.subscriber("both"), new_user()
            port.request("CONSUME", account, 2, model="opus", member=ann)
            port.request("CONSUME", account, key="a", model="opus", member=ann)
            self.set_clock("2026-04-02T00:00:00Z")
            answer = port.request("CONSUME", account, model="opus", member=ann)
            self.assertEqual((answer["used"], self.model(answer), self.member(answer)), (2, (3, 1, 2), (8, 2, 6)))
            past = self.usage(account, f"?period=2026-03&model=opus&member={ann}")
            self.assertEqual((past["used"], past["model"], past["member"]), (6, "opus", ann))
            # It gives back to the period in which the messages were counted.
            port.request("RELEASE", account, key="a")
            numbers = [self.usage(account, f"?period={period}&model=opus&member={ann}")["used"] for period in ("2026-03", "2026-04")]
            self.assertEqual(numbers, [4, 2])


class Reports(Limits):
    def test_the_allowances_of_a_user(self):
        account, ann = self.subscriber("both"), new_user()
        line = self.ports()[0]
        line.request("CONSUME", account, 2, model="opus", member=ann)
        line.request("RESERVE", account, key="a", ttl=3600, model="opus")
        for query in ("", "?period=2026-03"):
            answer = self.service.http("GET", f"/v1/usage/{account}/allowances{query}")
            self.assertEqual((answer.status, answer.json["user"], answer.json["period"]), (200, account, "2026-03"))
            model, member = sorted(answer.json["allowances"], key=lambda each: each["kind"], reverse=True)
            self.assertEqual(
                model,
                {
                    "kind": "model", "name": "opus", "label": "Opus", "used": 2, "held": 1, "limit": 3, "remaining": 0,
                    "unlimited": False, "tier": "blocked", "weight": 2,
                },
            )  # fmt: skip
            self.assertEqual(
                member,
                {
                    "kind": "member", "name": ann, "used": 4, "held": 0, "limit": 8, "remaining": 4, "unlimited": False,
                    "tier": "silent", "weight": 1,
                },
            )  # fmt: skip
        past = self.service.http("GET", f"/v1/usage/{account}/allowances?period=2020-01").json
        self.assertEqual(past, {"user": account, "period": "2020-01", "allowances": []})
        self.assertEqual(self.service.http("GET", f"/v1/usage/{account}/allowances?model=opus").json["code"], "BADARG")

    def test_rate_limit_fields_have_a_policy_for_each_limit(self):
        account, ann = self.subscriber("both"), new_user()
        answer = self.service.http("POST", f"/v1/usage/{account}/consume", {"model": "opus", "member": ann})
        policies = [policy.split(";")[:2] for policy in answer.headers["RateLimit-Policy"].split(", ")]
        self.assertEqual(policies, [['"both"', "q=100"], ['"both.model"', "q=3"], ['"both.member"', "q=8"]])
        items = answer.headers["RateLimit"].split(", ")
        self.assertEqual(items, [f'"both{part};t=1434600' for part in ('";r=98', '.model";r=2', '.member";r=6')])

    def test_usage_names_parts_and_reads_nothing_else(self):
        account, ann = self.subscriber("both"), new_user()
        self.ports()[0].request("CONSUME", account, 2, model="opus", member=ann)
        usage = Answer(self.send_command(f"USAGE {account} model=opus"))
        self.assertEqual((usage["model_used"], usage["model_resets"], usage.get("member")), ("2", APRIL, None))
        self.assertNotIn("model", Answer(self.send_command(f"USAGE {account}")))


class NamedMembers(Limits):
    FLAGS = ("--user-namespace", NAMESPACE)

    def test_a_member_may_be_a_name(self):
        for port in self.ports():
            name = f"auth0|{new_user()}"
            member = str(uuid.uuid5(uuid.UUID(NAMESPACE), name))
            account = self.subscriber("team")
            answer = port.request("CONSUME", account, 2, member=name)
            self.assertEqual((answer["member"], self.member(answer)), (member, (10, 2, 8)))
            self.assertEqual(self.member(port.request("CONSUME", account, member=member)), (10, 3, 7))
            self.assertEqual(self.member(self.usage(account, f"?member=auth0%7C{name[6:]}")), (10, 3, 7))
