"""Requests over TCP, by redis-py, and over HTTP, by httpx."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from .answers import Answer, BadArgument, HeadroomError, failure

FIELD = re.compile(r' ([a-z_]+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))')


@dataclass
class Request:
    verb: str
    user: str
    n: int | None = None
    key: str | None = None
    ttl: int | None = None
    lang: str | None = None
    period: str | None = None
    sent: bool = False  # whether this attempt may have reached the service

    def given(self, *names: str) -> dict[str, Any]:
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def lost(self, cause: object) -> HeadroomError:
        # A request without a key only reads.
        code = "UNKNOWN" if self.sent and self.key is not None else "UNREACHABLE"
        return failure(code, f"no answer: {str(cause) or type(cause).__name__}")


def _token(url: str) -> str | None:
    return unquote(urlsplit(url).password or urlsplit(url).username or "") or None


class OverTCP:
    def __init__(self, url: str, token: str | None, options: dict[str, Any]) -> None:
        import redis.asyncio

        parts, self._redis = urlsplit(url), redis
        if parts.scheme not in ("headroom", "headrooms", "redis", "rediss"):
            raise ValueError("the address of the service must begin with headroom://, headrooms:// (TLS), http:// or https://")
        settings = {
            "host": parts.hostname, "port": parts.port or 6747, "username": parts.password and parts.username,
            "password": token or _token(url), "max_connections": 50, "timeout": None,
        }  # fmt: skip
        kind = redis.asyncio.SSLConnection if parts.scheme in ("headrooms", "rediss") else redis.asyncio.Connection
        self._pool: Any = redis.asyncio.BlockingConnectionPool(
            connection_class=kind, decode_responses=True, protocol=2, socket_timeout=None, **{**settings, **options}
        )

    async def send(self, request: Request) -> Answer:
        words = [request.verb, request.user, *map(str, request.given("n", "period").values())]
        words += [f"{name}={value}" for name, value in request.given("key", "ttl", "lang").items()]
        connection, is_in_step = None, False
        try:
            connection = await self._pool.get_connection()
            request.sent = True
            await connection.send_command(*words)
            line = await connection.read_response()
            is_in_step = True
        except self._redis.AuthenticationError as error:  # redis-py removes the code
            raise failure("NOAUTH", str(error)) from error
        except self._redis.ResponseError as error:
            is_in_step = True
            code, advised, message = re.findall(r"^(\S+) ?(?:retry_ms=(\d+) ?)?(.*)", str(error))[0]
            raise failure(code, message, int(advised or 0) / 1000) from error
        except (self._redis.RedisError, OSError) as error:
            raise request.lost(error) from error
        finally:
            if connection is not None:
                if not is_in_step:  # a late answer would be taken for that of the next request
                    await connection.disconnect(nowait=True)
                await self._pool.release(connection)
        values = {name: re.sub(r"\\(.)", r"\1", quoted) or bare for name, quoted, bare in FIELD.findall(line)}
        return Answer.read({"ALLOWED": True, "HELD": True, "BLOCKED": False}.get(line.split(" ")[0]), values)

    async def close(self) -> None:
        await self._pool.disconnect()


class OverHTTP:
    def __init__(self, url: str, token: str | None, options: dict[str, Any]) -> None:
        import httpx

        parts, self._httpx, token = urlsplit(url), httpx, token or _token(url)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        base = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self._client = httpx.AsyncClient(base_url=base, headers=headers, timeout=None, **options)

    async def send(self, request: Request) -> Answer:
        if request.key is not None and not re.fullmatch(r"[!#-~]{1,128}", request.key):
            raise BadArgument("BADARG", "over HTTP, a key is 1 to 128 visible ASCII characters without spaces and quotes")
        path, body = "/v1/usage/" + quote(request.user, safe=""), request.given("n", "ttl", "lang")
        if request.verb == "USAGE":
            http = self._client.build_request("GET", path, params=request.given("period", "lang"))
        else:
            headers = {} if request.key is None else {"Idempotency-Key": request.key}
            http = self._client.build_request("POST", f"{path}/{request.verb.lower()}", json=body, headers=headers)

        async def trace(event: str, _: object) -> None:
            request.sent = request.sent or event.endswith("send_request_headers.started")

        http.extensions["trace"] = trace
        try:
            response = await self._client.send(http)
        except self._httpx.TransportError as error:
            raise request.lost(error) from error
        try:
            body = response.json()
            if response.is_success:
                return Answer.read(body.get("allowed"), body)
            raise failure(body["code"], body["detail"], float(response.headers.get("Retry-After", 0)))
        except (ValueError, TypeError, KeyError, AttributeError) as error:  # it was written by something between
            problem = f"status {response.status_code} without an answer of Headroom"
            raise request.lost(problem) if response.is_server_error else HeadroomError("MALFORMED", problem) from error

    async def close(self) -> None:
        await self._client.aclose()
