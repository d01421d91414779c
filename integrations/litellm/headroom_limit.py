"""Counts the messages of a LiteLLM proxy with Headroom: holds one before the model is asked, counts it when it has answered.

README.md beside this file says how to install it, and has the settings.
"""

# Annotations are not postponed: LiteLLM loads this file outside sys.modules, where dataclasses would look them up.
import asyncio
import logging
import os
import re
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, fields
from typing import Any

from fastapi import HTTPException
from headroom_client import Answer, AsyncHeadroom, BadArgument, Blocked, Expired, HeadroomError, Hold
from litellm.integrations.custom_logger import CustomLogger

log = logging.getLogger("headroom_limit")

NO_MESSAGES = frozenset(re.findall(r"\w+", """
    embedding moderation rerank search ocr transcription speech ingest apply_guardrail call_mcp_tool list_mcp_tools
    image_generation image_edit create_video video_generation video_edit video_extension video_remix video_create_character
    video_get_character video_list video_status video_content video_retrieve video_retrieve_job video_delete
    create_file file_content file_delete file_list file_retrieve list_batches retrieve_batch cancel_batch
    create_fine_tuning_job cancel_fine_tuning_job list_fine_tuning_jobs retrieve_fine_tuning_job
    vector_store_create vector_store_delete vector_store_list vector_store_retrieve vector_store_search vector_store_update
    vector_store_file_create vector_store_file_content vector_store_file_delete vector_store_file_list vector_store_file_retrieve
    vector_store_file_update
    create_container delete_container list_containers retrieve_container list_container_files upload_container_file
    delete_container_file retrieve_container_file retrieve_container_file_content
    create_sandbox delete_sandbox run_code code_interpreter_tool create_skill delete_skill get_skill list_skills
    get_responses delete_responses cancel_responses list_input_items get_interaction delete_interaction cancel_interaction
    create_agent delete_agent get_agent list_agents list_agent_versions create_assistants delete_assistant get_assistants
    create_thread get_thread _add_message add_message get_messages
    create_eval delete_eval get_eval list_evals update_eval cancel_eval list_runs get_run cancel_run delete_run
"""))  # fmt: skip
"""The call types that are not counted. Any other is a message, also one that a later LiteLLM adds. Most begin with another `a`."""

ANY_NUMBER = frozenset(re.findall(r"\w+", """
    _arealtime _aresponses_websocket arealtime_calls acreate_realtime_client_secret acreate_realtime_transcription_session
    create_batch acreate_batch acreate_run pass_through_endpoint llm_passthrough_route allm_passthrough_route
"""))  # fmt: skip
"""The call types that may ask for any number of messages, of which LiteLLM says nothing. They are refused."""

HOLD_KEY = "headroom_key"
"""In the request's metadata, which LiteLLM passes to each hook, also if another callback has copied the request."""

SAID_BY_LITELLM = ("deployment_model_name", "is_silent_experiment")
"""What LiteLLM writes into the metadata of an attempt. A client may not."""

LANGUAGE = re.compile(r"\s*([A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,3})\s*(?:;\s*q=([01](?:\.\d{0,3})?))?\s*")


@dataclass(frozen=True)
class Settings:
    """Each is an environment variable, HEADROOM_ and the name in upper case."""

    url: str = "headroom://127.0.0.1:6747"
    token: str = ""
    count_by: str = "key"
    member: str = "none"
    model: str = "public"
    count: str = "messages"
    uncounted: str = ""
    hold_tokens: int = 4096
    hold_seconds: int = 600
    when_away: str = "refuse"
    timeout_seconds: float = 3.0

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> "Settings":
        given = {each.name: environment.get(f"HEADROOM_{each.name.upper()}", "") for each in fields(cls)}
        settings = cls(**{name: type(getattr(cls, name))(value) for name, value in given.items() if value})
        for name, values in CHOICES.items():
            chosen = getattr(settings, name)
            if not set(chosen.split(",") if name == "count_by" else [chosen]) <= set(values):
                raise ValueError(f"HEADROOM_{name.upper()} is {chosen!r}; it can be {', '.join(values)}")
        return settings


CHOICES = {
    "count_by": ("user", "owner", "team", "key"), "member": ("none", "user", "owner", "key"), "model": ("public", "none"),
    "count": ("messages", "tokens"), "when_away": ("refuse", "allow"),
}  # fmt: skip


