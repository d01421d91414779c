"""Authentication with tokens, and the requests that the scopes of a token permit."""

import os
import shutil
import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from support import processes
from support.case import MID_MONTH
from support.service import command
from support.tokens import TokenCase
from support.waiting import TIMEOUT_SECONDS, wait_until
from support.wire import Closed, array


class TokensRequired(TokenCase):
    """A service whose database has tokens since before it started."""

    FLAGS = None
    CLOCK = MID_MONTH

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ids, cls.tokens = {}, {}
        for scopes in (("chat",), ("dashboard",), ("operator",), ("chat", "dashboard", "operator")):
            name = "all" if len(scopes) > 1 else scopes[0]
            cls.ids[name], cls.tokens[name] = cls.token(name, *scopes)
        cls.service = cls.serve("--log-level", "trace")
        cls.set_clock(MID_MONTH)

    def request(self, verb, user):
        return {
            "SETPLAN": f"SETPLAN {user} paid", "GRANT": f"GRANT {user} 5 key=g", "RESERVE": f"RESERVE {user} key=r",
            "COMMIT": f"COMMIT {user} key=r", "RELEASE": f"RELEASE {user} key=r", "SUBSCRIBE": f"SUBSCRIBE usage:{user}",
            "UNSUBSCRIBE": "UNSUBSCRIBE", "REPORT": "REPORT", "TOP": "TOP", "INFO": "INFO", "PING": "PING", "HELP": "HELP",
            "ECHO": "ECHO x", "SELECT": "SELECT 0", "CLIENT": "CLIENT ID", "COMMAND": "COMMAND", "HELLO": "HELLO 3",
        }.get(verb, f"{verb} {user}")  # fmt: skip

    VERBS = {
        "chat": ["CONSUME", "RESERVE", "COMMIT", "RELEASE"],
        "chat dashboard operator": ["CHECK", "USAGE", "ALLOWANCES"],
        "dashboard operator": ["HISTORY", "REPORT", "TOP", "UNSUBSCRIBE", "SUBSCRIBE"],
        "operator": ["SETPLAN", "GRANT", "RESETUSAGE", "FORGET"],
        "": ["PING", "ECHO", "HELP", "INFO", "SELECT", "CLIENT", "COMMAND", "HELLO"],
    }

    def state(self):
        """All rows that a request could change."""
        return self.psql.run(
            "select (select md5(coalesce(string_agg(u::text, ',' order by u::text), '')) from message_usage u),"
            " (select count(*) from headroom.audit_log), (select count(*) from headroom.message_keys),"
            " (select count(*) from headroom.subscribers)"
        )

    def test_nothing_is_answered_without_a_token_and_nothing_changes(self):
        before = self.state()
        connection = self.connect()
        for verbs in self.VERBS.values():
            for verb in verbs:
                with self.subTest(verb):
                    self.assertTrue(connection.send_command(self.request(verb, self.user())).startswith("-NOAUTH "))
        for request in ("NOSUCH", "CONSUME nobody", "PING a b c"):
            self.assertTrue(connection.send_command(request).startswith("-NOAUTH "), request)
        self.assertEqual(self.state(), before)
        self.assertEqual(connection.send_command("QUIT"), "+OK")
        connection.read_to_end()

    def test_each_verb_needs_its_scope_and_a_refusal_changes_nothing(self):
        for name, token in self.tokens.items():
            line = self.connect(token)
            granted = {"chat", "dashboard", "operator"} if name == "all" else {name}
            for needed, verbs in self.VERBS.items():
                for verb in verbs:
                    allowed = not needed or granted & set(needed.split())
                    # A subscribed connection cannot be used further.
                    connection_with_token = self.connect(token) if verb == "SUBSCRIBE" else line
                    with self.subTest(token=name, verb=verb):
                        before = self.state()
                        connection_with_token.send(self.request(verb, self.user()) + "\n")
                        first = connection_with_token.read_line()
                        if allowed:
                            self.assertFalse(first.startswith(("-NOAUTH", "-FORBIDDEN")), first)
                            self.assertFalse(first.startswith("-BADARG"), first)
                            connection_with_token.send("ECHO over\n" if verb != "SUBSCRIBE" else "")
                            while verb != "SUBSCRIBE" and connection_with_token.read_line() != "+over":
                                pass
                        else:
                            self.assertRegex(first, f"^-FORBIDDEN .*{needed.replace(' ', ' or ')}")
                            self.assertEqual(self.state(), before)
                            self.assertEqual(connection_with_token.send_command("ECHO x"), "+x")

    def test_a_name_must_be_the_tokens_and_default_is_none(self):
        token = self.tokens["chat"]
        for credentials in (token, f"chat {token}", f"default {token}"):
            self.assertEqual(self.connect().send_command(f"AUTH {credentials}"), "+OK")
        connection = self.connect()
        wrong = [
            f"dashboard {token}", f"Chat {token}", f"{token} chat", token[:-1], token + "x", token.upper(), "x", "headroom_" + "A" * 43,
            f"chat {self.tokens['all']}", "key=value", f"default {self.tokens['chat'][::-1]}",
        ]  # fmt: skip
        replies = {connection.send_command(f"AUTH {credentials}") for credentials in wrong}
        self.assertEqual(len(replies), 1, "all wrong ones get the same answer")
        self.assertTrue(connection.send_command("AUTH x").startswith("-NOAUTH "))
        self.assertTrue(connection.send_command("PING").startswith("-NOAUTH "))
        for malformed in ("AUTH", "AUTH a b c"):
            self.assertTrue(connection.send_command(malformed).startswith("-BADARG "))
        self.assertEqual(connection.send_command(f"AUTH {token}"), "+OK")
        self.assertTrue(connection.send_command("AUTH x").startswith("-NOAUTH "))
        self.assertEqual(connection.send_command("PING"), "+PONG", "it keeps its permissions")
        self.assertEqual(connection.send_command(f"AUTH {self.tokens['operator']}"), "+OK")
        self.assertTrue(connection.send_command(f"CONSUME {self.user()}").startswith("-FORBIDDEN "), "now with another token")

    def test_requests_pipelined_behind_auth_are_answered_and_those_before_it_are_refused(self):
        user = self.user()
        for framing in (lambda *words: (" ".join(words) + "\n").encode(), array):
            connection = self.connect()
            connection.send(framing("CONSUME", user) + framing("AUTH", self.tokens["chat"]) + framing("CONSUME", user) * 3)
            replies = connection.read_lines(5)
            self.assertTrue(replies[0].startswith("-NOAUTH "), replies)
            self.assertEqual(replies[1], "+OK")
            self.assertTrue(all(reply.startswith("+ALLOWED ") for reply in replies[2:]), replies)
        self.assertEqual(self.count(user), 6)

    def test_requests_are_limited_to_512_bytes_before_authentication_only(self):
        connection = self.connect()
        self.assertTrue(connection.send_command("ECHO " + "x" * 507).startswith("-NOAUTH "))
        self.assertTrue(connection.send_command("ECHO " + "x" * 508).startswith("-TOOLONG "))
        connection.read_to_end()
        connection = self.connect(self.tokens["chat"])
        self.assertEqual(connection.send_command("ECHO " + "x" * 1000), "+" + "x" * 1000)

    def test_a_connection_without_a_token_is_closed_in_time_and_one_with_a_token_is_not(self):
        service = self.serve("--authentication-timeout-ms", "1000")

        def known_in_time():
            connection = self.connect(service=service)
            try:
                return connection.send_command(f"AUTH {self.tokens['chat']}") == "+OK" and connection
            except (Closed, ConnectionError):
                return None

        def is_closed(connection):
            try:
                self.assertTrue(connection.send_command("PING").startswith("-NOAUTH "))
            except (Closed, ConnectionError):
                return True
            return False

        known = wait_until(known_in_time, "a connection brings its token within the time")
        started_at = time.monotonic()
        asking, silent = self.connect(service=service), self.connect(service=service)
        wait_until(lambda: is_closed(asking), "asking gives no more time")
        self.assertEqual(silent.read_to_end(), b"")
        self.assertGreater(time.monotonic() - started_at, 0.9)
        # It connected first, so its timeout ended earlier.
        self.assertEqual(known.send_command("PING"), "+PONG")
        service.stop()

    def test_redis_py_authenticates_in_both_versions_with_and_without_a_name(self):
        for protocol in (2, 3):
            for credentials in ({"password": self.tokens["chat"]}, {"username": "chat", "password": self.tokens["chat"]}):
                with self.subTest(protocol=protocol, names=len(credentials)):
                    client = redis.Redis(
                        port=self.service.port, protocol=protocol, decode_responses=True, socket_timeout=TIMEOUT_SECONDS, client_name="t",
                        **credentials,
                    )
                    self.assertTrue(client.execute_command("CONSUME", self.user()).startswith("ALLOWED "))
                    with self.assertRaises(redis.ResponseError) as raised:
                        client.execute_command("FORGET", self.user())
                    self.assertIn("FORBIDDEN", str(raised.exception))
                    client.close()
            for wrong in ({"password": "wrong"}, {"username": "nobody", "password": self.tokens["chat"]}, {}):
                client = redis.Redis(
                    port=self.service.port, protocol=protocol, socket_timeout=TIMEOUT_SECONDS, retry=Retry(NoBackoff(), 0), **wrong
                )
                with self.assertRaises((redis.AuthenticationError, redis.ResponseError, redis.ConnectionError)) as raised:
                    client.ping()
                self.assertNotIn(self.tokens["chat"], str(raised.exception))
                client.close()

    def test_redis_cli_authenticates(self):
        if shutil.which("redis-cli") is None:
            self.skipTest("redis-cli is not installed (redis-tools)")

        def cli(*arguments, **variables):
            return processes.completed(
                ["redis-cli", "-p", str(self.service.port), *arguments], env={**os.environ, **variables}
            ).stdout.strip()

        token = self.tokens["chat"]
        self.assertEqual(cli("PING", REDISCLI_AUTH=token), "PONG")
        for flags in (["-a", token], ["-3", "-a", token], ["--user", "chat", "--pass", token]):
            self.assertEqual(cli(*flags, "PING"), "PONG", flags)
        self.assertIn("NOAUTH", cli("PING"))
        self.assertIn("NOAUTH", cli("-a", "wrong", "PING"))

    def test_info_counts_connections_by_token_and_failures(self):
        def info(connection):
            return dict(entry[1:].split("=", 1) for entry in connection.send_list_command("INFO"))

        connection = self.connect(self.tokens["dashboard"])
        # The service may not have noticed yet that earlier tests' connections are closed.
        wait_until(lambda: info(connection)["token_dashboard"] == "1", "no other connection")
        before = info(connection)
        self.assertEqual(before["authentication"], "required")
        others = [self.connect(self.tokens["dashboard"]) for _ in range(3)]
        self.connect().send_command("AUTH wrong")
        after = info(connection)
        self.assertEqual(int(after["token_dashboard"]) - int(before["token_dashboard"]), 3)
        self.assertEqual(int(after["authenticated"]) - int(before["authenticated"]), 3)
        self.assertEqual(int(after["authentication_failures"]) - int(before["authentication_failures"]), 1)
        for other in others:
            other.close()
        wait_until(lambda: info(connection)["token_dashboard"] == before["token_dashboard"], "closed connections are not counted")

    def test_the_last_use_of_a_token_is_recorded(self):
        self.connect(self.tokens["chat"]).send_command("PING")
        wait_until(
            lambda: self.psql.number(f"select count(*) from headroom.tokens where id = {self.ids['chat']} and last_used_at is not null"),
            "the use is noted",
        )

    def test_connections_of_one_token_are_limited(self):
        service = self.serve("--connections-per-token-maximum", "3")
        held = [self.connect(self.tokens["chat"], service=service) for _ in range(3)]
        connection = self.connect(service=service)
        self.assertTrue(connection.send_command(f"AUTH {self.tokens['chat']}").startswith("-OVERLOADED retry_ms="))
        self.assertTrue(connection.send_command("PING").startswith("-NOAUTH "), "it has no token")
        self.assertEqual(connection.send_command(f"AUTH {self.tokens['operator']}"), "+OK", "another token has its own")
        self.assertEqual(held[0].send_command(f"AUTH {self.tokens['chat']}"), "+OK", "an authenticated connection may repeat AUTH")
        held.pop().close()
        wait_until(lambda: connection.send_command(f"AUTH {self.tokens['chat']}") == "+OK", "a place is free")
        service.stop()

    def test_no_token_is_ever_shown(self):
        secrets = list(self.tokens.values()) + ["s3cret-guess", "s3cret=option"]
        connection = self.connect(self.tokens["all"])
        shown = []
        for request in (
            "AUTH s3cret-guess", "AUTH s3cret=option", "AUTH a s3cret-guess b", "HELLO 3 AUTH s3cret-guess", "s3cret-guess",
            f"HELLO {self.tokens['chat']}", f"CONSUME {self.tokens['chat']}", f"CONSUME {self.user()} {self.tokens['chat']}=1",
            "AUTH \x7fs3cret-guess",
        ):  # fmt: skip
            shown.append(connection.send_command(request))
        shown.append("\n".join(connection.send_list_command("INFO") + connection.send_list_command("HELP")))
        shown += [self.service.log(), self.service.output()]
        listed = command("token", "list", "--json", database_url=self.database_url)
        shown.append(listed.stdout + listed.stderr + command("token", "list", database_url=self.database_url).stdout)
        with open(f"/proc/{self.service.process.pid}/cmdline", "rb") as file:
            shown.append(file.read().decode())
        shown.append(str(self.psql.run("select t::text from headroom.tokens t")))
        for secret in secrets:
            for text in shown:
                self.assertNotIn(secret, text)
        self.assertIn("level=", self.service.log())

    def test_off_requires_no_token_and_applies_the_scopes_of_a_presented_one(self):
        service = self.serve("--authentication", "off")
        self.assertTrue(self.connect(service=service).send_command(f"CONSUME {self.user()}").startswith("+ALLOWED "))
        self.assertEqual(self.connect(service=service).send_command("PING"), "+PONG")
        connection = self.connect(self.tokens["dashboard"], service=service)
        self.assertTrue(connection.send_command(f"CONSUME {self.user()}").startswith("-FORBIDDEN "))
        self.assertTrue(self.connect(service=service).send_command("AUTH wrong").startswith("-NOAUTH "))
        info = dict(entry[1:].split("=", 1) for entry in connection.send_list_command("INFO"))
        self.assertEqual(info["authentication"], "off")
        service.stop()
