"""The JavaScript functions of the chat's page that describe a usage, executed in a browser for tables of cases."""

from support.chat import ChatCase

# The page's policy forbids code in texts, so the call is part of the script.
RUN = """
const [cases, done] = arguments;
import('/assets/usage.js').then((module) => done(cases.map((usage) => { BODY }))).catch((error) => done(String(error)));
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
]


class Scripts(ChatCase):
    def assert_results(self, body, table):
        self.browser.chat(self.user())
        results = self.browser.driver.execute_async_script(RUN.replace("BODY", body), [usage for usage, _ in table])
        self.assertEqual(results, [expected for _, expected in table])

    def test_the_gate_offers_what_lets_the_user_send_again(self):
        body = "const { label, action, plan = null } = module.wayBack(usage); return [label, action, plan];"
        self.assert_results(body, GATES)

    def test_the_settings_show_how_many_messages_are_used(self):
        self.assert_results("return module.usedText(usage)", ROWS)

    def test_the_sheet_shows_when_a_subscription_renews_or_ends(self):
        self.assert_results("return module.facts(usage, new Date()).slice(3).map(([term]) => term)", DATES)