class NotAnswered(Exception):
    """Ends a hold of a message that the model has not answered, so that it is given back."""


@dataclass
class Part:
    """The messages of a request that one model answers."""

    model: str | None
    most: int
    hold: Hold | None = None  # None if they were given back, because LiteLLM has turned to a model that is used up
    context: AbstractAsyncContextManager[Hold] | None = None


@dataclass
class Held:
    """A request between `async_pre_call_hook` and the hook that says how it has ended."""

    user: str
    member: str | None
    lang: str | None
    parts: list[Part]
    can_move: bool  # to another model; LiteLLM does not say to which of several models an attempt belongs
    expiry: asyncio.TimerHandle | None = None
    refusal: HTTPException | None = None  # of the model to which LiteLLM has turned


class HeadroomLimit(CustomLogger):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        self._headroom = AsyncHeadroom(
            settings.url, settings.token or None, timeout=settings.timeout_seconds, attempt_timeout=settings.timeout_seconds / 3,
            when_away="allow" if settings.when_away == "allow" else "refuse",
        )  # fmt: skip
        self._uncounted = frozenset(re.findall(r"\w+", settings.uncounted))
        self._held: dict[str, Held] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # The hooks of LiteLLM's proxy ---------------------------------------------------------------------------------------------

    async def async_pre_call_hook(self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str) -> dict[str, Any] | None:
        """Once for each request; LiteLLM's retries and fallbacks come after it."""
        if call_type in self._uncounted or {call_type, call_type.removeprefix("a")} & NO_MESSAGES:
            return None
        if call_type in ANY_NUMBER:
            raise HTTPException(403, f"Headroom: this proxy cannot count {call_type} (HEADROOM_UNCOUNTED lets it pass uncounted)")
        headers = (data.get("proxy_server_request") or {}).get("headers") or {}
        held = Held(
            self._id(self.settings.count_by, "COUNT_BY", user_api_key_dict, data),
            None if self.settings.member == "none" else self._id(self.settings.member, "MEMBER", user_api_key_dict, data),
            preferred_language(headers.get("accept-language", "")), self._parts(data),
            can_move=self.settings.model == "public" and "," not in str(data.get("model")),
        )  # fmt: skip
        try:
            for part in held.parts:
                await self._hold(held, part)
        except BaseException:
            for part in held.parts:
                await self._give_back(part)
            raise
        for bucket in buckets(data):
            for name in SAID_BY_LITELLM:
                bucket.pop(name, None)
        key = metadata(data)[HOLD_KEY] = uuid.uuid4().hex
        self._held[key] = held
        self._expire_later(key, held)
        return data

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> None:
        """Before each attempt, with the model that LiteLLM has chosen: another one than was held for after a fallback, or if the client
        has named an alias, a deployment or a router. So a message counts for the model that is asked, and only if it has room."""
        found = buckets(kwargs)
        key = next((each[HOLD_KEY] for each in found if HOLD_KEY in each), "")
        held, model = self._held.get(key), next(filter(None, map(chosen, found)), None)
        if held is None or model is None or not held.can_move or any(each.get("is_silent_experiment") for each in found):
            return
        (part,) = held.parts
        if part.hold is not None and part.model == model:
            return
        # It must not count a message that is between two models. A stream has none, because its hook ends the hold.
        expires = held.expiry is not None and not held.expiry.cancelled()
        if held.expiry is not None:
            held.expiry.cancel()
        try:
            await self._give_back(part)
            part.model = model
            await self._hold(held, part)
        except HTTPException as refusal:
            held.refusal = refusal
            # LiteLLM tries its other fallbacks. It would rest a deployment that fails with another status, and for everyone.
            raise HTTPException(400, refusal.detail, refusal.headers) from None
        finally:
            if expires:
                self._expire_later(key, held)

    async def async_post_call_success_hook(self, data: dict[str, Any], user_api_key_dict: Any, response: Any) -> None:
        """For an answer that is not streamed, also one from LiteLLM's cache."""
        await self._ended(data, is_answered=True, tokens=tokens(response))

    async def async_post_call_failure_hook(
        self, request_data: dict[str, Any], original_exception: Exception, user_api_key_dict: Any, traceback_str: str | None = None
    ) -> HTTPException | None:
        """After the last attempt, and also if another callback has refused the request. LiteLLM answers what it returns."""
        held = self._held.get(metadata(request_data).get(HOLD_KEY, ""))
        refusal = held.refusal if held else None
        await self._ended(request_data, is_answered=False)
        return refusal if refusal and getattr(original_exception, "detail", None) == refusal.detail else None

    async def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: Any, response: AsyncIterator[Any], request_data: dict[str, Any]
    ) -> AsyncIterator[Any]:
        """A streamed answer counts as soon as it has begun, if it ends well or the client hangs up. It does not if the model fails."""
        is_answered, used = False, None
        if (held := self._held.get(metadata(request_data).get(HOLD_KEY, ""))) and held.expiry:
            held.expiry.cancel()  # this hook will end the hold, however long the client takes to read
        try:
            async for chunk in response:
                is_answered, used = True, tokens(chunk) or used
                yield chunk
        except Exception:
            is_answered = False
            raise
        finally:
            await self._ended(request_data, is_answered, used)

    # Holds --------------------------------------------------------------------------------------------------------------------

    def _id(self, kinds: str, setting: str, key: Any, data: dict[str, Any]) -> str:
        """The first of these that the request has."""
        ids = {
            # LiteLLM finds it in `user`, and in what other APIs and chats use in its place.
            "user": getattr(key, "end_user_id", None) or data.get("user"),
            "owner": getattr(key, "user_id", None),
            "team": getattr(key, "team_id", None),
            "key": getattr(key, "api_key", None),  # its SHA-256
        }
        for kind in kinds.split(","):
            if found := ids[kind]:
                return str(found)
        raise HTTPException(400, f"Headroom: this request has no {kinds} to count it for (HEADROOM_{setting})")

    def _parts(self, data: dict[str, Any]) -> list[Part]:
        each, models = 1 if self.settings.count == "messages" else self.settings.hold_tokens, asked(data)
        if self.settings.model == "none":
            return [Part(None, each * sum(models.values()))]
        return [Part(model_name(name), each * messages) for name, messages in models.items()]

    async def _hold(self, held: Held, part: Part) -> None:
        # The client makes a key of its own. The ids of LiteLLM's requests would not do, because a request may choose its id.
        context = self._headroom.hold(
            held.user, part.most, ttl=self.settings.hold_seconds, model=part.model, member=held.member, lang=held.lang
        )
        try:
            part.hold, part.context = await context.__aenter__(), context
        except Blocked as refusal:
            raise refused(refusal.answer) from None
        except HeadroomError as error:
            if isinstance(error, BadArgument) and "user" in f"{self.settings.count_by},{self.settings.member}".split(","):
                raise HTTPException(400, f"Headroom: {error.message}") from error
            if isinstance(error, BadArgument):
                log.error("hashes of keys and most names are no UUIDs: set the service's user-namespace (docs/user-ids.md)")
            log.error("Headroom does not answer this proxy, so it refuses every message: %s", error)
            raise HTTPException(500, f"Headroom: {error.code}; the proxy's log says more") from error

    async def _give_back(self, part: Part) -> None:
        context, part.hold, part.context = part.context, None, None
        if context is not None:
            await context.__aexit__(NotAnswered, NotAnswered(), None)

    def _expire_later(self, key: str, held: Held) -> None:
        """If LiteLLM calls no further hook, the message counts: it was passed on."""
        held.expiry = asyncio.get_running_loop().call_later(self.settings.hold_seconds, self._end, key, True)

    async def _ended(self, data: dict[str, Any], is_answered: bool, tokens: int | None = None) -> None:
        if task := self._end(metadata(data).get(HOLD_KEY, ""), is_answered, tokens):
            await asyncio.shield(task)

    def _end(self, key: str, is_answered: bool, tokens: int | None = None) -> asyncio.Task[None] | None:
        """Ends a hold, if this is the first to say how it has ended."""
        held = self._held.pop(key, None)
        if held is None:
            return None
        if held.expiry is not None:
            held.expiry.cancel()
        if self.settings.count == "tokens" and len(held.parts) == 1 and held.parts[0].hold is not None:
            held.parts[0].hold.amount = tokens
        # A task of its own, because a client that hangs up cancels the one that runs here.
        task = asyncio.create_task(self._settle(held, is_answered))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _settle(self, held: Held, is_answered: bool) -> None:
        for part in held.parts:
            try:
                await self._settle_part(held, part, is_answered)
            except HeadroomError as error:
                log.error("a message was answered, and not counted: %s", error)

    async def _settle_part(self, held: Held, part: Part, is_answered: bool) -> None:
        if not is_answered:
            await self._give_back(part)
        elif part.hold is not None and part.context is not None:
            await part.context.__aexit__(None, None, None)
            if isinstance(part.hold.error, Expired):  # otherwise reading slowly would cost nothing
                counted = part.most if part.hold.amount is None else min(part.hold.amount, part.most)
                late = f"{part.hold.key}-late"
                await self._headroom.consume(held.user, max(1, counted), key=late, model=part.model, member=held.member)


