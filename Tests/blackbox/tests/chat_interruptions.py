"""Messages of the example chat that are blocked, stopped, or not answered because a part is unreachable."""

import http.server
import json
import threading

from support import processes
from support.chat import ChatBackend, ChatBrowser, FlowCase, HeldModel
from support.nightly import nightly
from support.stores import AUTHORIZATION
from support.waiting import wait_until


class Gate(FlowCase):
    """A message is refused because the allowance was used up while the message waited."""

    EXPECTED_COMPLAINTS = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE")
    KEPT = "I've kept this, and will send it as soon as you're back."

    def block(self, user, text):
        self.browser.chat(user)
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        self.chat.kill()
        self.browser.wait_for("#connection")
        self.browser.send_message(text)
        self.browser.wait_for_text(".note", "I'll send this when we're back.")
        self.send_command(f"CONSUME {user} 42")
        self.chat.start()
        self.browser.wait_for("#gate")
        self.browser.wait_for_text(".note", self.KEPT)
        self.assertEqual(self.browser.text("#gate-words"), self.usage(user)["banner"])
        self.assertEqual(self.browser.user_messages(), [text])
        self.assertEqual(self.count(user), 100, "a refused message is not counted")

    def subscribe(self, user, text):
        self.browser.wait_for("#gate")
        self.assertEqual(self.browser.text("#subscribe"), "Subscribe")
        self.browser.find("#subscribe").click()
        self.browser.wait_for_answer(text)
        self.browser.wait_for("#composer")
        self.assertEqual(self.browser.user_messages(), [text])
        self.assertEqual(self.trial_count(user), 100)
        self.assertEqual(self.psql.number(f"select message_count from message_usage where user_id = '{user}' and billing_period <> 'trial'"), 1)
        self.assert_count(user, 101)
        self.assertEqual(self.conversation_count(user, text), 1)
        event = f"select effects -> 0 ->> 'kind' from headroom.billing_events where user_id = '{user}'"
        self.assertEqual(self.psql.value(event), "purchased")

    def test_a_blocked_message_is_sent_once_after_subscribing(self):
        user, text = self.trial_user(), "Don't lose this"
        self.block(user, text)
        self.browser.picture("chat-kept")
        self.assertEqual(self.browser.axe(), [])
        self.subscribe(user, text)
        self.browser.picture("chat-subscribed")

    def test_a_blocked_message_survives_a_reload_and_is_sent_once(self):
        user, text = self.trial_user(), "Keep this over a reload"
        self.block(user, text)
        self.browser.reload()
        self.browser.wait_for_text(".note", self.KEPT)
        self.subscribe(user, text)
        self.browser.reload()
        self.assertEqual(self.browser.user_messages(), [text], "and it is not sent again")
        self.assert_count(user, 101)

    def test_a_blocked_message_that_is_taken_back_is_not_sent(self):
        user, text = self.trial_user(), "On second thoughts"
        self.block(user, text)
        self.browser.find(".note button").click()
        self.assertEqual(self.browser.user_messages(), [])
        self.browser.find("#subscribe").click()
        self.browser.wait_for("#composer")
        self.assertEqual(self.browser.find("#text").get_attribute("value"), text)
        self.browser.write("Something else")
        self.browser.find("#send").click()
        self.browser.wait_for_answer("Something else")
        self.assertEqual(self.browser.user_messages(), ["Something else"])
        self.assert_count(user, 101)

