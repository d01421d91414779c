"""The chat's page in Chromium: every state of a user, on a desktop and on a phone, in light and dark."""

import datetime
import uuid

from support.browser import looks
from support.chat import ChatBackend, ChatBrowser, ChatCase
from support.nightly import nightly
from support.stores import revenuecat
from support.waiting import wait_until
from support.webhooks import post_event

PREMIUM, PRO, LESS, PAY, CANCEL, RESUME = (
    ("subscribe", "paid"), ("subscribe", "pro"), ("downgrade", "paid"), ("pay", None), ("cancel", None), ("resume", None)
)  # fmt: skip
"""The choices of "Manage subscription"."""


def instant_words(instant):
    """2026-12-01T00:00:00Z as the sheet shows it."""
    at = datetime.datetime.fromisoformat(instant.replace("Z", "+00:00"))
    return f"{at:%B} {at.day}, {at.year}, {at:%H:%M} UTC"


def number(text):
    return f"{int(text):,}"


class States:
    """Brings a user into every state by an operator's commands. An existing conversation stays."""

    def __init__(self, case):
        self.case = case

    def at(self, days):
        return self.case.psql.value(f"select headroom.instant_text(headroom.now() + interval '{days} days')")

    def put(self, user, plan, used, options=""):
        """Sets the plan, the messages used in the current period, and then the state of `options`."""
        self.case.send_command(f"SETPLAN {user} {plan}")
        self.case.send_command(f"CONSUME {user}")
        self.case.set_count(user, used)
        if options:
            self.case.assertIn("+OK ", self.case.send_command(f"SETPLAN {user} {plan} {options}"))

    def new(self, user):
        self.case.send_command(f"FORGET {user}")

    def silent(self, user):
        self.put(user, "paid", 120)

    def gentle(self, user):
        self.put(user, "paid", 700)

    def prominent(self, user):
        self.put(user, "paid", 781)

    def at_the_limit(self, user):
        self.put(user, "paid", 800)

    def trial(self, user):
        self.put(user, "trial", 59, f"started={self.at(-1.5)}")

    def trial_used_up(self, user):
        self.put(user, "trial", 100)

    def trial_ended(self, user):
        self.put(user, "trial", 88, f"started={self.at(-4)}")

    def cancelled(self, user):
        self.put(user, "paid", 200, f"state=cancelled expires={self.at(12)}")

    def cancelled_and_prominent(self, user):
        self.put(user, "paid", 781, f"state=cancelled expires={self.at(12)}")

    def grace_period(self, user):
        self.put(user, "paid", 700, f"state=grace_period grace_until={self.at(9)}")

    def billing_retry(self, user):
        self.put(user, "paid", 200, "state=billing_retry")

    def expired(self, user):
        self.put(user, "paid", 200, "state=expired")

    def revoked(self, user):
        self.put(user, "paid", 200, "state=revoked")

    def free(self, user):
        self.case.send_command(f"SETPLAN {user} free")

    def unlimited(self, user):
        self.put(user, "pro", 1234)

    def bought(self, user, product="premium_monthly"):
        """Bought in the store, which renews it."""
        self.case.send_command(f"FORGET {user}")
        event = revenuecat("INITIAL_PURCHASE", self.at(-3), user, f"T{user}", product_id=product, expiration_at_ms=self.at(27),
            price_in_purchased_currency=9.99)  # fmt: skip
        self.case.assertEqual(post_event(self.case.service, event)["outcome"], "applied")
        self.case.send_command(f"CONSUME {user} 42")

    def bought_pro(self, user):
        self.bought(user, "pro_monthly")


# For each state: the indicator's tone, the gate's button, the text of the settings row, and the choices.
EXPECTED = {
    "new": ("trial", None, "0 of 100 messages used", [PREMIUM, PRO]),
    "silent": (None, None, "120 of 800 messages used", [PRO, CANCEL]),
    "gentle": ("gentle", None, "700 of 800 messages used", [PRO, CANCEL]),
    "prominent": ("prominent", None, "781 of 800 messages used", [PRO, CANCEL]),
    "at_the_limit": (None, "Subscribe to Pro", "800 of 800 messages used", [PRO, CANCEL]),
    "trial": ("trial", None, "59 of 100 messages used", [PREMIUM, PRO]),
    "trial_used_up": (None, "Subscribe", "100 of 100 messages used", [PREMIUM, PRO]),
    "trial_ended": (None, "Subscribe", "88 of 100 messages used", [PREMIUM, PRO]),
    "cancelled": (None, None, "200 of 800 messages used", [RESUME, PRO]),
    "cancelled_and_prominent": ("prominent", None, "781 of 800 messages used", [RESUME, PRO]),
    "grace_period": ("gentle", None, "700 of 800 messages used", [PAY]),
    "billing_retry": (None, "Fix payment", "200 of 800 messages used", [PAY]),
    "expired": (None, "Subscribe", "200 of 800 messages used", [PREMIUM, PRO]),
    "revoked": (None, "Subscribe", "200 of 800 messages used", [PREMIUM, PRO]),
    "free": (None, "Subscribe", "No messages in this plan", [PREMIUM, PRO]),
    "unlimited": (None, None, "1,234 messages used", [LESS, CANCEL]),
    "bought": (None, None, "42 of 800 messages used", [PRO, CANCEL]),
    "bought_pro": (None, None, "42 messages used", [LESS, CANCEL]),
}

