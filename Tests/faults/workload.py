"""Clients of two instances, which retry unknown outcomes and record requests and replies."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from recorder import Recorder
from support.users import numbered_user

# The kinds of users, each with clients and a plan of its own. HOT: eight users at a time, for whom many clients send
# messages. FIVE: many users with a limit of 5 messages. HOLD: users whose messages are reserved, then committed or released.
# RESET: users whose counts and limits an operator changes meanwhile.
HOT, FIVE, HOLD, RESET = 1, 2, 3, 4
# The clients use one set of HOT users and one of HOLD users at a time, and the next set when its users are blocked.
HOT_SETS = 200
FIVE_USERS = 20_000
HOLD_SETS, HOLD_SET = 100, 60
RESET_USERS = 6
LIMITS = {HOT: 1000, FIVE: 5, HOLD: 50, RESET: 1000}
PLANS = {HOT: "hot", FIVE: "five", HOLD: "hold", RESET: "reset"}
# Every second user is an account, whose messages all name a model and one of a few members. A message with the model deep takes two
# of the account's and of the member's. The models whose names begin with fast have one count.
MODELS = ("deep", "deep", "fast-1", "fast-2", "fast-2")
MEMBERS = 5
WEIGHTS = {"model deep": 2, "model fast*": 1, "member *": 1}
PART_LIMITS = {HOT: (260, 450, 205), FIVE: (1, 3, 4), HOLD: (10, 25, 14), RESET: (260, 450, 205)}
# Every third user of these kinds has balances beside the limit: one for three months, one for good.
BALANCES = {FIVE: (2, 3), HOLD: (6, 9)}
COUNTS = {HOT: HOT_SETS * 8, FIVE: FIVE_USERS, HOLD: HOLD_SETS * HOLD_SET, RESET: RESET_USERS}
# The client gives up after this time, seconds after the service's deadline.
TIMEOUT_SECONDS = 8.0
UNCOUNTED = {"UNAVAILABLE", "OVERLOADED", "DRAINING", "INTERNAL", "UNKNOWN"}


def user_id(kind: int, index: int) -> str:
    # Spread over the whole range, so that order by id is not order by index.
    return numbered_user(index, kind, (index * 2654435761) & 0xFFFFFFFF)


def member_id(account: str, index: int) -> str:
    return account.replace("-4000-", f"-4{index:03}-")


def record_user(recorder: Recorder, kind: int, user: str) -> None:
    """Writes the user's limits to the history before the first request."""
    parts = {part: {"limit": limit, "weight": WEIGHTS[part]} for part, limit in zip(WEIGHTS, PART_LIMITS[kind])}
    recorder.user(user, LIMITS[kind], parts if is_account(user) else {}, sum(balances(kind, user)))


def balances(kind: int, user: str) -> tuple[int, ...]:
    return BALANCES.get(kind, ()) if int(user[-12:]) % 3 == 0 else ()


def is_account(user: str) -> bool:
    return int(user[-1]) % 2 == 0


def random_parts(chance: random.Random, user: str) -> dict[str, str]:
    """A model and a member of an account; nothing of another user."""
    return {"model": chance.choice(MODELS), "member": member_id(user, chance.randrange(MEMBERS))} if is_account(user) else {}


