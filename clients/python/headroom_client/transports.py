"""Requests over TCP, by redis-py, and over HTTP, by httpx."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, quote
from uuid import UUID

from .answers import Allowances, Answer, BadArgument, HeadroomError, failure, from_text

Name = str | UUID
FIELD = re.compile(r' ([a-z_]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s"\\]+))')
LINE = re.compile(rf"([A-Z]+)(?:{FIELD.pattern})*")


@dataclass
class Request:
    verb: str
    user: Any  # a text, also if a UUID was given; so is the key
    n: int | None = None
    key: Any = None
    ttl: int | None = None
    model: str | None = None
    member: Any = None  # a text, also if a UUID was given
    lang: str | None = None
    tz: str | None = None
    period: str | None = None
    sent: bool = False  # whether this attempt may have reached the service
    unsure: bool = False  # whether an earlier one may have taken effect

    def __post_init__(self) -> None:
        # Drivers of databases and web frameworks have UUIDs. Anything else must not be taken for a service that is away.
        for name in ("user", "key", "member"):
            if isinstance(value := getattr(self, name), UUID):
                setattr(self, name, str(value))
        # Dots would be lost in the path of a URL, so nobody is named so.
        if not (isinstance(self.user, str) and self.user not in ("", ".", "..") and isinstance(self.key, str | None)):
            raise BadArgument("BADARG", "a user is a UUID, or a text that is not empty, . or ..; a key is a text or a UUID")
        if not (isinstance(self.model, str | None) and isinstance(self.member, str | None)):
            raise BadArgument("BADARG", "a model is a text; a member is a text or a UUID")

    def given(self, *names: str) -> dict[str, Any]:
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def answer(self, allowed: Any, values: dict[str, Any]) -> Answer | Allowances:
        """Raises ValueError, KeyError or TypeError for what is no answer to this request."""
        if self.verb == "ALLOWANCES":
            return Allowances.read(values)
        if type(allowed) is not (type(None) if self.verb in ("RELEASE", "USAGE") else bool):
            raise ValueError(f"this does not answer {self.verb}")
        return Answer.read(allowed, values)

    def lost(self, cause: object) -> HeadroomError:
        # A request without a key only reads.
        code = "UNKNOWN" if self.sent and self.key is not None else "UNREACHABLE"
        error = failure(code, f"no answer: {str(cause) or type(cause).__name__}")
        error.is_of_instance = True
        return error


class OverTCP:
    def __init__(self, address: SplitResult, token: str, options: dict[str, Any]) -> None:
        import redis.asyncio

        self._redis, has_tls = redis, address.scheme in ("headrooms", "rediss")
        settings = {
            "host": address.hostname, "port": address.port or 6747, "username": address.password and address.username,
            "password": token or None, "max_connections": 50, "timeout": None,
        }  # fmt: skip
        self._pool: Any = redis.asyncio.BlockingConnectionPool(
            connection_class=redis.asyncio.SSLConnection if has_tls else redis.asyncio.Connection, decode_responses=True, protocol=2,
            socket_timeout=None, **{**settings, **options},
        )  # fmt: skip

    async def send(self, request: Request) -> Answer | Allowances:
        if request.verb == "ALLOWANCES":
            raise BadArgument("BADARG", "allowances are told over HTTP: the client's address must begin with http:// or https://")
        words = [request.verb, request.user, *map(str, request.given("n", "period").values())]
        words += [f"{name}={value}" for name, value in request.given("key", "ttl", "model", "member", "lang", "tz").items()]
        connection, is_in_step = None, False
        try:
            connection = await self._pool.get_connection()
            request.sent = True
            await connection.send_command(*words)
            line = await connection.read_response()
            is_in_step = True
        except (self._redis.AuthenticationError, self._redis.ResponseError) as error:
            is_in_step = True
            text = str(error) if isinstance(error, self._redis.ResponseError) else f"NOAUTH {error}"  # redis-py removes that code
            code, advised, message = re.findall(r"^(\S*) ?(?:retry_ms=(\d+) ?)?(.*)", text)[0]
            raise failure(code, message, int(advised or 0) / 1000) from error
        except (self._redis.RedisError, OSError) as error:
            raise request.lost(error) from error
        finally:
            if connection is not None:
                if not is_in_step:  # a late answer would be taken for that of the next request
                    await connection.disconnect(nowait=True)
                await self._pool.release(connection)
        try:
            if not (found := LINE.fullmatch(line)):
                raise ValueError("this is no line of fields")
            values = {name: from_text(name, re.sub(r"\\(.)", r"\1", quoted) or bare) for name, quoted, bare in FIELD.findall(line)}
            permission = "HELD" if request.verb == "RESERVE" else "ALLOWED"
            return request.answer({permission: True, "BLOCKED": False, "OK": None}[found[1]], values)
        except (ValueError, TypeError, KeyError) as error:
            raise HeadroomError("MALFORMED", f"this is no answer of Headroom: {error}") from error

    async def close(self) -> None:
        await self._pool.disconnect()


class OverHTTP:
    def __init__(self, address: SplitResult, token: str, options: dict[str, Any]) -> None:
        try:
            import httpx
        except ImportError as error:
            raise ImportError("addresses over HTTP need httpx: pip install 'headroom-client[http]'") from error
        base = address._replace(netloc=address.netloc.rpartition("@")[2]).geturl()
        self._httpx, self._client = httpx, httpx.AsyncClient(base_url=base, timeout=None, **options)
        if token:
            self._client.headers["Authorization"] = f"Bearer {token}"

    async def send(self, request: Request) -> Answer | Allowances:
        if request.key is not None and not re.fullmatch(r"[!#-~]{1,128}", request.key):
            raise BadArgument("BADARG", "over HTTP, a key is 1 to 128 visible ASCII characters without spaces and quotes")

        async def trace(event: str, _: object) -> None:
            request.sent = request.sent or event.endswith("send_request_headers.started")

        path, post = "/v1/usage/" + quote(request.user, safe=""), request.verb not in ("USAGE", "ALLOWANCES")
        path += "" if request.verb == "USAGE" else f"/{request.verb.lower()}"
        headers = {} if request.key is None else {"Idempotency-Key": request.key}
        try:
            response = await self._client.request(
                "POST" if post else "GET", path, headers=headers,
                json=request.given("n", "ttl", "model", "member", "lang", "tz") if post else None,
                params=None if post else request.given("period", "model", "member", "lang", "tz"),
                extensions={"trace": trace},
            )  # fmt: skip
        except self._httpx.TransportError as error:
            raise request.lost(error) from error
        try:
            body = response.json()
            if response.is_success:
                return request.answer(body.get("allowed"), body)
            code, detail, advised = body["code"], body["detail"], response.headers.get("Retry-After", "")
            if not (isinstance(code, str) and isinstance(detail, str)):
                raise ValueError("an error has a code and a text")
            raise failure(code, detail, int(advised) if re.fullmatch("[0-9]{1,9}", advised) else 0)
        except (ValueError, TypeError, KeyError, AttributeError) as error:  # it was written by something between
            problem = f"status {response.status_code} without an answer of Headroom"
            raise request.lost(problem) if response.is_server_error else HeadroomError("MALFORMED", problem) from error

    async def close(self) -> None:
        await self._client.aclose()