STATE_LABELS = {
    "active": "Active", "trial": "Trial", "cancelled": "Cancelled", "grace_period": "Billing issue", "billing_retry": "Billing issue",
    "expired": "Expired", "revoked": "Refunded", "free": "Free",
}  # fmt: skip


@nightly("chat_flow.Flow uses the page; chat_languages.ChatLanguages looks at it at every width")
class ChatPages(ChatCase):
    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [], "the browser's console")

    def test_every_state_shows_the_service_s_usage_and_is_accessible_at_every_width_in_every_scheme(self):
        states = States(self)
        for number, state in enumerate(EXPECTED):
            user = self.user()
            if state != "new":
                self.converse(user)
            getattr(states, state)(user)
            for width, scheme in looks(number):
                with self.subTest(state=state, width=width, scheme=scheme):
                    self.browser.set_appearance(width, scheme)
                    self.browser.chat(user)
                    self.assert_shows(user, state)
                    self.assert_accessible(state)
                    # Each dialog at one width per state, and at both for some states, because axe is slow.
                    if width == "phone" or state in ("trial", "grace_period", "bought_pro"):
                        self.assert_settings(user, state)
                        self.assert_sheet(user, state)

    def test_the_first_page_lists_the_users(self):
        people = [{"user": self.user(), "name": name, "about": about} for name, about in (("Ada", "trial, day 2"), ("Ben <b>", "at the limit"))]
        chat = ChatBackend(self.service, people=people)
        self.addCleanup(chat.stop)
        other = ChatBrowser(chat)
        self.addCleanup(other.close)
        for width, scheme in looks():
            with self.subTest(width=width, scheme=scheme):
                other.set_appearance(width, scheme)
                other.open("/")
                wait_until(lambda: other.all("li a"), "the people")
                other.picture("chat-people")
                self.assertEqual(other.axe(), [])
                self.assertLessEqual(other.overflow(), 0)
        # In lines of their own once the style has arrived.
        ben = "Ben <b>\nat the limit"
        wait_until(lambda: ben in other.text("li:nth-child(2)").replace("\n\n", "\n"), "the second person")
        other.run("window.isBefore = true")
        other.find("li a").click()
        wait_until(lambda: other.is_another_page() and other.has_loaded(), "the chat")
        other.wait_for_text("h2", "Hello Ada.")
        self.assertEqual(other.complaints(), [])

    def converse(self, user):
        """Sends two messages, so that the page has a conversation."""
        self.send_command(f"SETPLAN {user} paid")
        for text in ("I have a big day tomorrow and can't settle.", "A talk, in front of forty people."):
            answer = self.chat.request("POST", f"/users/{user}/messages", {"id": str(uuid.uuid4()), "text": text})
            self.assertIn("event: sent", answer.text)

    def assert_accessible(self, name):
        self.browser.picture("chat-" + name.replace("_", "-"))
        self.assertLessEqual(self.browser.overflow(), 0)
        self.assertEqual(self.browser.axe(), [])
        self.assertEqual(self.browser.run("return document.querySelectorAll('h1').length"), 1)

    def assert_shows(self, user, state):
        tone, button, _, _ = EXPECTED[state]
        usage = self.usage(user)
        self.browser.wait_until_it_shows(usage)
        self.assertEqual(self.browser.is_shown(".indicator"), tone is not None)
        self.assertEqual(self.browser.is_shown("#gate"), button is not None)
        self.assertEqual(self.browser.is_shown("#composer"), button is None)
        if tone == "trial":
            day = f"Day {usage['day']} of {usage['days']} · {usage['banner']}"
            self.assertEqual(self.browser.text(".indicator .words"), day)
        elif tone:
            self.assertEqual(self.browser.run("return document.getElementById('indicator').dataset.tone"), usage["tier"])
            self.assertEqual(self.browser.text(".indicator .words"), usage["banner"])
        if button:
            self.assertEqual(self.browser.text("#gate-words"), usage["banner"])
            self.assertEqual(self.browser.text("#subscribe"), button)
        self.assertEqual(self.browser.is_shown("#notice"), "notice" in usage)
        if "notice" in usage:
            self.assertIn(usage["notice"], self.browser.text("#notice"))
            tone = "calm" if usage["state"] in ("cancelled", "trial") else "urgent"
            self.assertEqual(self.browser.find("#notice").get_attribute("data-tone"), tone)
            # Visible, however long the conversation is.
            self.assertTrue(self.browser.run(
                "const box = document.getElementById('notice').getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight"
            ))  # fmt: skip

    def assert_settings(self, user, state):
        usage = self.usage(user)
        self.browser.find("#open-settings").click()
        self.browser.wait_for("#plan-and-usage")
        row = self.browser.text("#plan-and-usage").split("\n")
        self.assertEqual(row, ["Plan and usage", usage["label"], EXPECTED[state][2]])
        self.assert_accessible(state + "-settings")

    def assert_sheet(self, user, state):
        """Opens the sheet from the settings, as users without an indicator do."""
        usage = self.usage(user)
        self.browser.find("#plan-and-usage").click()
        self.browser.wait_for("#sheet")
        self.assertEqual(self.browser.focus(), "sheet-title")
        self.assertEqual(self.browser.text("#sheet-title"), usage["label"])
        self.assertEqual(self.browser.text(".accessible"), usage["accessible"])
        terms_and_words = self.browser.texts(".facts dt, .facts dd")
        facts = dict(zip(terms_and_words[::2], terms_and_words[1::2]))
        is_unlimited = usage["remaining"] == "unlimited"
        used = number(usage["used"]) + ("" if is_unlimited else f" of {number(usage['limit'])}")
        remaining = "Unlimited" if is_unlimited else number(usage["remaining"])
        wanted = {"State": STATE_LABELS[usage["state"]], "Used": used, "Remaining": remaining}
        if "expires" in usage:
            term = "Active until" if usage["state"] == "cancelled" else "Trial ended" if state == "trial_ended" else "Trial ends"
            wanted[term] = instant_words(usage["expires"])
        self.assertEqual("renews" in usage, state.startswith("bought"))
        self.assertEqual("grace_until" in usage, state == "grace_period")
        if "grace_until" in usage:
            wanted["Active until"] = instant_words(usage["grace_until"])
        if "renews" in usage:
            wanted["Renews"] = instant_words(usage["renews"])
        self.assertEqual("price" in usage, state.startswith("bought"))
        if "price" in usage:
            wanted["Price"] = f"{usage['price']} {usage['currency']}"
        if "resets" in usage and (usage.get("expires") or usage.get("grace_until") or "9") > usage["resets"]:
            wanted["Refreshes"] = instant_words(usage["resets"])
        self.assertEqual(facts, wanted)
        has_bar = usage["limit"] not in ("unlimited", "0")
        self.assertEqual(self.browser.is_shown(".usage-bar"), has_bar)
        if has_bar:
            bar = self.browser.run("const b = document.querySelector('.usage-bar'); return [b.value, b.max, b.getAttribute('aria-valuetext')]")
            self.assertEqual(bar, [int(usage["used"]), int(usage["limit"]), usage["accessible"]])
        self.assertEqual(self.browser.text(".sheet-notice"), usage.get("notice") or "")
        self.assertEqual(self.browser.text(".steps"), usage.get("steps") or "")
        self.assertEqual(usage["state_label"], STATE_LABELS[usage["state"]])
        self.assertEqual(self.browser.is_shown("#manage-link"), "manage" in usage)
        if "manage" in usage:
            self.assertEqual(self.browser.find("#manage-link").get_attribute("href"), usage["manage"])
        self.assert_accessible(state + "-sheet")
        self.browser.find("#manage").click()
        self.browser.wait_for("#choices")
        choices = self.browser.run(
            "return [...document.querySelectorAll('#choices .row')].map(row => [row.dataset.action, row.dataset.plan ?? null])"
        )
        self.assertEqual([tuple(choice) for choice in choices], EXPECTED[state][3])
        self.assert_accessible(state + "-manage")
        if LESS in EXPECTED[state][3]:
            self.browser.find("#choices [data-action=downgrade]").click()
            self.browser.wait_for("#confirm")
            self.assert_accessible(state + "-downgrade")
