"""The choice of a model on the chat's page: what is left of each, refusals, and the model to go on with."""

from support.browser import looks
from support.case import MID_MONTH
from support.chat import SHORT_MINUTES, FlowCase
from support.waiting import wait_until
from support.wire import Answer

PLAN = """
insert into headroom.plans (plan, label, cycle, allowance) values ('creator', 'Creator', 'monthly', 800);
insert into headroom.plan_limits (plan, kind, name, label, window_messages, window_seconds, fallback)
values ('creator', 'model', 'large', 'Large', 50, 3 * 3600, 'small'), ('creator', 'model', 'small', 'Small', 400, 3 * 3600, null)
"""
# The language, the sentence of few messages, and that of none.
SENTENCES = [
    ("en", "2 Large messages left for the next 3 hours", "You've used your Large messages for now. They're back in 3 hours. We can go on with Small meanwhile."),
    ("de", "Noch 2 Nachrichten mit Large, neue gibt es in 3 Stunden",
     "Deine Nachrichten mit Large sind erst einmal aufgebraucht. In 3 Stunden gibt es neue. Mit Small können wir gleich weitermachen."),
    ("ja", "Largeであと2通メッセージを送れます。3時間後にまた増えます",
     "Largeのメッセージはいったん使い切りました。3時間後にまた送れます。Smallでなら、このまま続けられますよ。"),
]  # fmt: skip


