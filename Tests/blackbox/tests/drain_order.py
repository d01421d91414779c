"""The order in which an instance stops: not ready, then closed ports, then the last answers, then the end."""

import http.client
import json
import signal
import socket

from support import processes
from support.case import Case
from support.waiting import TIMEOUT_SECONDS, wait_until
from support.wire import LineConnection


class DrainOrder(Case):
    FLAGS = None

    def is_not_ready(self, service):
        answer = service.http("GET", "/readyz")
        return answer.status == 503 and answer.json["checks"]["accepting"] is False

    def test_during_the_drain_delay_it_is_not_ready_and_both_ports_still_accept_and_serve(self):
        service = self.serve("--drain-delay-ms", "600000")
        user = self.user()
        with service.connect() as before:
            self.assertIn("+ALLOWED", before.send_command(f"CONSUME {user}"))
            service.signal(signal.SIGTERM)
            wait_until(lambda: self.is_not_ready(service), "it is not ready")
            self.assertIn("+ALLOWED", before.send_command(f"CONSUME {user}"))
        self.assertIn("+ALLOWED", service.send_command(f"CONSUME {user}"))
        self.assertEqual(service.http("POST", f"/v1/usage/{user}/consume", {}).status, 200)
        self.assertEqual(self.count(user), 4)
        service.kill()

    def test_answers_over_http_end_their_connections_once_it_is_not_ready(self):
        service = self.serve("--drain-delay-ms", "600000")
        connection = http.client.HTTPConnection("127.0.0.1", service.http_port, timeout=TIMEOUT_SECONDS)
        for is_stopping in (False, True):
            if is_stopping:
                service.signal(signal.SIGTERM)
                wait_until(lambda: self.is_not_ready(service), "it is not ready")
            connection.request("GET", f"/v1/usage/{self.user()}")
            answer = connection.getresponse()
            self.assertEqual(json.loads(answer.read())["used"], 0)
            self.assertEqual(answer.getheader("Connection"), "close" if is_stopping else None)
        service.kill()

    def test_after_the_drain_delay_it_drains_and_ends_with_0(self):
        service = self.serve("--drain-delay-ms", "50", "--drain-timeout-ms", "300000")
        with service.connect() as connection:
            self.assertEqual(connection.send_command("PING"), "+PONG")
            service.signal(signal.SIGTERM)
            self.assertRegex(connection.read_to_end(), rb"\A\Z")
        self.assertEqual(service.wait(), 0)
        log = service.log()
        self.assertLess(log.index("the ports stay open for the drain delay"), log.index("msg=draining"))

    def test_a_second_signal_does_not_cut_the_drain_delay_short(self):
        service = self.serve("--drain-delay-ms", "600000")
        for _ in range(2):
            service.signal(signal.SIGTERM)
            wait_until(lambda: self.is_not_ready(service), "it is not ready")
        self.assertIn("+ALLOWED", service.send_command(f"CONSUME {self.user()}"))
        service.kill()

    def test_a_port_that_cannot_be_opened_ends_the_start_without_the_drain_delay(self):
        running = self.serve()
        flags = ("--http", f"127.0.0.1:{running.http_port}", "--drain-delay-ms", "600000")
        service = self.serve(*flags, wait=False)
        self.assertNotEqual(service.wait(TIMEOUT_SECONDS / 2), 0)
        self.assertIn("cannot be opened", service.log())

    def test_connections_that_wait_to_be_accepted_are_answered(self):
        for name, request in (("line", b"PING\n"), ("http", b"GET /v1/usage/%s HTTP/1.1\r\nHost: localhost\r\n\r\n")):
            with self.subTest(port=name):
                service = self.serve("--drain-timeout-ms", "300000", "--http-connections-maximum", "1024")
                port = service.port if name == "line" else service.http_port
                processes.pause(service.process.pid)
                # More than one iteration of the event loop accepts.
                peers = [socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS) for _ in range(200)]
                for peer in peers:
                    peer.sendall(request.replace(b"%s", self.user().encode()))
                service.signal(signal.SIGTERM)
                processes.resume(service.process.pid)
                answers = [self.read_to_end(peer) for peer in peers]
                self.assertEqual(service.wait(), 0)
                expected = rb"\A(\+PONG|-DRAINING [^\r\n]*)\r\n\Z" if name == "line" else rb"\AHTTP/1\.1 200 OK\r\n"
                for answer in answers:
                    self.assertRegex(answer, expected)

    def read_to_end(self, peer):
        """A reset raises, as it would at a client."""
        received = b""
        with peer:
            while data := peer.recv(65_536):
                received += data
        return received

    def test_a_request_over_http_that_waits_for_the_database_is_answered_before_the_end(self):
        service = self.serve("--drain-timeout-ms", "300000")
        user = self.user()
        self.assertIn("+ALLOWED", service.send_command(f"CONSUME {user}"))
        session = self.lock_rows(user)
        connection = http.client.HTTPConnection("127.0.0.1", service.http_port, timeout=TIMEOUT_SECONDS)
        connection.request("POST", f"/v1/usage/{user}/consume", "{}", {"Content-Type": "application/json"})
        self.wait_until_blocked()
        service.signal(signal.SIGTERM)
        wait_until(lambda: self.is_closed(service.http_port), "the port is closed")
        session.close()
        answer = connection.getresponse()
        self.assertEqual((answer.status, json.loads(answer.read())["used"]), (200, 2))
        self.assertEqual(service.wait(), 0)

    def is_closed(self, port):
        try:
            LineConnection(port).close()
        except (ConnectionRefusedError, ConnectionResetError):
            return True
        return False
