"""
title: Headroom
description: Asks Headroom before each message: may this user send it, and what should we tell them?
author: Headroom
version: 0.2.0
license: Apache-2.0
required_open_webui_version: 0.12.0
"""

# README.md beside this file says how to install it, and has the settings.

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from headroom_client import Answer, AsyncHeadroom, Blocked, Expired, HeadroomError, Hold
from pydantic import BaseModel, Field

log = logging.getLogger("headroom_filter")

HOLD_KEY = "headroom_key"
"""In the metadata that Open WebUI passes to each function of a filter for the same message."""

Emitter = Callable[[dict[str, Any]], Awaitable[None]]


class NotAnswered(Exception):
    """Ends a hold of a message that the model has not answered, so that it is given back."""


@dataclass
class Held:
    """A message between `inlet` and what says how it has ended."""

    headroom: AsyncHeadroom
    account: str
    parts: dict[str, str | None]
    hold: Hold
    context: AbstractAsyncContextManager[Hold]


class Filter:
    class Valves(BaseModel):
        url: str = Field(default="headroom://127.0.0.1:6747", description="Headroom's address: headroom://, headrooms:// or https://")
        token: str = Field(
            default="", description="A token with the scope chat", json_schema_extra={"input": {"type": "password"}}
        )  # fmt: skip
        when_away: Literal["refuse", "allow"] = Field(default="refuse", description="What happens to messages while Headroom is away")
        count_models: bool = Field(default=True, description="Count a message also for its model, if a plan limits models")
        group_accounts: str = Field(
            default="", description="Groups whose members share an allowance: their names, with commas between; * is any text"
        )  # fmt: skip
        hold_seconds: int = Field(default=600, description="Longer than a model may take to begin its answer", ge=1, le=86400)
        timeout_seconds: float = Field(default=3.0, description="For a request to Headroom, with its retries", gt=0)
        priority: int = Field(default=0, description="Filters with a lower one run before this one")

    class UserValves(BaseModel):
        show_banner: bool = Field(default=True, description="Show above the answers how many messages are left")

    def __init__(self) -> None:
        self.valves = self.Valves()
        self._headroom: AsyncHeadroom | None = None
        self._connected_with: tuple[object, ...] = ()
        self._held: dict[str, Held] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def inlet(
        self, body: dict[str, Any], __user__: dict[str, Any] | None = None, __metadata__: dict[str, Any] | None = None,
        __request__: Any = None, __event_emitter__: Emitter | None = None, __model__: dict[str, Any] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Holds the message. Open WebUI shows the text of the exception in place of an answer."""
        metadata = {} if __metadata__ is None else __metadata__
        # Titles, tags and the like; and a message that goes on after its user has allowed a tool, which has counted.
        if metadata.get("task") or metadata.get("tool_approval_resume"):
            return body
        user, headroom = (__user__ or {}).get("id"), self._client()
        if not user:
            raise Exception("Headroom: this message has no user")
        account, group = await self._account(user)
        parts = {
            "model": model_name(body, __model__ or {}) if self.valves.count_models else None, "member": user if group else None
        }  # fmt: skip
        # The client makes a key of its own. Ids of messages would not do, because a request may choose its id.
        context = headroom.hold(account, ttl=self.valves.hold_seconds, lang=language(metadata, __request__), **parts)
        try:
            hold = await context.__aenter__()
        except Blocked as refusal:
            raise Exception(words(refusal.answer, group)) from None
        except HeadroomError as error:
            log.error("Headroom refuses requests of this filter: %s", error)
            raise Exception(f"Headroom: {error.message}") from None
        metadata[HOLD_KEY] = hold.key
        self._held[hold.key] = Held(headroom, account, parts, hold, context)
        # Open WebUI calls nothing if the model fails or the user presses Stop, but then this task ends.
        task = asyncio.current_task()
        if task is not None:
            task.add_done_callback(lambda _: self._end(hold.key, is_answered=False))
        await self._show(hold, __user__ or {}, __event_emitter__)
        return body

    async def stream(self, event: dict[str, Any], __metadata__: dict[str, Any] | None = None) -> dict[str, Any]:
        """The message counts as soon as the answer begins: otherwise pressing Stop at the last word would be free."""
        if is_failure(event) or is_answer(event):
            self._end((__metadata__ or {}).get(HOLD_KEY, ""), is_answered=not is_failure(event))
        return event

    async def outlet(self, body: dict[str, Any], __metadata__: dict[str, Any] | None = None) -> dict[str, Any]:
        """For an answer that is not streamed."""
        self._end((__metadata__ or {}).get(HOLD_KEY, ""), is_answered=True)
        return body

    def _client(self) -> AsyncHeadroom:
        """Open WebUI sets the valves before each call."""
        valves = self.valves
        wanted = (valves.url, valves.token, valves.when_away, valves.timeout_seconds)
        if self._headroom is None or self._connected_with != wanted:
            self._headroom, self._connected_with = AsyncHeadroom(
                valves.url, valves.token or None, timeout=valves.timeout_seconds, attempt_timeout=valves.timeout_seconds / 3,
                when_away=valves.when_away,
            ), wanted  # fmt: skip
        return self._headroom

    async def _account(self, user: str) -> tuple[str, str]:
        """The first of the groups of the valve that the user is in, with its name, or the user's own account. Of several groups that suit
        the same name, it is the oldest."""
        names = [name.strip() for name in self.valves.group_accounts.split(",") if name.strip()]
        if not names:
            return user, ""
        from open_webui.models.groups import Groups

        groups = sorted(await Groups.get_groups_by_member_id(user), key=lambda group: (group.created_at, group.id))
        found = [(group.id, group.name) for name in names for group in groups if fnmatchcase(group.name, name)]
        return found[0] if found else (user, "")

    async def _show(self, hold: Hold, user: dict[str, Any], emit: Emitter | None) -> None:
        if emit is None:
            return
        if hold.answer.notice:
            await emit({"type": "notification", "data": {"type": "warning", "content": hold.answer.notice}})
        valves = user.get("valves")
        if hold.answer.banner and (valves is None or valves.show_banner):
            await emit({"type": "status", "data": {"description": hold.answer.banner, "done": True}})

    def _end(self, key: str, is_answered: bool) -> None:
        """Ends a hold once, whatever says first how it has ended. The answer does not wait for it."""
        held = self._held.pop(key, None)
        if held is not None:
            self._start(self._settle(held, is_answered))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _settle(self, held: Held, is_answered: bool) -> None:
        failure = None if is_answered else NotAnswered()
        try:
            await held.context.__aexit__(type(failure) if failure else None, failure, None)
            if isinstance(held.hold.error, Expired) and is_answered:
                await held.headroom.consume(held.account, key=f"{held.hold.key}-late", **held.parts)
        except HeadroomError as error:
            log.error("a message was answered, and not counted: %s", error)


def is_failure(event: dict[str, Any]) -> bool:
    return bool(event.get("error")) or event.get("type") in ("error", "response.failed")


def is_answer(event: dict[str, Any]) -> bool:
    """Of chat completions, and of OpenAI's responses."""
    return bool(event.get("choices")) or str(event.get("type", "")).startswith("response.output")


def model_name(body: dict[str, Any], model: dict[str, Any]) -> str | None:
    """The model's id; of one that is made of another in the workspace, that of the other: else whoever may make one would get around the
    limit. As Headroom takes it, other characters are `_`, and a longer one is cut."""
    name = (model.get("info") or {}).get("base_model_id") or model.get("id") or body.get("model")
    return re.sub(r"[^A-Za-z0-9._:/@-]", "_", str(name))[:64] if name else None


def words(answer: Answer, group: str) -> str:
    """What the user reads in place of an answer. The sentence speaks of a member's own share; a limit of a group has its name."""
    text = " ".join(text for text in (answer.notice, answer.banner or "You have no messages left.") if text)
    return f"{group}: {text}" if group and not answer.degraded and not str(answer.reason).startswith("member_") else text


def language(metadata: dict[str, Any], request: Any) -> str | None:
    """That of Open WebUI's interface, or else the first one that the browser accepts."""
    chosen = (metadata.get("variables") or {}).get("{{USER_LANGUAGE}}")
    accepted = getattr(request, "headers", {}).get("accept-language", "")
    found = re.match(r"\s*([A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,3})\s*(?:[,;]|$)", str(chosen or accepted))
    return found[1] if found else None
