"""The JavaScript functions of the chat's page that describe a usage or a refusal, executed in a browser for tables of cases."""

import json

from support.chat import ChatCase

# The page's policy forbids code in texts, so the call is part of the script.
RUN = """
const [cases, done] = arguments;
import('/assets/MODULE').then((module) => done(cases.map((usage) => { BODY }))).catch((error) => done(String(error)));
"""

# The text of the settings row.
ROWS = [
    ({"plan": "paid", "state": "active", "used": 680, "limit": 800, "remaining": 120}, "680 of 800 messages used"),
    ({"plan": "pro", "state": "active", "used": 1234, "limit": None, "remaining": None}, "1,234 messages used"),
    ({"plan": "free", "state": "free", "used": 0, "limit": 0, "remaining": 0}, "No messages in this plan"),
]

PAID = {"plan": "paid", "state": "active", "used": 800, "limit": 800, "remaining": 0}

# The button of the gate: its label, action and plan.
GATES = [
    (PAID, ["Subscribe to Pro", "subscribe", "pro"]),
    ({**PAID, "state": "cancelled"}, ["Subscribe to Pro", "subscribe", "pro"]),
    ({**PAID, "state": "billing_retry"}, ["Fix payment", "pay", None]),
    ({**PAID, "state": "expired", "previous_plan": "pro"}, ["Subscribe", "subscribe", "pro"]),
    ({**PAID, "state": "revoked", "previous_plan": "team"}, ["Subscribe", "subscribe", "paid"]),
    ({**PAID, "plan": "trial", "state": "trial"}, ["Subscribe", "subscribe", "paid"]),
    ({**PAID, "plan": "free", "state": "free", "limit": 0, "used": 0}, ["Subscribe", "subscribe", "paid"]),
]

MODELS = [{"name": "large", "label": "Large"}, {"name": "small", "label": "Small"}]
# With a choice of models. A fallback that the chat does not have is not offered.
FALLBACKS = [
    ({**PAID, "fallback": "small"}, ["Go on with Small", "pick", "small"]),
    ({**PAID, "fallback": "tiny"}, ["Subscribe to Pro", "subscribe", None]),
]

# Whose limit refused a message, by the reason: with a choice of models, and without.
FOR_LARGE = "This limit is for Large only."
FOR_MEMBER = "This limit is for your share of the plan only."
OF_PLAN = "This limit is your plan's, for all models together."
LIMITS = [
    *[({"reason": reason, "model": "large"}, [FOR_LARGE, FOR_LARGE.replace("L", "l")])
      for reason in ("model_limit_reached", "model_exceeds_remaining")],
    *[({"reason": reason, "model": "large"}, [FOR_MEMBER] * 2) for reason in ("member_limit_reached", "member_exceeds_remaining")],
    *[({"reason": reason, "model": "large"}, [OF_PLAN, None])
      for reason in ("limit_reached", "exceeds_remaining", "trial_limit_reached", "window_limit_reached", "window_exceeds_remaining")],
    *[({"reason": reason}, [None, None]) for reason in ("expired", "revoked", "trial_ended", "billing_retry", "no_subscription", None)],
]  # fmt: skip

# The same with what messages with the models would be answered: another one is named unless a button offers it.
GO_ON = " Another model can still answer."
OTHERS = [
    ({"reason": "model_limit_reached", "model": "large", "models": {"large": {"reason": "r"}, "small": {}}}, FOR_LARGE + GO_ON),
    ({"reason": "model_limit_reached", "model": "large", "models": {"large": {"reason": "r"}, "small": {"reason": "r"}}}, FOR_LARGE),
    ({"reason": "model_limit_reached", "model": "large", "models": {"small": {}}, "fallback": "small"}, FOR_LARGE),
    ({"reason": "exceeds_remaining", "model": "large", "models": {"large": {"reason": "r"}, "small": {}}}, OF_PLAN + GO_ON),
    ({"reason": "expired", "models": {"small": {}}}, None),
]

# What a message with the model "large" would be answered replaces what the account's usage says about a refusal.
ANSWERS = [
    ({"banner": "plan", "reason": "r", "models": {"large": {"display": "hidden"}}}, ["hidden", None, None, False]),
    ({"display": "hidden", "models": {"large": {"display": "compact", "banner": "b", "reason": "exceeds_remaining"}}}, ["compact", "b", "exceeds_remaining", True]),
    ({"display": "blocked", "banner": "plan", "models": {"small": {"display": "hidden"}}}, ["blocked", "plan", None, True]),
    ({"display": "compact", "banner": "plan"}, ["compact", "plan", None, False]),
]  # fmt: skip

