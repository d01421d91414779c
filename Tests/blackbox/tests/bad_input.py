"""Nonsense, malice and accidents on the wire. Each is answered with its code, harms no neighbour and counts nothing."""

import random
import threading

from support.case import Case
from support.deadline import wait_until
from support.wire import Answer, array

TLS_CLIENT_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(32)) * 6
PROXY_2 = bytes.fromhex("0d0a0d0a000d0a515549540a") + b"\x21\x11\x00\x0c\x7f\x00\x00\x01\x7f\x00\x00\x01\x00\x50\x1a\x5b"


def stays_open(user):
    """(what, bytes, beginning of the reply); the connection goes on. No reply where it is None."""
    consume = b"CONSUME " + user.encode()
    rows = [
        ("an empty line", b"\n", None),
        ("an empty line of a terminal", b"\r\n", None),
        ("spaces only", b"   \n", None),
        ("a tab only", b"\t\r\n", None),
        ("an empty array", b"*0\r\n", None),
        ("a CR in the middle", b"PING\rPING\n", b"-BADARG "),
        ("CR CR LF", b"PING\r\r\n", b"-BADARG "),
        ("exactly the limit", b"ECHO " + b"x" * 1_019 + b"\n", b"+xxxx"),
        ("exactly the limit and CRLF", b"ECHO " + b"x" * 1_019 + b"\r\n", b"+xxxx"),
        ("exactly the limit in an array", array("ECHO", "x" * 1_019), b"+xxxx"),
        ("16 tokens", b"CLIENT" + b" x" * 15 + b"\n", b"+OK"),
        ("tabs and many spaces between tokens", b"\t ECHO \t  a \t\n", b"+a\r\n"),
        ("an unknown verb", b"FROBNICATE x\n", b"-ERR unknown command"),
        ("an empty verb in an array", array("", "x"), b"-ERR unknown command"),
        ("a verb with a letter more", b"PINGX\n", b"-ERR unknown command"),
        ("HTTP after the first request", b"GET / HTTP/1.1\r\n", b"-ERR unknown command"),
        ("a byte order mark", b"\xef\xbb\xbfPING\n", b"-ERR unknown command"),
        ("a line separator in a text", b"ECHO a\xe2\x80\xa8b\n", b"+a\xe2\x80\xa8b\r\n"),
        ("missing arguments", b"CONSUME\n", b"-BADARG "),
        ("an argument too many", consume + b" 1 1\n", b"-BADARG "),
        ("a missing plan", b"SETPLAN " + user.encode() + b"\n", b"-BADARG "),
        ("a line end within a token", array("ECHO", "a\nCONSUME " + user), b"-BADARG "),
        ("a space within a token", array("CONSUME", user + " 1"), b"-BADARG "),
        ("an empty token", array("CONSUME", ""), b"-BADARG "),
        ("NUL within an array", array("CONSUME", user + "\0"), b"-BADARG "),
        ("an option that does not exist", consume + b" limit=5\n", b"-BADARG "),
        ("an option given twice", b"SETPLAN " + user.encode() + b" paid anchor=1 anchor=2\n", b"-BADARG "),
        ("an argument after an option", b"SETPLAN " + user.encode() + b" anchor=1 paid\n", b"-BADARG "),
        ("an option without a name", consume + b" =5\n", b"-BADARG "),
        ("SQL as a user", b"CONSUME ';DROP\tTABLE\n", b"-BADARG "),
        ("SQL as a user in an array", array("CONSUME", "'; DROP TABLE message_usage; --"), b"-BADARG "),
        ("a parameter's name", b"CONSUME $1\n", b"-BADARG "),
        ("a format", b"CONSUME %s\n", b"-BADARG "),
        ("a format as a plan", b"SETPLAN " + user.encode() + b" %s\n", b"-BADARG "),
        ("a month 13", b"USAGE " + user.encode() + b" 2026-13\n", b"-BADARG "),
        ("a month in another script", f"USAGE {user} ٢٠٢٦-01\n".encode(), b"-BADARG "),
        ("a period that looks like an option", b"USAGE " + user.encode() + b" a=b\n", b"-BADARG "),
        ("an anchor day 32", b"SETPLAN " + user.encode() + b" paid anchor=32\n", b"-BADARG "),
        ("a state that does not exist", b"SETPLAN " + user.encode() + b" paid state=vip\n", b"-BADARG "),
        ("months 0", b"HISTORY " + user.encode() + b" 0\n", b"-BADARG "),
        ("months 1201", b"HISTORY " + user.encode() + b" 1201\n", b"-BADARG "),
        ("a proto of HELLO that does not exist", b"HELLO 99999999999999999999\n", b"-BADARG "),
    ]
    for instant in ("infinity", "now", "2026-02-30", "2026-03-15T25:00:00Z", "1", "", "0000-00-00", "2026-03-15 00:00"):
        request = array("SETPLAN", user, "paid", "expires=" + instant)
        rows.append((f"the instant {instant!r}", request, b"-BADARG "))
    for control in [*range(0x00, 0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F]:
        rows.append((f"the byte {control:#04x}", b"ECHO a" + bytes([control]) + b"b\n", b"-BADARG "))
    for name, data in [
        ("an escape sequence", b"\x1b[31mred"), ("an overlong form", b"\xc0\xaf"), ("a lone continuation", b"\x80"),
        ("a surrogate", b"\xed\xa0\x80"), ("beyond the last code point", b"\xf4\x90\x80\x80"), ("a cut sequence", b"\xe2\x82"),
        ("a C1 control", b"\xc2\x9b31m"), ("0xFF", b"\xff"),
    ]:  # fmt: skip
        rows.append((name, b"ECHO a" + data + b"\n", b"-BADARG "))
        rows.append((name + " in an array", array("ECHO", b"a" + data), b"-BADARG "))
    for number in [
        "0", "-1", "+1", "01", "00", "1e3", "0x1", "1.0", "1,000", "1_000", "1000001", str(2**31), str(2**32 + 1),
        str(2**63 - 1), str(2**63), str(2**64 + 1), "9" * 40, "١", "１", "²", "NaN", "one", "--1", "1;",
    ]:  # fmt: skip
        rows.append((f"n {number}", consume + b" " + number.encode() + b"\n", b"-BADARG "))
    rows.append(("an empty n", array("CONSUME", user, ""), b"-BADARG "))
    for wrong in [
        user[:-1], user + "0", user.replace("-", ""), "{" + user + "}", "urn:uuid:" + user, user[:-1] + "g", user.replace("-", "_"),
        "-" * 36, "null", "1", "me", "７" + user[1:], user[:-3] + "７", user[:8] + "-" + user[8:-1],
    ]:  # fmt: skip
        rows.append((f"the user {wrong}", f"CONSUME {wrong}\n".encode(), b"-BADARG "))
    return rows


def closes(user):
    """(what, bytes, beginning of the reply), also after other requests; then the connection is closed."""
    return [
        ("one byte over the limit", b"ECHO " + b"x" * 1_020 + b"\n", b"-TOOLONG "),
        ("one byte over the limit without its end", b"ECHO " + b"x" * 1_020 + b"x", b"-TOOLONG "),
        ("64 KiB without an end", b"x" * 65_536, b"-TOOLONG "),
        ("64 KiB of spaces without an end", b" " * 65_536, b"-TOOLONG "),
        ("17 tokens", b"CLIENT" + b" x" * 16 + b"\n", b"-TOOLONG "),
        ("an array over the limit", array("ECHO", "x" * 1_020), b"-TOOLONG "),
        ("an array of 17 tokens", array("CLIENT", *["x"] * 16), b"-TOOLONG "),
        ("an array announced to be large", b"*1048576\r\n", b"-TOOLONG "),
        ("an element announced to be large", b"*1\r\n$1048576\r\n", b"-TOOLONG "),
        ("a negative count", b"*-1\r\n", b"-PROTOCOL "),
        ("a huge count", b"*99999999999999999999\r\n", b"-PROTOCOL "),
        ("no count", b"*\r\n", b"-PROTOCOL "),
        ("a count that is no number", b"*x\r\n", b"-PROTOCOL "),
        ("a count with a sign", b"*+1\r\n", b"-PROTOCOL "),
        ("a count with a leading zero", b"*01\r\n", b"-PROTOCOL "),
        ("a count with a space", b"* 1\r\n", b"-PROTOCOL "),
        ("a count ended by LF alone", b"*1\n$4\nPING\n", b"-PROTOCOL "),
        ("a negative length", b"*1\r\n$-1\r\n", b"-PROTOCOL "),
        ("a huge length", b"*1\r\n$99999999999999999999\r\n", b"-PROTOCOL "),
        ("no length", b"*1\r\n$\r\n", b"-PROTOCOL "),
        ("a length that is no number", b"*1\r\n$x\r\n", b"-PROTOCOL "),
        ("an integer element", b"*1\r\n:1\r\n", b"-PROTOCOL "),
        ("a nested array", b"*1\r\n*1\r\n$4\r\nPING\r\n", b"-PROTOCOL "),
        ("an element without its kind", b"*1\r\nPING\r\n", b"-PROTOCOL "),
        ("a length too short", b"*1\r\n$3\r\nPING\r\n", b"-PROTOCOL "),
        ("a length too long", b"*2\r\n$8\r\nCONSUME\r\n$36\r\n" + user.encode() + b"\r\n", b"-PROTOCOL "),
        ("a bulk ended by LF alone", b"*1\r\n$4\r\nPING\n\n", b"-PROTOCOL "),
    ]


OPENINGS = [
    ("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("HTTP's POST", b"POST /rpc HTTP/1.1\r\nContent-Length: 4\r\n\r\nPING"),
    ("TLS", TLS_CLIENT_HELLO),
    ("a PROXY header", b"PROXY TCP4 127.0.0.1 127.0.0.1 80 6747\r\nPING\r\n"),
    ("a binary PROXY header", PROXY_2 + b"PING\r\n"),
]


class BadInput(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.target = cls.user()
        cls.service.ask(f"SETPLAN {cls.target} paid")
        cls.standing = cls.service.ask(f"USAGE {cls.target}")

    def tearDown(self):
        self.assertEqual(self.count(self.target), 0, "nothing of it was counted")
        self.assertEqual(self.ask(f"USAGE {self.target}"), self.standing, "nothing of it changed anything")
        self.assertIsNone(self.service.process.poll(), self.service.log()[-2000:])

    def check_open(self, what, data, expected, send):
        user = self.user()
        with self.service.connect() as line:
            send(line, f"CONSUME {user}\n".encode() + data + f"CONSUME {user}\n".encode())
            self.assertEqual(Answer(line.line()).used, 1, "the neighbour before")
            if expected is not None:
                reply = line.line().encode() + b"\r\n"
                self.assertTrue(reply.startswith(expected), f"{what}: {reply!r}")
                self.check_echoes_nothing(what, reply)
            self.assertEqual(Answer(line.line()).used, 2, "the neighbour after")
            line.end_input()
            self.assertEqual(line.rest(), b"", "no reply too many")

    def check_echoes_nothing(self, what, reply):
        if reply.startswith(b"-"):
            for part in (b"DROP", b"FROBNICATE", b"%s", b"\x1b", b"\0", b"$1", b"13", b"vip"):
                if part in reply:
                    self.fail(f"{what}: an error repeats what was sent: {reply!r}")

    def check_closed(self, what, data, expected, send):
        before, after = self.user(), self.user()
        with self.service.connect() as line, self.service.connect() as neighbour:
            neighbour.send(f"CONSUME {before}\n")
            send(line, f"CONSUME {before}\n".encode() + data + f"\nCONSUME {after}\n".encode())
            received = line.rest()
            replies = received.split(b"\r\n")
            self.assertIn(b"+ALLOWED ", replies[0], f"{what}: the neighbour before")
            self.assertTrue(replies[1].startswith(expected), f"{what}: {received!r}")
            self.assertEqual(replies[2:], [b""], f"{what}: nothing after the error")
            self.assertIn("+ALLOWED ", neighbour.line(), "another connection")
        self.assertEqual((self.count(before), self.count(after)), (2, 0))

    def test_what_can_be_told_apart_is_answered_with_its_code_and_the_connection_goes_on(self):
        for what, data, expected in stays_open(self.target):
            with self.subTest(what=what):
                self.check_open(what, data, expected, lambda line, all: line.send(all))

    def test_what_cannot_be_told_apart_is_answered_with_its_code_and_closed(self):
        for what, data, expected in closes(self.target):
            with self.subTest(what=what):
                self.check_closed(what, data, expected, lambda line, all: line.send(all))

    def test_the_answers_are_the_same_when_each_byte_comes_alone(self):
        def send(line, data):
            line.send_byte_by_byte(data)

        for what, data, expected in stays_open(self.target):
            if len(data) < 200:
                with self.subTest(what=what):
                    self.check_open(what, data, expected, send)
        for what, data, expected in closes(self.target):
            if len(data) < 200:
                with self.subTest(what=what):
                    self.check_closed(what, data, expected, send)

    def test_the_answers_are_the_same_wherever_the_request_is_cut_in_two(self):
        user = self.target.encode()
        for what, data, expected in [
            ("a request", b"CHECK " + user + b" 5\r\n", b"+ALLOWED "),
            ("an array", array("CHECK", self.target, "5"), b"+ALLOWED "),
            ("a bad number", b"CONSUME " + user + b" 01\n", b"-BADARG "),
            ("UTF-8", "ECHO größer→\n".encode(), "+größer→\r\n".encode()),
            ("invalid UTF-8", b"ECHO \xe2\x28\xa1\n", b"-BADARG "),
            ("blank lines and tabs", b"\r\n \t\nPING\r\n\r\n", b"+PONG\r\n"),
        ]:
            for cut in range(1, len(data)):
                with self.subTest(what=what, cut=cut), self.service.connect() as line:
                    # A reply to what stands before makes sure that the first part has been read.
                    line.send(b"PING 1\n" + data[:cut])
                    self.assertEqual(line.line(), "+1")
                    line.send(data[cut:] + b"PING 2\n")
                    reply = line.line().encode() + b"\r\n"
                    self.assertTrue(reply.startswith(expected), reply)
                    self.assertEqual(line.line(), "+2")

    def test_clients_that_speak_something_else_are_told_so_and_closed(self):
        for what, data in OPENINGS:
            for cut in (None, *range(1, min(len(data), 30))):
                with self.subTest(what=what, cut=cut), self.service.connect() as line:
                    line.send(data[:cut])
                    if cut is not None:
                        # The kernel may join the parts; where it does not, the answer must be the same.
                        line.send(data[cut:]) if not line.readable(0.001) else None
                    received = line.rest()
                    self.assertTrue(received.startswith(b"-PROTOCOL "), received)
                    self.assertEqual(received.count(b"\n"), 1, "one error, not one per header line")

    def test_after_a_half_close_every_complete_request_is_answered_and_a_cut_one_is_not_executed(self):
        user = self.user()
        with self.service.connect() as line:
            line.send(f"CONSUME {user} 5\n" * 3 + f"CONSUME {user} 10")
            line.end_input()
            replies = line.rest().decode().split("\r\n")
        self.assertEqual([Answer(reply).used for reply in replies[:-1]], [5, 10, 15])
        self.assertEqual(self.count(user), 15, "10 may have been the beginning of 100")

    def test_a_cut_array_is_not_executed(self):
        user = self.user()
        request = array("CONSUME", user, "10")
        for cut in range(1, len(request)):
            with self.service.connect() as line:
                line.send(request[:cut])
                line.end_input()
                self.assertEqual(line.rest(), b"")
        self.assertEqual(self.count(user), 0)

    def test_a_cut_request_before_a_reset_is_not_executed(self):
        user = self.user()
        for _ in range(20):
            line = self.service.connect()
            line.send(f"CONSUME {user} 10")
            line.reset()
        wait_until(lambda: self.service.info()["connections"] == "1", 5, "the connections are gone")
        self.assertEqual(self.count(user), 0)

    def test_a_message_whose_sender_went_away_is_counted_once_or_not_at_all(self):
        users = [self.user() for _ in range(50)]
        for user in users:
            line = self.service.connect()
            line.send(f"CONSUME {user} 7\n")
            line.reset()
        for user in users:
            self.ask(f"CONSUME {user}")
            self.assertIn(self.count(user), (1, 8))

    def test_10000_pipelined_without_reading_are_all_answered_in_order(self):
        user = self.subscriber("pro")
        with self.service.connect(timeout=30) as line:
            requests = "".join(
                f"CONSUME {user}\n" if index % 2 else f"ECHO {index}\n" for index in range(10_000)
            )
            sent = threading.Event()

            def send():
                line.send(requests)
                sent.set()

            thread = threading.Thread(target=send, daemon=True)
            thread.start()
            # Nothing is read until all is sent, or until everybody's buffers are full.
            sent.wait(1)
            for index in range(10_000):
                reply = line.line()
                if index % 2:
                    self.assertEqual(Answer(reply).used, index // 2 + 1)
                else:
                    self.assertEqual(reply, f"+{index}")
            thread.join(5)
            line.end_input()
            self.assertEqual(line.rest(), b"")
        self.assertEqual(self.count(user), 5_000)

    def test_random_bytes_break_nothing(self):
        generator = random.Random(random.getrandbits(32))
        alphabet = [b"CONSUME ", b"*", b"$", b"\r\n", b"\n", b" ", b"1", b"2", b"=", b"\0", b"\xff", b"PING", b"\t",
                    b"HELLO 3", self.user().encode(), b"\xe2\x82\xac", b"-1", b"QUIT "]  # fmt: skip
        for _ in range(200):
            data = b"".join(generator.choice(alphabet) for _ in range(generator.randrange(1, 60)))
            with self.subTest(data=data), self.service.connect() as line:
                line.send(data)
                try:
                    line.end_input()
                except OSError:
                    pass
                received = line.rest()
                self.assertRegex(received, rb"\A(?:[+\-*%$:][^\r\n]*\r\n|[^\r\n]*\r\n)*\Z", "whole lines")
        self.assertEqual(self.ask("PING"), "+PONG")

    def test_an_endless_stream_is_cut_off_and_takes_no_memory(self):
        def memory():
            with open(f"/proc/{self.service.process.pid}/statm") as file:
                return int(file.read().split()[1]) * 4_096

        before = memory()
        with self.service.connect() as line:
            try:
                for _ in range(2_000):
                    line.send(b"x" * 65_536)
            except (BrokenPipeError, ConnectionResetError):
                pass
            else:
                self.fail("125 MiB of one line were taken")
        self.assertLess(memory() - before, 64 << 20)
