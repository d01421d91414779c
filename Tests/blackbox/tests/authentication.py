"""Tokens: authentication, scopes, revocation and expiry."""

import json
import os
import shutil
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from support import settings
from support.case import NOON, Case
from support.service import Service, command, environment
from support.waiting import TIMEOUT_SECONDS, wait_until
from support.wire import Closed, array


class TokenCase(Case):
    @classmethod
    def token(cls, name, *scopes, days=None):
        """Creates a token as an operator does; returns its number and its text."""
        flags = [word for scope in scopes for word in ("--scope", scope)] + (["--expires-in-days", str(days)] if days else [])
        created = command("token", "create", name, *flags, database_url=cls.database_url)
        assert created.returncode == 0, created.stderr
        return int(created.stderr.split()[1]), created.stdout.strip()

    @classmethod
    def revoke(cls, number):
        ran = command("token", "revoke", str(number), database_url=cls.database_url)
        assert ran.returncode == 0, ran.stderr

    def connect(self, token=None, name=None, service=None):
        connection = (service or self.service).connect()
        self.addCleanup(connection.close)
        if token:
            self.assertEqual(connection.send_command(f"AUTH {name} {token}" if name else f"AUTH {token}"), "+OK")
        return connection

    def assert_closed_with(self, connection, code):
        """Checks that the next request gets the code, and that the connection then ends."""
        def last_reply():
            try:
                return connection.send_command("PING")
            except (Closed, ConnectionError):
                return "closed"

        reply = wait_until(lambda: (r := last_reply()) != "+PONG" and r, f"the connection ends with {code}")
        if reply != "closed":
            self.assertTrue(reply.startswith(f"-{code} "), reply)
            self.assertTrue(reply.endswith("closing"), reply)
        connection.read_to_end()


