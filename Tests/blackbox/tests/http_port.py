"""The HTTP port: its address, TLS, limits and shutdown. Other files test the requests."""

import contextlib
import signal
import socket
import ssl

from support.case import Case
from support.certificates import Authority
from support.service import limited
from support.waiting import TIMEOUT_SECONDS, wait_until


class HTTPPort(Case):
    SHARED = True

    def connect(self, service):
        return socket.create_connection(("127.0.0.1", service.http_port), timeout=TIMEOUT_SECONDS)

    def exchange(self, service, *pieces):
        """All that comes back for these bytes, until the connection closes."""
        with self.connect(service) as connection:
            for piece in pieces:
                connection.sendall(piece)
            received = b""
            while chunk := connection.recv(65_536):
                received += chunk
            return received

    def test_off_is_off(self):
        service = self.serve("--http", "off")
        self.assertIn(" http=off\n", service.output())

    def test_a_port_that_is_taken_stops_the_service_where_it_was_asked_for(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            service = self.serve("--http", address, wait=False)
            self.assertNotEqual(service.wait(), 0)
            self.assertEqual(service.output(), "")
            self.assertIn(f"http={address} cannot be opened: another program uses that port; ", service.log())

    def test_a_default_port_that_is_taken_does_not_stop_the_counting(self):
        def stays_off():
            # The port belongs to this test, to another service, or to the same test of another run, which may end meanwhile.
            with contextlib.ExitStack() as held:
                with contextlib.suppress(OSError):
                    held.enter_context(socket.create_server(("127.0.0.1", 6748)))
                service = self.serve(env={"HEADROOM_HTTP": ""})
            if " http=off\n" in service.output():
                return service
            service.stop()
            return None

        service = wait_until(stays_off, "the port is taken when the service starts")
        self.assertIn("the HTTP server stays off, because its port is taken", service.log())
        self.assertTrue(service.send_command(f"CONSUME {self.user()}").startswith("+ALLOWED "))
        service.process.terminate()
        self.assertEqual(service.wait(), 0)

    def test_an_address_that_others_reach_is_refused(self):
        service = self.serve("--http", "0.0.0.0:0", wait=False)
        self.assertNotEqual(service.wait(), 0)
        self.assertRegex(service.log(), r"http=0\.0\.0\.0:0 can be reached by other machines.* --http 127\.0\.0\.1:0")

    def test_health_needs_no_token(self):
        service = self.serve("--authentication", "required")
        self.assertEqual(service.http("GET", "/healthz").status, 200)
        self.assertEqual(service.http("GET", "/readyz").status, 200)

    def test_what_is_not_there_is_a_problem(self):
        answer = self.service.http("GET", "/no/such/page")
        self.assertEqual(answer.status, 404)
        self.assertEqual(answer.headers["Content-Type"], "application/problem+json")
        self.assertEqual(answer.json["code"], "NOTFOUND")
        self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")

    def test_what_is_not_http_is_answered_and_closed(self):
        self.assertRegex(self.exchange(self.service, b"CONSUME someone\r\n\r\n"), rb"\AHTTP/1\.1 400 ")

    def test_too_many_header_fields_end_the_connection(self):
        fields = b"".join(b"X-%d: y\r\n" % number for number in range(200))
        answer = self.exchange(self.service, b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n")
        self.assertNotIn(b" 200 ", answer)

    def test_silence_is_closed(self):
        service = self.serve("--http-idle-timeout-ms", "1000")
        self.assertEqual(self.exchange(service), b"")
        self.assertEqual(self.exchange(service, b"GET /heal"), b"")

    def test_it_speaks_tls_with_the_services_certificate_and_asks_for_none(self):
        authority = Authority()
        certificate, key = authority.server()
        files = ["--tls-certificate", certificate, "--tls-key", key, "--tls-client-ca", authority.certificate]
        service = self.serve(*files)
        service.tls = authority.client_context()
        self.assertEqual(service.http("GET", "/healthz").status, 200)
        service.tls = ssl.create_default_context()
        with self.assertRaises(ssl.SSLCertVerificationError):
            service.http("GET", "/healthz")
        plain = self.serve(*files, "--http-tls", "off")
        self.assertEqual(plain.http("GET", "/healthz").status, 200)

    def test_a_body_that_breaks_off_is_the_peers_mistake(self):
        service = self.serve("--revenuecat-authorization", "secret")
        for broken in (
            b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        ):
            with self.subTest(broken=broken):
                head = b"POST /webhooks/revenuecat HTTP/1.1\r\nHost: x\r\nAuthorization: secret\r\n"
                self.assertRegex(self.exchange(service, head + broken), rb"\AHTTP/1\.1 400 ")
        self.assertNotIn("level=error", service.log())

    def test_a_body_that_nobody_reads_ends_the_connection(self):
        with self.connect(self.service) as connection:
            connection.sendall(b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nx")
            received = b""
            while chunk := connection.recv(65_536):
                received += chunk
        self.assertRegex(received, rb"\AHTTP/1\.1 405 ")
        self.assertIn(b"connection: close", received.lower())

    def test_running_out_of_descriptors_ends_neither_port(self):
        service = self.serve(binary=limited("ulimit -n 200"))
        lines, pages = [], []
        try:
            for _ in range(120):
                lines.append(socket.create_connection(("127.0.0.1", service.port), timeout=TIMEOUT_SECONDS))
                pages.append(socket.create_connection(("127.0.0.1", service.http_port), timeout=TIMEOUT_SECONDS))
        finally:
            for connection in lines + pages:
                connection.close()
        wait_until(lambda: service.http("GET", "/readyz").status == 200, "the HTTP server is back")
        # Until the ends of the others are noticed, they count.
        user = self.user()
        wait_until(lambda: service.send_command(f"CONSUME {user}").startswith("+ALLOWED "), "the line port is back")

    def test_half_a_request_does_not_hold_the_end_up(self):
        # Nothing else ends it as soon as it is waited for here.
        service = self.serve("--drain-timeout-ms", "300000")
        with self.connect(service) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHos")
            service.process.terminate()
            self.assertEqual(service.wait(), 0)

    def test_it_says_that_it_drains_while_requests_are_still_answered(self):
        service = self.serve("--drain-timeout-ms", "300000")
        wait_until(lambda: service.http("GET", "/readyz").status == 200, "all lanes are connected")
        user = self.user()
        locks = self.cluster.session(self.database)
        with service.connect() as connection:
            self.assertIn("+ALLOWED ", connection.send_command(f"CONSUME {user}"))
            # Something under way keeps the service up.
            locks.run("begin")
            locks.run("lock table message_usage in access exclusive mode")
            connection.send(f"CONSUME {user}\n")
            self.wait_until_blocked()
            service.process.terminate()
            wait_until(lambda: service.http("GET", "/readyz").status == 503, "that it is not ready any more")
            self.assertEqual(service.http("GET", "/healthz").status, 200)
            locks.close()
            self.assertIn("+ALLOWED ", connection.read_line())
        self.assertEqual(service.wait(), 0)


class HungDatabase(Case):
    OWN_CLUSTER = True
    # What a request of the HTTP server may take is much longer.
    FLAGS = ("--drain-timeout-ms", "1000", "--request-timeout-ms", "1000")

    def test_it_is_not_ready_and_the_service_ends_in_time_all_the_same(self):
        user = self.user()
        wait_until(lambda: self.service.http("GET", f"/dashboard/users/{user}").status == 200, "the page is read within the time")
        self.cluster.signal_all(signal.SIGSTOP)
        try:
            wait_until(lambda: self.service.http("GET", "/readyz").status == 503, "that it is not ready")
            self.assertEqual(self.service.http("GET", "/healthz").status, 200)
            with socket.create_connection(("127.0.0.1", self.service.http_port), timeout=TIMEOUT_SECONDS) as page:
                page.sendall(f"GET /dashboard/users/{user} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                self.service.process.terminate()
                self.assertEqual(self.service.wait(), 0)
        finally:
            self.cluster.signal_all(signal.SIGCONT)
