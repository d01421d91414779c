"""A billing system that sends events to two instances, each again until it is answered with 200."""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone

from recorder import Recorder
from support import http as web
from support.users import numbered_user

SOURCE, PLAN = "faults", "hot"
CUSTOMERS = 4
# No messages are sent for these users: what they are granted is known from the events alone.
KIND = 9
TIMEOUT_SECONDS = 8.0
FINAL_SQL = f"""
select json_build_object('t', 'stored_event', 'id', id, 'outcome', outcome)
from headroom.billing_events where source = '{SOURCE}';
select json_build_object('t', 'granted', 'user', user_id, 'messages', sum(granted))
from message_usage where granted is not null group by user_id;
"""


@dataclass
class Customer:
    """Buys a plan, and then messages, again and again."""

    billing: Billing
    number: int
    random: random.Random
    purchases: int = 0

    @property
    def user(self) -> str:
        return str(numbered_user(self.number, KIND, self.number))

    async def run(self) -> None:
        while not self.billing.is_over:
            await self.send(self.next_event())
            await asyncio.sleep(0.1 * self.random.random())

    def next_event(self) -> dict[str, object]:
        self.purchases += 1
        name = f"{self.number}-{self.purchases}"
        at = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        event: dict[str, object] = {"source": SOURCE, "id": name, "at": at, "user": self.user, "transaction": name}
        if self.purchases == 1:
            return event | {"kind": "purchased", "plan": PLAN}
        return event | {"kind": "granted", "messages": self.random.randrange(1, 4)}

    async def send(self, event: dict[str, object]) -> None:
        """Returns when the event is answered, or no time is left."""
        billing = self.billing
        messages = event.get("messages", 0)
        billing.recorder.write(t="event", at=time.monotonic_ns(), id=event["id"], user=self.user, messages=messages)
        instance = self.random.randrange(2)
        while time.monotonic() < billing.until:
            status, answer = await asyncio.to_thread(post, billing.port_of(instance), event)
            if status:
                billing.recorder.write(t="event_reply", at=time.monotonic_ns(), id=event["id"], i=instance, status=status, **answer)
            if status == 200:
                return
            instance = 1 - instance
            await asyncio.sleep(0.1)
        billing.unanswered += 1


class Billing:
    def __init__(self, recorder: Recorder, seed: int, port_of: Callable[[int], int | None]) -> None:
        self.recorder, self.port_of = recorder, port_of
        self.is_over = False
        self.until = float("inf")
        self.unanswered = 0
        self.customers = [Customer(self, number, random.Random(f"billing/{seed}/{number}")) for number in range(CUSTOMERS)]
        self.tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self.tasks = [asyncio.create_task(customer.run()) for customer in self.customers]

    async def stop(self, seconds: float) -> int:
        """The number of events without an answer after this many seconds."""
        self.is_over = True
        self.until = time.monotonic() + seconds
        await asyncio.gather(*self.tasks)
        return self.unanswered


def post(port: int | None, event: dict[str, object]) -> tuple[int, dict[str, str]]:
    """The status of the answer and its outcome; 0 if there is no answer."""
    if port is None:
        return 0, {}
    try:
        answer = web.request(port, "POST", "/v1/billing-events", event, timeout=TIMEOUT_SECONDS)
        body = json.loads(answer.body)
    except (OSError, http.client.HTTPException, ValueError):
        return 0, {}
    return int(answer.status), {name: str(body[name]) for name in ("outcome", "error") if name in body}