class ChatModels(FlowCase):
    CHAT_FLAGS = ("--pace-ms", "0", "--model-name", "large=Large", "--model-name", "small=Small")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run(PLAN)
        cls.set_clock(MID_MONTH)

    def creator(self, large=0):
        user = self.subscriber("creator")
        if large:
            self.assertIn("+ALLOWED", self.send_command(f"CONSUME {user} {large} model=large"))
        return user

    def used(self, user, model):
        return int(Answer(self.send_command(f"USAGE {user} model={model}"))["model_used"])

    def choices(self):
        return [text.split("\n") for text in self.browser.texts("#models label")]

    def chosen(self):
        return self.browser.run("return document.querySelector('#models :checked').value")

    def test_the_choice_shows_what_is_left_of_each_and_messages_are_counted_for_the_chosen_one(self):
        user = self.creator(large=10)
        self.browser.chat(user)
        self.assertEqual(self.choices(), [["Large", "40 left"], ["Small", "400 left"]])
        self.browser.send_message("With the large one")
        self.browser.wait_for_answer("With the large one")
        wait_until(lambda: self.choices()[0] == ["Large", "39 left"], self.choices)
        self.browser.find("#models label:last-child").click()
        self.browser.send_message("With the small one")
        self.browser.wait_for_answer("With the small one")
        self.assertEqual((self.used(user, "large"), self.used(user, "small")), (11, 1))
        self.assert_count(user, 12)
        self.browser.reload()
        self.assertEqual(self.chosen(), "small")

    def test_a_refused_message_is_sent_with_the_fallback_by_one_button(self):
        user = self.creator(large=49)
        # Without the stream of changes, the page learns of messages sent elsewhere only by a refusal.
        self.run_before_pages("window.EventSource = class extends EventTarget { close() {} }")
        self.browser.chat(user)
        self.browser.wait_for_text(".indicator .sentence", "1 Large message left")
        self.send_command(f"CONSUME {user} model=large")
        self.browser.send_message("One too many")
        self.browser.wait_for("#gate")
        self.assertEqual(self.browser.text("#gate-words"), SENTENCES[0][2])
        self.assertEqual(self.browser.text("#gate-limit"), "This limit is for Large only.")
        self.assertEqual(self.browser.focus(), "gate")
        self.assertEqual(self.choices()[0], ["Large", "none left"])
        self.assertEqual(self.browser.text("#subscribe"), "Go on with Small")
        self.assertEqual(self.browser.user_messages(), ["One too many"])
        # The message outlasts the page.
        self.browser.reload()
        self.browser.find("#subscribe").click()
        self.browser.wait_for_answer("One too many")
        self.assertEqual(self.browser.user_messages(), ["One too many"])
        self.assertEqual((self.browser.focus(), self.chosen()), ("text", "small"))
        self.assertEqual((self.used(user, "large"), self.used(user, "small")), (50, 1))
        self.assert_count(user, 51)

    def test_a_limit_of_the_plan_is_told_from_that_of_a_model_and_no_model_is_offered(self):
        user = self.creator(large=50)
        self.browser.chat(user)
        self.browser.wait_for_text("#gate-limit", "This limit is for Large only.")
        self.send_command(f"CONSUME {user} 750")
        self.browser.wait_for_text("#gate-limit", "This limit is your plan's, for all models together.")
        self.browser.wait_for_text("#subscribe", "Subscribe to Pro")
        self.assertEqual(self.choices(), [["Large", "none left"], ["Small"]], "nothing of Small can be used")
        self.browser.find("#models label:last-child").click()
        self.browser.wait_for_text("#gate-limit", "This limit is your plan's, for all models together.")
        self.assertFalse(self.browser.is_shown("#composer"))

    def test_keys_choose_a_model_and_screen_readers_hear_that_it_is_used_up(self):
        from selenium.webdriver.common.keys import Keys

        user = self.creator(large=50)
        self.browser.chat(user)
        self.browser.wait_for("#gate")
        self.browser.run("document.querySelector('#models :checked').focus()")
        self.browser.press(Keys.ARROW_RIGHT)
        self.browser.wait_for("#composer")
        self.assertEqual(self.chosen(), "small")
        outline = "return getComputedStyle(document.activeElement.closest('label')).outlineStyle"
        self.assertEqual(self.browser.run(outline), "solid", "the focus shows")
        self.assertEqual(self.browser.text("#usage-announcer"), "")
        self.browser.press(Keys.ARROW_LEFT)
        self.browser.wait_for("#gate")
        self.browser.wait_for_text("#usage-announcer", SENTENCES[0][2])
        self.assertEqual(self.browser.run("return document.activeElement.value"), "large", "the choice keeps the focus")
        names = self.browser.run("return [...document.querySelectorAll('#models label')].map(label => label.textContent.trim())")
        self.assertEqual(names, ["Large none left", "Small 400 left"])
        self.browser.press(Keys.TAB)
        self.assertEqual(self.browser.focus(), "subscribe")
        self.browser.press(Keys.ENTER)
        self.browser.wait_for("#composer")
        self.assertEqual(self.browser.focus(), "text")

    def test_screen_readers_hear_what_is_left_of_the_model_that_is_chosen(self):
        user = self.creator(large=48)
        self.send_command(f"CONSUME {user} 398 model=small")
        self.browser.chat(user)
        self.browser.wait_for_text(".indicator .sentence", SENTENCES[0][1])
        self.assertEqual(self.browser.text("#usage-announcer"), "", "it is read with the page")
        for choice, sentence in (("last-child", SENTENCES[0][1].replace("Large", "Small")), ("first-of-type", SENTENCES[0][1])):
            self.browser.find(f"#models label:{choice}").click()
            self.browser.wait_for_text("#usage-announcer", sentence)

    def test_messages_that_are_back_open_the_gate_while_the_page_is_open(self):
        user = self.creator(large=50)
        self.run_before_pages(SHORT_MINUTES)
        self.browser.chat(user)
        self.browser.wait_for("#gate")
        self.set_clock("2026-03-15T15:30:00Z")
        self.browser.wait_for("#composer")
        self.assertEqual(self.choices()[0], ["Large", "50 left"])

    def test_the_sentences_are_in_the_language_and_fit_at_every_width_in_every_scheme(self):
        self.addCleanup(self.browser.set_language, "en")
        for number, (language, few, none) in enumerate(SENTENCES):
            self.browser.set_language(language)
            user = self.creator(large=48)
            for width, scheme in looks(number):
                with self.subTest(language=language, width=width, scheme=scheme):
                    self.browser.set_appearance(width, scheme)
                    self.browser.chat(user)
                    self.browser.wait_for_text(".indicator .sentence", few)
                    self.assert_fits(f"models-{language}-few")
            self.send_command(f"CONSUME {user} 2 model=large")
            for width, scheme in looks(number):
                with self.subTest(language=language, width=width, scheme=scheme):
                    self.browser.set_appearance(width, scheme)
                    self.browser.chat(user)
                    self.browser.wait_for_text("#gate-words", none)
                    self.assertEqual(self.browser.find("#gate-words").get_attribute("lang"), language)
                    self.assert_fits(f"models-{language}-none")

    def assert_fits(self, name):
        self.browser.picture("chat-" + name)
        self.assertLessEqual(self.browser.overflow(), 0)
        self.assertEqual(self.browser.axe(), [])
