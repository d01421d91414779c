"""What each picture of a running cluster does: it shows every second what has happened, and starts again what has ended."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from typing import Any

import screen
from instance import Instance


class LiveScreen(ABC):
    def __init__(self) -> None:
        # When each node was seen to have died.
        self.died: dict[str, float] = {}
        self.events: list[str] = []

    @abstractmethod
    async def next_moment(self) -> Any:
        """What the next second shows."""

    @abstractmethod
    def whole_screen(self, moment: Any, about: list[str]) -> str: ...

    @abstractmethod
    def one_line(self, moment: Any) -> str: ...

    @abstractmethod
    async def start_again(self) -> None:
        """What a service manager does: starts what has ended."""

    async def follow(self, about: list[str], proposals: list[str], seconds: float) -> None:
        """Shows each second on a terminal as a screen, elsewhere as a line."""
        is_terminal = sys.stdout.isatty()
        if is_terminal:
            sys.stdout.write(screen.CLEAR)
        else:
            print("\n".join([*about, "", *(f"To {line}" for line in proposals), ""]), flush=True)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            moment = await self.next_moment()
            if is_terminal:
                sys.stdout.write(self.whole_screen(moment, about))
            else:
                for event in moment.events:
                    print(event)
                self.events.clear()
                print(self.one_line(moment))
            sys.stdout.flush()
            await self.start_again()

    async def start_instance(self, instance: Instance, name: str = "the service") -> None:
        if instance.status is not None:
            self.say_event(f"{name} ended with {instance.status} and is started again")
            await instance.start()

    def is_due(self, name: str, after: float) -> bool:
        """Whether a node that has died is to be started now: this many seconds after it was first seen so."""
        if name not in self.died:
            self.died[name] = time.monotonic()
            self.say_event(f"{name} has died; it is started again in {after} s")
        if time.monotonic() - self.died[name] < after:
            return False
        self.say_event(f"{name} is started again")
        del self.died[name]
        return True

    def say_event(self, text: str) -> None:
        self.events.append(f"{time.strftime('%H:%M:%S')} {text}")
