"""The clients of clients/ and the limits of models and members: options, fields of answers, and the list of all limits."""

import json

from support.case import called_by
from support.client_case import ClientCase
from support.faulty_port import LOST, http_answer

PLAN = """
insert into headroom.plans (plan, label, cycle, allowance) values ('team', 'Team', 'monthly', 100);
insert into headroom.plan_limits (plan, kind, name, label, allowance, window_messages, window_seconds, weight, fallback) values
    ('team', 'model', 'large', 'Large', null, 3, 10800, 5, 'small'), ('team', 'model', 'small', null, 40, null, null, 1, null),
    ('team', 'member', '*', null, 20, null, null, 1, null);
"""


class Parts(ClientCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run(PLAN)

    def numbers(self, answer, kind):
        return tuple(answer.get(f"{kind}_{name}") for name in ("limit", "used", "remaining"))

    @called_by("each")
    def test_a_message_counts_for_its_model_and_its_member(self, client):
        team, member = self.subscriber("team"), self.user()
        answer = client.call("consume", team, n=2, model="large", member=member, key="message-1")
        self.assertEqual((answer["status"], answer["used"], answer["model"], answer["member"]), ("allowed", 10, "large", member))
        self.assertEqual((self.numbers(answer, "model"), self.numbers(answer, "member")), ((3, 2, 1), (20, 10, 10)))
        self.assertEqual(answer["model_resets"], "2026-03-15T12:30:00Z")
        self.assertEqual(client.call("consume", team, n=2, model="large", member=member, key="message-1")["status"], "repeated")
        self.assertEqual(self.failure(client.call, "consume", team, n=2, model="small", key="message-1").name, "Conflict")
        self.assertEqual(self.numbers(client.call("usage", team, model="large"), "model"), (3, 2, 1))
        self.assertEqual(self.numbers(client.call("usage", team, member=member), "member"), (20, 10, 10))
        # Neither counts what it does not limit.
        other = client.call("check", team, model="a/model:of@nobody")
        self.assertEqual((other["model"], self.numbers(other, "model")), ("a/model:of@nobody", (None,) * 3))
        self.assertNotIn("model", client.call("check", team))

    @called_by("each")
    def test_a_refusal_says_whose_limit_it_was_and_offers_the_fallback(self, client):
        team, member = self.subscriber("team"), self.user()
        client.call("consume", team, n=3, model="large", member=member)
        refused = client.call("consume", team, model="large", member=member)
        self.assertEqual((refused["status"], refused["reason"], refused["fallback"]), ("blocked", "model_limit_reached", "small"))
        self.assertIn("small", refused["banner"])
        self.assertEqual(client.call("check", team, n=6, model="small", member=member)["reason"], "member_exceeds_remaining")
        client.call("consume", team, n=5, model="small", member=member)
        refused = self.failure(client.hold, team, model="small", member=member).answer
        self.assertEqual((refused["reason"], refused.get("fallback")), ("member_limit_reached", None))
        self.assertEqual(client.call("consume", team, model="small", member=self.user())["status"], "allowed")

    @called_by("each")
    def test_a_hold_counts_or_is_given_back_in_all_of_them(self, client):
        team, member = self.subscriber("team"), self.user()
        parts = {"model": "large", "member": member}
        hold = client.hold(team, n=2, amount=1, **parts)
        self.assertEqual((hold["answer"]["held"], hold["outcome"]["used"]), (10, 5))
        client.hold(team, raises=True, **parts)
        self.line.faults = [("RESERVE", LOST), ("COMMIT", LOST)]
        client.hold(team, **parts)
        client.call("reserve", team, key="a", **parts)
        client.call("release", team, key="a")
        usage = client.call("usage", team, **parts)
        self.assertEqual((usage["used"], self.numbers(usage, "model"), self.numbers(usage, "member")), (10, (3, 2, 1), (20, 10, 10)))

    @called_by("each")
    def test_all_limits_of_a_plan_are_told_over_http(self, client):
        team, member = self.subscriber("team"), self.user()
        client.call("consume", team, model="large", member=member)
        if not self.line.is_http:
            self.assertIn("over HTTP", self.failure(client.call, "allowances", team).message)
            return
        told = client.call("allowances", team)
        self.assertEqual((told["user"], told["period"]), (team, "2026-03"))
        by_name = {(each["kind"], each["name"]): each for each in told["allowances"]}
        large = by_name["model", "large"]
        self.assertEqual((large["label"], large["weight"], large["fallback"]), ("Large", 5, "small"))
        self.assertEqual((large["window_limit"], large["window_used"], large["window_remaining"]), (3, 1, 2))
        self.assertEqual(large["window_resets"], "2026-03-15T12:30:00Z")
        self.assertEqual(set(by_name), {("model", "large"), ("model", "small"), ("member", member)})
        self.assertEqual(by_name["member", member]["used"], 5)
        self.assertEqual(client.call("allowances", team, period="2026-03"), told)
        self.assertEqual((by_name["model", "small"]["limit"], by_name["model", "small"]["remaining"]), (40, 40))

    @called_by("each", when_away="allow")
    def test_mistakes_are_no_outages(self, client):
        team = self.subscriber("team")
        for parts in ({"model": "two words"}, {"model": "m" * 65}, {"model": ""}, {"member": "nobody"}, {"model": 5}, {"member": []}):
            # In a URL, where Node.js sends those of usage, each value is a text.
            for method in ("consume", "check", *(["usage"] if parts != {"model": 5} else [])):
                self.assertEqual(self.failure(client.call, method, team, **parts).name, "BadArgument", (method, parts))

    @called_by("each")
    def test_what_something_between_answers_is_not_taken_for_limits(self, client):
        if not self.line.is_http:
            return
        team = self.subscriber("team")
        limit = {"kind": "model", "name": "large", "used": 1, "limit": None}
        good = {"user": team, "period": "2026-03", "allowances": [limit]}
        self.line.faults = [("USAGE", http_answer(200, json.dumps(good)))]
        self.assertEqual(client.call("allowances", team)["allowances"][0]["used"], 1)
        for answer in (
            {}, [], None, "text", {**good, "user": ""}, {**good, "user": 1}, {**good, "allowances": None}, {**good, "allowances": [1]},
            {**good, "allowances": [{**limit, "used": "1"}]}, {**good, "allowances": [{**limit, "limit": -1}]},
            {**good, "allowances": [{"name": "large"}]}, {**good, "allowances": [{**limit, "window_resets": 0}]}, {**good, "period": 3},
        ):  # fmt: skip
            self.line.faults = [("USAGE", http_answer(200, json.dumps(answer)))]
            self.assertEqual(self.failure(client.call, "allowances", team).code, "MALFORMED", answer)