# What is left of a model: no more than of the plan, and nothing is said where another limit refuses.
LEFT = [
    ({"model": "m"}, None),
    ({"model_remaining": 0, "remaining": 9, "reason": "model_limit_reached"}, "none left"),
    ({"model_remaining": 1234, "remaining": None}, "1,234 left"),
    ({"model_remaining": 50, "remaining": 7}, "7 left"),
    ({"model_remaining": 50, "remaining": 0, "reason": "limit_reached"}, None),
    ({"model_remaining": 50, "remaining": 9, "display": "blocked"}, None),
]

# The tone of the line above the composer; a refusal is said in the composer's place, and not twice.
COMPACT = {"display": "compact", "tier": "prominent", "banner": "b"}
INDICATORS = [(COMPACT, "prominent"), ({**COMPACT, "reason": "exceeds_remaining"}, None), ({**COMPACT, "banner": None}, None)]

RESETS, LATER = "2999-12-01T00:00:00Z", "2999-12-05T12:00:00Z"
# The dates of the sheet.
DATES = [
    ({**PAID, "resets": RESETS}, ["Refreshes"]),
    ({**PAID, "resets": RESETS, "renews": LATER}, ["Refreshes", "Renews"]),
    ({**PAID, "limit": None, "renews": LATER}, ["Renews"]),
    ({**PAID, "state": "cancelled", "resets": RESETS, "expires": LATER}, ["Refreshes", "Active until"]),
    ({**PAID, "state": "grace_period", "resets": RESETS, "grace_until": LATER}, ["Refreshes", "Active until"]),
    ({**PAID, "state": "grace_period", "resets": LATER, "grace_until": RESETS}, ["Active until"]),
    ({**PAID, "resets": LATER, "expires": RESETS}, ["Active until"]),
    (
        {**PAID, "resets": LATER, "window_used": 3, "window_limit": 3, "window_resets": RESETS},
        ["Used in this window", "Window ends", "Refreshes"],
    ),
    ({**PAID, "resets": RESETS, "renews": LATER, "price": "9.99", "currency": "EUR"}, ["Price", "Refreshes", "Renews"]),
    ({**PAID, "resets": RESETS, "model": "large", "model_used": 3}, ["Refreshes"]),
    (
        {**PAID, "resets": LATER, "model": "large", "model_used": 3, "model_limit": 3, "model_resets": RESETS},
        ["Used with Large", "Large refreshes", "Refreshes"],
    ),
]


class Scripts(ChatCase):
    def assert_results(self, body, table, module="usage.js"):
        self.browser.chat(self.user())
        script = RUN.replace("BODY", body).replace("MODULE", module)
        results = self.browser.driver.execute_async_script(script, [usage for usage, _ in table])
        self.assertEqual(results, [expected for _, expected in table])

    def test_the_gate_offers_what_lets_the_user_send_again(self):
        body = "const { label, action, plan = null } = module.wayBack(usage, []); return [label, action, plan];"
        self.assert_results(body, GATES)

    def test_the_gate_offers_the_fallback_first(self):
        body = f"const {{ label, action, model = null }} = module.wayBack(usage, {json.dumps(MODELS)}); return [label, action, model];"
        self.assert_results(body, FALLBACKS)

    def test_the_gate_tells_whose_limit_refused_a_message(self):
        body = f"return [{json.dumps(MODELS)}, []].map((models) => module.whoseLimit(usage, models))"
        self.assert_results(body, LIMITS, module="screenTexts.js")

    def test_the_gate_tells_of_another_model_that_would_answer(self):
        self.assert_results(f"return module.whoseLimit(usage, {json.dumps(MODELS)})", OTHERS, module="screenTexts.js")

    def test_a_refusal_is_not_said_above_the_composer_as_well(self):
        self.assert_results("return module.indicator(usage)?.tone ?? null", INDICATORS)

    def test_a_refusal_is_that_of_the_chosen_model(self):
        body = (
            "const shown = module.withModel(usage, 'large');"
            "return [shown.display, shown.banner ?? null, shown.reason ?? null, module.isBlocked(shown)]"
        )
        self.assert_results(body, ANSWERS)

    def test_the_choice_shows_what_is_left_of_a_model_with_a_limit(self):
        self.assert_results("return module.leftText(usage)", LEFT)

    def test_the_settings_show_how_many_messages_are_used(self):
        self.assert_results("return module.usedText(usage)", ROWS)

    def test_the_sheet_shows_when_a_subscription_renews_or_ends(self):
        body = f"return module.facts(usage, new Date(), {json.dumps(MODELS)}).slice(3).map(([term]) => term)"
        self.assert_results(body, DATES)