def setup_sql() -> str:
    """Plans and users. The ids are computed as in user_id."""
    parts = ["begin;"]
    for kind, plan in PLANS.items():
        limits = [
            "('{}', '{}', '{}', {}, {})".format(plan, *part.split(), limit, WEIGHTS[part])
            for part, limit in zip(WEIGHTS, PART_LIMITS[kind])
        ]
        parts.append(
            f"insert into headroom.plans (plan, label, cycle, allowance) values ('{plan}', '{plan}', 'monthly', {LIMITS[kind]});"
            f"insert into headroom.plan_limits (plan, kind, name, allowance, weight) values {', '.join(limits)};"
            f"create temporary table u{kind} as select (lpad(to_hex((i * 2654435761) & 4294967295), 8, '0')"
            f" || '-000{kind}-4000-8000-' || lpad(i::text, 12, '0'))::uuid as id"
            f" from generate_series(0::bigint, {COUNTS[kind] - 1}) as i;"
            f"insert into headroom.subscribers (user_id) select id from u{kind};"
            f"insert into headroom.subscriptions (user_id, original_transaction_id, plan, started_at)"
            f" select id, 'operator', '{plan}', now() from u{kind};"
        )
        for key, expires, messages in zip(("months", "years"), ("now() + interval '90 days'", "'infinity'"), BALANCES.get(kind, ())):
            parts.append(
                "insert into headroom.grants (user_id, key, messages, granted_at, actor, expires_at)"
                f" select id, '{key}', {messages}, now(), 'test', {expires} from u{kind} where right(id::text, 12)::bigint % 3 = 0;"
            )
    parts.append("update headroom.subscribers set has_balances = true where user_id in (select user_id from headroom.grants);")
    parts.append("commit; analyze;")
    return "\n".join(parts)


# The fields of replies that the history records.
RECORDED_FIELDS = {"user", "used", "held", "limit", "remaining", "period", "reason", "released", "replayed", "degraded"}
RECORDED_FIELDS |= {f"{part}_{number}" for part in ("model", "member") for number in ("used", "limit", "remaining")}


def parse(line: bytes) -> tuple[str, str | None, dict[str, str]]:
    """Returns status, code and fields; quoted values (banners at the end of the line) are ignored."""
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    if text.startswith("-"):
        code, _, why = text[1:].partition(" ")
        return "ERROR", code, {"text": why[:90]}
    words = text[1:].split(' "', 1)[0].split(" ")
    fields = {}
    for word in words[1:]:
        name, separator, value = word.partition("=")
        if separator and name in RECORDED_FIELDS and not value.startswith('"'):
            fields[name] = value
    return words[0], None, fields


@dataclass
class Intent:
    """A caller's request, repeated with the same key if it has one."""

    verb: str
    user: str
    # Of a COMMIT: how many messages are to be counted.
    n: int = 0
    key: str | None = None
    ttl: int = 0
    # The model and the member of the messages. COMMIT and RELEASE do not send them, because the key has them.
    parts: dict[str, str] = field(default_factory=dict)
    # Whether a COMMIT counts all that is held, so that n need not be sent.
    is_whole: bool = False
    on_outcome: Callable[[str], None] | None = None
    is_retry: bool = False
    not_before: float = 0.0

    def line(self) -> bytes:
        parts = [self.verb, self.user]
        if self.verb == "COMMIT" and not self.is_whole or self.verb in ("CONSUME", "CHECK", "RESERVE"):
            parts.append(str(self.n))
        if self.key:
            parts.append(f"key={self.key}")
        if self.ttl:
            parts.append(f"ttl={self.ttl}")
        if self.verb not in ("COMMIT", "RELEASE"):
            parts += [f"{kind}={name}" for kind, name in self.parts.items()]
        return " ".join(parts).encode() + b"\n"


