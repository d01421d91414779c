"""Under a service manager such as systemd: sockets that it has opened, and what the service tells it."""

import signal
import time

from support.case import Case
from support.certificates import Authority
from support.service_manager import ServiceManager
from support.waiting import wait_until
from support.wire import LineConnection


class InheritedSockets(Case):
    FLAGS = None

    def manager(self, *arguments, **options):
        manager = ServiceManager(*arguments, **options)
        self.addCleanup(manager.close)
        return manager

    def test_the_service_serves_both_sockets_and_its_ready_line_has_their_addresses(self):
        manager = self.manager()
        service = self.serve(manager=manager)
        self.assertEqual((service.port, service.http_port), (manager.port("line"), manager.port("http")))
        user = self.user()
        self.assertIn("+ALLOWED", service.send_command(f"CONSUME {user}"))
        self.assertEqual(service.http("GET", f"/v1/usage/{user}").json["used"], 1)
        self.assertEqual(service.stop(), 0)

    def test_one_socket_alone_leaves_the_other_port_to_the_setting(self):
        manager = self.manager(["line"])
        service = self.serve("--http", "off", manager=manager)
        self.assertEqual((service.port, service.http_port), (manager.port("line"), None))

    def test_sockets_without_names_are_found_by_the_ports_of_the_settings(self):
        manager = self.manager(file_descriptor_names=["headroom.socket", "headroom.socket"])
        flags = ["--listen", f"127.0.0.1:{manager.port('line')}", "--http", f"127.0.0.1:{manager.port('http')}"]
        service = self.serve(*flags, manager=manager)
        self.assertEqual((service.port, service.http_port), (manager.port("line"), manager.port("http")))
        self.assertEqual(service.http("GET", "/healthz").status, 200)

    def refusal(self, manager, *flags):
        service = self.serve(*flags, manager=manager, wait=False)
        self.assertNotEqual(service.wait(), 0)
        return service.log()

    def test_a_setting_that_contradicts_a_socket_is_refused_by_name(self):
        manager = self.manager()
        self.assertRegex(self.refusal(manager, "--listen", "127.0.0.1:1"), "listen=127.0.0.1:1 contradicts the service manager's socket")
        self.assertRegex(self.refusal(manager, "--http", "off"), "http=off contradicts the service manager's socket")
        self.assertIn("reuse-port=on is for ports that the service opens", self.refusal(manager, "--reuse-port", "on"))
        strange = self.manager(file_descriptor_names=["one", "two"])
        self.assertIn("is neither for listen nor for http: set FileDescriptorName=line or http", self.refusal(strange))

    def test_a_socket_that_other_machines_can_reach_needs_tls_and_tokens_like_a_setting(self):
        manager = self.manager(["line"], host="0.0.0.0")
        self.assertIn(f"listen=0.0.0.0:{manager.port('line')} can be reached by other machines", self.refusal(manager))
        service = self.serve("--trusted-network", "yes", manager=manager, wait=False)
        wait_until(lambda: f"listen=0.0.0.0:{manager.port('line')}" in service.output(), "the ready line")

    def test_a_connection_during_a_restart_waits_for_the_next_instance(self):
        manager = self.manager()
        service = self.serve(manager=manager)
        user = self.user()
        self.assertIn("+ALLOWED", service.send_command(f"CONSUME {user}"))
        self.assertEqual(service.stop(), 0)
        with LineConnection(manager.port("line")) as connection:
            connection.send(f"CONSUME {user}\n")
            service = self.serve(manager=manager)
            self.assertIn("+ALLOWED", connection.read_line())
        self.assertEqual(self.count(user), 2)


