"""HTTP/2 on the HTTP port, where it has TLS: the same answers as over HTTP/1.1, requests side by side, and the limits of connections
for streams."""

import re
import signal
import socket
import ssl
import subprocess

from support.case import Case
from support.certificates import Authority
from support.http2 import HTTP2Connection
from support.waiting import TIMEOUT_SECONDS, wait_until
from support.wire import LineConnection

from . import http_counting


class WithTLS:
    """A service whose ports have TLS."""

    @classmethod
    def setUpClass(cls):
        cls.authority = Authority()
        certificate, key = cls.authority.server()
        cls.TLS = ("--tls-certificate", certificate, "--tls-key", key)
        cls.FLAGS = (*(cls.FLAGS or ()), *cls.TLS)
        super().setUpClass()
        cls.service.tls = cls.authority.client_context()

    def connect(self, service=None, **options):
        connection = HTTP2Connection((service or self.service).http_port, self.authority.client_context(), **options)
        self.addCleanup(connection.socket.close)
        return connection

    def serve_tls(self, *flags):
        service = self.serve(*self.TLS, *flags)
        service.tls = self.authority.client_context()
        return service


class OverHTTP2(WithTLS):
    """The cases of another class, over one connection of HTTP/2."""

    def ports(self):
        connection = self.connect()

        class HTTP2(http_counting.HTTP):
            def send(self, method, path, body, headers):
                return connection.request(method, path, body, headers)

        return [http_counting.Line(self.service), HTTP2(self.service)]


class Holds(OverHTTP2, http_counting.Holds):
    pass


class ActualAmounts(OverHTTP2, http_counting.ActualAmounts):
    pass


class TheSameAnswers(OverHTTP2, http_counting.TheSameOnBothPorts):
    # Its threads would share the connection; `Streams` has many requests at once.
    test_many_at_once_are_counted_exactly = None