@dataclass
class Link:
    """A client's connection to one instance."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    port: int

    def abort(self) -> None:
        self.writer.transport.abort()


@dataclass
class Client:
    workload: Workload
    id: int
    kind: int
    random: random.Random
    links: dict[int, Link] = field(default_factory=dict)
    waiting: deque[Intent] = field(default_factory=deque)
    unresolved: int = 0
    serial: int = 0

    async def run(self) -> None:
        while not self.workload.is_over:
            await self.workload.running.wait()
            await self.turn()
            await asyncio.sleep(self.workload.pause * self.random.random())

    async def turn(self) -> None:
        """One burst to each of one or two instances at the same time."""
        first = self.random.randrange(2)
        bursts: dict[int, list[Intent]] = {first: self.burst()}
        if self.random.random() < 0.4:
            bursts[1 - first] = self.burst()
        repeated = [
            intent for intent in bursts[first]
            if intent.key and not intent.is_retry and intent.verb == self.repeatable and self.random.random() < 0.3
        ]
        for intent in repeated:
            # Repeats keys: half of them now on the other instance, concurrently, half of them later.
            repetition = replace(intent, is_retry=True, on_outcome=None, not_before=0.0)
            if self.random.random() < 0.5:
                bursts.setdefault(1 - first, []).append(repetition)
            else:
                self.waiting.append(repetition)
        await asyncio.gather(*(self.exchange(i, burst) for i, burst in bursts.items() if burst))

    @property
    def repeatable(self) -> str:
        return "RESERVE" if self.kind == HOLD else "CONSUME"

    def burst(self) -> list[Intent]:
        intents: list[Intent] = []
        now = time.monotonic()
        for _ in range(min(len(self.waiting), 4)):
            intent = self.waiting.popleft()
            if intent.not_before <= now:
                intents.append(intent)
            else:
                self.waiting.append(intent)
        if self.kind == FIVE and self.random.random() < 0.3:
            # Several requests of one user at once, of which only some fit.
            first = self.make_five(self.random.randrange(FIVE_USERS))
            intents.append(self.with_recorded_user(first))
            for _ in range(self.random.randrange(2, 5)):
                key = self.new_key() if self.random.random() < 0.5 else None
                more = Intent("CONSUME", first.user, n=self.random.choice((1, 1, 2, 3, 4)), key=key)
                intents.append(self.with_recorded_user(more))
            return intents
        while len(intents) < self.random.choice((1, 1, 2, 4, 8)):
            intents.append(self.make_intent())
        return intents

    def new_key(self) -> str:
        self.serial += 1
        return f"c{self.id}-{self.serial}"

    # Generating requests -------------------------------------------------------------------------------------------

    def make_intent(self) -> Intent:
        intent = {HOT: self.make_hot, FIVE: self.make_five, HOLD: self.make_hold, RESET: self.make_reset}[self.kind]()
        return self.with_recorded_user(intent)

    def with_recorded_user(self, intent: Intent) -> Intent:
        """Of an account, with a model and a member."""
        record_user(self.workload.recorder, self.kind, intent.user)
        intent.parts = random_parts(self.random, intent.user)
        return intent

    def make_hot(self) -> Intent:
        hot_set = self.workload.hot_set % HOT_SETS
        user = user_id(HOT, hot_set * 8 + self.random.randrange(8))
        roll = self.random.random()
        if roll < 0.05:
            return Intent(self.random.choice(("CHECK", "USAGE")), user, n=1)
        n = 1 if self.random.random() < 0.9 else self.random.randrange(2, 6)
        key = self.new_key() if roll < 0.7 else None
        intent = Intent("CONSUME", user, n=n, key=key)
        intent.on_outcome = self.after_hot(intent, hot_set)
        return intent

    def after_hot(self, intent: Intent, hot_set: int) -> Callable[[str], None]:
        def act(status: str) -> None:
            if status == "BLOCKED":
                self.workload.hot_blocked(hot_set)
            elif status == "ALLOWED" and intent.key and self.random.random() < 0.03:
                # The same key for another request must be a conflict.
                if intent.parts and self.random.random() < 0.5:
                    other = {"model": next(model for model in MODELS if model != intent.parts["model"])}
                    self.waiting.append(replace(intent, parts=intent.parts | other, is_retry=True, on_outcome=None))
                else:
                    self.waiting.append(replace(intent, n=intent.n + 1, is_retry=True, on_outcome=None))

        return act

    def make_five(self, index: int | None = None) -> Intent:
        if index is None:
            # Log-uniform, as in Zipf's law: few users are frequent, most are rare.
            index = int(FIVE_USERS ** self.random.random()) - 1
        n = self.random.choice((1, 1, 1, 1, 2, 2, 3, 4))
        key = self.new_key() if self.random.random() < 0.5 else None
        return Intent("CONSUME", user_id(FIVE, index), n=n, key=key)

    def make_hold(self) -> Intent:
        index = self.workload.hold_set % HOLD_SETS * HOLD_SET + self.random.randrange(HOLD_SET)
        intent = Intent("RESERVE", user_id(HOLD, index), n=self.random.randrange(1, 4), key=self.new_key(), ttl=2)
        intent.on_outcome = self.after_hold(intent)
        return intent

    def after_hold(self, intent: Intent) -> Callable[[str], None]:
        def act(status: str) -> None:
            if status == "BLOCKED":
                self.workload.hold_blocked()
            if status != "HELD":
                return
            roll, now = self.random.random(), time.monotonic()
            if roll < 0.34:
                n = self.random.choice((intent.n, self.random.randint(0, intent.n)))
                is_whole = n == intent.n and self.random.random() < 0.5
                commit = Intent("COMMIT", intent.user, n=n, key=intent.key, parts=intent.parts, is_retry=True, is_whole=is_whole)
                if self.random.random() < 0.2:
                    commit.on_outcome = lambda _: self.follow("RELEASE", intent)
                self.waiting.append(commit)
                if self.random.random() < 0.1:
                    # Another number than was committed must be a conflict.
                    self.follow("COMMIT", intent)
            elif roll < 0.67:
                self.follow("RELEASE", intent)
                if self.random.random() < 0.2:
                    self.follow("COMMIT", intent)
            elif roll < 0.75:
                # At about the time at which the hold expires.
                self.follow("COMMIT", intent, now + 1.5 + self.random.random())

        return act

    def follow(self, verb: str, intent: Intent, not_before: float = 0.0) -> None:
        """Sends RELEASE of a key, or COMMIT of all that it holds."""
        n = intent.n if verb == "COMMIT" else 0
        followed = Intent(verb, intent.user, n=n, key=intent.key, parts=intent.parts, is_retry=True, is_whole=True, not_before=not_before)
        self.waiting.append(followed)

    def make_reset(self) -> Intent:
        user = user_id(RESET, self.random.randrange(RESET_USERS))
        if self.random.random() < 0.05:
            return Intent("CHECK", user, n=1)
        intent = Intent("CONSUME", user, n=self.random.choice((1, 1, 1, 3)), key=self.new_key())
        if self.random.random() < 0.1:
            # Released at once, or later, probably after a reset.
            later = time.monotonic() + self.random.choice((0.0, 0.6))
            intent.on_outcome = lambda status: self.follow("RELEASE", intent, later) if status == "ALLOWED" else None
        return intent

    # Sending requests ------------------------------------------------------------------------------------------------

    async def exchange(self, instance: int, burst: list[Intent]) -> None:
        link = await self.link(instance)
        if link is None:
            # Nothing was sent, so nothing is recorded.
            self.waiting.extend(intent for intent in burst if intent.key)
            await asyncio.sleep(0.03)
            return
        recorder = self.workload.recorder
        sent: list[tuple[int, Intent]] = []
        for intent in burst:
            op = recorder.send(
                self.id, instance, intent.verb, intent.user, n=intent.n, key=intent.key, ttl=intent.ttl, **intent.parts
            )
            sent.append((op, intent))
        self.unresolved += len(sent)
        link.writer.write(b"".join(intent.line() for intent in burst))
        troubled = await self.collect(instance, link, sent)
        self.unresolved -= len(sent)
        if troubled:
            await asyncio.sleep(0.02 + 0.05 * self.random.random())

    async def collect(self, instance: int, link: Link, sent: list[tuple[int, Intent]]) -> bool:
        """Reads a reply for each request; returns whether any was an error or missing."""
        troubled, closed = False, ""
        until = time.monotonic() + TIMEOUT_SECONDS
        for op, intent in sent:
            line = b""
            if not closed:
                try:
                    line = await asyncio.wait_for(link.reader.readline(), max(until - time.monotonic(), 0.01))
                except (asyncio.TimeoutError, TimeoutError):
                    closed = "SILENT"
                except (OSError, ValueError):
                    closed = "CLOSED"
                if not line.endswith(b"\n"):
                    closed = closed or "CLOSED"
            if closed:
                self.workload.recorder.reply(op, closed)
                self.repeat(intent)
                continue
            status, code, fields = parse(line)
            self.workload.recorder.reply(op, status, code, fields)
            if code in UNCOUNTED:
                troubled = True
                self.repeat(intent)
            elif intent.on_outcome:
                intent.on_outcome(status)
        if closed:
            link.abort()
            self.links.pop(instance, None)
        elif extra := bytes(link.reader._buffer):  # type: ignore[attr-defined]  # no public way to look without waiting
            self.workload.recorder.write(t="extra", at=time.monotonic_ns(), i=instance, line=extra.decode("utf-8", "replace"))
            link.abort()
            self.links.pop(instance, None)
        return troubled or bool(closed)

    def repeat(self, intent: Intent) -> None:
        # Retried until answered if it has a key; without one it stays unknown.
        if intent.key:
            intent.is_retry = True
            self.waiting.append(intent)

    async def link(self, instance: int) -> Link | None:
        port = self.workload.port_of(instance)
        link = self.links.get(instance)
        if link is not None and link.port == port and not link.reader.at_eof():
            return link
        if link is not None:
            link.abort()
            del self.links[instance]
        if port is None:
            return None
        try:
            reader, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), 3)
        except (OSError, asyncio.TimeoutError, TimeoutError):
            return None
        self.links[instance] = Link(reader=reader, writer=writer, port=port)
        return self.links[instance]

    async def settle(self, until: float) -> None:
        """Retries with the same keys until everything is answered."""
        while self.waiting and time.monotonic() < until:
            burst = [self.waiting.popleft() for _ in range(min(len(self.waiting), 16))]
            for intent in burst:
                intent.on_outcome = None
            await self.exchange(self.random.randrange(2), burst)

    def close(self) -> None:
        for link in self.links.values():
            link.abort()
        self.links.clear()


class Workload:
    """All clients of one run."""

    def __init__(
        self, recorder: Recorder, seed: int, port_of: Callable[[int], int | None], kinds: tuple[int, ...] = (HOT, FIVE, HOLD, RESET)
    ) -> None:
        self.recorder = recorder
        self.port_of = port_of
        self.random = random.Random(seed)
        self.hot_set = self.hold_set = 0
        self.blocked_hot = self.blocked_holds = 0
        self.is_over = False
        self.pause = 0.008
        self.running = asyncio.Event()
        self.running.set()
        shares = {HOT: 10, FIVE: 6, HOLD: 5, RESET: 3}
        self.clients: list[Client] = []
        for kind in kinds:
            for _ in range(shares[kind]):
                number = len(self.clients)
                self.clients.append(Client(workload=self, id=number, kind=kind, random=random.Random(f"{seed}/{number}")))
        self.tasks: list[asyncio.Task[None]] = []

    def hot_blocked(self, hot_set: int) -> None:
        """Chooses new hot users when the present ones have used everything up."""
        if hot_set == self.hot_set % HOT_SETS:
            self.blocked_hot += 1
            if self.blocked_hot > 200:
                self.hot_set += 1
                self.blocked_hot = 0

    def hold_blocked(self) -> None:
        self.blocked_holds += 1
        if self.blocked_holds > 100:
            self.hold_set += 1
            self.blocked_holds = 0

    def start(self) -> None:
        self.tasks = [asyncio.create_task(client.run()) for client in self.clients]

    async def stop(self) -> None:
        self.is_over = True
        self.running.set()
        await asyncio.gather(*self.tasks)

    async def settle(self, seconds: float) -> int:
        """The number of keyed operations without an answer after retrying for this many seconds."""
        until = time.monotonic() + seconds
        await asyncio.gather(*(client.settle(until) for client in self.clients))
        for client in self.clients:
            client.close()
        return sum(len(client.waiting) for client in self.clients)