def buckets(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for name in ("litellm_metadata", "metadata") if isinstance(each := data.get(name), dict)]


def metadata(data: dict[str, Any]) -> dict[str, Any]:
    """LiteLLM's own, which for some APIs is not the one that the client sends to the model."""
    name = "litellm_metadata" if "litellm_metadata" in data else "metadata"
    if not isinstance(data.get(name), dict):
        data[name] = {}
    found: dict[str, Any] = data[name]
    return found


def asked(data: dict[str, Any]) -> dict[str, int]:
    """The messages that a request sends to each model. LiteLLM asks each of `a,b`, also if only the fastest is to answer, and answers
    each list of messages and each prompt of a list."""
    names = [name.strip() for name in str(data.get("model") or "").split(",")]
    lists = [each for name in ("messages", "prompt") if isinstance(each := data.get(name), list)]
    # One list of messages has objects, and a prompt may be a list of tokens.
    each = max([1, *(len(each) for each in lists if not all(isinstance(one, dict | int) for one in each))])
    return {name: names.count(name) * each for name in names}


def model_name(name: str) -> str | None:
    """As Headroom takes it: other characters are `_`, and a longer one is cut."""
    return re.sub(r"[^A-Za-z0-9._:/@-]", "_", name)[:64] or None


def chosen(bucket: dict[str, Any]) -> str | None:
    """The public name of the model whose deployment LiteLLM asks next. That of a wildcard is what was asked for."""
    name, team_name = bucket.get("deployment_model_name"), field(bucket.get("model_info"), "team_public_model_name")
    if not isinstance(name, str):
        return None
    return model_name(str(team_name or (bucket.get("model_group") if "*" in name else name) or ""))