class Notifications(Case):
    FLAGS = None

    def manager(self, **variables):
        manager = ServiceManager(**variables)
        self.addCleanup(manager.close)
        return manager

    def test_it_says_when_it_is_ready_and_when_it_stops(self):
        manager = self.manager()
        service = self.serve(manager=manager, wait=False)
        self.assertEqual(manager.next_state(), {"READY": "1"})
        service.ready()
        service.signal(signal.SIGTERM)
        self.assertEqual(manager.next_state(), {"STOPPING": "1"})
        self.assertEqual(service.wait(), 0)

    def test_it_says_that_it_stops_when_the_drain_delay_begins(self):
        manager = self.manager()
        service = self.serve("--drain-delay-ms", "600000", manager=manager)
        self.assertEqual(manager.next_state(), {"READY": "1"})
        service.signal(signal.SIGTERM)
        self.assertEqual(manager.next_state(), {"STOPPING": "1"})
        service.kill()

    def test_it_says_when_it_reloads_its_certificate(self):
        certificate, key = Authority().server()
        for flags in (["--tls-certificate", certificate, "--tls-key", key], []):
            with self.subTest(tls=bool(flags)):
                manager = self.manager()
                service = self.serve(*flags, manager=manager)
                self.assertEqual(manager.next_state(), {"READY": "1"})
                before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
                service.signal(signal.SIGHUP)
                reloading = manager.next_state()
                self.assertEqual(reloading.pop("RELOADING"), "1")
                after = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
                self.assertTrue(before <= int(reloading.pop("MONOTONIC_USEC")) <= after)
                self.assertEqual((reloading, manager.next_state()), ({}, {"READY": "1"}))

    def test_it_reports_to_the_watchdog_without_a_database(self):
        manager = self.manager(WATCHDOG_USEC="20000")
        service = self.serve(manager=manager)
        self.cluster.signal_all(signal.SIGSTOP)
        try:
            for _ in range(100):
                self.assertIn(manager.next_state(), ({"READY": "1"}, {"WATCHDOG": "1"}))
        finally:
            self.cluster.signal_all(signal.SIGCONT)
        self.assertEqual(service.stop(), 0)

    def test_a_watchdog_for_another_process_hears_nothing(self):
        manager = self.manager(WATCHDOG_USEC="1000", WATCHDOG_PID="1")
        service = self.serve(manager=manager)
        service.signal(signal.SIGTERM)
        self.assertEqual([manager.next_state(), manager.next_state()], [{"READY": "1"}, {"STOPPING": "1"}])

    def test_an_abstract_address_is_reached_and_one_without_a_receiver_is_ignored(self):
        manager = self.manager()
        manager.environment["NOTIFY_SOCKET"] = manager.listen_abstractly()
        service = self.serve(manager=manager, wait=False)
        self.assertEqual(manager.next_state(), {"READY": "1"})
        service.ready()
        manager.environment["NOTIFY_SOCKET"] = "@nobody-listens-here"
        other = self.serve(manager=manager)
        self.assertIn("+ALLOWED", other.send_command(f"CONSUME {self.user()}"))


class SharedPorts(Case):
    """The setting reuse-port."""

    FLAGS = None

    def on_ports_of(self, service, *flags):
        return ["--listen", f"127.0.0.1:{service.port}", "--http", f"127.0.0.1:{service.http_port}", *flags]

    def test_a_second_instance_opens_the_same_ports_and_serves_when_the_first_has_ended(self):
        first = self.serve("--reuse-port", "on")
        second = self.serve(*self.on_ports_of(first, "--reuse-port", "on"))
        self.assertEqual((second.port, second.http_port), (first.port, first.http_port))
        self.assertEqual(first.stop(), 0)
        user = self.user()
        self.assertIn("+ALLOWED", second.send_command(f"CONSUME {user}"))
        self.assertEqual(second.http("GET", f"/v1/usage/{user}").json["used"], 1)

    def test_without_it_on_both_sides_the_port_is_in_use(self):
        for first, second in (("off", "on"), ("on", "off")):
            service = self.serve("--reuse-port", first)
            other = self.serve(*self.on_ports_of(service, "--reuse-port", second), wait=False)
            self.assertNotEqual(other.wait(), 0)
            self.assertIn("another program uses that port", other.log())