class TokensRequired(TokenCase):
    """A service whose database has tokens since before it started."""

    FLAGS = None
    CLOCK = NOON

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ids, cls.tokens = {}, {}
        for scopes in (("chat",), ("dashboard",), ("operator",), ("chat", "dashboard", "operator")):
            name = "all" if len(scopes) > 1 else scopes[0]
            cls.ids[name], cls.tokens[name] = cls.token(name, *scopes)
        cls.service = cls.serve("--log-level", "trace")
        cls.set_clock(NOON)

    def request(self, verb, user):
        return {
            "SETPLAN": f"SETPLAN {user} paid", "GRANT": f"GRANT {user} 5 key=g", "RESERVE": f"RESERVE {user} key=r",
            "COMMIT": f"COMMIT {user} key=r", "RELEASE": f"RELEASE {user} key=r", "SUBSCRIBE": f"SUBSCRIBE usage:{user}",
            "UNSUBSCRIBE": "UNSUBSCRIBE", "REPORT": "REPORT", "TOP": "TOP", "INFO": "INFO", "PING": "PING", "HELP": "HELP",
            "ECHO": "ECHO x", "SELECT": "SELECT 0", "CLIENT": "CLIENT x", "COMMAND": "COMMAND", "HELLO": "HELLO 3",
        }.get(verb, f"{verb} {user}")  # fmt: skip

    VERBS = {
        "chat": ["CONSUME", "CHECK", "RESERVE", "COMMIT", "RELEASE"],
        "chat dashboard operator": ["USAGE"],
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
                            self.assertNotEqual(first[:1], "-BADARG")
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
        self.assertEqual(connection.send_command("PING"), "+PONG", "it is still who it was")
        self.assertEqual(connection.send_command(f"AUTH {self.tokens['operator']}"), "+OK")
        self.assertTrue(connection.send_command(f"CONSUME {self.user()}").startswith("-FORBIDDEN "), "and now somebody else")

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
        began = time.monotonic()
        asking, silent = self.connect(service=service), self.connect(service=service)
        wait_until(lambda: is_closed(asking), "asking gives no more time")
        self.assertEqual(silent.read_to_end(), b"")
        self.assertGreater(time.monotonic() - began, 0.9)
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
            return subprocess.run(
                ["redis-cli", "-p", str(self.service.port), *arguments], capture_output=True, text=True, timeout=TIMEOUT_SECONDS,
                env={**os.environ, **variables},
            ).stdout.strip()  # fmt: skip

        token = self.tokens["chat"]
        self.assertEqual(cli("PING", REDISCLI_AUTH=token), "PONG")
        for flags in (["-a", token], ["-3", "-a", token], ["--user", "chat", "--pass", token]):
            self.assertEqual(cli(*flags, "PING"), "PONG", flags)
        self.assertIn("NOAUTH", cli("PING"))
        self.assertIn("NOAUTH", cli("-a", "wrong", "PING"))

    def test_hello_authenticates_and_without_auth_it_is_refused_as_redis_does(self):
        token = self.tokens["dashboard"]
        connection = self.connect()
        for request in ("HELLO", "HELLO 3", "HELLO 3 SETNAME x", "HELLO 3 AUTH default wrong"):
            self.assertTrue(connection.send_command(request).startswith("-NOAUTH "), request)
        self.assertEqual(connection.send_command(f"HELLO 3 AUTH dashboard {token} SETNAME x"), "%7")
        connection = self.connect()
        self.assertEqual(connection.send_command(f"HELLO 2 SETNAME x AUTH default {token}"), "*14")

    def test_changes_are_recorded_under_the_operators_token(self):
        user = self.user()
        connection = self.connect(self.tokens["operator"])
        for request in (f"SETPLAN {user} paid", f"GRANT {user} 5 key=k", f"RESETUSAGE {user}"):
            self.assertTrue(connection.send_command(request).startswith("+OK "), request)
        rows = self.psql.run(f"select action, actor from audit_trail where user_id = '{user}' order by id")
        self.assertEqual(rows, [["plan", "token:operator"], ["grant", "token:operator"], ["reset", "token:operator"]])

    def test_info_counts_connections_by_token_and_failures(self):
        def info(connection):
            return dict(entry[1:].split("=", 1) for entry in connection.send_list_command("INFO"))

        connection = self.connect(self.tokens["dashboard"])
        # The service may not have noticed yet that earlier tests' connections are closed.
        wait_until(lambda: info(connection)["token_dashboard"] == "1", "nobody else is connected")
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
        wait_until(lambda: info(connection)["token_dashboard"] == before["token_dashboard"], "those who left are not counted")

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
        self.assertTrue(connection.send_command("PING").startswith("-NOAUTH "), "and it is nobody")
        self.assertEqual(connection.send_command(f"AUTH {self.tokens['operator']}"), "+OK", "another token has its own")
        self.assertEqual(held[0].send_command(f"AUTH {self.tokens['chat']}"), "+OK", "who has a place keeps it")
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


class TokenChanges(TokenCase):
    """Tokens are created and revoked while the service runs."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.main_id, cls.main = cls.token("main", "chat", "dashboard", "operator")

    def send_command(self, request):
        return self.connect(self.main).send_command(request)

    def test_a_token_works_at_once_and_is_replaced_without_a_pause(self):
        old_id, old = self.token("backend", "chat")
        wait_until(lambda: self.connect().send_command(f"AUTH {old}") == "+OK", "the first is known")
        connection = self.connect(old, "backend")
        _, new = self.token("backend", "chat")
        wait_until(lambda: self.connect().send_command(f"AUTH {new}") == "+OK", "the second is known")
        self.assertEqual(connection.send_command("PING"), "+PONG", "both are live")
        other = self.connect(new, "backend")
        self.revoke(old_id)
        self.assert_closed_with(connection, "NOAUTH")
        self.assertTrue(self.connect().send_command(f"AUTH {old}").startswith("-NOAUTH "))
        self.assertEqual(other.send_command("PING"), "+PONG")

    def test_a_revoked_token_ends_its_connections_after_requests_in_progress(self):
        number, token = self.token("lost", "chat", "dashboard")
        wait_until(lambda: self.connect().send_command(f"AUTH {token}") == "+OK", "it is known")
        user = self.subscriber()
        silent, subscribed, waiting = self.connect(token), self.connect(token), self.connect(token)
        subscribed.send_command(f"SUBSCRIBE usage:{user}")
        subscribed.read_lines(5)
        locker = self.cluster.session(self.database)
        locker.run("begin")
        locker.run(f"select set_plan('{user}', 'pro')")
        waiting.send(f"CONSUME {user}\n" * 3)
        self.wait_until_blocked()
        self.revoke(number)
        self.assertEqual(silent.read_to_end(), b"")
        subscribed.read_to_end()
        locker.run("commit")
        locker.close()
        for reply in waiting.read_lines(3):
            self.assertTrue(reply.startswith(("+ALLOWED ", "-UNAVAILABLE ")), reply)
        waiting.read_to_end()

    def test_an_expired_token_is_refused_and_ends_its_connections(self):
        number, token = self.token("short", "chat", days=1)
        wait_until(lambda: self.connect().send_command(f"AUTH {token}") == "+OK", "it is known")
        line = self.connect(token)
        # Only the schema's owner may do this; it avoids waiting for a day.
        self.psql.run(f"update headroom.tokens set expires_at = headroom.now() + interval '300 ms' where id = {number}")
        self.assert_closed_with(line, "NOAUTH")
        self.assertTrue(self.connect().send_command(f"AUTH {token}").startswith("-NOAUTH "))
        listed = command("token", "list", "--json", database_url=self.database_url).stdout.splitlines()
        self.assertEqual([json.loads(row)["state"] for row in listed if json.loads(row)["id"] == number], ["expired"])

    def test_a_token_whose_scopes_are_narrowed_by_hand_ends_its_connections(self):
        number, token = self.token("wide", "chat", "operator")
        wait_until(lambda: self.connect().send_command(f"AUTH {token}") == "+OK", "it is known")
        line = self.connect(token)
        self.psql.run(f"update headroom.tokens set scopes = '{{chat}}' where id = {number}")
        self.assert_closed_with(line, "NOAUTH")
        self.assertTrue(self.connect(token).send_command(f"FORGET {self.user()}").startswith("-FORBIDDEN "))

    def test_changes_without_a_notification_are_found_all_the_same(self):
        self.psql.run("alter table headroom.tokens disable trigger notify_tokens_changed")
        try:
            number, token = self.token("quiet", "chat")
            wait_until(lambda: self.connect().send_command(f"AUTH {token}") == "+OK", "it is found")
            line = self.connect(token)
            self.revoke(number)
            self.assert_closed_with(line, "NOAUTH")
        finally:
            self.psql.run("alter table headroom.tokens enable trigger notify_tokens_changed")

    def test_many_tokens_at_once_are_distinguished(self):
        with ThreadPoolExecutor(4) as pool:
            created = list(pool.map(lambda index: self.token(f"many-{index % 3}", "chat"), range(12)))
        for index, (_, token) in enumerate(created):
            wait_until(lambda: self.connect().send_command(f"AUTH many-{index % 3} {token}") == "+OK", "it is known")
        self.revoke(created[5][0])
        wait_until(lambda: self.connect().send_command(f"AUTH {created[5][1]}").startswith("-NOAUTH "), "it is revoked")
        for _, token in created[:5] + created[6:]:
            self.assertEqual(self.connect().send_command(f"AUTH {token}"), "+OK")


class FirstToken(TokenCase):
    """A service that requires no token until the first one is created."""

    def test_from_the_first_token_on_every_connection_needs_one_also_after_the_last_is_revoked(self):
        connection, subscribed, late = self.connect(), self.connect(), self.connect()
        user = self.user()
        self.assertTrue(connection.send_command(f"CONSUME {user}").startswith("+ALLOWED "))
        self.assertEqual(self.service.info()["authentication"], "off")
        self.assertTrue(connection.send_command("AUTH x").startswith("-BADARG "))
        self.assertTrue(connection.send_command("HELLO 3 AUTH default x").startswith("-BADARG "))
        subscribed.send_command(f"SUBSCRIBE usage:{user}")
        subscribed.read_lines(5)
        created = command("token", "create", "first", "--scope", "chat", database_url=self.database_url)
        self.assertEqual(created.returncode, 0, created.stderr)
        self.assertIn("from now on every connection needs a token", created.stderr)
        wait_until(lambda: connection.send_command("PING").startswith("-NOAUTH "), "the open connection needs one, too")
        subscribed.read_to_end()
        self.assertTrue(connection.send_command(f"CONSUME {user}").startswith("-NOAUTH "))
        self.assertEqual(self.count(user), 1)
        self.assertEqual(connection.send_command(f"AUTH {created.stdout.strip()}"), "+OK")
        self.assertTrue(connection.send_command(f"CONSUME {user}").startswith("+ALLOWED "), "the same connection goes on")
        self.assertIn("a token is required from now on", self.service.log())
        self.revoke(1)
        self.assert_closed_with(connection, "NOAUTH")
        self.assertTrue(late.send_command("PING").startswith("-NOAUTH "))
        another = self.serve()
        self.assertTrue(self.connect(service=another).send_command("PING").startswith("-NOAUTH "), "also after a restart")
        self.assertIn("none is live", another.log())
        another.stop()

    def test_required_refuses_every_client_before_the_first_token(self):
        name = self.cluster.new_database(is_migrated=True)
        service = Service("--authentication", "required", database_url=self.cluster.url(name))
        self.services.append(service)
        connection = self.connect(service=service)
        self.assertTrue(connection.send_command("PING").startswith("-NOAUTH "))
        self.assertTrue(connection.send_command("AUTH x").startswith("-NOAUTH "))
        self.assertIn("headroom token create makes one", service.log())
        service.stop()


class DatabaseAway(TokenCase):
    """Tokens that were read stay valid."""

    OWN_CLUSTER = True
    # The first requests wait for this long.
    FLAGS = ("--request-timeout-ms", "1000")

    def test_known_tokens_stay_valid_without_a_database_and_requests_are_answered_unavailable(self):
        _, token = self.token("backend", "chat")
        wait_until(lambda: self.connect().send_command("PING").startswith("-NOAUTH "), "a token is required")
        connection = self.connect(token)
        self.cluster.stop_immediately()
        for connection_with_token in (connection, self.connect(token)):
            self.assertTrue(connection_with_token.send_command(f"CONSUME {self.user()}").startswith("-UNAVAILABLE "))
        self.assertTrue(self.connect().send_command("PING").startswith("-NOAUTH "))
        self.assertTrue(self.connect().send_command("AUTH wrong").startswith("-NOAUTH "))
        self.cluster.start()
        self.cluster.wait_until_ready()
        wait_until(lambda: connection.send_command(f"CONSUME {self.user()}").startswith("+ALLOWED "), "service is back")

    @classmethod
    def tearDownClass(cls):
        for service in cls.services:
            service.stop()
        cls.cluster.stop_immediately()


class UnreadableTokens(TokenCase):
    """Tokens that cannot be read, and invalid rows."""

    FLAGS = None

    def readiness(self, service):
        answer = service.http("GET", "/readyz")
        return answer.status, answer.json["checks"]["tokens"], " ".join(answer.json["reasons"])

    def forbid(self):
        self.psql.run("revoke select, update on headroom.tokens from headroom_service")
        self.addCleanup(self.permit)

    def permit(self):
        self.psql.run("grant select, update (last_used_at) on headroom.tokens to headroom_service")

    def test_connections_are_refused_until_the_tokens_are_read_and_the_service_starts(self):
        _, token = self.token("early", "chat", "dashboard")
        self.forbid()
        service = self.serve()
        connection = self.connect(service=service)
        self.assertTrue(connection.send_command(f"CONSUME {self.user()}").startswith("-NOAUTH "))
        self.assertTrue(connection.send_command(f"AUTH {token}").startswith("-UNAVAILABLE retry_ms="))
        over_http = {"Authorization": f"Bearer {token}"}
        self.assertEqual(service.http("GET", "/v1/report", headers=over_http).status, 503)
        status, checks, reasons = self.readiness(service)
        self.assertEqual((status, checks), (503, False))
        self.assertRegex(reasons, "tokens: tokens were never read since the start: .* SQLSTATE 42501")
        self.assertEqual(service.log().count('level=warning msg="tokens cannot be read'), 1)
        self.permit()
        wait_until(lambda: connection.send_command(f"AUTH {token}") == "+OK", "the token is known")
        wait_until(lambda: self.readiness(service) == (200, True, ""), "it is ready")
        self.assertIn("+ALLOWED ", connection.send_command(f"CONSUME {self.user()}"))
        self.assertEqual(service.log().count('msg="tokens are read again"'), 1)
        service.stop()

    def test_known_tokens_stay_valid_and_staleness_is_reported_after_ten_seconds(self):
        _, token = self.token("known", "chat", "dashboard")
        service = self.serve()
        connection = self.connect(token, service=service)
        wait_until(lambda: self.readiness(service) == (200, True, ""), "it is ready")
        self.forbid()
        over_http = {"Authorization": f"Bearer {token}"}
        wait_until(lambda: self.readiness(service)[1] is False, "readiness says so")
        status, _, reasons = self.readiness(service)
        self.assertEqual(status, 503)
        self.assertRegex(reasons, r"tokens: tokens were last read [1-9][0-9]+ s ago: .* SQLSTATE 42501")
        wait_until(lambda: "those that are known stay" in service.log(), "the log says so")
        metrics = service.http("GET", "/metrics", headers=over_http).text
        self.assertGreaterEqual(int(metrics.split("\nheadroom_tokens_age_seconds ")[1].split()[0]), 10)
        self.assertGreaterEqual(int(dict(e[1:].split("=", 1) for e in connection.send_list_command("INFO"))["tokens_age_s"]), 10)
        self.assertIn("+ALLOWED ", connection.send_command(f"CONSUME {self.user()}"))
        self.assertIn("+ALLOWED ", self.connect(token, service=service).send_command(f"CONSUME {self.user()}"))
        self.permit()
        wait_until(lambda: self.readiness(service) == (200, True, ""), "they are read again")
        log = service.log()
        self.assertEqual(log.count('level=warning msg="tokens cannot be read'), 1)
        self.assertEqual(log.count('msg="tokens are read again"'), 1)
        service.stop()

    def test_an_invalid_row_is_refused_alone_also_by_a_starting_instance(self):
        _, token = self.token("good", "chat", "dashboard")
        running = self.serve()
        names = "instants_are_in_the_years_2000_to_9999", "scopes_are_known"
        definitions = {}
        for name in names:
            definitions[name] = self.psql.value(
                f"select pg_get_constraintdef(oid) from pg_constraint where conname = '{name}'"
                " and conrelid = 'headroom.tokens'::regclass"
            )
            self.psql.run(f"alter table headroom.tokens drop constraint {name}")
        self.psql.run("alter table headroom.tokens alter scopes drop not null")
        bad = {}
        for change in ("expires_at = 'infinity'", "scopes = null"):
            number, text = self.token("bad", "chat")
            bad[number] = text
            self.psql.run(f"update headroom.tokens set {change} where id = {number}")
        for service in (running, self.serve()):
            count = f"\nheadroom_tokens_refused {len(bad)}\n"
            over_http = {"Authorization": f"Bearer {token}"}
            wait_until(lambda: count in service.http("GET", "/metrics", headers=over_http).text, "both are refused")
            connection = self.connect(token, service=service)
            self.assertIn("+ALLOWED ", connection.send_command(f"CONSUME {self.user()}"))
            for text in bad.values():
                self.assertTrue(self.connect(service=service).send_command(f"AUTH {text}").startswith("-NOAUTH "))
            self.assertEqual(self.readiness(service)[1], True)
            for number in bad:
                self.assertEqual(service.log().count(f"token.id={number} "), 1, service.log())
        listed = command("token", "list", database_url=self.database_url)
        self.assertEqual(listed.stdout.count(" invalid "), len(bad), listed)
        for number in bad:
            self.revoke(number)
        wait_until(
            lambda: "\nheadroom_tokens_refused 0\n" in running.http("GET", "/metrics", headers=over_http).text, "they are revoked"
        )
        self.psql.run("delete from headroom.tokens where name = 'bad'")
        self.psql.run("alter table headroom.tokens alter scopes set not null")
        for name, definition in definitions.items():
            self.psql.run(f"alter table headroom.tokens add constraint {name} {definition}")


class TokenCommands(TokenCase):
    FLAGS = None

    def test_a_token_is_printed_once_and_alone(self):
        created = command("token", "create", "backend", "--scope", "operator", "--scope", "chat", "--expires-in-days", "30",
                       database_url=self.database_url)  # fmt: skip
        self.assertRegex(created.stdout, r"^headroom_[A-Za-z0-9_-]{43}\n$")
        self.assertRegex(created.stderr, r"^token \d+ of backend \(chat, operator, for 30 days\): keep it, it is not shown again\n")
        self.assertNotIn(created.stdout.strip(), created.stderr)
        listed = command("token", "list", database_url=self.database_url).stdout
        self.assertRegex(listed, r"\d+ +backend +chat operator +live +- +20\d\d-")
        self.assertNotIn("headroom_", listed)
        first, second = (self.token("a", "chat")[1] for _ in range(2))
        self.assertNotEqual(first, second)

    def test_invalid_arguments_are_refused_and_create_nothing(self):
        url = self.database_url
        before = self.psql.number("select count(*) from headroom.tokens")
        for arguments in [
            ("create", "backend"), ("create", "Backend", "--scope", "chat"), ("create", "default", "--scope", "chat"),
            ("create", "a b", "--scope", "chat"), ("create", "", "--scope", "chat"), ("create", "a" * 65, "--scope", "chat"),
            ("create", "a", "--scope", "admin"), ("create", "a", "--scope", "chat", "--expires-in-days", "0"), ("create",),
            ("revoke", "backend"), ("revoke",),
        ]:  # fmt: skip
            ran = command("token", *arguments, database_url=url)
            self.assertEqual(ran.returncode, 64, (arguments, ran.stderr))
            self.assertEqual(ran.stdout, "")
        self.assertEqual(self.psql.number("select count(*) from headroom.tokens"), before)
        ran = command("token", "revoke", "4711", database_url=url)
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertIn("headroom token list", ran.stderr)

    def test_creator_and_revoker_are_recorded(self):
        url = self.database_url
        self.psql.run("create role token_ann login in role headroom_operator; create role token_bob login in role headroom_dashboard")
        try:
            created = command("token", "create", "b", "--scope", "chat", database_url=url.replace("user=postgres", "user=token_ann"))
            number = created.stderr.split()[1]
            self.assertEqual(command("token", "revoke", number, database_url=url).stdout, f"token {number} of b is revoked\n")
            entry = next(
                row for row in map(json.loads, command("token", "list", "--json", database_url=url).stdout.splitlines())
                if row["id"] == int(number)
            )  # fmt: skip
            self.assertEqual((entry["created_by"], entry["revoked_by"], entry["state"]), ("token_ann", "postgres", "revoked"))
            self.assertEqual((entry["scopes"], entry["last_used_at"], entry["expires_at"]), (["chat"], None, None))
            for login in ("token_bob", "backend"):
                ran = command("token", "create", "c", "--scope", "chat", database_url=url.replace("user=postgres", f"user={login}"))
                self.assertEqual(ran.returncode, 1, ran.stdout)
                self.assertIn("headroom_operator", ran.stderr)
                self.assertEqual(ran.stdout, "")
        finally:
            self.psql.run("drop role token_ann; drop role token_bob")

    def test_a_missing_database_or_schema_is_reported(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ran = command("token", "list", database_url=f"host=127.0.0.1 port={free.getsockname()[1]} user=postgres")
        self.assertEqual(ran.returncode, 69, ran.stderr)
        empty = self.cluster.url(self.cluster.new_database())
        for arguments in (("list",), ("create", "a", "--scope", "chat"), ("revoke", "1")):
            ran = command("token", *arguments, database_url=empty)
            self.assertEqual((ran.returncode, ran.stdout), (1, ""), ran.stderr)
            self.assertIn("headroom migrate", ran.stderr)

    def test_no_flag_takes_a_token(self):
        for arguments in (("--help",), ("serve", "--help"), ("token", "create", "--help"), ("token", "revoke", "--help")):
            shown = subprocess.run([settings.binary, *arguments], capture_output=True, text=True, env=environment()).stdout
            self.assertNotRegex(shown, r"--(token|password|secret)\b[^-]")