class Stopping(FlowCase):
    """The model waits for the test, so that no answer is complete before the test stops it."""

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
        self.browser.send_message("Tell me a long story")
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
        self.assertEqual(self.conversation_count(user, "Tell me a long story"), 0)
        self.browser.all(".note button")[1].click()
        self.assertEqual(self.browser.find("#text").get_attribute("value"), "Tell me a long story")
        self.assertEqual(self.browser.user_messages(), [])

    def test_the_last_message_can_be_stopped(self):
        user = self.trial_user(99)
        self.browser.chat(user)
        self.browser.send_message("The last one")
        wait_until(self.browser.has_begun_to_answer, "the answer has begun")
        wait_until(lambda: self.browser.display == "blocked", "nothing is left")
        self.assertTrue(self.browser.is_shown("#stop"))
        self.browser.find("#stop").click()
        self.browser.wait_for_text(".note", "Stopped. I gave this message back.")
        self.browser.wait_for_text(".indicator .words", "1 of 100")
        self.assertTrue(self.browser.is_shown("#composer"))
        self.assert_count(user, 99)

    def test_a_message_whose_answer_was_complete_when_it_was_stopped_is_shown_as_answered(self):
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
        self.browser.send_message("Just in time")
        wait_until(lambda: self.browser.run("return window.isAnswered"), "it is answered")
        self.browser.find("#stop").click()
        self.browser.wait_for_answer("Just in time")
        self.assertEqual(self.browser.user_messages(), ["Just in time"])
        self.assertNotIn("gave", self.browser.text("#announcer"))
        self.browser.wait_for_text(".indicator .words", "41 of 100")
        self.assert_count(user, 59)

    def test_a_reload_in_the_middle_of_an_answer_sends_the_message_again_and_counts_it_once(self):
        user = self.trial_user()
        self.browser.chat(user)
        self.browser.send_message("Don't forget me")
        wait_until(lambda: len(self.browser.text(".message.assistant .text")) > 5, "the answer has begun")
        self.browser.reload()
        self.model.release()
        self.browser.wait_for_answer("Don't forget me")
        self.assertEqual(self.browser.user_messages(), ["Don't forget me"])
        self.assert_count(user, 59)


class Answers(http.server.BaseHTTPRequestHandler):
    """An API like OpenAI's that fails until the test repairs it."""

    is_repaired = False

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if not Answers.is_repaired:
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

    def test_a_model_that_fails_counts_nothing_and_the_message_can_be_sent_again(self):
        user = self.trial_user()
        self.browser.chat(user)
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        self.browser.send_message("Are you there?")
        self.browser.wait_for_text(".note", "Try again")
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        self.assert_count(user, 58)
        self.browser.picture("chat-failed")
        self.assertEqual(self.browser.axe(), [])
        Answers.is_repaired = True
        self.browser.find(".note button").click()
        self.assertEqual(self.browser.wait_for_answer("Are you there?"), "I am well again.")
        self.assertEqual(self.browser.user_messages(), ["Are you there?"])
        self.assert_count(user, 59)
        self.browser.wait_for_text(".indicator .words", "41 of 100")


