"""The chat in a browser as somebody uses it: on the real service, the real database and the real webhook."""

import contextlib
import datetime
import http.server
import json
import threading

from support import processes
from support.chat import ChatBackend, ChatBrowser, ChatCase
from support.stores import AUTHORIZATION
from support.waiting import wait_until


class HeldModel:
    """An API as OpenAI's that says the first words of each answer at once, and the rest when it is released."""

    FIRST, REST = "Let me think ", "about that."

    def __init__(self):
        self.released = threading.Event()
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                # Whoever asked may not want to know any more.
                with contextlib.suppress(OSError):
                    self.say(model.FIRST)
                    # The backend gives up an API that is silent for long.
                    while not model.released.wait(1):
                        self.wfile.write(b": still thinking\n\n")
                    self.say(model.REST)
                    self.wfile.write(b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')

            def say(self, text):
                piece = {"choices": [{"delta": {"content": text}, "finish_reason": None}]}
                self.wfile.write(f"data: {json.dumps(piece)}\n\n".encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.flags = ("--model", f"http://127.0.0.1:{self.server.server_port}/v1", "--model-name", "test")

    def hold(self):
        self.released.clear()

    def release(self):
        self.released.set()

    def close(self):
        self.release()
        self.server.shutdown()
        self.server.server_close()


class FlowCase(ChatCase):
    def tearDown(self):
        self.assertEqual(self.unexpected(), [], "the browser's console")

    # What cannot be reached for a while is an error to the console, too.
    EXPECTED_COMPLAINTS = ()

    def unexpected(self):
        return [line for line in self.browser.complaints() if not any(part in line for part in self.EXPECTED_COMPLAINTS)]

    def trial_user(self, used=58):
        user = self.user()
        self.assertIn("+ALLOWED", self.send_command(f"CONSUME {user} {used}"))
        return user

    def trial_count(self, user):
        return self.psql.number(f"select message_count from message_usage where user_id = '{user}' and billing_period = 'trial'")

    def kept_in_conversation(self, user, text):
        """How often the backend has it."""
        return [message["text"] for message in self.chat.state(user)["messages"] if message["role"] == "user"].count(text)

    def second_window(self):
        """Of the same browser, and in use from now on; closed after the test. Both handles."""
        driver = self.browser.driver
        first = driver.current_window_handle
        driver.switch_to.new_window("tab")
        second = driver.current_window_handle

        def close():
            driver.switch_to.window(second)
            driver.close()
            self.browser.show_window(first)

        self.addCleanup(close)
        return first, second

    def watch(self, selector):
        """From now on, everything that an element says, in order."""
        self.browser.run(
            "window.watched = []; const part = document.querySelector(arguments[0]);"
            "const look = () => { const text = part.innerText; if (watched.at(-1) !== text) watched.push(text); };"
            "look(); new MutationObserver(look).observe(part, {subtree: true, childList: true, characterData: true})",
            selector,
        )

    def watched(self):
        return self.browser.run("return window.watched")


class Flow(FlowCase):
    def test_a_message_is_shown_answered_and_counted_once(self):
        user = self.trial_user()
        self.browser.chat(user)
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        self.browser.say("Good morning")
        self.assertNotEqual(self.browser.wait_for_answer("Good morning"), "")
        self.browser.wait_for_text(".indicator .words", "41 of 100")
        self.assert_count(user, 59)
        self.assertEqual(self.browser.find("#text").get_attribute("value"), "")
        self.assertEqual(self.browser.focus(), "text")
        # Told to who does not see it when it is whole, and not piece by piece.
        self.assertEqual(self.browser.text("#announcer"), self.browser.answer("Good morning"))
        self.assertEqual(self.browser.find("#conversation").get_attribute("aria-live"), "off")
        self.browser.reload()
        self.assertEqual(self.browser.said(), ["Good morning"])

    def test_what_is_written_is_shown_as_text_and_nothing_else(self):
        user = self.trial_user()
        self.browser.chat(user)
        text = "<img src=x onerror=\"document.title='got you'\"> & <b>bold</b>"
        self.browser.say(text)
        self.browser.wait_for_answer(text)
        self.assertEqual(self.browser.all("#conversation img, #conversation b"), [])
        self.assertEqual(self.browser.driver.title, "Hearth")

    def test_the_counter_moves_at_once_and_ends_where_the_server_says(self):
        user = self.trial_user()
        self.browser.chat(user)
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        self.watch(".indicator .words")
        # As slow as a server can be: it reads nothing until it goes on.
        processes.pause(self.chat.process.pid)
        self.addCleanup(processes.resume, self.chat.process.pid)
        self.browser.say("Is it quick?")
        self.browser.wait_for_text(".indicator .words", "41 of 100")
        self.assertEqual(self.count(user), 58, "the counter has moved before the server knows")
        self.browser.run("document.getElementById('open-settings').click(); document.getElementById('plan-and-usage').click()")
        self.assertEqual(self.browser.text(".accessible"), "59 of 100 trial messages used")
        processes.resume(self.chat.process.pid)
        self.browser.wait_for_answer("Is it quick?")
        self.assert_count(user, 59)
        self.send_command(f"CONSUME {user}")
        self.browser.wait_for_text(".accessible", "60 of 100")
        numbers = [text.split("· ")[1].split(" ")[0] for text in self.watched()]
        self.assertEqual(numbers, ["42", "41", "40"], "no number is shown that never was")

    def test_an_operator_resets_in_psql_and_the_gate_opens_without_a_reload(self):
        user = self.subscriber(used=800)
        self.browser.chat(user)
        self.browser.wait_for("#gate")
        self.browser.run("window.isSame = true; document.getElementById('subscribe').focus()")
        self.psql.run(f"select * from reset_usage('{user}')")
        self.browser.wait_for("#composer")
        self.assertFalse(self.browser.is_shown("#gate"))
        self.assertTrue(self.browser.run("return window.isSame"))
        self.assertEqual(self.browser.focus(), "text", "the focus goes where one can go on")
        self.browser.say("I'm back")
        self.browser.wait_for_answer("I'm back")
        self.assert_count(user, 1)

    def test_the_last_message_closes_the_gate_and_keeps_what_was_being_written(self):
        user = self.trial_user(99)
        self.browser.chat(user)
        self.browser.say("The last one")
        self.browser.wait_for_answer("The last one")
        self.browser.wait_for("#gate")
        self.assertEqual(self.browser.text("#gate-words"), self.usage(user)["banner"])
        self.psql.run(f"select * from grant_messages('{user}', 5, 'asked nicely')")
        self.browser.wait_for("#composer")
        self.browser.write("half a thought")
        self.send_command(f"CONSUME {user} 5")
        self.browser.wait_for("#gate")
        self.assertIn("I've kept what you were writing.", self.browser.text("#gate"))
        self.assertIn("half a thought", self.browser.text("#gate blockquote"))
        self.psql.run(f"select * from grant_messages('{user}', 5, 'asked nicely again')")
        self.browser.wait_for("#composer")
        self.assertEqual(self.browser.find("#text").get_attribute("value"), "half a thought")
        self.assert_count(user, 105)

    def test_two_windows_of_a_user_stay_in_step(self):
        user = self.trial_user()
        self.browser.chat(user)
        first, second = self.second_window()
        self.browser.chat(user)
        self.browser.say("From the second window")
        self.browser.wait_for_answer("From the second window")
        self.browser.show_window(first)
        self.browser.wait_for_text(".indicator .words", "41 of 100")
        self.browser.wait_for_answer("From the second window")
        self.browser.say("And back")
        self.browser.wait_for_answer("And back")
        self.browser.show_window(second)
        self.browser.wait_for_answer("And back")
        self.browser.wait_for_text(".indicator .words", "40 of 100")
        self.assert_count(user, 60)

    def test_more_windows_than_a_browser_has_connections_chat_and_come_right_when_shown(self):
        # Of its own: what is stuck without a connection would keep the other tests waiting, too.
        browser = ChatBrowser(self.chat)
        self.addCleanup(browser.close)
        users = [self.trial_user() for _ in range(9)]
        browser.chat(users[0])
        first = browser.driver.current_window_handle
        for user in users[1:]:
            browser.driver.switch_to.new_window("tab")
            browser.chat(user)
        browser.say("In the last window")
        browser.wait_for_answer("In the last window")
        self.send_command(f"CONSUME {users[0]}")
        browser.show_window(first)
        browser.wait_for_text(".indicator .words", "41 of 100")
        self.send_command(f"CONSUME {users[0]}")
        browser.wait_for_text(".indicator .words", "40 of 100")

    def test_a_choice_that_changes_nothing_is_offered_again_once_the_store_has_answered(self):
        user = self.subscriber(used=700)
        self.send_command(f"SETPLAN {user} paid state=billing_retry")
        self.browser.chat(user)
        self.browser.wait_for("#gate")
        self.browser.run(
            "const real = window.fetch; window.fetch = (address, request) =>"
            "  request?.method === 'POST'"
            "    ? new Promise((resolve) => { window.answer = () => resolve(new Response(null, {status: 204})); })"
            "    : real(address, request);"
            # Not for the reason that time has passed.
            "const later = window.setTimeout; window.setTimeout = (call, wait) => wait < 5000 ? later(call, wait) : 0"
        )
        self.browser.find("#subscribe").click()
        self.browser.wait_for_text("#subscribe", "One moment…")
        self.browser.run("window.answer()")
        self.browser.wait_for_text("#subscribe", "Fix payment")

    def test_nothing_is_offered_where_nobody_sells(self):
        chat = ChatBackend(self.service, *self.CHAT_FLAGS, has_store=False)
        self.addCleanup(chat.stop)
        other = ChatBrowser(chat)
        self.addCleanup(other.close)
        user = self.subscriber(used=700)
        self.send_command(f"SETPLAN {user} paid state=billing_retry")
        other.chat(user)
        other.wait_for("#gate")
        self.assertFalse(other.is_shown("#subscribe"))
        other.find("#gate-details").click()
        other.wait_for("#sheet")
        other.find("#manage").click()
        other.wait_for_text("#sheet .problem", "I couldn't open subscription management. Try again from your device Settings.")
        self.assertFalse(other.is_shown("#choices"))
        other.find("#sheet [aria-label=Close]").click()
        # The page hears of the end of the sheet an event later.
        wait_until(lambda: not other.is_shown("#gate .problem"), "what was said in the sheet is gone with it")
        self.assertFalse(other.is_shown("#gate-restore"))
        self.assertTrue(other.is_shown("#notice"))
        self.assertFalse(other.is_shown("#notice button"))

    def test_what_was_read_before_a_change_does_not_take_its_place(self):
        user = self.trial_user()
        self.browser.chat(user)
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        self.watch(".indicator .words")
        # Read before the change, and late to arrive.
        self.browser.run(
            "const real = window.fetch; window.fetch = async (...request) => {"
            "  window.fetch = real; const answer = await real(...request); const text = await answer.text();"
            "  await new Promise((resolve) => { window.release = resolve; });"
            "  return new Response(text); };"
            "document.dispatchEvent(new Event('visibilitychange'))"
        )
        wait_until(lambda: self.browser.run("return Boolean(window.release)"), "it is read")
        self.send_command(f"CONSUME {user}")
        self.browser.wait_for_text(".indicator .words", "41 of 100")
        self.browser.run("window.release()")
        self.send_command(f"CONSUME {user}")
        self.browser.wait_for_text(".indicator .words", "40 of 100")
        numbers = [text.split("· ")[1].split(" ")[0] for text in self.watched()]
        self.assertEqual(numbers, ["42", "41", "40"])

    def test_the_subscription_can_be_cancelled_and_taken_up_again_from_the_sheet(self):
        user = self.trial_user(100)
        self.browser.chat(user)
        self.browser.wait_for("#gate")
        self.browser.find("#subscribe").click()
        self.browser.wait_for("#composer")
        self.assertEqual(self.usage(user)["plan"], "paid")
        self.choose("cancel")
        self.browser.wait_for_text("#notice", "Your subscription is active until")
        self.assertEqual(self.usage(user)["state"], "cancelled")
        self.choose("resume")
        wait_until(lambda: not self.browser.is_shown("#notice"), "the notice is gone")
        self.assertEqual(self.usage(user)["state"], "active")
        self.choose("subscribe")
        self.browser.wait_for_text("#plan-and-usage", "Pro\n")
        self.assertEqual(self.usage(user)["plan"], "pro")

    def choose(self, action):
        if not self.browser.is_shown("#sheet"):
            self.browser.find("#open-settings").click()
            self.browser.find("#plan-and-usage").click()
            self.browser.find("#manage").click()
        self.browser.wait_for(f"#choices [data-action={action}][aria-disabled=false]")
        self.browser.find(f"#choices [data-action={action}]").click()

    def test_a_plan_that_gives_less_says_what_stays_and_what_changes_before_it_is_taken(self):
        user = self.trial_user(100)
        chosen = self.chat.request("POST", f"/users/{user}/subscription", {"action": "subscribe", "plan": "pro"})
        self.assertEqual(chosen.status, 204, chosen.text)
        self.browser.chat(user)
        renews = self.usage(user)["renews"]
        day = datetime.date.fromisoformat(renews[:10])
        self.choose("downgrade")
        self.browser.wait_for("#confirm")
        text = self.browser.text(".question")
        self.assertIn("Everything you've written so far stays", text)
        self.assertIn(f"800 messages every month, from {day:%B} {day.day}, {day.year} on.", text)
        self.browser.find("#keep").click()
        self.assertFalse(self.browser.is_shown(".question"))
        self.assertEqual(self.browser.focus(), "manage")
        next_plan = f"select next_plan from headroom.subscriptions where user_id = '{user}' and plan = 'pro'"
        self.assertIsNone(self.psql.value(next_plan))
        self.browser.find("#manage").click()
        self.browser.find("#choices [data-action=downgrade]").click()
        self.browser.find("#confirm").click()
        self.browser.wait_for_text("#sheet .outcome", "Premium begins with your next renewal.")
        self.assertEqual(self.psql.value(next_plan), "paid")
        usage = self.usage(user)
        self.assertEqual((usage["plan"], usage["next_plan"]), ("pro", "paid"))
        # Headroom keeps it, and not the page.
        self.browser.chat(user)
        self.browser.find("#open-settings").click()
        self.browser.find("#plan-and-usage").click()
        self.browser.wait_for_text("#sheet .outcome", "Premium begins with your next renewal.")

    def test_restoring_finds_what_is_active_and_says_so_where_there_is_nothing(self):
        user = self.trial_user(100)
        self.browser.chat(user)
        self.browser.wait_for("#gate")
        self.browser.find("#gate-restore").click()
        self.browser.wait_for_text(
            "#gate .outcome", "I wasn't able to find a previous subscription. If you think this is wrong, reach out to support."
        )
        self.browser.find("#open-settings").click()
        self.browser.find("#restore").click()
        self.browser.wait_for_text("#settings .outcome", "I didn't find an active subscription to restore.")
        self.assertFalse(self.browser.is_shown("#gate .outcome"), "it is said where it was asked for")
        bought = self.chat.request("POST", f"/users/{user}/subscription", {"action": "subscribe", "plan": "paid"})
        self.assertEqual(bought.status, 204, bought.text)
        self.browser.find("#restore").click()
        self.browser.wait_for_text("#settings .outcome", "I found your subscription.")
        self.browser.complaints()

    def test_a_payment_is_fixed_from_the_notice(self):
        user = self.subscriber(used=200)
        self.send_command(f"SETPLAN {user} paid state=billing_retry")
        self.browser.chat(user)
        self.browser.wait_for("#gate")
        self.assertEqual(self.browser.text("#subscribe"), "Fix payment")
        self.assertFalse(self.browser.is_shown("#notice button"), "it is offered once")
        self.browser.find("#subscribe").click()
        self.browser.wait_for("#composer")
        wait_until(lambda: not self.browser.is_shown("#notice"), "the notice is gone")
        self.assertEqual(self.usage(user)["state"], "active")

    def test_the_keyboard_is_enough(self):
        from selenium.webdriver.common.keys import Keys

        user = self.trial_user()
        self.browser.chat(user)
        self.browser.press(Keys.TAB)
        self.assertEqual(self.browser.focus(), "Skip to your message")
        self.browser.press(Keys.ENTER)
        self.assertEqual(self.browser.focus(), "text")
        self.browser.press("By keys", Keys.ENTER)
        self.browser.wait_for_answer("By keys")
        self.assertEqual(self.browser.focus(), "text")
        self.back()
        self.assertIn("Show details", self.browser.run("return document.activeElement.textContent"))
        self.assert_focus_shows()
        self.browser.press(Keys.ENTER)
        self.browser.wait_for("#sheet")
        self.assertEqual(self.browser.focus(), "sheet-title")
        self.tab_to("manage")
        self.browser.press(Keys.SPACE)
        self.browser.wait_for("#choices")
        self.browser.press(Keys.ESCAPE)
        wait_until(lambda: not self.browser.is_shown("#sheet"), "the sheet closes")
        self.assertIn("Show details", self.browser.run("return document.activeElement.textContent"), "back where it was opened")
        self.browser.press(Keys.TAB)
        self.assertEqual(self.browser.focus(), "text")
        for _ in range(20):
            self.back()
            if self.browser.focus() == "open-settings":
                break
        self.assert_focus_shows()
        self.browser.press(Keys.ENTER)
        self.browser.wait_for("#settings")
        self.tab_to("plan-and-usage")
        self.browser.press(Keys.ENTER)
        self.browser.wait_for("#sheet")
        self.browser.press(Keys.ESCAPE)
        self.assertEqual(self.browser.focus(), "plan-and-usage")
        self.browser.press(Keys.ESCAPE)
        self.assertEqual(self.browser.focus(), "open-settings")
        self.assert_count(user, 59)

    def back(self):
        from selenium.webdriver import ActionChains
        from selenium.webdriver.common.keys import Keys

        ActionChains(self.browser.driver).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()

    def tab_to(self, name, most=12):
        from selenium.webdriver.common.keys import Keys

        for _ in range(most):
            self.browser.press(Keys.TAB)
            if self.browser.focus() == name:
                return self.assert_focus_shows()
        self.fail(f"TAB does not come to {name}, but to {self.browser.focus()}")

    def assert_focus_shows(self):
        self.assertNotEqual(self.browser.run("return document.activeElement.tagName"), "BODY", "nothing has the focus")
        outline = self.browser.run("return getComputedStyle(document.activeElement).outlineStyle")
        self.assertNotEqual(outline, "none", f"{self.browser.focus()} does not show that it has the focus")


class Gate(FlowCase):
    """A message that the page believes it may send, and that is refused: the allowance went while it waited."""

    EXPECTED_COMPLAINTS = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE",
                           "status of 409")  # fmt: skip

    def block(self, user, text):
        self.browser.chat(user)
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        self.chat.kill()
        self.browser.wait_for("#connection")
        self.browser.say(text)
        self.browser.wait_for_text(".note", "I'll send this when we're back.")
        self.send_command(f"CONSUME {user} 42")
        self.chat.start()
        self.browser.wait_for_text("#gate", "I've kept your message and will send it as soon as you're back.")
        self.assertEqual(self.browser.text("#gate-words"), self.usage(user)["banner"])
        self.assertEqual(self.browser.text("#gate blockquote"), text)
        self.assertEqual(self.browser.said(), [])
        self.assertEqual(self.count(user), 100, "a refused message is not counted")

    def subscribe(self, user, text):
        self.browser.wait_for("#gate")
        self.assertEqual(self.browser.text("#subscribe"), "Subscribe")
        self.browser.find("#subscribe").click()
        self.browser.wait_for_answer(text)
        self.browser.wait_for("#composer")
        self.assertEqual(self.browser.said(), [text])
        self.assertEqual(self.trial_count(user), 100)
        self.assertEqual(self.psql.number(f"select message_count from message_usage where user_id = '{user}' and billing_period <> 'trial'"), 1)
        self.assert_count(user, 101)
        self.assertEqual(self.kept_in_conversation(user, text), 1)
        event = f"select effects -> 0 ->> 'kind' from headroom.billing_events where user_id = '{user}'"
        self.assertEqual(self.psql.value(event), "purchased")

    def test_a_blocked_message_is_kept_and_sent_by_itself_once_after_subscribing(self):
        user, text = self.trial_user(), "Don't lose this"
        self.block(user, text)
        self.browser.picture("chat-kept")
        self.assertEqual(self.browser.axe(), [])
        self.subscribe(user, text)
        self.browser.picture("chat-subscribed")

    def test_a_blocked_message_outlives_a_reload_and_is_sent_once_after_subscribing(self):
        user, text = self.trial_user(), "Keep this over a reload"
        self.block(user, text)
        self.browser.reload()
        self.browser.wait_for_text("#gate blockquote", text)
        self.subscribe(user, text)
        self.browser.reload()
        self.assertEqual(self.browser.said(), [text], "and it is not sent again")
        self.assert_count(user, 101)

    def test_a_blocked_message_can_be_taken_back_and_is_not_sent_then(self):
        user, text = self.trial_user(), "On second thoughts"
        self.block(user, text)
        self.browser.find("#give-up").click()
        self.browser.wait_for_text("#gate", "I've kept what you were writing.")
        self.assertEqual(self.browser.focus(), "gate")
        self.browser.find("#subscribe").click()
        self.browser.wait_for("#composer")
        self.assertEqual(self.browser.find("#text").get_attribute("value"), text)
        self.browser.write("Something else")
        self.browser.find("#send").click()
        self.browser.wait_for_answer("Something else")
        self.assertEqual(self.browser.said(), ["Something else"])
        self.assert_count(user, 101)

    def test_a_blocked_message_is_sent_once_by_two_windows(self):
        user, text = self.trial_user(), "Only once, please"
        self.block(user, text)
        first, _ = self.second_window()
        self.browser.chat(user)
        self.browser.wait_for_text("#gate blockquote", text)
        self.subscribe(user, text)
        self.browser.show_window(first)
        self.browser.wait_for_answer(text)
        self.assertEqual(self.browser.said(), [text])
        self.assert_count(user, 101)


class Stopping(FlowCase):
    """No answer ends before its time, however long the test takes to stop it."""

    @classmethod
    def setUpClass(cls):
        cls.model = HeldModel()
        cls.addClassCleanup(cls.model.close)
        cls.CHAT_FLAGS = cls.model.flags
        super().setUpClass()

    def setUp(self):
        super().setUp()
        self.model.hold()

    def test_stop_gives_the_message_back(self):
        user = self.trial_user()
        self.browser.chat(user)
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        self.browser.say("Tell me a long story")
        wait_until(lambda: "held=1" in self.send_command(f"USAGE {user}"), "it is held")
        self.browser.wait_for_text(".indicator .words", "41 of 100")
        wait_until(lambda: len(self.browser.text(".message.assistant .text")) > 5, "the answer has begun")
        self.assertFalse(self.browser.is_shown("#send"))
        self.browser.picture("chat-answering")
        self.browser.find("#stop").click()
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        self.browser.wait_for_text(".note", "Stopped. I gave this message back.")
        self.assertEqual(self.browser.text("#announcer"), "Stopped. I gave this message back.")
        self.assert_count(user, 58)
        self.browser.picture("chat-stopped")
        self.assertEqual(self.browser.axe(), [])
        self.assertEqual(self.kept_in_conversation(user, "Tell me a long story"), 0)
        self.browser.all(".note button")[1].click()
        self.assertEqual(self.browser.find("#text").get_attribute("value"), "Tell me a long story")
        self.assertEqual(self.browser.said(), [])

    def test_the_last_message_can_be_stopped(self):
        user = self.trial_user(99)
        self.browser.chat(user)
        self.browser.run(
            "window.closings = 0; const gate = document.getElementById('gate');"
            "new MutationObserver(() => { if (!gate.hidden) window.closings += 1; }).observe(gate, {attributeFilter: ['hidden']})"
        )
        self.browser.say("The last one")
        wait_until(self.browser.has_begun_to_answer, "the answer has begun")
        wait_until(lambda: self.browser.display == "blocked", "nothing is left")
        self.assertTrue(self.browser.is_shown("#stop"))
        self.browser.find("#stop").click()
        self.browser.wait_for_text(".note", "Stopped. I gave this message back.")
        self.browser.wait_for_text(".indicator .words", "1 of 100")
        self.assertTrue(self.browser.is_shown("#composer"))
        self.assertEqual(self.browser.run("return window.closings"), 0, "the gate has not closed meanwhile")
        self.assert_count(user, 99)

    def test_a_message_that_was_answered_when_it_was_stopped_is_shown_as_answered(self):
        user = self.trial_user()
        self.browser.chat(user)
        # The whole answer is on its way, and the page has read none of it.
        self.browser.run(
            "const real = window.fetch; window.fetch = async (address, {signal, ...request} = {}) => {"
            "  if (request.method !== 'POST') return real(address, request);"
            "  const answer = await real(address, request); await answer.text(); window.isAnswered = true;"
            "  return new Response(new ReadableStream({start(body) { signal.onabort = () => body.error(signal.reason); }})); }"
        )
        self.model.release()
        self.browser.say("Just in time")
        wait_until(lambda: self.browser.run("return window.isAnswered"), "it is answered")
        self.browser.find("#stop").click()
        self.browser.wait_for_answer("Just in time")
        self.assertEqual(self.browser.said(), ["Just in time"])
        self.assertNotIn("gave", self.browser.text("#announcer"))
        self.browser.wait_for_text(".indicator .words", "41 of 100")
        self.assert_count(user, 59)

    def test_a_reload_in_the_middle_of_an_answer_sends_the_message_again_and_counts_it_once(self):
        user = self.trial_user()
        self.browser.chat(user)
        self.browser.say("Don't forget me")
        wait_until(lambda: len(self.browser.text(".message.assistant .text")) > 5, "the answer has begun")
        self.browser.reload()
        self.model.release()
        self.browser.wait_for_answer("Don't forget me")
        self.assertEqual(self.browser.said(), ["Don't forget me"])
        self.assert_count(user, 59)
        # The one before had not noticed yet that nobody reads it.
        self.EXPECTED_COMPLAINTS = ("status of 409",)


class Answers(http.server.BaseHTTPRequestHandler):
    """An API as OpenAI's, which fails until it is well."""

    is_well = False

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if not Answers.is_well:
            self.send_error(500)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for text in ("I am ", "well again."):
            piece = {"choices": [{"delta": {"content": text}, "finish_reason": None}]}
            self.wfile.write(f"data: {json.dumps(piece)}\n\n".encode())
        self.wfile.write(b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')

    def log_message(self, *_):
        pass


class FailingModel(FlowCase):
    @classmethod
    def setUpClass(cls):
        cls.model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        threading.Thread(target=cls.model.serve_forever, daemon=True).start()
        cls.CHAT_FLAGS = ("--model", f"http://127.0.0.1:{cls.model.server_port}/v1", "--model-name", "test")
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.model.shutdown()

    def test_a_model_that_fails_counts_nothing_and_can_be_asked_again(self):
        user = self.trial_user()
        self.browser.chat(user)
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        self.browser.say("Are you there?")
        self.browser.wait_for_text(".note", "Try again")
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        self.assert_count(user, 58)
        self.browser.picture("chat-failed")
        self.assertEqual(self.browser.axe(), [])
        Answers.is_well = True
        self.browser.find(".note button").click()
        self.assertEqual(self.browser.wait_for_answer("Are you there?"), "I am well again.")
        self.assertEqual(self.browser.said(), ["Are you there?"])
        self.assert_count(user, 59)
        self.browser.wait_for_text(".indicator .words", "41 of 100")


# In a window: how often it sends a message from now on, and what it writes for all windows.
RECORD_ATTEMPTS_AND_WRITES = """
    window.attempts = 0;
    window.writes = [];
    const fetch = window.fetch;
    window.fetch = (...request) => { attempts += /messages$/.test(request[0]); return fetch(...request); };
    const setItem = Storage.prototype.setItem;
    Storage.prototype.setItem = function (name, text) {
        if (this === localStorage) writes.push([name, text]);
        return setItem.call(this, name, text);
    };
"""


class Away(FlowCase):
    """Headroom and the chat's backend go away and come back."""

    EXPECTED_COMPLAINTS = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE", "status of 502")
    LOST = "You're offline — your message will be sent when we're back"

    @classmethod
    def setUpClass(cls):
        # Nobody else is given them while the service is away.
        line, http_port = processes.free_port(), processes.free_port()
        cls.MORE_FLAGS = ("--listen", f"127.0.0.1:{line}", "--http", f"127.0.0.1:{http_port}")
        super().setUpClass()

    def restart_service(self):
        type(self).service = self.serve(*self.MORE_FLAGS, env={"HEADROOM_REVENUECAT_AUTHORIZATION": AUTHORIZATION})

    def test_without_headroom_one_keeps_chatting_where_the_policy_allows(self):
        user = self.trial_user()
        self.browser.chat(user)
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        self.service.kill()
        self.browser.wait_for_text("#connection", "I couldn't check your usage right now — don't worry, you can keep chatting.")
        self.browser.picture("chat-without-headroom")
        self.assertEqual(self.browser.axe(), [])
        self.browser.say("Still here?")
        self.browser.wait_for_answer("Still here?")
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        # A page that is opened now knows nothing, and lets write all the same.
        self.browser.reload()
        self.assertFalse(self.browser.is_shown(".indicator"))
        self.browser.say("And now?")
        self.browser.wait_for_answer("And now?")
        self.restart_service()
        wait_until(lambda: not self.browser.is_shown("#connection"), "all is well")
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        self.assertEqual(self.count(user), 58, "what was let through is not counted")
        self.browser.say("Counted again")
        self.browser.wait_for_answer("Counted again")
        self.assert_count(user, 59)

    def test_without_headroom_a_message_waits_where_the_policy_denies(self):
        chat = ChatBackend(self.service, "--pace-ms", "0", "--when-unreachable", "deny")
        other = ChatBrowser(chat)
        self.addCleanup(chat.stop)
        self.addCleanup(other.close)
        user = self.trial_user()
        other.chat(user)
        other.wait_for_text(".indicator .words", "42 of 100")
        self.service.kill()
        other.wait_for("#connection")
        other.say("Wait for me")
        other.wait_for_text(".note", "I'll send this as soon as I can look up your plan.")
        other.write("typing goes on")
        self.assertEqual(other.find("#text").get_attribute("value"), "typing goes on")
        self.restart_service()
        other.wait_for_answer("Wait for me")
        self.assertEqual(other.said(), ["Wait for me"])
        self.assert_count(user, 59)
        other.wait_for_text(".indicator .words", "41 of 100")
        self.assertEqual(other.find("#text").get_attribute("value"), "typing goes on")

    def test_without_the_backend_messages_wait_and_are_sent_in_order_once(self):
        user = self.trial_user()
        self.browser.chat(user)
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        self.chat.kill()
        self.browser.wait_for_text("#connection", self.LOST)
        for text in ("First", "Second"):
            self.browser.say(text)
            self.browser.wait_for_text("#conversation", text)
        self.assertEqual([note.text.split("\n")[0] for note in self.browser.all(".note")], ["I'll send this when we're back."] * 2)
        self.browser.write("and a third, not sent")
        self.browser.picture("chat-offline")
        self.assertEqual(self.browser.axe(), [])
        self.chat.start()
        self.browser.wait_for_answer("Second")
        self.assertEqual(self.browser.said(), ["First", "Second"])
        self.assertEqual([m["text"] for m in self.chat.state(user)["messages"] if m["role"] == "user"], ["First", "Second"])
        wait_until(lambda: not self.browser.is_shown("#connection"), "all is well")
        self.assert_count(user, 60)
        self.assertEqual(self.browser.find("#text").get_attribute("value"), "and a third, not sent")

    def held_chat(self):
        """A backend of the test's own, and its model, which is not released."""
        model = HeldModel()
        self.addCleanup(model.close)
        chat = ChatBackend(self.service, *model.flags)
        self.addCleanup(chat.stop)
        return chat, model

    def two_windows(self, chat):
        """A browser with one page of a new user in each of two windows."""
        browser = ChatBrowser(chat)
        self.addCleanup(browser.close)
        user = self.trial_user()
        browser.chat(user)
        first = browser.driver.current_window_handle
        browser.driver.switch_to.new_window("tab")
        browser.chat(user)
        return browser, user, (first, browser.driver.current_window_handle)

    def test_two_windows_with_a_message_each_lose_neither_with_the_backend(self):
        chat, model = self.held_chat()
        browser, user, windows = self.two_windows(chat)
        for window, text in zip(windows, ("From the first", "From the second")):
            browser.show_window(window)
            browser.say(text)
            wait_until(browser.has_begun_to_answer, "the answer has begun")
        chat.kill()
        for window in windows:
            browser.show_window(window)
            wait_until(lambda: len(browser.all(".note")) == 2, "each window knows of both")
            self.assertEqual(browser.said(), ["From the first", "From the second"])
        model.release()
        chat.start()
        for window in windows:
            browser.show_window(window)
            browser.wait_for_answer("From the first")
            browser.wait_for_answer("From the second")
            self.assertEqual(browser.said(), ["From the first", "From the second"])
        self.assertEqual(self.count(user), 60)

    def test_a_message_that_is_given_up_in_one_window_is_not_sent_by_another(self):
        chat, model = self.held_chat()
        browser, user, windows = self.two_windows(chat)
        chat.kill()
        browser.wait_for("#connection")
        browser.say("Never mind")
        for window in windows:
            browser.show_window(window)
            browser.wait_for_text(".note", "I'll send this when we're back.")
        chat.start()
        sender = wait_until(lambda: self.sender(browser, windows), "one of the windows sends it")
        (other,) = set(windows) - {sender}
        browser.show_window(other)
        # Until this window is connected again as well, the message is one that it would send itself.
        wait_until(lambda: browser.text(".note") == "Still on its way…", "it can be stopped by its sender only")
        # What it wrote while it asks could be written over what the sender decides in the same moment.
        browser.driver.execute_script(RECORD_ATTEMPTS_AND_WRITES)
        wait_until(lambda: browser.driver.execute_script("return attempts") >= 2, "it asks for the message again")
        self.assertEqual(browser.driver.execute_script("return writes"), [])
        browser.show_window(sender)
        browser.find("#stop").click()
        browser.wait_for_text(".note", "Stopped. I gave this message back.")
        browser.show_window(other)
        browser.wait_for_text(".note", "Stopped.")
        browser.wait_for_text(".note", "Edit")
        browser.show_window(sender)
        browser.all(".note button")[1].click()
        browser.show_window(other)
        wait_until(lambda: browser.said() == [], "it is gone from the other window")
        # By its own clock, until it would have tried again.
        browser.driver.execute_async_script("setTimeout(arguments[0], 2500)")
        model.release()
        browser.say("Something else")
        browser.wait_for_answer("Something else")
        self.assertEqual(browser.said(), ["Something else"])
        self.assertEqual([m["text"] for m in chat.state(user)["messages"] if m["role"] == "user"], ["Something else"])
        self.assert_count(user, 59)

    def sender(self, browser, windows):
        for window in windows:
            browser.driver.switch_to.window(window)
            if browser.has_begun_to_answer():
                return window
        return None

    def test_an_answer_that_breaks_off_with_the_backend_is_asked_for_again_and_counted_once(self):
        chat, model = self.held_chat()
        other = ChatBrowser(chat)
        self.addCleanup(other.close)
        user = self.trial_user()
        other.chat(user)
        other.say("Hold on to this")
        wait_until(lambda: len(other.text(".message.assistant .text")) > 5, "the answer has begun")
        chat.kill()
        other.wait_for_text("#connection", self.LOST)
        model.release()
        chat.start()
        other.wait_for_answer("Hold on to this")
        self.assertEqual(other.said(), ["Hold on to this"])
        # What the killed one held comes back when its time is over; what is counted is one message.
        self.assertEqual(self.count(user), 59)

    def test_a_purchase_that_nobody_answered_may_have_been_made(self):
        chat = ChatBackend(self.service, *self.CHAT_FLAGS)
        self.addCleanup(chat.stop)
        other = ChatBrowser(chat)
        self.addCleanup(other.close)
        user = self.trial_user(100)
        other.chat(user)
        other.wait_for("#gate")
        chat.kill()
        other.find("#subscribe").click()
        other.wait_for_text(
            "#gate .problem", "I lost connection during the purchase. Don't worry — if you were charged, it'll show up shortly."
        )

    def test_details_that_cannot_be_loaded_are_said_to_be_so(self):
        chat = ChatBackend(self.service, *self.CHAT_FLAGS)
        self.addCleanup(chat.stop)
        user = self.trial_user()
        other = ChatBrowser(chat)
        self.addCleanup(other.close)
        self.service.kill()
        self.addCleanup(self.restart_service)
        wait_until(lambda: chat.state(user)["usage"] is None, "the chat knows that Headroom is away")
        other.chat(user)
        other.find("#open-settings").click()
        other.wait_for_text("#plan-and-usage", "I couldn't load your subscription details right now.")
        other.find("#plan-and-usage").click()
        other.wait_for_text("#sheet .accessible", "I couldn't load your subscription details right now.")
        self.assertFalse(other.is_shown("#manage"))

    def test_the_store_that_cannot_be_reached_is_told_and_nothing_is_lost(self):
        user = self.trial_user(100)
        self.browser.chat(user)
        self.browser.wait_for("#gate")
        self.service.kill()
        self.browser.find("#subscribe").click()
        self.browser.wait_for_text("#gate .problem", "I couldn't complete that purchase. Let's try again when you're ready.")
        self.assertEqual(self.browser.text("#subscribe"), "Subscribe")
        self.restart_service()
        self.browser.find("#subscribe").click()
        self.browser.wait_for("#composer")


