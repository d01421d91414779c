"""integrations/open-webui without Open WebUI, for each run of the tests: pydantic is replaced. open_webui.py has the real one."""

import asyncio
import re
import sys
from collections import namedtuple
from unittest import mock

from support.case import MID_MONTH, Case
from support.loading import load, module
from support.open_webui_server import FILTER
from support.waiting import TIMEOUT_SECONDS, wait_until_async

LIMIT = "We've had a lot of great conversations this month! Your next session refreshes on April 1."


PLAN = """
insert into headroom.plans (plan, label, cycle, allowance) values ('team', 'Team', 'monthly', 16);
insert into headroom.plan_limits (plan, kind, name, label, allowance, weight, fallback) values
    ('team', 'model', 'large', 'Large', 2, 5, 'small'), ('team', 'member', '*', null, 10, 1, null);
"""
Group = namedtuple("Group", "id name created_at")


class Values:
    """In place of pydantic's BaseModel."""

    def __init__(self, **given):
        vars(self).update({name: given.get(name, getattr(type(self), name)) for name in type(self).__annotations__})


class Filters(Case):
    CLOCK = MID_MONTH

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run(PLAN)
        cls.code = load(FILTER, module("pydantic", BaseModel=Values, Field=lambda default, **_: default))

    def filter(self, **valves):
        loaded = self.code.Filter()
        loaded.valves = loaded.Valves(url=f"headroom://127.0.0.1:{self.service.port}", timeout_seconds=TIMEOUT_SECONDS, **valves)
        return loaded

    def is_held(self, user):
        return " held=" in self.send_command(f"USAGE {user}")

    async def wait_until_settled(self, user):
        await wait_until_async(lambda: not self.is_held(user), "nothing is held")

    def test_of_200_concurrent_messages_at_a_limit_of_50_exactly_50_pass(self):
        user = self.subscriber(used=750)

        async def send(loaded, number):
            metadata = {"message_id": "the same for all"}
            try:
                await loaded.inlet({}, {"id": user}, metadata)
            except Exception as refusal:
                return str(refusal)
            for event in ({"selected_model_id": "a"}, {"choices": [{"delta": {"content": "a"}}]}, {"choices": []}):
                self.assertEqual(await loaded.stream(event, metadata), event)
            return await loaded.outlet("sent", metadata)

        async def send_all():
            loaded = self.filter()
            answers = await asyncio.gather(*(send(loaded, number) for number in range(200)))
            await self.wait_until_settled(user)
            return answers

        answers = asyncio.run(send_all())
        self.assertEqual((answers.count("sent"), answers.count(LIMIT), self.count(user)), (50, 150, 800))

    def test_a_message_whose_task_ends_without_an_answer_is_given_back(self):
        user = self.subscriber(used=700)

        async def send(loaded, events):
            metadata = {}
            await loaded.inlet({}, {"id": user}, metadata)
            self.assertTrue(self.is_held(user))
            for event in events:
                await loaded.stream(event, metadata)
            if events:  # Open WebUI calls it at the end of a stream, also after an error
                await loaded.outlet({}, metadata)

        async def send_all():
            loaded = self.filter()
            for events in ([], [{"error": {"message": "failed"}}], [{"type": "response.created"}, {"type": "response.failed"}]):
                await asyncio.create_task(send(loaded, events))
                await self.wait_until_settled(user)

        asyncio.run(send_all())
        self.assertEqual(self.count(user), 700)

    def test_background_tasks_and_answers_that_go_on_after_a_tool_are_not_counted(self):
        user = self.subscriber(used=800)
        for metadata in ({"task": "title_generation"}, {"tool_approval_resume": "tools"}):
            self.assertEqual(asyncio.run(self.filter().inlet({"a": 1}, {"id": user}, metadata)), {"a": 1})

    def test_the_text_is_in_the_language_of_the_page_or_of_the_browser(self):
        browser = type("Request", (), {"headers": {"accept-language": "pt-BR,pt;q=0.9"}})
        for metadata, request, found in (
            ({"variables": {"{{USER_LANGUAGE}}": "de-DE"}}, browser, "de-DE"), ({}, browser, "pt-BR"), ({}, None, None),
            ({"variables": {"{{USER_LANGUAGE}}": "no language"}}, None, None),
        ):  # fmt: skip
            self.assertEqual(self.code.language(metadata, request), found)

    def test_a_model_counts_under_the_id_of_its_base(self):
        made = {"id": "bot", "info": {"base_model_id": "openai/gpt 5"}}
        for body, model, name in (
            ({"model": "llama3.1:8b"}, {}, "llama3.1:8b"), ({"model": "bot"}, made, "openai/gpt_5"), ({}, {}, None),
            ({"model": "a"}, {"id": "a", "info": {"base_model_id": None}}, "a"), ({"model": "m" * 70}, {}, "m" * 64),
        ):  # fmt: skip
            self.assertEqual(self.code.model_name(body, model), name)

    def test_a_group_is_the_account_and_its_user_the_member(self):
        groups = [Group("3", "Team B", 3), Group("1", "Family", 2), Group("2", "Team A", 1)]

        class Groups:
            @staticmethod
            async def get_groups_by_member_id(user):
                return groups if user == "ann" else []

        def account(names, user="ann"):
            with mock.patch.dict(sys.modules, {"open_webui.models.groups": module("open_webui.models.groups", Groups=Groups)}):
                return asyncio.run(self.filter(group_accounts=names)._account(user))

        for names, found in (
            ("", ("ann", "")), ("Nobody", ("ann", "")), ("Family", ("1", "Family")), ("Team *, Family", ("2", "Team A")),
            ("Nobody,Family,*", ("1", "Family")), ("*", ("2", "Team A")),
        ):  # fmt: skip
            self.assertEqual(account(names), found, names)
        self.assertEqual(account("*", "bob"), ("bob", ""))

    def test_models_and_members_count_and_a_refusal_says_whose_limit_it_was(self):
        group = self.subscriber("team")
        ann, bob = self.user(), self.user()

        async def as_group(user):
            return group, "Family"

        async def send(user, model, **valves):
            loaded = self.filter(**valves)
            loaded._account, metadata = as_group, {}
            try:
                await loaded.inlet({"model": model}, {"id": user}, metadata)
            except Exception as refusal:
                return str(refusal)
            await loaded.outlet({}, metadata)
            await self.wait_until_settled(group)
            return "sent"

        async def send_all():
            self.assertEqual([await send(ann, "large") for _ in range(2)], ["sent", "sent"])
            later = "You've used your Large messages for now. They're back on April 1. We can go on with small meanwhile."
            self.assertEqual(await send(bob, "large"), f"Family: {later}")
            self.assertEqual(await send(ann, "small"), "You've used your share for now. It's back on April 1.")
            self.assertEqual(await send(bob, "large", count_models=False), "sent")
            self.assertEqual(self.count(group), 11)
            self.set_count(group, 16)
            self.assertEqual(await send(bob, "small"), f"Family: {LIMIT}")

        asyncio.run(send_all())

    def test_settings_are_those_of_the_page(self):
        page = FILTER.with_name("README.md").read_text()
        printed = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page, re.M))
        kinds = (self.code.Filter.Valves, self.code.Filter.UserValves)
        defaults = {name: value for kind in kinds for name, value in vars(kind()).items()}
        texts = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in defaults.items()}
        self.assertEqual({name: text and f"`{text}`" for name, text in texts.items()}, printed)

    def test_the_version_in_the_header_is_that_of_the_client(self):
        manifest = (FILTER.parents[2] / "clients" / "python" / "pyproject.toml").read_text()
        self.assertEqual(re.findall(r"^version: (.*)$", FILTER.read_text(), re.M), re.findall(r'^version = "(.*)"$', manifest, re.M))
