"""What the clients in clients/ do with several instances of one service."""

import time

from support import processes
from support.case import called_by
from support.client_case import ClientCase
from support.faulty_port import FaultyPort
from support.load import Caller, end_without_failures, stop_during_calls, wait_for_more
from support.packaged_clients import PythonClient
from support.waiting import wait_until


class SeveralInstances(ClientCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.other = cls.serve()

    def each_of_two(self, check, **options):
        """Calls `check(client, near, far)` for each client, with a port before each of two instances."""
        for driver in self.drivers:
            with self.subTest(client=driver.name):
                ports = [(each.http_port if driver.is_http else each.port) for each in (self.service, self.other)]
                near, far = (FaultyPort(port, driver.is_http) for port in ports)
                client = driver.connect(self.url(driver, near.port, far.port), **options)
                check(client, near, far)
                client.close()
                near.close()
                far.close()

    @called_by("each_of_two")
    def test_calls_go_to_the_first_while_it_answers(self, client, near, far):
        user = self.subscriber(used=10)
        self.assertEqual([client.call("consume", user)["used"] for _ in range(5)], [11, 12, 13, 14, 15])
        self.assertEqual((len(near.verbs), far.verbs), (5, []))

    @called_by("each_of_two")
    def test_a_draining_one_is_left_at_once_and_preferred_again_after_a_pause(self, client, near, far):
        user = self.subscriber(used=10)
        near.faults = [("CONSUME", self.instead("DRAINING", "shutting down", line=near))] * 1_000
        since = time.monotonic()
        self.assertEqual([client.call("consume", user)["used"] for _ in range(20)], list(range(11, 31)))
        # After each -DRAINING it rests for a second at least.
        self.assertLessEqual(len(near.verbs), 1 + int(time.monotonic() - since))
        self.assertEqual(len(far.verbs), 20, "each call is answered by the other one, and counts once")
        near.faults = []
        seen = len(near.verbs)
        wait_until(lambda: client.call("check", user)["allowed"] and len(near.verbs) >= seen + 5, "calls go to the first one")
        self.assertEqual(self.count(user), 30)

    def test_one_where_nobody_listens_is_left_at_once(self):
        for driver in self.drivers:
            with self.subTest(client=driver.name):
                client = driver.connect(self.url(driver, processes.free_port(), self.port(driver.is_http)))
                self.assertEqual([client.call("consume", user)["used"] for user in [self.user()] * 3], [1, 2, 3])
                client.close()

    @called_by("each_of_two", attempt_seconds=1)
    def test_a_call_that_one_did_not_answer_in_time_counts_once_at_the_other(self, client, near, far):
        user = self.subscriber(used=10)
        near.is_silent = True
        answers = [client.call("consume", user, key=f"key-{number}") for number in range(3)]
        self.assertEqual([answer["status"] for answer in answers], ["allowed"] * 3)
        self.assertEqual(self.count(user), 13)
        self.assertGreaterEqual(len(far.verbs), 3)

    def test_with_spread_each_client_has_a_first_one_of_its_own(self):
        for driver in self.drivers:
            with self.subTest(client=driver.name):
                ports = [FaultyPort(self.port(driver.is_http), driver.is_http) for _ in range(2)]
                clients = 0
                # With one chance in 2^39, all 40 have the same. A client that speaks HTTP takes a while to create.
                while clients < 40 and not all(port.verbs for port in ports):
                    client = driver.connect(self.url(driver, *(each.port for each in ports)), spread=True)
                    client.call("check", self.user())
                    client.close()
                    clients += 1
                asked = [len(port.verbs) for port in ports]
                self.assertEqual(sum(asked), clients)
                self.assertGreater(min(asked), 0)
                for port in ports:
                    port.close()

    def test_a_list_of_urls_names_instances_as_well(self):
        for driver in self.drivers:
            with self.subTest(client=driver.name):
                urls = [self.url(driver, port) for port in (processes.free_port(), self.port(driver.is_http))]
                client = driver.connect(urls)
                self.assertEqual(client.call("consume", self.user())["used"], 1)
                client.close()

    def test_no_call_fails_while_each_instance_restarts_in_turn(self):
        instances = [self.serve(), self.serve()]
        callers = []
        for driver in self.drivers:
            ports = [(each.http_port if driver.is_http else each.port) for each in instances]
            # Half of the clients prefer the second one.
            for order in (ports, ports[::-1]):
                callers.append(ClientCaller(driver.connect(self.url(driver, *order)), self.subscriber("pro")).start())
        for index, instance in enumerate(instances):
            wait_for_more(callers)
            stop_during_calls(self, instance, callers)
            wait_for_more(callers)
            addresses = ("--listen", f"127.0.0.1:{instance.port}", "--http", f"127.0.0.1:{instance.http_port}")
            instances[index] = self.serve(*addresses)
        wait_for_more(callers)
        end_without_failures(self, callers)

    def test_a_host_without_a_name_is_refused_at_once(self):
        for is_http in (False, True):
            with self.assertRaisesRegex(ValueError, "names no host"):
                PythonClient(is_http).connect(f"{'http' if is_http else 'headroom'}://127.0.0.1:6747,")


class ClientCaller(Caller):
    def __init__(self, client, user):
        super().__init__(user)
        self.client = client

    def consume(self, key):
        self.client.call("consume", self.user, key=key)

    def close(self):
        self.client.close()
