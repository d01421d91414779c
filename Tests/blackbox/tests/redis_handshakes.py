"""What client libraries of Redis send when they connect, byte for byte as their sources of August 2026 have it, and the replies."""

import re
import uuid

from support.tokens import TokenCase
from support.wire import Answer

RAW = bytes([0x00, 0x80, 0xFF, 0x0D, 0x0A, 0x20, 0x7F, 0x9F, 1, 2, 3, 4, 5, 6, 7, 8])
MAINT = ("CLIENT", "MAINT_NOTIFICATIONS", "ON", "moving-endpoint-type", "internal-ip")
INFO = re.compile(rb"(?s)# Server\r\nredis_mode:standalone\r\nrole:master\r\nversion:.*\r\n")


class Error(str):
    """An error reply."""


class Hello:
    """A HELLO's reply in this version."""

    def __init__(self, version):
        self.version = version


def array(*parts):
    parts = [part if isinstance(part, bytes) else part.encode() for part in parts]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


def read(stream):
    """One reply: a status is str, a bulk string bytes, RESP3's map a dict."""
    line = stream.readline()
    assert line.endswith(b"\r\n"), line
    kind, text = line[:1], line[1:-2].decode()
    if kind == b"+":
        return text
    if kind == b"-":
        return Error(text)
    if kind == b":":
        return int(text)
    if kind == b"_" or text == "-1":
        return None
    if kind == b"$":
        value = stream.read(int(text) + 2)
        assert value.endswith(b"\r\n"), value
        return value[:-2]
    if kind == b"%":
        return {read(stream): read(stream) for _ in range(int(text))}
    assert kind in b"*>", line
    return [read(stream) for _ in range(int(text))]


def identity(name, version, *, first="LIB-NAME", upper=True):
    """CLIENT SETINFO, twice."""
    words = [("LIB-NAME", name), ("LIB-VER", version)]
    if first == "LIB-VER":
        words.reverse()
    return [(("CLIENT", "SETINFO", word if upper else word.lower(), value), "OK") for word, value in words]


def stack_exchange(token, version, *, tracer=RAW, says_hello=True):
    """ServerEndPoint.HandshakeAsync, AutoConfigureAsync and GetTracerMessage with default options, in one write."""
    name = [(("CLIENT", "SETNAME", "machine-1(SE.Redis-v3.0.0)"), "OK")]
    return [
        (("AUTH", token), "OK"),
        *([(("HELLO", version), Hello(int(version)))] if says_hello else []),
        *name,
        *identity("SE.Redis", "3.0.0", upper=False),
        (("CLIENT", "ID"), int),
        (("CONFIG", "GET", "timeout"), Error),
        (("CONFIG", "GET", "replica-read-only"), Error),
        (("CONFIG", "GET", "databases"), Error),
        (("SENTINEL", "MASTERS"), Error),
        (("INFO", "replication"), INFO),
        (("INFO", "server"), INFO),
        (("CLUSTER", "NODES"), Error),
        (("GET", "__Booksleeve_TieBreak"), Error),
        (("ECHO", tracer), tracer),
    ]