@nightly("`Gate`, `Stopping` and `FailingModel` interrupt it")
class Unreachable(FlowCase):
    """Headroom or the chat's backend is unreachable for a while."""

    EXPECTED_COMPLAINTS = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE", "status of 502")
    LOST = "You're offline — your message will be sent when we're back"

    @classmethod
    def setUpClass(cls):
        # Reserved, so that no other process takes the ports while the service is stopped.
        line, http_port = processes.free_port(), processes.free_port()
        cls.MORE_FLAGS = ("--listen", f"127.0.0.1:{line}", "--http", f"127.0.0.1:{http_port}")
        super().setUpClass()

    def restart_service(self):
        type(self).service = self.serve(*self.MORE_FLAGS, env={"HEADROOM_REVENUECAT_AUTHORIZATION": AUTHORIZATION})

    def test_without_headroom_the_policy_allow_answers_uncounted(self):
        user = self.trial_user()
        self.browser.chat(user)
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        self.service.kill()
        self.browser.wait_for_text("#connection", "I couldn't check your usage right now — don't worry, you can keep chatting.")
        self.browser.picture("chat-without-headroom")
        self.assertEqual(self.browser.axe(), [])
        self.browser.send_message("Still here?")
        self.browser.wait_for_answer("Still here?")
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        # A page opened now has no usage, and sends all the same.
        self.browser.reload()
        self.assertFalse(self.browser.is_shown(".indicator"))
        self.browser.send_message("And now?")
        self.browser.wait_for_answer("And now?")
        self.restart_service()
        wait_until(lambda: not self.browser.is_shown("#connection"), "the connection is back")
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        self.assertEqual(self.count(user), 58, "the messages of the outage are not counted")
        self.browser.send_message("Counted again")
        self.browser.wait_for_answer("Counted again")
        self.assert_count(user, 59)

    def test_without_headroom_the_policy_deny_keeps_messages(self):
        chat = ChatBackend(self.service, "--pace-ms", "0", "--when-unreachable", "deny")
        other = ChatBrowser(chat)
        self.addCleanup(chat.stop)
        self.addCleanup(other.close)
        user = self.trial_user()
        other.chat(user)
        other.wait_for_text(".indicator .words", "42 of 100")
        self.service.kill()
        other.wait_for("#connection")
        other.send_message("Wait for me")
        other.wait_for_text(".note", "I'll send this as soon as I can look up your plan.")
        other.write("typing goes on")
        self.assertEqual(other.find("#text").get_attribute("value"), "typing goes on")
        self.restart_service()
        other.wait_for_answer("Wait for me")
        self.assertEqual(other.user_messages(), ["Wait for me"])
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
            self.browser.send_message(text)
            self.browser.wait_for_text("#conversation", text)
        self.assertEqual([note.split("\n")[0] for note in self.browser.texts(".note")], ["I'll send this when we're back."] * 2)
        self.browser.write("and a third, not sent")
        self.browser.picture("chat-offline")
        self.assertEqual(self.browser.axe(), [])
        self.chat.start()
        self.browser.wait_for_answer("Second")
        self.assertEqual(self.browser.user_messages(), ["First", "Second"])
        self.assertEqual([m["text"] for m in self.chat.state(user)["messages"] if m["role"] == "user"], ["First", "Second"])
        wait_until(lambda: not self.browser.is_shown("#connection"), "the connection is back")
        self.assert_count(user, 60)
        self.assertEqual(self.browser.find("#text").get_attribute("value"), "and a third, not sent")

    def held_chat(self):
        """A separate backend with a held model."""
        model = HeldModel()
        self.addCleanup(model.close)
        chat = ChatBackend(self.service, *model.flags)
        self.addCleanup(chat.stop)
        return chat, model

    def test_a_message_whose_answer_breaks_off_is_sent_again_and_counted_once(self):
        chat, model = self.held_chat()
        other = ChatBrowser(chat)
        self.addCleanup(other.close)
        user = self.trial_user()
        other.chat(user)
        other.send_message("Hold on to this")
        wait_until(lambda: len(other.text(".message.assistant .text")) > 5, "the answer has begun")
        chat.kill()
        other.wait_for_text("#connection", self.LOST)
        model.release()
        chat.start()
        other.wait_for_answer("Hold on to this")
        self.assertEqual(other.user_messages(), ["Hold on to this"])
        # The killed backend's hold expires later; one message is counted.
        self.assertEqual(self.count(user), 59)

    def test_a_purchase_without_an_answer_may_have_succeeded(self):
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

    def test_the_sheet_reports_details_that_cannot_be_loaded(self):
        chat = ChatBackend(self.service, *self.CHAT_FLAGS)
        self.addCleanup(chat.stop)
        user = self.trial_user()
        other = ChatBrowser(chat)
        self.addCleanup(other.close)
        self.service.kill()
        self.addCleanup(self.restart_service)
        wait_until(lambda: chat.state(user).get("usage") is None, "the chat has noticed that Headroom is unreachable")
        other.chat(user)
        other.find("#open-settings").click()
        other.wait_for_text("#plan-and-usage", "I couldn't load your subscription details right now.")
        other.find("#plan-and-usage").click()
        other.wait_for_text("#sheet .accessible", "I couldn't load your subscription details right now.")
        self.assertFalse(other.is_shown("#manage"))

    def test_a_purchase_fails_while_the_webhook_is_unreachable_and_works_afterwards(self):
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
