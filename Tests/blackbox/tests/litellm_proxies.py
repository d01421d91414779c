"""integrations/litellm in a real proxy of LiteLLM: what is counted, what is given back, and what a refused user sees."""

import asyncio
import contextlib
import json
import unittest
import uuid

from support import processes
from support.case import MID_MONTH, Case
from support.litellm_proxy import EXAMPLE, MASTER_KEY, PYTHON, LiteLLM, message
from support.litellm_proxy import config as stub_config
from support.model_stub import ModelStub
from support.printed import blocks, pattern
from support.waiting import TIMEOUT_SECONDS, wait_until, wait_until_async

NAMESPACE = "0b1f2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d"
LIMIT = "We've had a lot of great conversations this month! Your next session refreshes on April 1."
NOT_NOW = "I couldn't check your usage right now. Let's try again in a moment."
COMPLETIONS = "/v1/chat/completions"
PLAN = """
insert into headroom.plans (plan, label, cycle, allowance) values ('models', 'Models', 'monthly', 100);
insert into headroom.plan_limits (plan, kind, name, label, allowance, weight, fallback) values
    ('models', 'model', 'answers', 'Large', 2, 5, 'pauses'), ('models', 'member', '*', null, 12, 1, null);
"""
WEBSOCKET = """
import contextlib, sys
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
with connect(sys.argv[1], additional_headers={"Authorization": f"Bearer {sys.argv[2]}"}, proxy=None) as socket:
    with contextlib.suppress(ConnectionClosed):
        socket.send(sys.argv[3])
    print(socket.recv(timeout=600))
"""


