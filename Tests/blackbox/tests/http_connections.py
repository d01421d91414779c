"""Many, idle and slow connections to the HTTP port, and health checks beside them."""

import contextlib
import json
import re
import select
import socket
from collections import deque

from support import processes
from support.case import Case
from support.certificates import Authority
from support.waiting import TIMEOUT_SECONDS, wait_until

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
#: As long as its body does not come, a connection is busy.
BUSY = b"POST /webhooks/revenuecat HTTP/1.1\r\nHost: localhost\r\nAuthorization: secret\r\nContent-Length: 2\r\n\r\n"


class Peer:
    """One connection, and what comes back on it."""

    def __init__(self, service, source="127.0.0.1", receive_buffer=None):
        self.socket = socket.socket()
        self.socket.settimeout(TIMEOUT_SECONDS)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.bind((source, 0))
        self.socket.connect(("127.0.0.1", service.http_port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def readable(self, seconds):
        return bool(select.select([self.socket], [], [], seconds)[0])

    def send_command(self, request):
        """Status, fields and body of the answer."""
        self.socket.sendall(request)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self.read()
        head, body = received.split(b"\r\n\r\n", 1)
        length = 0 if request.startswith(b"HEAD") else int(re.search(rb"(?i)\r\ncontent-length: (\d+)", head)[1])
        while len(body) < length:
            body += self.read()
        return int(head.split(b" ")[1]), head.decode().lower(), body

    def read(self):
        chunk = self.socket.recv(65_536)
        if not chunk:
            raise AssertionError("the connection was closed where an answer was due")
        return chunk

    def is_closed(self):
        """Waits until it is, and takes what comes before."""
        try:
            while self.socket.recv(65_536):
                pass
        except ConnectionResetError:
            pass
        return True

    def is_open(self):
        return self.send_command(HEALTH)[0] == 200


class HTTPConnections(Case):
    FLAGS = None

    def setUp(self):
        super().setUp()
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def peer(self, service, *arguments, **options):
        peer = Peer(service, *arguments, **options)
        self.stack.callback(peer.socket.close)
        return peer

    def figure(self, service, name):
        """A sample of /metrics."""
        text = service.http("GET", "/metrics").text
        return int(re.search(rf"(?m)^{re.escape(name)} (\d+)$", text)[1])

    def turned_away(self, service, reason):
        return self.figure(service, f'headroom_http_turned_away_total{{reason="{reason}"}}')

    def test_the_connection_that_has_waited_longest_gives_way_to_the_next(self):
        service = self.serve("--http-connections-maximum", "4")
        peers = [self.peer(service) for _ in range(4)]
        for peer in (peers[1], peers[0], peers[2], peers[3]):
            self.assertTrue(peer.is_open())
        newcomer = self.peer(service)
        self.assertTrue(newcomer.is_open())
        self.assertTrue(peers[1].is_closed())
        for peer in (peers[0], peers[2], peers[3], newcomer):
            self.assertTrue(peer.is_open())

    def test_an_address_that_has_as_many_as_it_may_takes_none_from_others(self):
        service = self.serve("--http-connections-per-address-maximum", "2")
        other = self.peer(service, "127.0.0.3")
        self.assertTrue(other.is_open())
        peers = [self.peer(service, "127.0.0.2") for _ in range(4)]
        self.assertTrue(peers[3].is_open())
        self.assertTrue(peers[0].is_closed() and peers[1].is_closed())
        self.assertTrue(peers[2].is_open() and other.is_open())
        self.assertEqual((self.turned_away(service, "address"), self.turned_away(service, "all")), (2, 0))

    def test_while_all_are_busy_health_is_answered_and_the_rest_is_refused(self):
        service = self.serve("--http-connections-maximum", "3", "--revenuecat-authorization", "secret")
        wait_until(lambda: service.http("GET", "/readyz").status == 200, "all lanes are connected")
        busy = [self.peer(service) for _ in range(3)]
        for peer in busy[1:]:
            peer.socket.sendall(BUSY)
        metrics = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        all_busy = b'\nheadroom_http_connections{state="busy"} 3\n'
        wait_until(lambda: all_busy in busy[0].send_command(metrics)[2], "the others are busy, besides this one")
        busy[0].socket.sendall(BUSY)

        def refused():
            with contextlib.closing(Peer(service).socket) as late:
                late.sendall(b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return late.recv(12) == b"HTTP/1.1 503"

        wait_until(refused, "all are busy")
        probe = self.peer(service)
        for request, status in (("GET /healthz", 200), ("HEAD /readyz", 200), ("GET /readyz", 200), ("GET /metrics", 503)):
            answer, head, body = probe.send_command(f"{request} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            self.assertEqual(answer, status, request)
        self.assertEqual(json.loads(body)["code"], "OVERLOADED")
        self.assertIn("http-connections-maximum", json.loads(body)["detail"])
        for field in ("connection: close", "retry-after: 1", "content-type: application/problem+json"):
            self.assertIn(f"\r\n{field}", head)
        self.assertTrue(probe.is_closed())
        # More of them than the busy ones leave room for.
        silent = [self.peer(service) for _ in range(100)]
        self.assertTrue(self.peer(service).is_open())
        self.assertTrue(all(peer.is_closed() for peer in silent[:-1]))
        # With a connection that waits again, there is room for any request.
        busy[0].send_command(b"{}")
        self.assertGreaterEqual(self.turned_away(service, "busy"), 2)
        self.assertGreaterEqual(self.turned_away(service, "all"), 99)

    def paused(self, service):
        """What comes while the service stands still is accepted all at once afterwards."""

        @contextlib.contextmanager
        def stopped():
            processes.pause(service.process.pid)
            try:
                yield
            finally:
                processes.resume(service.process.pid)

        return stopped()

    def test_those_that_come_together_are_answered_before_others_take_their_places(self):
        for maximum in ("8", "256"):
            service = self.serve("--http-connections-maximum", maximum)
            with self.paused(service):
                peers = [self.peer(service) for _ in range(100)]
                for peer in peers:
                    peer.socket.sendall(HEALTH)
            for peer in peers:
                self.assertEqual(peer.read()[:15], b"HTTP/1.1 200 OK", f"with {maximum}")

    def test_little_is_taken_of_requests_whose_answers_are_not_read(self):
        service = self.serve("--output-timeout-ms", "2000")
        peers = [self.peer(service, receive_buffer=4_096) for _ in range(8)]
        requests = b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1_000
        taken = dict.fromkeys(peers, 0)
        for peer in peers:
            peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
            peer.socket.setblocking(False)

        def is_ended(peer):
            try:
                while True:
                    taken[peer] += peer.socket.send(requests)
            except BlockingIOError:
                return False
            except (BrokenPipeError, ConnectionResetError):
                return True

        # None of them reads, and so each is ended by the output timeout.
        ended = set()

        def are_ended():
            ended.update(peer for peer in peers if peer not in ended and is_ended(peer))
            return len(ended) == len(peers)

        wait_until(are_ended, "the end of those that do not read")
        # The kernel's buffers at both ends, and what one read takes.
        self.assertLess(max(taken.values()), 256 << 10)

    def flood(self, service, kinds):
        """Opens 5,000 connections, of which a thousand stay open at this end, and sends other requests meanwhile."""
        open_ones = deque()
        self.addCleanup(lambda: [connection.close() for connection in open_ones])
        for number in range(5_000):
            connection = socket.create_connection(("127.0.0.1", service.http_port), timeout=TIMEOUT_SECONDS)
            open_ones.append(connection)
            open_ones[-1] = kinds[number % len(kinds)](connection) or connection
            if len(open_ones) > 1_000:
                open_ones.popleft().close()
            if number % 100 == 99:
                for path in ("/healthz", "/readyz"):
                    self.assertEqual(service.http("GET", path).status, 200, f"beside {number + 1} connections")

    def assert_flood_is_reported(self, service):
        self.assertGreater(self.turned_away(service, "all"), 4_000)
        self.assertLessEqual(self.figure(service, 'headroom_http_connections{state="waiting"}'), 256)
        said = "connections of the HTTP server were closed or refused"
        wait_until(lambda: said in service.log(), "a line in the log")
        self.assertRegex(service.log(), rf"{said}[^\n]* connections=\d+ reasons=\S*all=\d+")
        # One a minute.
        self.assertLess(service.log().count(said), 60)

    def test_health_is_answered_beside_5000_idle_and_slow_connections(self):
        service = self.serve()
        wait_until(lambda: service.http("GET", "/readyz").status == 200, "all lanes are connected")
        self.flood(
            service,
            [
                lambda connection: None,
                lambda connection: connection.sendall(b"G"),
                lambda connection: connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: "),
                lambda connection: connection.sendall(HEALTH),
            ],
        )
        self.assert_flood_is_reported(service)

    def test_health_is_answered_beside_5000_idle_and_slow_connections_with_tls(self):
        authority = Authority()
        certificate, key = authority.server()
        service = self.serve("--tls-certificate", certificate, "--tls-key", key)
        service.tls = authority.client_context()
        wait_until(lambda: service.http("GET", "/readyz").status == 200, "all lanes are connected")
        context = authority.client_context()

        def shakes_hands(connection):
            return context.wrap_socket(connection, server_hostname="localhost")

        kinds = [lambda connection: None, lambda connection: connection.sendall(b"\x16\x03\x01\x02\x00\x01")] * 10
        self.flood(service, [*kinds, shakes_hands])
        self.assert_flood_is_reported(service)

    def trickles_until_closed(self, peer):
        """By single bytes, none of which gives the head more time."""
        rest = b"GET /healthz HTTP/1.1\r\nX-Slow: "

        def is_over():
            nonlocal rest
            if peer.readable(0.02):
                return True
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                peer.socket.send(rest[:1] or b"x")
            rest = rest[1:]
            return False

        wait_until(is_over, "the end of a connection whose head trickles")
        return peer.is_closed()

    def test_a_first_request_whose_head_trickles_is_closed(self):
        service = self.serve("--first-request-timeout-ms", "400")
        self.assertTrue(self.trickles_until_closed(self.peer(service)))
        self.assertEqual(self.turned_away(service, "head"), 1)

    def test_a_later_request_whose_head_trickles_is_closed(self):
        service = self.serve("--incomplete-request-timeout-ms", "400")
        peer = self.peer(service)
        peer.socket.sendall(HEALTH)
        while b"ok\n" not in peer.read():
            pass
        self.assertTrue(self.trickles_until_closed(peer))
        self.assertEqual(self.turned_away(service, "head"), 1)

    def test_a_slow_reader_is_ended_by_the_output_timeout(self):
        service = self.serve("--output-timeout-ms", "1000")
        document = service.http("GET", "/v1/openapi.json").body
        count = 400
        slow = self.peer(service, receive_buffer=4_096)
        slow.socket.setblocking(False)
        requests = b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * count
        received = 0

        def is_ended():
            """Goes on reading, a few bytes at a time: to the kernel, that is a peer that takes what it is sent."""
            nonlocal requests, received
            with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
                requests = requests[slow.socket.send(requests) :]
            try:
                chunk = slow.socket.recv(64)
            except BlockingIOError:
                return False
            except ConnectionResetError:
                return True
            received += len(chunk)
            return not chunk

        wait_until(is_ended, "the end of the slow reader")
        self.assertLess(received, len(document) * count)
        self.assertEqual(service.http("GET", "/healthz").status, 200)
