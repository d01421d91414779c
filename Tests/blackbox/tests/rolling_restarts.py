"""Instances are replaced one after the other under load, and no client sees an error."""

import asyncio
import itertools

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry
from support.case import Case
from support.load import PAUSE_SECONDS, Caller, end_without_failures, stop_during_calls, wait_for_more
from support.packaged_clients import headroom_client
from support.service_manager import ServiceManager
from support.waiting import TIMEOUT_SECONDS

AT_A_TIME = 4
"""Calls of a `Concurrent` client."""


class Blocking(Caller):
    """`Headroom`."""

    def __init__(self, user, url):
        super().__init__(user)
        self.headroom = headroom_client.Headroom(url, timeout=TIMEOUT_SECONDS, attempt_timeout=TIMEOUT_SECONDS)

    def consume(self, key):
        assert self.headroom.consume(self.user, key=key).allowed

    def close(self):
        self.headroom.close()


class Concurrent(Caller):
    """`AsyncHeadroom`, with several calls at a time."""

    def __init__(self, user, url):
        super().__init__(user)
        self.loop, self.url = asyncio.new_event_loop(), url

    def _run(self):
        self.loop.run_until_complete(self._call_all())

    async def _call_all(self):
        async with headroom_client.AsyncHeadroom(self.url, timeout=TIMEOUT_SECONDS, attempt_timeout=TIMEOUT_SECONDS) as headroom:

            async def call():
                while not self.is_over.is_set():
                    with self.call():
                        assert (await headroom.consume(self.user)).allowed
                    await asyncio.sleep(AT_A_TIME * PAUSE_SECONDS)

            await asyncio.gather(*(call() for _ in range(AT_A_TIME)))

    def close(self):
        self.loop.close()


class PlainPool(Caller):
    """A pool of redis-py that knows nothing of Headroom, except that it tries again after a lost connection and after an error."""

    def __init__(self, user, port):
        super().__init__(user)
        # An error that is permanent fails after the last retry as well.
        retried = [redis.ConnectionError, redis.TimeoutError, redis.ResponseError]
        self.redis = redis.Redis(
            host="127.0.0.1", port=port, retry=Retry(ConstantBackoff(0.02), 200), retry_on_error=retried, protocol=2,
            socket_timeout=TIMEOUT_SECONDS, decode_responses=True,
        )  # fmt: skip

    def consume(self, key):
        reply = self.redis.execute_command("CONSUME", self.user, f"key={key}")
        assert reply.startswith("ALLOWED "), reply

    def close(self):
        self.redis.close()


class RollingRestarts(Case):
    FLAGS = None

    def subscriber_of(self, service):
        user = self.user()
        self.assertIn("+OK ", service.send_command(f"SETPLAN {user} pro"))
        return user

    def run_under_load(self, service, make_clients, events):
        """Each event, which gets the clients, happens while every client gets answers, before and after it."""
        clients = [make.start() for make in make_clients(lambda: self.subscriber_of(service))]
        for event in [*events, None]:
            wait_for_more(clients)
            if event:
                event(clients)
        end_without_failures(self, clients)

    def urls(self, instances, is_http):
        ports = [(each.http_port if is_http else each.port) for each in instances]
        scheme = "http" if is_http else "headroom"
        return [f"{scheme}://" + ",".join(f"127.0.0.1:{port}" for port in order) for order in (ports, ports[::-1])]

    def library_clients(self, instances):
        def make(new_user):
            urls = [url for is_http in (False, True) for url in self.urls(instances, is_http)]
            return [kind(new_user(), url) for kind, url in itertools.product((Blocking, Concurrent), urls)]

        return make

    @staticmethod
    def addresses(instance):
        return ("--listen", f"127.0.0.1:{instance.port}", "--http", f"127.0.0.1:{instance.http_port}")

    def test_two_instances_that_restart_on_their_ports_fail_no_call_of_the_library(self):
        instances = [self.serve(), self.serve()]

        def restart(clients, index):
            old = instances[index]
            stop_during_calls(self, old, clients)
            instances[index] = self.serve(*self.addresses(old))

        events = [lambda clients, index=index: restart(clients, index) for index in (0, 1, 0)]
        self.run_under_load(instances[0], self.library_clients(list(instances)), events)

    def test_an_instance_that_restarts_behind_inherited_sockets_fails_no_call(self):
        manager = ServiceManager()
        self.addCleanup(manager.close)
        running = [self.serve(manager=manager)]

        def restart(clients):
            stop_during_calls(self, running[0], clients)
            running[0] = self.serve(manager=manager)

        self.run_under_load(running[0], self.clients_of_one_address(running[0]), [restart, restart])

    def test_an_instance_that_is_replaced_on_a_shared_port_fails_no_call(self):
        running = [self.serve("--reuse-port", "on")]

        def replace(clients):
            old = running[0]
            running[0] = self.serve(*self.addresses(old), "--reuse-port", "on")
            stop_during_calls(self, old, clients)

        self.run_under_load(running[0], self.clients_of_one_address(running[0]), [replace, replace])

    def clients_of_one_address(self, instance):
        def make(new_user):
            clients = self.library_clients([instance])(new_user)
            return clients + [PlainPool(new_user(), instance.port) for _ in range(4)]

        return make
