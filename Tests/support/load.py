"""Clients that send messages continuously and record each outcome."""

import threading
import time

from .waiting import TIMEOUT_SECONDS
from .wire import Answer, Closed


class Client:
    """One connection, one user: sends a message, waits for its answer, sends the next, until stopped."""

    def __init__(self, service, user, timeout=TIMEOUT_SECONDS):
        self.service = service
        self.user = user
        self.timeout = timeout
        self.stopping = threading.Event()
        self.used = []
        self.refused = []
        self.unknown = []
        """Replies with an unknown outcome, and lost connections."""
        self.last_allowed_at = None
        self.failure = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        line = None
        try:
            while not self.stopping.is_set():
                line = line or self.service.connect(self.timeout)
                try:
                    reply = line.send_command(f"CONSUME {self.user}")
                except (Closed, OSError) as error:
                    self.unknown.append(f"lost: {error}")
                    line = None
                    continue
                self._note(reply)
        except BaseException as failure:  # raised by `stop`
            self.failure = failure
        finally:
            if line:
                line.close()

    def _note(self, reply):
        if reply.startswith("+ALLOWED "):
            self.used.append(Answer(reply).used)
            self.last_allowed_at = time.monotonic()
        elif reply.startswith("-UNKNOWN "):
            self.unknown.append(reply)
        elif reply.startswith(("-UNAVAILABLE ", "-OVERLOADED ")):
            self.refused.append(reply)
        else:
            raise AssertionError(f"an unexpected reply: {reply}")


class Load:
    """Several clients on several users."""

    def __init__(self, services, users, clients_per_user=1):
        self.clients = [
            Client(services[(index + turn) % len(services)], user)
            for index, user in enumerate(users)
            for turn in range(clients_per_user)
        ]

    @property
    def allowed(self):
        return sum(len(client.used) for client in self.clients)

    @property
    def refused(self):
        return sum(len(client.refused) for client in self.clients)

    @property
    def unknown(self):
        return sum(len(client.unknown) for client in self.clients)

    @property
    def answers(self):
        return self.allowed + self.refused + self.unknown

    def every_client_allowed_since(self, instant):
        return all(client.last_allowed_at and client.last_allowed_at > instant for client in self.clients)

    def stop(self):
        for client in self.clients:
            client.stopping.set()
        for client in self.clients:
            client.thread.join(2 * TIMEOUT_SECONDS)
            if client.failure:
                raise client.failure
            assert not client.thread.is_alive(), "a client did not stop"

    def outcomes_of(self, user):
        """Values of `used` in the order of each client, and the number of unknown outcomes."""
        clients = [client for client in self.clients if client.user == user]
        return [client.used for client in clients], sum(len(client.unknown) for client in clients)
