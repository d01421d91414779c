"""Malformed, malicious and truncated requests: each gets its code, counts nothing, and does not affect other requests."""

import contextlib
import random
import ssl
import threading
import time

from support.bad_requests import OPENINGS, closes, stays_open
from support.case import Case
from support.certificates import Authority
from support.processes import resident_bytes
from support.waiting import TIMEOUT_SECONDS, wait_until
from support.wire import Answer, array


class CutRow:
    """A row of `stays_open` on a connection of its own, between two good requests."""

    def __init__(self, connection, user, what, data, expected):
        self.connection, self.what, self.data, self.expected = connection, what, data, expected
        self.neighbour = f"CONSUME {user}\n".encode()

    def used_by_the_next_answer(self):
        return Answer(self.connection.read_line()).used


class BadInput(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.target = cls.user()
        cls.service.send_command(f"SETPLAN {cls.target} paid")
        cls.usage_before = cls.service.send_command(f"USAGE {cls.target}")

    def tearDown(self):
        self.assertEqual(self.count(self.target), 0, "no bad request was counted")
        self.assertEqual(self.send_command(f"USAGE {self.target}"), self.usage_before, "no bad request changed anything")
        self.assertIsNone(self.service.process.poll(), self.service.log()[-2000:])

    def messages(self):
        """The messages of all users."""
        return self.psql.number("select coalesce(sum(message_count), 0) from message_usage")

    def check_open(self, what, data, expected, send):
        user = self.user()
        with self.service.connect() as connection:
            send(connection, f"CONSUME {user}\n".encode() + data + f"CONSUME {user}\n".encode())
            self.assertEqual(Answer(connection.read_line()).used, 1, "the neighbour before")
            if expected is not None:
                # A bulk string's length is a line of its own.
                lines = 2 if expected.startswith(b"$") else 1
                reply = b"".join(connection.read_line().encode() + b"\r\n" for _ in range(lines))
                self.assertTrue(reply.startswith(expected), f"{what}: {reply!r}")
                self.check_echoes_nothing(what, reply)
            self.assertEqual(Answer(connection.read_line()).used, 2, "the neighbour after")
            self.check_nothing_follows(connection, what)

    def check_nothing_follows(self, connection, what):
        connection.end_input()
        self.assertEqual(connection.read_to_end(), b"", f"{what}: no extra reply")

    def check_echoes_nothing(self, what, reply):
        if reply.startswith(b"-"):
            for part in (b"DROP", b"FROBNICATE", b"%s", b"\x1b", b"\0", b"$1", b"13", b"vip"):
                if part in reply:
                    self.fail(f"{what}: an error repeats what was sent: {reply!r}")

    def check_closed(self, what, data, expected, send):
        before, after = self.user(), self.user()
        with self.service.connect() as connection, self.service.connect() as other:
            other.send(f"CONSUME {before}\n")
            send(connection, f"CONSUME {before}\n".encode() + data + f"\nCONSUME {after}\n".encode())
            received = connection.read_to_end()
            replies = received.split(b"\r\n")
            self.assertIn(b"+ALLOWED ", replies[0], f"{what}: the neighbour before")
            self.assertTrue(replies[1].startswith(expected), f"{what}: {received!r}")
            self.assertEqual(replies[2:], [b""], f"{what}: nothing after the error")
            self.assertIn("+ALLOWED ", other.read_line(), "another connection")
        self.assertEqual((self.count(before), self.count(after)), (2, 0))

    def test_malformed_requests_get_their_code_and_the_connection_stays_open(self):
        for what, data, expected in stays_open(self.target):
            with self.subTest(what=what):
                self.check_open(what, data, expected, lambda connection, all: connection.send(all))

    def test_broken_framing_gets_its_code_and_closes_the_connection(self):
        for what, data, expected in closes(self.target):
            with self.subTest(what=what):
                self.check_closed(what, data, expected, lambda connection, all: connection.send(all))

    def test_the_answers_are_the_same_when_each_byte_comes_alone(self):
        def send(connection, data):
            connection.send_byte_by_byte(data)

        for what, data, expected in stays_open(self.target):
            if len(data) < 200:
                with self.subTest(what=what):
                    self.check_open(what, data, expected, send)
        for what, data, expected in closes(self.target):
            if len(data) < 200:
                with self.subTest(what=what):
                    self.check_closed(what, data, expected, send)

    def test_the_answers_are_the_same_wherever_a_request_is_cut_in_two(self):
        """All rows at once, a connection each; in every round each is cut one byte later."""
        rows = [row for row in stays_open(self.target) if len(row[1]) < 200]
        rows += [
            ("a good request", f"CHECK {self.target} 5\r\n".encode(), b"+ALLOWED "),
            ("a good array", array("CHECK", self.target, "5"), b"+ALLOWED "),
            ("good UTF-8", "ECHO größer→\n".encode(), "+größer→\r\n".encode()),
            ("blank lines and tabs", b"\r\n \t\nPING\r\n\r\n", b"+PONG\r\n"),
        ]
        before = self.messages()
        cut_rows = [CutRow(self.service.connect(), self.subscriber("pro"), *row) for row in rows]
        for cut in range(1, max(len(row.data) for row in cut_rows)):
            cut_rows_left = [row for row in cut_rows if cut < len(row.data)]
            for row in cut_rows_left:
                row.connection.send(row.neighbour + row.data[:cut])
            for row in cut_rows_left:
                # Its answer shows that the bytes sent with it were read.
                self.assertEqual(row.used_by_the_next_answer(), cut, f"{row.what}, the neighbour before cut {cut}")
            for row in cut_rows_left:
                row.connection.send(row.data[cut:])
            for row in cut_rows_left:
                if row.expected is not None:
                    reply = row.connection.read_line().encode() + b"\r\n"
                    self.assertTrue(reply.startswith(row.expected), f"{row.what}, cut at {cut}: {reply!r}")
        for row in cut_rows:
            with row.connection as connection:
                connection.send(row.neighbour)
                self.assertEqual(row.used_by_the_next_answer(), len(row.data), f"{row.what}, the last neighbour")
                self.check_nothing_follows(connection, row.what)
        self.assertEqual(self.messages() - before, sum(len(row.data) for row in cut_rows), "only the neighbours' messages are counted")

    def test_broken_framing_closes_the_connection_wherever_it_is_cut_in_two(self):
        before, good = self.messages(), 0
        cuts = []
        for what, data, expected in closes(self.target):
            # Long ones only around the limit: the rest repeats one letter.
            where = range(1, len(data)) if len(data) < 200 else (1, 500, 1_023, 1_024, 1_025, 1_026)
            cuts += [(what, data, expected, cut) for cut in where if cut < len(data)]
        request = f"CONSUME {self.subscriber('pro')}\n".encode()
        while cuts:
            batch, cuts = cuts[:200], cuts[200:]
            connections = [self.service.connect() for _ in batch]
            for connection, (_, data, _, cut) in zip(connections, batch):
                connection.send(request + data[:cut])
            for connection, (what, _, _, cut) in zip(connections, batch):
                self.assertIn("+ALLOWED ", connection.read_line(), f"{what}, the neighbour before cut {cut}")
            for connection, (_, data, _, cut) in zip(connections, batch):
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # Its first part was enough.
                    connection.send(data[cut:] + b"\n" + request)
            for connection, (what, _, expected, cut) in zip(connections, batch):
                with self.subTest(what=what, cut=cut), connection:
                    received = connection.read_to_end()
                    self.assertTrue(received.startswith(expected), f"{received!r}")
                    self.assertEqual(received.count(b"\n"), 1, "nothing after the error")
            good += len(batch)
        self.assertEqual(self.messages() - before, good, "only the messages of the neighbours before are counted")

    def test_clients_of_other_protocols_get_an_error_and_are_closed(self):
        for what, data in OPENINGS:
            for cut in (None, *range(1, min(len(data), 30))):
                with self.subTest(what=what, cut=cut), self.service.connect() as connection:
                    connection.send(data[:cut])
                    if cut is not None:
                        # The kernel may join the parts; the answer must be the same if it does not.
                        connection.send(data[cut:]) if not connection.readable(0.001) else None
                    received = connection.read_to_end()
                    self.assertTrue(received.startswith(b"-PROTOCOL "), received)
                    self.assertEqual(received.count(b"\n"), 1, "one error, not one per header line")

    def test_after_a_half_close_every_complete_request_is_answered_and_a_cut_one_is_not_executed(self):
        user = self.user()
        with self.service.connect() as connection:
            connection.send(f"CONSUME {user} 5\n" * 3 + f"CONSUME {user} 10")
            connection.end_input()
            replies = connection.read_to_end().decode().split("\r\n")
        self.assertEqual([Answer(reply).used for reply in replies[:-1]], [5, 10, 15])
        self.assertEqual(self.count(user), 15, "10 may have been the beginning of 100")

    def test_a_cut_array_is_not_executed(self):
        user = self.user()
        request = array("CONSUME", user, "10")
        for cut in range(1, len(request)):
            with self.service.connect() as connection:
                connection.send(request[:cut])
                connection.end_input()
                self.assertEqual(connection.read_to_end(), b"")
        self.assertEqual(self.count(user), 0)

    def test_a_cut_request_before_a_reset_is_not_executed(self):
        user = self.user()
        for _ in range(20):
            connection = self.service.connect()
            connection.send(f"CONSUME {user} 10")
            connection.reset()
        wait_until(lambda: self.service.info()["connections"] == "1", "the connections are closed")
        self.assertEqual(self.count(user), 0)

    def test_a_message_of_a_disconnected_sender_is_counted_once_or_not_at_all(self):
        users = [self.user() for _ in range(50)]
        for user in users:
            connection = self.service.connect()
            connection.send(f"CONSUME {user} 7\n")
            connection.reset()
        for user in users:
            self.send_command(f"CONSUME {user}")
            self.assertIn(self.count(user), (1, 8))

    def test_10000_pipelined_without_reading_are_all_answered_in_order(self):
        user = self.subscriber("pro")
        with self.service.connect() as connection:
            requests = "".join(f"CONSUME {user}\n" if index % 2 else f"ECHO {index}\n" for index in range(10_000))
            sent = threading.Event()

            def send():
                connection.send(requests)
                sent.set()

            thread = threading.Thread(target=send, daemon=True)
            thread.start()
            # Nothing is read until everything is sent or all buffers are full.
            sent.wait(1)
            for index in range(10_000):
                reply = connection.read_line()
                if index % 2:
                    self.assertEqual(Answer(reply).used, index // 2 + 1)
                else:
                    self.assertEqual(reply, f"+{index}")
            thread.join()
            connection.end_input()
            self.assertEqual(connection.read_to_end(), b"")
        self.assertEqual(self.count(user), 5_000)

    def test_random_bytes_break_nothing(self):
        generator = random.Random(random.getrandbits(32))
        alphabet = [b"CONSUME ", b"*", b"$", b"\r\n", b"\n", b" ", b"1", b"2", b"=", b"\0", b"\xff", b"PING", b"\t",
                    b"HELLO 3", self.user().encode(), b"\xe2\x82\xac", b"-1", b"QUIT "]  # fmt: skip
        for _ in range(200):
            data = b"".join(generator.choice(alphabet) for _ in range(generator.randrange(1, 60)))
            with self.subTest(data=data), self.service.connect() as connection:
                connection.send(data)
                with contextlib.suppress(OSError):
                    connection.end_input()
                received = connection.read_to_end()
                self.assertRegex(received, rb"\A(?:[+\-*%$:][^\r\n]*\r\n|[^\r\n]*\r\n)*\Z", "whole lines")
        self.assertEqual(self.send_command("PING"), "+PONG")

    def test_an_endless_stream_is_cut_off_and_takes_no_memory(self):
        before = resident_bytes(self.service.process.pid)
        with self.service.connect() as connection:
            # A refused connection lingers for some seconds, and what it receives meanwhile is discarded.
            deadline = time.monotonic() + TIMEOUT_SECONDS
            try:
                while time.monotonic() < deadline:
                    connection.send(b"x" * 65_536)
            except (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
                pass
            else:
                self.fail("one line was taken without an end")
        self.assertLess(resident_bytes(self.service.process.pid) - before, 64 << 20)


class BadInputOverTLS(BadInput):
    """The same over TLS, whose records split the bytes differently."""

    @classmethod
    def serve(cls, *flags, **options):
        authority = Authority()
        certificate, key = authority.server()
        service = super().serve("--tls-certificate", certificate, "--tls-key", key, *flags, **options)
        service.tls = authority.client_context()
        return service

    def check_nothing_follows(self, connection, what):
        # Python's TLS reads nothing more after it has sent close_notify.
        self.assertEqual(connection.send_command("PING"), "+PONG", f"{what}: no extra reply")

    # Tests that read after a half-close; those for TLS are in tls.py.
    test_after_a_half_close_every_complete_request_is_answered_and_a_cut_one_is_not_executed = None
    test_a_cut_array_is_not_executed = None
    test_10000_pipelined_without_reading_are_all_answered_in_order = None
    test_random_bytes_break_nothing = None