class RedisHandshakes(TokenCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        _, cls.chat = cls.token("app", "chat")
        _, cls.dashboard = cls.token("board", "dashboard")
        cls.service = cls.serve()

    def setUp(self):
        super().setUp()
        self.client = self.service.connect()
        self.addCleanup(self.client.close)
        self.stream = self.client.socket.makefile("rb")

    def check(self, reply, expected, request):
        if isinstance(expected, Hello):
            pairs = reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2]))
            self.assertIsInstance(reply, dict if expected.version == 3 else list)
            self.assertEqual(
                (pairs[b"proto"], pairs[b"mode"], pairs[b"role"], pairs[b"modules"]), (expected.version, b"standalone", b"master", [])
            )
            self.client_id = pairs[b"id"]
        elif expected is Error:
            self.assertIsInstance(reply, Error, request)
        elif expected is int:
            self.assertEqual(reply, getattr(self, "client_id", reply), request)
            self.assertIs(type(reply), int, request)
        elif isinstance(expected, re.Pattern):
            self.assertRegex(reply, expected, request)
        else:
            self.assertEqual((type(reply), reply), (type(expected), expected), request)

    def exchange(self, handshake):
        """Sends all requests at once, and checks each reply; then a message is counted, so the connection is in step."""
        user = str(uuid.uuid4())
        self.client.send(b"".join(array(*request) for request, _ in handshake) + array("CONSUME", user))
        for request, expected in handshake:
            self.check(read(self.stream), expected, request)
        self.assertEqual(Answer("+" + read(self.stream)).used, 1)

    def hello(self, *more, expected=None):
        return [(("HELLO", "3", "AUTH", "default", self.chat, *more), expected or Hello(3))]

    def test_stack_exchange_redis_with_default_settings(self):
        for version in "32":
            with self.subTest(version=version):
                self.exchange(stack_exchange(self.chat, version, tracer=uuid.uuid4().bytes))
        # Before 3.0 it sent no HELLO.
        self.exchange(stack_exchange(self.chat, "2", says_hello=False))

    def test_stack_exchange_redis_subscribes_in_resp2(self):
        channel = "__Booksleeve_MasterChanged"
        requests = [(("AUTH", self.dashboard), "OK"), (("CLIENT", "ID"), int), (("ECHO", RAW), RAW), (("SUBSCRIBE", channel), Error)]
        self.client.send(b"".join(array(*request) for request, _ in requests))
        for request, expected in requests:
            self.check(read(self.stream), expected, request)
        user = str(uuid.uuid4())
        self.client.send(array("SUBSCRIBE", f"usage:{user}") + array("PING") + array("PING", RAW))
        self.assertEqual(read(self.stream), [b"subscribe", f"usage:{user}".encode(), 1])
        self.assertEqual([read(self.stream), read(self.stream)], [[b"pong", b""], [b"pong", RAW]])

    def test_redis_py(self):
        self.exchange([*self.hello(), (MAINT, Error), (("CLIENT", "SETNAME", "app"), "OK"), *identity("redis-py", "8.0.0")])
        self.exchange([(("AUTH", self.chat), "OK"), *identity("redis-py", "6.4.0")])

    def test_node_redis(self):
        names = identity("node-redis", "6.2.1", first="LIB-VER")
        self.exchange([*self.hello("SETNAME", "app"), *names, (MAINT, Error), (("PING",), "PONG")])
        self.exchange([(("AUTH", "default", self.chat), "OK"), (("CLIENT", "SETNAME", "app"), "OK")])

    def test_ioredis(self):
        handshake = identity("ioredis", "6.0.0", first="LIB-VER")
        self.exchange([(("hello", "3", "AUTH", "default", self.chat), Hello(3)), *handshake, (("info",), INFO)])

    def test_jedis(self):
        self.exchange([*self.hello(), (("CLIENT", "SETNAME", "app"), "OK"), *identity("jedis", "8.0.0"), (("PING",), "PONG")])

    def test_lettuce(self):
        maint = ("CLIENT", "MAINT_NOTIFICATIONS", "on", "moving-endpoint-type", "internal-ip")
        self.exchange([*self.hello("SETNAME", "app"), *identity("Lettuce", "7.8.0", upper=False), (maint, Error)])

    def test_go_redis(self):
        hello = [(("hello", "3", "auth", "default", self.chat, "setname", "app"), Hello(3))]
        names = [(("client", "setname", "app"), "OK"), (("client", "maint_notifications", "on", "moving-endpoint-type", "none"), Error)]
        self.exchange([*hello, *names, *identity("go-redis(,go1.24)", "9.22.0")])

    def test_a_library_that_asks_for_a_newer_protocol_falls_back(self):
        self.exchange([(("HELLO", "4", "AUTH", "default", self.chat), Error), (("AUTH", self.chat), "OK")])

    def test_each_reply_is_of_the_type_of_redis(self):
        # A status for CLIENT ID, or text for ECHO, ends a connection.
        self.client.send(array("HELLO", "4"))
        self.assertRegex(read(self.stream), "^NOPROTO ")
        for version in (2, 3):
            with self.subTest(version=version):
                hello = ("HELLO", str(version), "AUTH", "default", self.chat)
                null = (("CLIENT", "SETNAME", ""), "OK"), (("CLIENT", "GETNAME"), None)
                self.exchange([
                    (hello, Hello(version)), (("ECHO", RAW), RAW), (("PING", ""), b""), (("PING", RAW), RAW), (("PING",), "PONG"),
                    (("CLIENT", "ID"), int), *null, (("CLIENT", "SETNAME", "x"), "OK"), (("CLIENT", "GETNAME"), b"x"),
                    (("CLIENT", "NO-EVICT", "ON"), "OK"), (("CLIENT", "TRACKING", "ON", "OPTIN"), Error), (MAINT, Error),
                    (("CLIENT", "UNBLOCK", "1"), Error), (("CLIENT", "REPLY", "OFF"), Error), (("RESET",), Error), (("CLIENT",), Error),
                    (("HELLO", "4"), Error), (("HELLO",), Hello(version)), (("COMMAND", "COUNT"), self.verbs()),
                    (("COMMAND", "DOCS"), []), (("COMMAND",), []), (("SELECT", "0"), "OK"), (("SELECT", "1"), Error),
                ])  # fmt: skip

    def verbs(self):
        with self.service.connect() as connection:
            self.assertEqual(connection.send_command(f"AUTH {self.chat}"), "+OK")
            return int(connection.send_command("HELP")[1:])

    def test_client_info_and_list_show_the_connection_to_itself(self):
        port = self.client.socket.getsockname()[1]
        for setup in (("HELLO", "3", "AUTH", "app", self.chat, "SETNAME", "one"), ("CLIENT", "SETINFO", "LIB-NAME", "lib")):
            self.client.send(array(*setup))
            read(self.stream)
        other = self.service.connect()
        self.addCleanup(other.close)
        for word in ("INFO", "LIST"):
            self.client.send(array("CLIENT", word))
            fields = dict(field.split("=", 1) for field in read(self.stream).decode().strip().split(" "))
            wanted = {"name": "one", "lib-name": "lib", "user": "app", "resp": "3", "db": "0", "addr": f"127.0.0.1:{port}"}
            self.assertLessEqual(wanted.items(), fields.items())
            self.assertEqual(fields["laddr"], f"127.0.0.1:{self.service.port}")

    def test_a_wrong_token_leaves_the_name_as_it_was(self):
        self.client.send(array("AUTH", self.chat) + array("CLIENT", "SETNAME", "one"))
        self.client.send(array("HELLO", "3", "AUTH", "default", "wrong", "SETNAME", "two") + array("CLIENT", "GETNAME"))
        replies = [read(self.stream) for _ in range(4)]
        self.assertEqual((replies[:2], replies[3]), (["OK", "OK"], b"one"))
        self.assertIsInstance(replies[2], Error)
