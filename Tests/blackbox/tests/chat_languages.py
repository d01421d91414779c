"""The chat's page in the language of the browser: the service's sentences, under a plan with a window beside its month."""

from support.browser import WIDTHS
from support.case import MID_MONTH
from support.chat import SHORT_MINUTES, ChatCase

PLAN = """
insert into headroom.plans (plan, label, cycle, allowance, gentle_percent, prominent_percent, window_messages, window_seconds)
values ('plus', 'Plus', 'monthly', 2000, 60, 90, 20, 10800)
"""


class ChatLanguages(ChatCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run(PLAN)

    def tearDown(self):
        self.assertEqual(self.browser.complaints(), [], "the browser's console")

    def assert_fits(self, name):
        for width in WIDTHS:
            self.browser.set_appearance(width, "light")
            self.browser.picture("chat-" + name)
            self.assertLessEqual(self.browser.overflow(), 0, f"{name}, {width}")

    def language_of(self, selector):
        """As a screen reader finds it: of the element, or of one around it."""
        return self.browser.run("return document.querySelector(arguments[0]).closest('[lang]').lang", selector)

    def assert_says(self, selector, text, name):
        self.browser.wait_for_text(selector, text)
        self.assertEqual(self.language_of(selector), "de-AT")
        self.assert_fits(name)

    def setUp(self):
        super().setUp()
        self.browser.set_language("en")

    def test_a_window_is_said_in_the_language_with_its_wait_at_every_width(self):
        self.browser.set_language("de-AT,de;q=0.9,en;q=0.8")
        self.set_clock(MID_MONTH)
        user = self.subscriber("plus")
        self.send_command(f"CONSUME {user} 11")
        self.browser.chat(user)
        self.browser.send_message("Guten Morgen")
        self.assert_says(".indicator .sentence", "Noch 8 Nachrichten, neue gibt es in 3 Stunden", "window-gentle")
        # A screen reader hears of it, too.
        self.browser.wait_for_text("#usage-announcer", "Noch 8 Nachrichten")
        self.send_command(f"CONSUME {user} 7")
        self.assert_says(".indicator .sentence", "Noch 1 Nachricht, neue gibt es in 3 Stunden", "window-prominent")
        self.set_clock("2026-03-15T10:20:01Z")
        self.browser.run("document.querySelector('.brand').focus()")
        self.send_command(f"CONSUME {user}")
        blocked = "Machen wir eine kurze Pause. In 2 Stunden und 10 Minuten bin ich wieder für dich da."
        self.assert_says("#gate-words", blocked, "window-blocked")
        self.assertEqual(self.language_of("#subscribe"), "en")
        self.browser.wait_for_text("#usage-announcer", blocked)
        self.assertEqual(self.language_of("#usage-announcer"), "de-AT")
        self.assertEqual(self.browser.axe(), [])
        self.browser.find("#gate-details").click()
        self.assert_says("#sheet .accessible", "20 von 2000", "window-sheet")
        self.assertIn("Used in this window\n20 of 20", self.browser.text("#sheet .facts"))

    def test_the_wait_becomes_shorter_while_the_page_is_open(self):
        self.set_clock(MID_MONTH)
        user = self.subscriber("plus")
        self.send_command(f"CONSUME {user} 20")
        self.run_before_pages(SHORT_MINUTES)
        self.browser.chat(user)
        self.browser.wait_for_text("#gate-words", "in 3 hours.")
        self.set_clock("2026-03-15T11:29:30Z")
        self.browser.wait_for_text("#gate-words", "in 1 hour 1 minute.")
        self.set_clock("2026-03-15T12:30:00Z")
        self.browser.wait_for("#composer")

    def test_the_language_is_the_most_preferred_one_that_the_service_has(self):
        user = self.subscriber("plus", used=5)
        for accepted, language, state in (
            ("fr-CA,fr;q=0.8,en;q=0.5", "fr-CA", "Actif"), ("it, pl;q=0.5", "pl", "Aktywna"), ("it", "en", "Active"), ("", "en", "Active"),
            ("ja", "ja", "有効"), ("*;q=0.1", "en", "Active"),
        ):  # fmt: skip
            answer = self.chat.request("GET", f"/users/{user}", headers={"Accept-Language": accepted})
            usage = answer.json["usage"]
            self.assertEqual((usage["lang"], usage["state_label"]), (language, state), accepted)
