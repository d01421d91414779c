"""Clients that send messages continuously and record each outcome."""

import contextlib
import signal
import threading
import time
import uuid

from .waiting import TIMEOUT_SECONDS, wait_until
from .wire import Answer, Closed

PAUSE_SECONDS = 0.02
"""Between two messages of a client: what tests of faults need is messages in progress at any time, not the machine's last cycle."""


class Client:
    """One connection, one user: sends a message, waits for its answer, pauses, sends the next, until stopped."""

    def __init__(self, service, user, timeout=TIMEOUT_SECONDS, pause=PAUSE_SECONDS, options=""):
        self.service = service
        self.user = user
        self.request = f"CONSUME {user} {options}".rstrip()
        self.timeout = timeout
        self.pause = pause
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
            while not self.stopping.wait(self.pause):
                line = line or self.service.connect(self.timeout)
                try:
                    reply = line.send_command(self.request)
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
    """Several clients on several users. `options` are those of each message."""

    def __init__(self, services, users, clients_per_user=1, pause=PAUSE_SECONDS, options=""):
        self.clients = [
            Client(services[(index + turn) % len(services)], user, pause=pause, options=options)
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


class Caller:
    """Sends one user's messages in a thread, each with a key of its own, one after the other. Every failure is one too many."""

    def __init__(self, user):
        self.user, self.answered, self.failures, self.calls, self.is_over = user, 0, [], 0, threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self.thread.start()
        return self

    def consume(self, key):
        raise NotImplementedError

    def close(self):
        """Closes the client, when no call is in progress any more."""

    @property
    def is_calling(self):
        return self.calls > 0

    def _run(self):
        while not self.is_over.wait(PAUSE_SECONDS):
            with self.call():
                self.consume(uuid.uuid4().hex)

    @contextlib.contextmanager
    def call(self):
        self.calls += 1
        try:
            yield
            self.answered += 1
        except Exception as error:
            self.failures.append(f"{type(error).__name__}: {error}")
        finally:
            self.calls -= 1


ENOUGH = 10
"""How many answers each caller gets between two events, so that each event happens under load."""


def wait_for_more(callers):
    enough = [caller.answered + ENOUGH for caller in callers]
    wait_until(
        lambda: all(caller.answered > count or caller.failures for caller, count in zip(callers, enough)), "more answers for each caller"
    )


def end_without_failures(case, callers):
    """Ends the callers: each call was answered, and each answered message is counted."""
    for caller in callers:
        caller.is_over.set()
    for caller in callers:
        caller.thread.join()
        caller.close()
        with case.subTest(caller=type(caller).__name__):
            case.assertEqual((caller.failures, caller.answered), ([], case.count(caller.user)))


def stop_during_calls(case, instance, callers):
    """Stops an instance while each caller waits for an answer, and says so by `is_calling`: nothing is counted until it drains."""
    locks = case.cluster.session(case.database)
    locks.run("begin; lock table message_usage in share row exclusive mode")
    try:
        case.wait_until_blocked()
        wait_until(lambda: all(caller.is_calling for caller in callers), "every caller has a call in progress")
        instance.signal(signal.SIGTERM)
        wait_until(lambda: "msg=draining" in instance.log() or not instance.is_running, "it drains")
    finally:
        locks.run("rollback")
        locks.close()
    case.assertEqual(instance.wait(), 0)
