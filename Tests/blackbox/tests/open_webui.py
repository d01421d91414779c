"""integrations/open-webui in a real Open WebUI: what is counted, what is given back, and what a user sees in the chat."""

import unittest
from concurrent.futures import ThreadPoolExecutor

from support import processes
from support.case import MID_MONTH, Case
from support.model_stub import ModelStub
from support.open_webui_server import PROGRAM, OpenWebUI
from support.waiting import wait_until

LIMIT = "We've had a lot of great conversations this month! Your next session refreshes on April 1."
PLAN = """
insert into headroom.plans (plan, label, cycle, allowance) values ('family', 'Family', 'monthly', 100);
insert into headroom.plan_limits (plan, kind, name, label, allowance, fallback) values ('family', 'model', 'answers', 'Large', 2, 'fails');
"""
NOT_NOW = "I couldn't check your usage right now. Let's try again in a moment."


class Chats(Case):
    CLOCK = MID_MONTH

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = ModelStub()
        cls.server = OpenWebUI(cls.model.url)
        cls.server.install_filter()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.model.close()
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        self.model.gate.clear()
        self.server.set_valves(url=f"headroom://127.0.0.1:{self.service.port}", timeout_seconds=60, hold_seconds=3600)

    def account(self, limit):
        """A user of Open WebUI with this many messages left."""
        account = self.server.new_account()
        self.assertIn("+OK ", self.send_command(f"SETPLAN {account.id} paid"))
        self.assertIn("+ALLOWED ", self.send_command(f"CONSUME {account.id}"))
        self.set_count(account.id, 800 - limit)
        return account

    def wait_for_state(self, account, count, is_held=False):
        def state():
            return self.count(account.id), " held=" in self.send_command(f"USAGE {account.id}")

        wait_until(lambda: state() == (count, is_held), lambda: f"{count} messages; there are {state()}")

    def test_a_refused_user_sees_the_banner_in_place_of_an_answer(self):
        account = self.account(0)
        self.assertEqual(account.finished(*account.chat())["error"]["content"], LIMIT)
        self.wait_for_state(account, 800)

    def test_a_message_counts_once_and_its_title_and_tags_do_not(self):
        account = self.account(10)
        for number, stream in enumerate((True, False), start=791):
            reply = account.finished(*account.chat(stream=stream))
            self.assertIn("Hello!", str(reply))
            self.wait_for_state(account, number)
        wait_until(lambda: self.model.asked.count("answers") > 2, "a title is made")
        self.wait_for_state(account, 792)

    def test_the_banner_is_shown_above_the_answer_until_the_user_hides_it(self):
        account = self.account(10)
        shown = account.finished(*account.chat())["statusHistory"]
        self.assertEqual(shown[0]["description"], "Almost there — 9 messages left until April 1")
        account.session.post("/api/v1/functions/id/headroom/valves/user/update", json={"show_banner": False})
        self.assertFalse(account.finished(*account.chat()).get("statusHistory"))

    def test_a_message_that_the_model_fails_to_answer_is_given_back(self):
        account = self.account(1)
        for _ in range(2):
            self.assertIn("the model has failed", str(account.finished(*account.chat("fails"))["error"]))
            self.wait_for_state(account, 799)

    def test_stopping_an_answer_that_has_begun_does_not_give_the_message_back(self):
        account = self.account(5)
        chat, reply = account.chat("pauses")
        self.wait_for_state(account, 796)
        account.press_stop(chat)
        account.finished(chat, reply)
        self.wait_for_state(account, 796)

    def test_stopping_before_the_answer_begins_gives_the_message_back(self):
        account = self.account(5)
        chat, _ = account.chat("waits")
        self.wait_for_state(account, 795, is_held=True)
        account.press_stop(chat)
        self.wait_for_state(account, 795)

    def test_of_20_concurrent_requests_over_the_api_at_a_limit_of_5_exactly_5_pass(self):
        account = self.account(5)
        with ThreadPoolExecutor(20) as threads:
            answers = list(threads.map(lambda number: account.request(stream=number % 2 == 0), range(20)))
        refused = [each for each in answers if not each.is_success]
        self.assertEqual((len(refused), {each.json()["detail"] for each in refused}), (15, {LIMIT}))
        self.wait_for_state(account, 800)

    def test_requests_over_the_api_count_as_chats_or_the_page_closes_their_route(self):
        account = self.account(0)
        # No other test asks this model.
        body = {"model": "breaks", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 9}
        for path in ("/api/chat/completions", "/api/v1/chat/completions"):
            self.assertIn(LIMIT, account.session.post(path, json=body).text)
        self.assertNotIn("breaks", self.model.asked)
        # These are closed in front of Open WebUI. If one fails, Open WebUI has changed, and so should the page.
        merged = {"model": "breaks", "prompt": "Hello", "responses": ["Hello"]}
        closed = (("/openai/chat/completions", body), ("/openai/responses", body), ("/api/v1/tasks/moa/completions", merged))
        for count, (path, each) in enumerate(closed, start=1):
            account.session.post(path, json=each)
            self.assertEqual(self.model.asked.count("breaks"), count, path)

    def test_the_members_of_a_group_share_its_allowance_and_that_of_a_model(self):
        self.psql.run(PLAN)
        ann, bob = self.server.new_account(), self.server.new_account()
        group = self.server.new_group("Family", ann, bob)
        self.assertIn("+OK ", self.send_command(f"SETPLAN {group} family"))
        self.server.set_valves(url=f"headroom://127.0.0.1:{self.service.port}", timeout_seconds=60, group_accounts="Others, Fam*")
        for account in (ann, bob):
            self.assertIn("Hello!", str(account.finished(*account.chat())))
        wait_until(lambda: self.count(group) == 2, "both count for the group")
        later = "Family: You've used your Large messages for now. They're back on April 1. We can go on with fails meanwhile."
        self.assertEqual(ann.finished(*ann.chat())["error"]["content"], later)
        self.assertEqual((self.count(ann.id), self.count(group)), (0, 2))

    def test_while_headroom_is_away_the_valve_decides(self):
        away = {"url": f"headroom://127.0.0.1:{processes.free_port()}", "timeout_seconds": 0.5}
        account = self.account(5)
        self.server.set_valves(**away)
        self.assertEqual(account.finished(*account.chat())["error"]["content"], NOT_NOW)
        self.server.set_valves(**away, when_away="allow")
        self.assertIn("Hello!", str(account.finished(*account.chat())))


def load_tests(loader, tests, pattern):
    """Only where Open WebUI is installed, which needs 7 GB: by script/integrations."""
    return tests if PROGRAM.exists() else unittest.TestSuite()