def tokens(answer: Any) -> int | None:
    """The tokens of an answer, or of the chunk that has them for the whole answer, by the names of OpenAI and Anthropic."""
    found = field(answer, "usage")
    total, given, made = (field(found, name) for name in ("total_tokens", "input_tokens", "output_tokens"))
    if isinstance(total, int):
        return total
    return given + made if isinstance(given, int) and isinstance(made, int) else None


def field(record: Any, name: str) -> Any:
    return record.get(name) if isinstance(record, dict) else getattr(record, name, None)


def preferred_language(accepted: str) -> str | None:
    """The first of the most preferred languages in an Accept-Language."""
    found = [match for part in accepted.split(",") if (match := LANGUAGE.fullmatch(part)) and float(match[2] or 1) > 0]
    return max(found, key=lambda match: float(match[2] or 1))[1] if found else None


def refused(answer: Answer) -> HTTPException:
    """LiteLLM answers it in OpenAI's format: the banner is the error's message, which chats show."""
    banner = answer.banner or "You have no messages left."
    kind = (answer.reason or "").split("_")[0]
    resets = {"model": answer.model_resets, "member": None, "window": answer.window_resets}.get(kind, answer.resets)
    named = {
        "reason": answer.reason, "limit_of": answer.reason and (kind if kind in ("model", "member") else "plan"),
        "fallback": answer.fallback, "plan": answer.plan, "used": answer.used, "limit": answer.limit,
        "model": answer.model, "model_used": answer.model_used, "model_limit": answer.model_limit,
        "member": answer.member, "member_used": answer.member_used, "member_limit": answer.member_limit,
        "retry_after": answer.retry_after, "resets_at": resets and resets.isoformat().replace("+00:00", "Z"), "notice": answer.notice,
    }  # fmt: skip
    # OpenAI's libraries send a refused request three times, without this.
    headers = {"x-should-retry": "false"}
    if answer.retry_after is not None:
        headers["Retry-After"] = str(answer.retry_after)
    details = {name: value for name, value in named.items() if value is not None}
    return HTTPException(503 if answer.degraded else 429, {"message": banner, **details}, headers)


proxy_handler_instance = HeadroomLimit(Settings.read(os.environ))
