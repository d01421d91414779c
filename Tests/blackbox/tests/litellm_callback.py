"""integrations/litellm without LiteLLM, for each run of the tests: two of its names are replaced. litellm_proxies.py has the real one."""

import asyncio
import re
from dataclasses import replace
from datetime import datetime, timezone

from support.case import Case
from support.litellm_proxy import CALLBACK
from support.loading import load, module
from support.waiting import TIMEOUT_SECONDS, wait_until_async
from support.wire import Answer

PLAN = """
insert into headroom.plans (plan, label, cycle, allowance) values ('models', 'Models', 'monthly', 100);
insert into headroom.plan_limits (plan, kind, name, allowance, weight) values ('models', 'model', 'large', 2, 5);
"""
NOON = datetime(2026, 3, 15, 12, tzinfo=timezone.utc)


class Refused(Exception):
    def __init__(self, status_code, detail=None, headers=None):
        self.status_code, self.detail, self.headers = status_code, detail, headers


def load_callback():
    return load(
        CALLBACK,
        module("fastapi", HTTPException=Refused),
        module("litellm"),
        module("litellm.integrations"),
        module("litellm.integrations.custom_logger", CustomLogger=object),
    )


class CallbackCase(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.code = load_callback()

    def limit(self, **settings):
        url = f"headroom://127.0.0.1:{self.service.port}"
        return self.code.HeadroomLimit(self.code.Settings(url=url, count_by="user", timeout_seconds=TIMEOUT_SECONDS, **settings))


class Callback(CallbackCase):
    SHARED = True

    def test_of_200_concurrent_messages_at_a_limit_of_50_exactly_50_pass(self):
        user = self.subscriber(used=750)

        async def send(limit, number):
            data = {"user": user, "litellm_call_id": "the same for all"}
            try:
                await limit.async_pre_call_hook(None, None, data, "acompletion")
            except Refused as refused:
                return refused.status_code
            await limit.async_post_call_success_hook(data, None, None)
            await limit.async_post_call_failure_hook(data, Exception("a later hook"), None)
            return 200

        async def send_all():
            limit = self.limit()
            return await asyncio.gather(*(send(limit, number) for number in range(200)))

        statuses = asyncio.run(send_all())
        self.assertEqual((statuses.count(200), statuses.count(429)), (50, 150))
        self.assertEqual(self.count(user), 800)
        self.assertNotIn(" held=", self.send_command(f"USAGE {user}"))

    def test_a_message_that_another_callback_refuses_is_given_back(self):
        user = self.subscriber(used=700)

        async def send():
            limit, data = self.limit(), {"user": user}
            await limit.async_pre_call_hook(None, None, data, "acompletion")
            self.assertIn(" held=1 ", self.send_command(f"USAGE {user}"))
            await limit.async_post_call_failure_hook(data, Exception("refused"), None)

        asyncio.run(send())
        self.assertEqual(self.count(user), 700)
        self.assertNotIn(" held=", self.send_command(f"USAGE {user}"))

    def test_an_answer_that_is_read_for_longer_than_its_hold_is_counted(self):
        user = self.subscriber(used=700)

        async def read_slowly(limit, data):
            async def chunks():
                for number in range(3):
                    yield {"number": number}

            async for chunk in limit.async_post_call_streaming_iterator_hook(None, chunks(), data):
                if chunk["number"] == 0:
                    (held,) = limit._held.values()
                    self.assertTrue(held.expiry.cancelled(), "nothing else ends the hold while the client reads")

        async def send():
            limit, data = self.limit(), {"user": user}
            await limit.async_pre_call_hook(None, None, data, "acompletion")
            await read_slowly(limit, data)
            self.assertEqual(limit._held, {})

        asyncio.run(send())
        self.assertEqual(self.count(user), 701)

    def test_a_message_whose_end_litellm_does_not_tell_counts_when_its_hold_is_over(self):
        user = self.subscriber(used=700)

        async def send():
            limit = self.limit(hold_seconds=1)
            await limit.async_pre_call_hook(None, None, {"user": user}, "a_call_type_of_a_later_version")
            await wait_until_async(lambda: self.count(user) == 701 and not limit._held, "it is counted")

        asyncio.run(send())

    def test_call_types_count_unless_they_are_named(self):
        user = self.subscriber(used=800)

        def outcome(call_type, **settings):
            try:
                return asyncio.run(self.limit(**settings).async_pre_call_hook(None, None, {"user": user}, call_type))
            except Refused as refused:
                return refused.status_code

        for name in ("acompletion", "acreate_interaction", "acompact_responses", "asend_message", "new_in_a_later_version"):
            self.assertEqual(outcome(name), 429, name)
            self.assertEqual(outcome(name, uncounted=f"x, {name}"), None, name)
        for name in ("embedding", "aembedding", "moderation", "acreate_file", "call_mcp_tool", "aget_responses"):
            self.assertEqual(outcome(name), None, name)
        for name in ("_aresponses_websocket", "_arealtime", "acreate_batch", "pass_through_endpoint", "allm_passthrough_route"):
            self.assertEqual(outcome(name), 403, name)
            self.assertEqual(outcome(name, uncounted=name), None, name)

    def test_a_request_for_several_answers_counts_as_many(self):
        for data, count in (
            ({"model": "a", "messages": [{"role": "user"}, {"role": "assistant"}]}, 1), ({"model": "a,b", "messages": [{}]}, 2),
            ({"model": "a, b", "messages": [[{}], [{}], [{}]]}, 6), ({"model": "a", "prompt": ["x", "y"]}, 2), ({"prompt": "x,y"}, 1),
            ({"prompt": [1, 2, 3]}, 1), ({"prompt": [[1, 2], [3]]}, 2), ({"model": "a,b", "fastest_response": True}, 2), ({}, 1),
            ({"messages": []}, 1), ({"messages": [{}, [{}]]}, 2),
        ):  # fmt: skip
            self.assertEqual(sum(self.code.asked(data).values()), count, data)
        self.assertEqual(self.code.asked({"model": "a, b,a", "messages": [[{}], [{}]]}), {"a": 4, "b": 2})
        user = self.subscriber(used=798)

        async def send(data):
            limit = self.limit()
            await limit.async_pre_call_hook(None, None, {"user": user, **data}, "acompletion")

        with self.assertRaises(Refused):
            asyncio.run(send({"model": "a,b,c"}))

    def test_a_key_that_is_no_uuid_is_an_error_of_the_operator_and_the_log_names_the_setting(self):
        key = type("Key", (), {"api_key": "0123456789abcdef" * 4})

        async def send():
            url = f"headroom://127.0.0.1:{self.service.port}"
            limit = self.code.HeadroomLimit(self.code.Settings(url=url, timeout_seconds=TIMEOUT_SECONDS))
            await limit.async_pre_call_hook(key, None, {}, "acompletion")

        with self.assertLogs("headroom_limit", "ERROR") as logged, self.assertRaises(Refused) as raised:
            asyncio.run(send())
        self.assertEqual(raised.exception.status_code, 500)
        self.assertIn("set the service's user-namespace", "\n".join(logged.output))

    def test_a_request_that_names_no_member_is_refused_where_members_are_counted(self):
        team, ann = self.subscriber(used=0), self.user()

        async def send(**key):
            limit = self.limit(member="owner", model="none")
            await limit.async_pre_call_hook(type("Key", (), key), None, {"user": team, "model": "a"}, "acompletion")
            return [held.member for held in limit._held.values()]

        self.assertEqual(asyncio.run(send(user_id=ann)), [ann])
        with self.assertRaises(Refused) as raised:
            asyncio.run(send())
        self.assertEqual(raised.exception.status_code, 400)
        self.assertIn("no owner to count it for (HEADROOM_MEMBER)", raised.exception.detail)

    def test_the_model_that_litellm_asks_next_is_that_of_the_deployment(self):
        for bucket, name in (
            ({"deployment_model_name": "large", "model_group": "best"}, "large"), ({"model_group": "best"}, None), ({}, None),
            ({"deployment_model_name": "openai/*", "model_group": "openai/gpt 5"}, "openai/gpt_5"),
            ({"deployment_model_name": "model_name_1_2", "model_info": {"team_public_model_name": "large"}}, "large"),
        ):  # fmt: skip
            self.assertEqual(self.code.chosen(bucket), name, bucket)
        names = {"gpt-5.1:beta/x@y_z": "gpt-5.1:beta/x@y_z", "GPT 5 (fast)": "GPT_5__fast_", "m" * 70: "m" * 64, "": None}
        for name, sent in names.items():
            self.assertEqual(self.code.model_name(name), sent)

    def test_a_refusal_says_whose_limit_it_was(self):
        answer = self.code.Answer("blocked", "ann", reason="model_limit_reached", banner="Later.", model="large", fallback="small")
        for given, expected in (
            ({"model_resets": NOON}, {"limit_of": "model", "model": "large", "fallback": "small", "resets_at": "2026-03-15T12:00:00Z"}),
            ({"reason": "member_limit_reached", "member": "b", "resets": NOON}, {"limit_of": "member", "member": "b", "resets_at": None}),
            ({"reason": "window_limit_reached", "window_resets": NOON}, {"limit_of": "plan", "resets_at": "2026-03-15T12:00:00Z"}),
            ({"reason": "limit_reached", "resets": NOON}, {"limit_of": "plan", "resets_at": "2026-03-15T12:00:00Z"}),
            ({"reason": None, "degraded": True}, {"limit_of": None}),
        ):  # fmt: skip
            detail = self.code.refused(replace(answer, **given)).detail
            self.assertEqual({name: detail.get(name) for name in expected}, expected)

    def test_settings_are_those_of_the_page(self):
        page = CALLBACK.with_name("README.md").read_text()
        printed = dict(re.findall(r"^\| `(HEADROOM_\w+)` \| (.*?) \|", page, re.M))
        defaults = {f"HEADROOM_{name.upper()}": value for name, value in vars(self.code.Settings()).items()}
        self.assertEqual({name: f"`{value:g}`" if isinstance(value, float) else f"`{value}`" for name, value in defaults.items() if value},
                         {name: value for name, value in printed.items() if value})  # fmt: skip
        self.assertEqual(set(printed), set(defaults))
        for name, values in self.code.CHOICES.items():
            for value in values:
                self.assertIn(f"`{value}`", page, name)

    def test_settings_are_read_from_the_environment_and_checked(self):
        settings = self.code.Settings.read({"HEADROOM_COUNT_BY": "team,owner", "HEADROOM_HOLD_SECONDS": "90", "HEADROOM_TOKEN": ""})
        self.assertEqual((settings.count_by, settings.hold_seconds, settings.token), ("team,owner", 90, ""))
        for value in ("perhaps", "refuse,allow"):
            with self.assertRaisesRegex(ValueError, f"HEADROOM_WHEN_AWAY is '{value}'; it can be refuse, allow"):
                self.code.Settings.read({"HEADROOM_WHEN_AWAY": value})
        with self.assertRaisesRegex(ValueError, "HEADROOM_COUNT_BY is 'team,nobody'"):
            self.code.Settings.read({"HEADROOM_COUNT_BY": "team,nobody"})

    def test_a_key_without_a_team_may_count_for_its_owner(self):
        limit = self.code.HeadroomLimit(self.code.Settings(count_by="team,owner"))
        key = type("Key", (), {"user_id": "ann", "team_id": None})
        self.assertEqual(limit._id("team,owner", "COUNT_BY", key, {}), "ann")
        key.team_id = "sales"
        self.assertEqual(limit._id("team,owner", "COUNT_BY", key, {}), "sales")

    def test_the_most_preferred_language_is_taken(self):
        for accepted, language in (
            ("de-DE,de;q=0.9,en;q=0.5", "de-DE"), ("en;q=0.1, fr", "fr"), ("*", None), ("", None), ("fr;q=0", None), ("x, ;q=, é", None),
        ):  # fmt: skip
            self.assertEqual(self.code.preferred_language(accepted), language)

    def test_the_tokens_of_an_answer_are_read_by_the_names_of_each_provider(self):
        for usage, total in (
            ({"total_tokens": 12}, 12), ({"input_tokens": 7, "output_tokens": 5}, 12), ({"input_tokens": 7}, None), (None, None),
        ):  # fmt: skip
            self.assertEqual(self.code.tokens({"usage": usage}), total)
        self.assertEqual(self.code.tokens(b"data: {}"), None)


class Models(CallbackCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run(PLAN)

    def test_a_message_moves_to_the_model_that_litellm_asks(self):
        user, limit = self.subscriber("models"), self.limit()

        async def send(*attempts):
            """The statuses of attempts with these models; the last one answers."""
            data, statuses = {"user": user, "model": "first"}, []
            await limit.async_pre_call_hook(None, None, data, "acompletion")
            (held,) = limit._held.values()
            for attempt in attempts:
                written = attempt if isinstance(attempt, dict) else {"deployment_model_name": attempt}
                try:
                    await limit.async_pre_call_deployment_hook({"metadata": {**data["metadata"], **written}}, None)
                    statuses.append(200)
                except Refused as refused:
                    statuses.append(refused.status_code)
                self.assertFalse(held.expiry.cancelled(), "it counts if LiteLLM says nothing more")
            self.assertEqual(self.held(user), statuses[-1] == 200)
            if statuses[-1] == 200:
                await limit.async_post_call_success_hook(data, None, None)
            else:
                error = Refused(400, held.refusal.detail)
                self.assertEqual((await limit.async_post_call_failure_hook(data, error, None)).status_code, 429)
            return statuses

        def state():
            return self.count(user), int(Answer(self.send_command(f"USAGE {user} model=large"))["model_used"])

        shadow = {"deployment_model_name": "large", "is_silent_experiment": True}
        for attempts, statuses, expected in (
            (("first", "first"), [200, 200], (1, 0)),
            (("first", "large"), [200, 200], (6, 1)),
            (("large", "second"), [200, 200], (7, 1)),
            ((shadow,), [200], (8, 1)),
            (("large",), [200], (13, 2)),
            (("first", "large"), [200, 400], (13, 2)),
            (("large", "large", "second"), [400, 400, 200], (14, 2)),
        ):
            self.assertEqual((asyncio.run(send(*attempts)), state()), (statuses, expected), attempts)
            limit = self.limit()

    def held(self, user):
        return " held=" in self.send_command(f"USAGE {user}")