class Streams(WithTLS, Case):
    def figure(self, connection, name):
        """A sample of /metrics."""
        return int(re.search(rf"(?m)^{re.escape(name)} (\d+)$", connection.request("GET", "/metrics").text)[1])

    def turned_away(self, connection, reason):
        return self.figure(connection, f'headroom_http_turned_away_total{{reason="{reason}"}}')

    def consume(self, connection, user, body=b"", **options):
        return connection.open("POST", f"/v1/usage/{user}/consume", body=body, **options)

    def test_a_client_chooses_the_protocol(self):
        for offered, chosen in ((["h2", "http/1.1"], "h2"), (["http/1.1"], "http/1.1"), (["other"], None), ([], None)):
            context = self.authority.client_context()
            context.set_alpn_protocols(offered)
            with LineConnection(self.service.http_port, tls=context) as connection:
                self.assertEqual(connection.socket.selected_alpn_protocol(), chosen)
                if chosen != "h2":
                    connection.socket.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    self.assertEqual(connection.socket.recv(15), b"HTTP/1.1 200 OK")
            with LineConnection(self.service.port, tls=context) as line:
                self.assertIsNone(line.socket.selected_alpn_protocol(), "the line protocol is neither")
                self.assertEqual(line.send_command("PING"), "+PONG")

    def test_curl_counts(self):
        user = self.subscriber()
        ran = subprocess.run(
            ["curl", "--silent", "--show-error", "--include", "--http2", "--cacert", self.authority.certificate, "--json", '{"n": 3}',
             f"https://localhost:{self.service.http_port}/v1/usage/{user}/consume"],
            capture_output=True, text=True, timeout=TIMEOUT_SECONDS,
        )  # fmt: skip
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertTrue(ran.stdout.startswith("HTTP/2 200"), ran.stdout)
        self.assertIn("\nratelimit: ", ran.stdout.replace("\r", ""))
        self.assertEqual(self.count(user), 3)

    def test_many_requests_on_one_connection_are_counted_exactly(self):
        user = self.subscriber(used=760)
        connection = self.connect()
        answers = [connection.answer(stream).json for stream in [self.consume(connection, user) for _ in range(100)]]
        self.assertEqual(sum(answer["allowed"] for answer in answers), 40)
        self.assertEqual(sorted(answer["used"] for answer in answers if answer["allowed"]), list(range(761, 801)))

    def test_a_slow_request_delays_no_other(self):
        user = self.subscriber()
        connection = self.connect()
        slow = self.consume(connection, user, b'{"n": ', ends=False)
        self.assertEqual(connection.request("POST", f"/v1/usage/{user}/consume").json["used"], 1)
        connection.send(slow, b"5}")
        self.assertEqual(connection.answer(slow).json["used"], 6, "a body needs no length")
        empty = self.consume(connection, user, ends=False)
        connection.send(empty, b"")
        self.assertEqual(connection.answer(empty).json["used"], 7)

    def test_answers_have_no_field_of_http_1(self):
        # The client refuses a field that HTTP/2 does not permit.
        connection = self.connect()
        for method, path, body, status in (
            ("GET", "/nothing", "", 404),
            ("GET", "/nothing", "x", 404),
            ("GET", "/v1/usage/nobody", "", 400),
            ("PUT", "/metrics", "", 405),
            ("HEAD", "/readyz", "", 200),
            ("HEAD", "/metrics", "", 200),
            ("POST", "/v1/billing-events", "{" + " " * 2_000_000, 413),
            ("GET", "/dashboard", "", 200),
        ):
            stream = connection.open(method, path, ends=not body)
            connection.send_large(stream, body.encode())
            answer = connection.answer(stream)
            self.assertEqual(answer.status, status, path)
            self.assertEqual("Date" in answer.headers, True)
            if method == "HEAD":
                self.assertEqual(answer.body, b"")

    def test_a_stream_counts_like_a_connection(self):
        service = self.serve_tls("--http-connections-maximum", "4")
        wait_until(lambda: service.http("GET", "/readyz").status == 200, "all lanes are connected")
        user = self.subscriber()
        connection = self.connect(service)
        slow = [self.consume(connection, user, ends=False) for _ in range(4)]
        refused = connection.request("POST", f"/v1/usage/{user}/consume")
        self.assertEqual((refused.status, refused.json["code"]), (503, "OVERLOADED"))
        self.assertEqual(refused.headers["Retry-After"], "1")
        unfinished = self.consume(connection, user, b"{", ends=False)
        self.assertEqual(connection.answer(unfinished).status, 503)
        connection.read_until(lambda: connection.streams[unfinished].reset is not None)
        for path in ("/healthz", "/readyz"):
            self.assertEqual(connection.request("GET", path).status, 200, path)
            self.assertEqual(service.http("GET", path).status, 200, path)
        self.assertEqual(service.http("GET", "/metrics").status, 503, "of another connection too")
        connection.send(slow[0], b"{}")
        self.assertEqual(connection.answer(slow[0]).json["used"], 1)
        wait_until(lambda: connection.request("GET", "/metrics").status == 200, "a place is free")
        connection.reset(*slow[1:])
        wait_until(lambda: service.http("GET", "/metrics").status == 200, "their tasks have ended")
        self.assertGreaterEqual(self.turned_away(connection, "busy"), 3)
        idle = 'headroom_http_connections{state="waiting"}'
        # The one that asks is busy.
        wait_until(lambda: service.http("GET", "/healthz") and self.figure(connection, idle) == 0, "all places are free")
        self.assertEqual(self.figure(connection, 'headroom_http_connections{state="busy"}'), 1)
        connection.socket.close()
        wait_until(lambda: f"{idle} 0\n" in service.http("GET", "/metrics").text, "the connection has left its place")
        self.assertEqual(self.count(user), 1)

    def test_a_busy_connection_gives_its_place_to_nobody(self):
        service = self.serve_tls("--http-connections-maximum", "4")
        user = self.subscriber()
        busy, waiting = self.connect(service), self.connect(service)
        slow = self.consume(busy, user, ends=False)
        self.assertEqual(waiting.request("GET", "/healthz").status, 200)
        for _ in range(6):
            self.assertEqual(self.connect(service).request("GET", "/healthz").status, 200)
        waiting.wait_for_close()
        busy.send(slow, b"{}")
        self.assertEqual(busy.answer(slow).json["used"], 1)

    def test_streams_that_are_reset_cost_their_connection(self):
        user = self.subscriber()
        rapid, other = self.connect(), self.connect()
        with self.subTest("a few are permitted"):
            rapid.reset(*[self.consume(rapid, user, ends=False) for _ in range(50)])
            self.assertEqual(rapid.request("GET", "/healthz").status, 200)
        for _ in range(10):
            try:
                rapid.reset(*[self.consume(rapid, user, ends=False) for _ in range(50)])
            except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
                break
        rapid.wait_for_close()
        self.assertEqual(other.request("POST", f"/v1/usage/{user}/consume").json["used"], 1)
        busy = 'headroom_http_connections{state="busy"}'
        wait_until(lambda: self.figure(other, busy) == 1, "no task is left")

    def test_a_malformed_request_ends_its_stream_only(self):
        user = self.subscriber()
        connection = self.connect()
        path = f"/v1/usage/{user}/consume"
        slow = self.consume(connection, user, b"{", ends=False)
        for stream in (
            connection.open("POST", path, {"content-length": "5"}, b"{}"),
            connection.open("G@T", "/healthz"),
            connection.open("G@T", path, body=b"{}"),
        ):
            connection.read_until(lambda stream=stream: connection.streams[stream].reset is not None)
        connection.send(slow, b"}")
        self.assertEqual(connection.answer(slow).json["used"], 1)
        self.assertFalse(connection.is_going_away)
        busy = 'headroom_http_connections{state="busy"}'
        wait_until(lambda: self.figure(connection, busy) == 1, "no task is left")

    def test_a_request_that_does_not_end_leaves_no_task(self):
        connection = self.connect()
        for method, path, headers in (
            ("GET", "/v1/openapi.json", {"content-length": "0"}),
            ("GET", "/nothing", {"content-length": "0"}),
            ("POST", "/nothing", {}),
            ("OPTIONS", "/v1/usage/x/consume", {"origin": "https://a.example", "access-control-request-method": "POST"}),
        ):
            stream = connection.open(method, path, headers, ends=False)
            self.assertGreaterEqual(connection.answer(stream).status, 200)
            connection.read_until(lambda stream=stream: connection.streams[stream].reset is not None)
            self.assertEqual(connection.streams[stream].reset, 0, "the answer is whole")
        busy = 'headroom_http_connections{state="busy"}'
        wait_until(lambda: self.figure(connection, busy) == 1, "no task is left")

    def test_half_a_request_counts_nothing(self):
        user = self.subscriber()
        for ends in ("reset", "closed"):
            connection = self.connect()
            streams = [self.consume(connection, user, ends=False), self.consume(connection, user, b" ", ends=False)]
            self.assertEqual(connection.request("GET", "/healthz").status, 200)
            if ends == "reset":
                connection.reset(*streams)
                self.assertEqual(connection.request("GET", "/healthz").status, 200)
            connection.socket.close()
        other = self.connect()
        busy = 'headroom_http_connections{state="busy"}'
        wait_until(lambda: self.figure(other, busy) == 1, "their tasks have ended")
        self.assertEqual(self.count(user), 0)

    def test_a_peer_that_waits_for_100_continue_gets_it(self):
        user, connection = self.user(), self.connect()
        for reads in (True, False):
            stream = self.consume(connection, user, headers={"Expect": "100-continue"}, ends=False)
            if reads:
                connection.read_until(lambda: connection.streams[stream].is_continued)
            connection.send(stream, b'{"n": 2}')
            self.assertEqual(connection.answer(stream).json["allowed"], True)
        self.assertEqual(self.count(user), 4)
        refused = connection.open("POST", "/v1/nothing", {"Expect": "100-continue"}, ends=False)
        self.assertEqual(connection.answer(refused).status, 404)
        self.assertFalse(connection.streams[refused].is_continued)

    def test_health_checks_need_no_place(self):
        service = self.serve_tls("--http-connections-maximum", "2")
        user = self.subscriber()
        connection = self.connect(service)
        for _ in range(2):
            self.consume(connection, user, ends=False)
        check = connection.open("GET", "/healthz", ends=False)
        connection.send(check, b"")
        self.assertEqual(connection.answer(check).status, 200)
        # Each makes its connection the last to be closed for another one.
        service = self.serve_tls("--http-connections-maximum", "4")
        balancer = self.connect(service)
        for _ in range(12):
            self.assertEqual(self.connect(service).request("GET", "/healthz").status, 200)
            self.assertEqual(balancer.request("GET", "/healthz").status, 200)

    def test_a_proxy_may_send_host(self):
        connection = self.connect()
        stream = connection.http.get_next_available_stream_id()
        fields = [(":method", "GET"), (":scheme", "https"), (":path", "/metrics"), ("host", "localhost")]
        connection.http.send_headers(stream, fields, end_stream=True)
        connection.flush()
        self.assertEqual(connection.answer(stream).status, 200)

    def test_a_peer_that_does_not_read_is_ended_by_the_output_timeout(self):
        service = self.serve_tls("--output-timeout-ms", "500")
        connection = self.connect(service, reads=False)
        long, short = connection.open("GET", "/v1/openapi.json"), connection.open("GET", "/healthz")
        connection.read_until(lambda: connection.streams[long].reset is not None and connection.streams[short].reset is not None)
        self.assertEqual(connection.streams[long].status, 200)
        other = self.connect(service)
        self.assertEqual(self.turned_away(other, "output"), 2)
        wait_until(lambda: self.figure(other, 'headroom_http_connections{state="busy"}') == 1, "no task is left")

    def test_a_connection_without_a_request_is_closed(self):
        service = self.serve_tls("--first-request-timeout-ms", "400", "--http-idle-timeout-ms", "1000")
        silent = self.connect(service)
        silent.wait_for_close()
        idle = self.connect(service)
        self.assertEqual(idle.request("GET", "/healthz").status, 200)
        idle.wait_for_close()

    def test_heads_are_limited(self):
        connection = self.connect()
        many = {f"x-{number}": "1" for number in range(101)}
        self.assertEqual(connection.request("GET", "/v1/openapi.json", headers=many).status, 431)
        self.assertEqual(connection.request("GET", "/healthz", headers=many).status, 431)
        long = {f"x-{number}": "x" * 4_000 for number in range(20)}
        with self.assertRaises(AssertionError):
            connection.request("GET", "/healthz", headers=long)
        self.assertEqual(self.connect().request("GET", "/healthz").status, 200)

    def test_a_slow_body_is_refused(self):
        service = self.serve_tls("--http-request-timeout-ms", "300")
        connection = self.connect(service)
        slow = self.consume(connection, self.subscriber(), b"{", ends=False)
        answer = connection.answer(slow)
        self.assertEqual((answer.status, answer.json["code"]), (408, "TIMEOUT"))
        connection.read_until(lambda: connection.streams[slow].reset is not None)
        self.assertEqual(connection.request("GET", "/healthz").status, 200, "the others stay")

    def test_a_stopping_service_says_so_and_answers_what_it_has(self):
        service = self.serve_tls()
        user = self.subscriber()
        connection, idle = self.connect(service), self.connect(service)
        self.assertEqual(idle.request("GET", "/healthz").status, 200)
        slow = self.consume(connection, user, b"{", ends=False)
        self.assertEqual(connection.request("GET", "/healthz").status, 200)
        service.signal(signal.SIGTERM)
        connection.read_until(lambda: connection.is_going_away)
        self.assertEqual(connection.error, 0)
        connection.send(slow, b"}")
        self.assertEqual(connection.answer(slow).json["used"], 1)
        idle.wait_for_close()
        self.assertEqual(service.process.wait(TIMEOUT_SECONDS), 0)

    def test_the_dashboard_streams(self):
        connection = self.connect()
        live = connection.open("GET", "/dashboard/live", {"Accept": "text/event-stream"})
        connection.read_until(lambda: b"data:" in connection.streams[live].body)
        connection.reset(live)
        busy = 'headroom_http_connections{state="busy"}'
        wait_until(lambda: self.figure(connection, busy) == 1, "the stream has ended")

    def test_text_that_is_no_http_2_ends_its_connection(self):
        context = self.authority.client_context()
        context.set_alpn_protocols(["h2"])
        for sent in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"x" * 100):
            plain = socket.create_connection(("127.0.0.1", self.service.http_port), timeout=TIMEOUT_SECONDS)
            with context.wrap_socket(plain, server_hostname="localhost") as connection:
                connection.sendall(sent)
                while connection.recv(65_536):
                    pass
        self.assertNotIn("level=error", self.service.log())
