"""Answers and errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service says about a user. A field that does not apply is None; Headroom's reference has the meaning of each."""

    status: Literal["allowed", "repeated", "blocked", "ok"]
    """`allowed`: send the message. `repeated`: an earlier call with the key was allowed, so show the stored answer, or that it is
    being written. `blocked`: show the banner. `ok`: the answer to `usage` and `release`."""
    user: str = ""
    plan: str | None = None
    state: str | None = None
    tier: str | None = None
    display: str | None = None
    used: int | None = None
    held: int = 0
    limit: int | None = None  # None is unlimited, like that of `remaining`; or unknown, if `degraded`
    remaining: int | None = None
    window_limit: int | None = None
    window_used: int | None = None
    window_remaining: int | None = None
    window_resets: datetime | None = None
    model: str | None = None  # the request's, and so is `member`; their numbers are None if the plan does not count them
    model_limit: int | None = None
    model_used: int | None = None
    model_remaining: int | None = None
    model_resets: datetime | None = None
    member: str | None = None
    member_limit: int | None = None
    member_used: int | None = None
    member_remaining: int | None = None
    period: str | None = None
    resets: datetime | None = None
    expires: datetime | None = None
    day: int | None = None
    days: int | None = None
    crossed: str | None = None
    reason: str | None = None
    retry_after: int | None = None
    fallback: str | None = None  # a model to offer instead of the one that was refused
    released: int | None = None
    shadow: bool = False
    replayed: bool = False
    label: str | None = None
    accessible: str | None = None
    notice: str | None = None
    banner: str | None = None
    degraded: bool = False
    """The service or its database was away. Nothing was counted, unless by an earlier attempt that was not answered."""
    more: Mapping[str, Any] = field(default_factory=dict)  # further fields of `usage`, as texts, and those of later versions

    @property
    def allowed(self) -> bool:
        """Whether this call may send the message. A repetition may not."""
        return self.status == "allowed"

    @classmethod
    def read(cls, allowed: bool | None, values: Mapping[str, Any]) -> Answer:
        """From JSON. `allowed` is None where nothing is decided. Raises ValueError if a field is missing or has another type, because
        then something between has written it."""
        known = {name: _value(KINDS[name], name, value) for name, value in values.items() if name in KINDS}
        if not known.get("user"):
            raise ValueError("an answer names its user")
        more = {name: value for name, value in values.items() if name not in (*KINDS, "allowed", "unlimited")}
        yes: Any = "repeated" if known.get("replayed") else "allowed"
        return cls("ok" if allowed is None else yes if allowed else "blocked", more=more, **known)


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a plan allows of a user's messages with a model (`kind` is `model`), or of those of a member (`member`)."""

    kind: str
    name: str  # of the model, or the beginning of models' names and *; the member's id
    label: str | None = None  # the model's name for users
    used: int = 0
    held: int = 0
    limit: int | None = None  # None is unlimited, like that of `remaining`
    remaining: int | None = None
    tier: str | None = None
    window_limit: int | None = None
    window_used: int | None = None
    window_remaining: int | None = None
    window_resets: datetime | None = None
    weight: int = 1
    fallback: str | None = None


@dataclass(frozen=True, slots=True)
class Allowances:
    """All limits of a user's plan for models and members, with what is used of them in a period."""

    user: str
    period: str | None
    allowances: tuple[Allowance, ...]

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Allowances:
        """From JSON. Raises ValueError, KeyError or TypeError if something between has written it."""
        if not values["user"]:
            raise ValueError("allowances name their user")
        each = [{name: value for name, value in one.items() if value is not None} for one in values["allowances"]]
        kinds = {one.name: _kind(one.type) for one in fields(Allowance)}
        read = [{name: _value(kinds[name], name, value) for name, value in one.items() if name in kinds} for one in each]
        period = values.get("period")
        return cls(
            _value("str", "user", values["user"]), None if period is None else _value("str", "period", period),
            tuple(Allowance(**one) for one in read),
        )  # fmt: skip


def _kind(annotation: object) -> str:
    return str(annotation).split(" ")[0]


KINDS = {each.name: _kind(each.type) for each in fields(Answer) if each.name not in ("status", "more")}
UNLIMITED = ("limit", "remaining")
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


def _value(kind: str, name: str, value: Any) -> Any:
    if value is None and name in UNLIMITED:
        return None
    if kind == "datetime" and isinstance(value, str) and INSTANT.fullmatch(value):
        return datetime.fromisoformat(value.replace("Z", "+00:00"))
    if type(value).__name__ != kind or (kind == "int" and value < 0):
        raise ValueError(f"the field {name} has another type")
    return value


def from_text(name: str, text: str) -> Any:
    """What JSON has for a field's text in the line protocol. An invalid text stays as it is, and `Answer.read` refuses it."""
    kind = KINDS.get(name)
    if kind == "int" and text.isascii() and text.isdigit():
        return int(text)
    if text == "unlimited" and name in UNLIMITED:
        return None
    return True if kind == "bool" and text == "1" else text


class HeadroomError(Exception):
    """A request failed. The text is for logs, and names no user. With its key, a request may be sent again and counts once."""

    def __init__(self, code: str, message: str, retry_seconds: float = 0) -> None:
        super().__init__(f"{code} {message}")
        self.code, self.message, self.retry_seconds, self.user = code, message, retry_seconds, ""
        self.key: str | None = None
        self.is_of_instance = code == "DRAINING"  # this instance is away, and another one may answer
        # It says nothing of whether anything was counted; it is about the key, and so about earlier attempts, too.
        self.is_silent = code in ("UNKNOWN", "INTERNAL", "MALFORMED")
        self.is_about_key = code in ("CONFLICT", "EXPIRED", "NOTFOUND")

class Unavailable(HeadroomError):
    """Nothing was counted; a later attempt may succeed."""

class Unknown(Unavailable):
    """It is not known whether it was counted; a later attempt is safe with the same key."""

class BadArgument(HeadroomError):
    """A malformed user, number, key, model or language: a mistake of the program."""

class Unauthorized(HeadroomError):
    """A token is required, this one is not valid, or it lacks the scope `chat`."""

class NotFound(HeadroomError):
    """There is no such key or period."""

class Conflict(HeadroomError):
    """The key was used with another number or verb, or was released: a new attempt needs a new key."""

class Expired(HeadroomError):
    """The hold's time has passed, and nothing was counted: a new attempt needs a new key."""

class Blocked(Exception):
    """`hold` has not run its body, because the user may not send the message. `answer` has the texts to show."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.reason or answer.status)
        self.answer = answer

class Repeated(Blocked):
    """`hold` has not run its body, because an earlier call with the key was allowed: show the stored answer."""


TYPES: dict[str, type[HeadroomError]] = {
    "UNAVAILABLE": Unavailable, "OVERLOADED": Unavailable, "DRAINING": Unavailable, "UNREACHABLE": Unavailable, "UNKNOWN": Unknown,
    "BADARG": BadArgument, "TOOLONG": BadArgument, "NOAUTH": Unauthorized, "FORBIDDEN": Unauthorized, "NOTFOUND": NotFound,
    "CONFLICT": Conflict, "EXPIRED": Expired,
}  # fmt: skip


def failure(code: str, message: str, retry_seconds: float = 0) -> HeadroomError:
    return TYPES.get(code, HeadroomError)(code, message, retry_seconds)