class LiteLLMProxies(Case):
    """A proxy, the stub's models behind it, and the service. One class, so that LiteLLM is imported once."""

    CLOCK = MID_MONTH
    FLAGS = ("--user-namespace", NAMESPACE)

    @classmethod
    def setUpClass(cls):
        cls.litellm = LiteLLM()
        super().setUpClass()
        cls.psql.run(PLAN)
        cls.model = ModelStub()
        cls.proxy = cls.new_proxy()

    @classmethod
    def tearDownClass(cls):
        cls.litellm.stop()
        cls.model.close()
        super().tearDownClass()

    @classmethod
    def new_proxy(cls, config=None, **settings):
        settings = {"url": f"headroom://127.0.0.1:{cls.service.port}", "count_by": "user", **settings}
        return cls.litellm.proxy(config or stub_config(cls.model.url), **settings)

    def use(self, config=None, **settings):
        """A proxy of the test's own."""
        self.proxy = self.new_proxy(config, **settings)
        self.addCleanup(self.proxy.stop)

    def setUp(self):
        super().setUp()
        self.model.gate.clear()
        self.model.asked.clear()

    def limited_user(self, limit):
        """A user with this many messages left."""
        return self.subscriber(used=800 - limit)

    def state(self, user):
        """Messages counted, and whether some are held."""
        return self.count(user), " held=" in self.send_command(f"USAGE {user}")

    def wait_for_state(self, user, count, is_held=False):
        wait_until(lambda: self.state(user) == (count, is_held), lambda: f"{count} messages; there are {self.state(user)}")

    def post(self, body, path=COMPLETIONS, **options):
        async def post():
            async with self.proxy.client() as client:
                return await client.post(path, json=body, **options)

        return asyncio.run(post())

    def streamed(self, body):
        """The text of a streamed answer, and the error that ended it."""
        response = self.post({**body, "stream": True})
        events = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
        deltas = [choice["delta"].get("content") or "" for event in events for choice in event.get("choices", [])]
        return "".join(deltas), next((event["error"] for event in events if "error" in event), None)

    # Limits ---------------------------------------------------------------------------------------------------------------------

    def test_a_refusal_has_the_banner_and_says_when_to_come_back(self):
        user = self.limited_user(0)
        for path, body in ((COMPLETIONS, message(user)), (COMPLETIONS, message(user, stream=True))):
            answer = self.post(body, path)
            seconds = (16 * 24 + 14) * 3600 + 1800
            self.assertEqual((answer.status_code, answer.headers["retry-after"]), (429, str(seconds)))
            self.assertEqual(answer.headers["x-should-retry"], "false", "OpenAI's libraries would send it again")
            error = answer.json()["error"]
            self.assertEqual((error["message"], error["code"]), (LIMIT, "429"))
            details = error["provider_specific_fields"]
            self.assertEqual((details["reason"], details["retry_after"]), ("limit_reached", seconds))
            self.assertEqual((details["resets_at"], details["used"], details["limit"]), ("2026-04-01T00:00:00Z", 800, 800))
        self.assertEqual(self.model.asked, [])

    def test_a_refusal_is_in_the_language_of_the_request(self):
        user = self.limited_user(0)
        for accepted, beginning in (("de-DE,de;q=0.9,en;q=0.5", "Wir haben"), ("en;q=0.1, fr", "On a"), ("*, nonsense=1", "We've")):
            answer = self.post(message(user), headers={"Accept-Language": accepted})
            self.assertIn(beginning, answer.json()["error"]["message"])

    def test_an_answer_counts_once_streamed_or_not(self):
        user = self.limited_user(10)
        self.assertEqual(self.post(message(user)).json()["choices"][0]["message"]["content"], "Hello!")
        self.wait_for_state(user, 791)
        self.assertEqual(self.streamed(message(user)), ("Hello!", None))
        self.wait_for_state(user, 792)

    def test_what_is_no_message_is_not_counted(self):
        user = self.limited_user(0)
        self.assertNotEqual(self.post({"model": "answers", "input": "Hello", "user": user}, "/v1/embeddings").status_code, 429)
        self.assertEqual(self.state(user), (800, False))

    def test_ids_of_requests_that_are_equal_count_each(self):
        user = self.limited_user(10)

        async def send():
            async with self.proxy.client() as client:
                same = {"x-litellm-call-id": "the-same"}
                return await asyncio.gather(*(client.post(COMPLETIONS, json=message(user), headers=same) for _ in range(12)))

        self.assertEqual(sorted(answer.status_code for answer in asyncio.run(send())), [200] * 10 + [429] * 2)
        self.assertEqual(len(self.model.asked), 10, "a refused message does not reach the model")
        self.wait_for_state(user, 800)

    def test_users_may_have_names(self):
        name = f"ann@example.com-{uuid.uuid4()}"
        self.assertEqual(self.post(message(name)).status_code, 200)
        self.wait_for_state(str(uuid.uuid5(uuid.UUID(NAMESPACE), name)), 1)

    def test_a_request_without_a_user_and_one_with_an_impossible_user_are_refused(self):
        for user, text in ((None, "has no user"), ("an impossible user", "user must be")):
            answer = self.post(message(user))
            self.assertEqual(answer.status_code, 400)
            self.assertIn(text, answer.json()["error"]["message"])
        self.assertEqual(self.model.asked, [])

    # Models and members ---------------------------------------------------------------------------------------------------------

    def error(self, answer, status=429):
        self.assertEqual(answer.status_code, status, answer.text)
        return answer.json()["error"]["provider_specific_fields"]

    def test_a_model_that_is_used_up_is_refused_with_the_one_to_go_on_with(self):
        user = self.subscriber("models")
        for count in (5, 10):
            self.assertEqual(self.post(message(user)).status_code, 200)
            self.wait_for_state(user, count)
        answer = self.post(message(user))
        error = self.error(answer)
        self.assertEqual((error["reason"], error["limit_of"], error["fallback"]), ("model_limit_reached", "model", "pauses"))
        self.assertEqual((error["model"], error["model_used"], error["model_limit"], error["used"]), ("answers", 2, 2, 10))
        self.assertEqual(error["resets_at"], "2026-04-01T00:00:00Z")
        banner = "You've used your Large messages for now. They're back on April 1. We can go on with pauses meanwhile."
        self.assertEqual(answer.json()["error"]["message"], banner)
        self.assertEqual(self.post(message(user, error["fallback"])).status_code, 200)
        self.wait_for_state(user, 11)

    def test_a_model_counts_by_its_public_name_whatever_the_client_calls_it(self):
        user = self.subscriber("models")
        for count, name in ((5, "also-answers"), (10, "openai/answers")):
            self.assertEqual(self.post(message(user, name)).status_code, 200)
            self.wait_for_state(user, count)
        self.model.asked.clear()
        for name in ("also-answers", "openai/answers", "answers"):
            self.assertEqual(self.error(self.post(message(user, name)))["limit_of"], "model", name)
        self.assertEqual((self.model.asked, self.state(user)), ([], (10, False)))

    def test_a_fallback_of_the_proxy_counts_once_and_for_the_model_that_answers(self):
        user = self.subscriber("models")
        pretended = {"deployment_model_name": "falls-back", "is_silent_experiment": True}
        for count, stream in ((5, False), (10, True)):
            body = message(user, "falls-back", stream=stream, metadata=pretended, litellm_metadata=pretended)
            self.assertEqual(self.post(body).status_code, 200)
            self.wait_for_state(user, count)
        self.model.asked.clear()
        self.assertEqual(self.post(message(user, "falls-back")).status_code, 500, "the model's own error: its fallback is used up")
        self.assertEqual((set(self.model.asked), self.state(user)), ({"fails"}, (10, False)))
        # A fallback that the client names is no way around a limit, and one to a model with messages left goes on.
        self.assertEqual(self.post(message(user, "fails", fallbacks=["answers"])).status_code, 500)
        self.assertEqual(self.post(message(user, "fails", fallbacks=["answers", "pauses"])).status_code, 200)
        self.wait_for_state(user, 11)
        # No deployment rests because a user has no messages left.
        self.assertEqual(self.post(message(self.subscriber("models"), "falls-back")).status_code, 200)

    def test_a_request_to_several_models_counts_for_each_or_for_none(self):
        user = self.subscriber("models")
        body = {**message(user), "model": "answers,pauses"}
        for count in (6, 12):
            self.assertEqual(self.post(body).status_code, 200)
            self.wait_for_state(user, count)
        self.assertEqual(self.error(self.post({**body, "model": "pauses,answers"}))["limit_of"], "model")
        self.assertEqual(self.state(user), (12, False))

    def test_a_member_has_a_share_of_the_account(self):
        self.use(member="key")
        account = self.subscriber("models")
        for _ in range(2):
            self.assertEqual(self.post(message(account)).status_code, 200)
        for _ in range(2):
            self.assertEqual(self.post(message(account, "pauses")).status_code, 200)
        error = self.error(self.post(message(account, "pauses")))
        self.assertEqual((error["reason"], error["limit_of"]), ("member_limit_reached", "member"))
        self.assertEqual((error["member_used"], error["member_limit"]), (12, 12))

    def test_models_may_be_left_out(self):
        self.use(model="none")
        user = self.subscriber("models")
        for count in (1, 2, 3):
            self.assertEqual(self.post(message(user)).status_code, 200)
            self.wait_for_state(user, count)

    # Failures -------------------------------------------------------------------------------------------------------------------

    def test_a_message_that_the_model_fails_to_answer_is_given_back(self):
        user = self.limited_user(1)
        for _ in range(3):
            self.assertEqual(self.post(message(user, "fails")).status_code, 500)
            self.wait_for_state(user, 799)
        self.assertEqual(self.post(message(user)).status_code, 200)
        self.wait_for_state(user, 800)

    def test_retries_and_a_fallback_count_one_message(self):
        user = self.limited_user(1)
        self.assertEqual(self.post(message(user, "falls-back")).status_code, 200)
        self.assertGreater(len(self.model.asked), 2, "a retry, and the fallback")
        self.wait_for_state(user, 800)

    def test_a_stream_that_breaks_off_is_given_back(self):
        user = self.limited_user(1)
        text, error = self.streamed(message(user, "breaks"))
        self.assertTrue(error, text)
        self.wait_for_state(user, 799)

    def test_a_client_that_hangs_up_in_the_middle_of_an_answer_has_sent_its_message(self):
        user = self.limited_user(5)
        self.hang_up(message(user, "pauses", stream=True), after_the_first_word=True)
        self.wait_for_state(user, 796)

    def test_a_client_that_hangs_up_before_the_answer_begins_has_sent_its_message_too(self):
        """LiteLLM goes on asking the model, and the message counts when it answers."""
        user = self.limited_user(5)
        self.hang_up(message(user, "waits", stream=True), after_the_first_word=False)
        self.assertEqual(self.state(user), (795, True))
        self.model.gate.set()
        self.wait_for_state(user, 796)

    def hang_up(self, body, after_the_first_word):
        async def send():
            async with self.proxy.client() as client, client.stream("POST", COMPLETIONS, json=body) as response:
                async for line in response.aiter_lines():
                    if "Hel" in line:
                        return

        async def hang_up():
            request = asyncio.create_task(send())
            if not after_the_first_word:
                await wait_until_async(lambda: self.model.asked, "the model is asked")
                request.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait_for(request, TIMEOUT_SECONDS)
            self.assertTrue(self.state(body["user"])[1] or after_the_first_word, "it is held while the model is asked")

        asyncio.run(hang_up())

    # The page -------------------------------------------------------------------------------------------------------------------

    def test_the_page_leads_to_the_first_refusal(self):
        self.use(EXAMPLE.read_text())
        page = blocks("integrations/litellm/README.md")
        send = next(block.text for block in page if block.text.startswith("for number"))
        printed = next(block.text for block in page if block.language == "text")
        self.assertIn(":4000/", send)
        output = processes.run(["bash", "-c", send.replace("http://127.0.0.1:4000", self.proxy.url)])
        self.assertRegex(output.strip(), "^" + pattern(printed.strip()) + "$")

    def test_each_api_counts(self):
        self.use(EXAMPLE.read_text())
        user = self.limited_user(10)
        for count, (path, body) in enumerate(
            (
                ("/v1/completions", {"prompt": "Hello"}),
                ("/v1/completions", {"prompt": "Hello", "stream": True}),
                ("/v1/responses", {"input": "Hello"}),
                ("/v1beta/interactions", {"input": "Hello"}),
                ("/v1/messages", {"messages": message(None)["messages"], "max_tokens": 9}),
                ("/v1beta/models/example:generateContent", {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}),
            ),
            start=791,
        ):
            with self.subTest(path=path):
                answer = self.post({"model": "example", "user": user, "metadata": {"user_id": user}, **body}, path)
                self.assertEqual(answer.status_code, 200, answer.text)
                self.wait_for_state(user, count)

    def test_what_may_be_any_number_of_messages_is_refused(self):
        user = self.limited_user(10)
        passed = f"general_settings:\n  pass_through_endpoints:\n    - {{path: /passed, target: {self.model.url}}}\n"
        self.use(stub_config(self.model.url).replace("general_settings:\n", passed))
        answer = self.post(message(user), "/passed")
        self.assertEqual((answer.status_code, "HEADROOM_UNCOUNTED" in answer.text), (403, True), answer.text)
        # Without a database of its own, LiteLLM answers any error of a batch with status 500.
        batch = {"input_file_id": "file-1", "endpoint": "/v1/chat/completions", "completion_window": "24h", "user": user}
        self.assertIn(self.post(batch, "/v1/batches").status_code, (403, 500))
        with open(self.proxy.log, errors="replace") as log:
            self.assertIn("cannot count acreate_batch", log.read())
        for path in ("/v1/responses?model=answers", "/v1/realtime?model=answers"):
            self.assertIn("HEADROOM_UNCOUNTED", self.first_event(path))
        self.assertEqual((self.model.asked, self.state(user)), ([], (790, False)))

    def first_event(self, path):
        """What LiteLLM sends over a WebSocket after a message of the client, which is the one in LiteLLM's own environment."""
        sent = json.dumps({"type": "response.create", "model": "answers", "input": "Hello"})
        return processes.run([str(PYTHON), "-c", WEBSOCKET, self.proxy.url.replace("http", "ws") + path, MASTER_KEY, sent])

    def test_a_request_to_several_models_counts_each(self):
        user = self.limited_user(5)
        body = {**message(user), "model": "answers,answers", "messages": [message(user)["messages"]] * 2}
        self.assertEqual(self.post(body).status_code, 200)
        self.wait_for_state(user, 799)
        self.assertEqual(self.post(body).status_code, 429)
        self.wait_for_state(user, 799)
        self.assertEqual(len(self.model.asked), 4)

    # Settings -------------------------------------------------------------------------------------------------------------------

    def test_messages_may_count_by_key(self):
        self.use(count_by="key")
        self.assertEqual(self.post(message("somebody")).status_code, 200)
        # LiteLLM's name of the master key; virtual keys need a database of LiteLLM's own.
        self.wait_for_state(str(uuid.uuid5(uuid.UUID(NAMESPACE), "litellm_proxy_master_key")), 1)

    def test_an_answer_from_litellms_cache_counts(self):
        with_cache = "litellm_settings:\n  cache: true\n  cache_params: {type: local}\n"
        self.use(stub_config(self.model.url).replace("litellm_settings:\n", with_cache))
        user = self.limited_user(10)
        for count, stream in ((791, False), (792, False), (793, True), (794, True)):
            self.assertEqual(self.post(message(user, stream=stream)).status_code, 200)
            self.wait_for_state(user, count)
        self.assertLess(len(self.model.asked), 4, "some come from the cache")

    def test_an_answer_may_count_its_tokens(self):
        self.use(count="tokens", hold_tokens=100)
        user = self.limited_user(300)
        self.post(message(user))
        self.wait_for_state(user, 512)
        self.streamed(message(user, stream_options={"include_usage": True}))
        self.wait_for_state(user, 524)
        self.hang_up(message(user, "pauses", stream=True), after_the_first_word=True)
        self.wait_for_state(user, 624)
        answer = self.post(message(self.limited_user(99)))
        self.assertEqual((answer.status_code, answer.json()["error"]["provider_specific_fields"]["reason"]), (429, "exceeds_remaining"))

    def test_an_answer_that_outlasts_its_hold_counts(self):
        self.use(hold_seconds=60)
        user = self.limited_user(5)

        async def send():
            async with self.proxy.client() as client:
                request = asyncio.create_task(client.post(COMPLETIONS, json=message(user, "waits", stream=True)))
                await wait_until_async(lambda: self.state(user)[1], "it is held")
                self.set_clock("2026-03-15T09:32:00Z")
                self.model.gate.set()
                return await request

        self.assertEqual(asyncio.run(send()).status_code, 200)
        self.wait_for_state(user, 796)

    def test_while_headroom_is_away_messages_are_refused_kindly(self):
        self.use(url=f"headroom://127.0.0.1:{processes.free_port()}", timeout_seconds=0.5)
        answer = self.post(message(self.user()))
        self.assertEqual((answer.status_code, answer.json()["error"]["message"]), (503, NOT_NOW))
        self.assertEqual(self.model.asked, [])

    def test_while_headroom_is_away_messages_may_be_let_through(self):
        self.use(url=f"headroom://127.0.0.1:{processes.free_port()}", timeout_seconds=0.5, when_away="allow")
        self.assertEqual(self.post(message(self.user())).status_code, 200)
        self.assertEqual(self.streamed(message(self.user())), ("Hello!", None))


def load_tests(loader, tests, pattern):
    """Only where LiteLLM is installed, which takes longer than these tests: by script/integrations."""
    return tests if PYTHON.exists() else unittest.TestSuite()
