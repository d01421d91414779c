"""Tokens that are created, revoked or unreadable while the service runs."""

import json
from concurrent.futures import ThreadPoolExecutor

from support.service import Service, command, succeed
from support.tokens import TokenCase
from support.waiting import wait_until


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
        wait_until(lambda: self.connect().send_command(f"AUTH {token}") == "+OK", "the token is known")
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
        wait_until(lambda: self.connect().send_command(f"AUTH {token}") == "+OK", "the token is known")
        line = self.connect(token)
        # Only the schema's owner may do this; it avoids waiting for a day.
        self.psql.run(f"update headroom.tokens set expires_at = headroom.now() + interval '300 ms' where id = {number}")
        self.assert_closed_with(line, "NOAUTH")
        self.assertTrue(self.connect().send_command(f"AUTH {token}").startswith("-NOAUTH "))
        listed = command("token", "list", "--json", database_url=self.database_url).stdout.splitlines()
        self.assertEqual([json.loads(row)["state"] for row in listed if json.loads(row)["id"] == number], ["expired"])

    def test_a_token_whose_scopes_are_narrowed_by_hand_ends_its_connections(self):
        number, token = self.token("wide", "chat", "operator")
        wait_until(lambda: self.connect().send_command(f"AUTH {token}") == "+OK", "the token is known")
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
            wait_until(lambda: self.connect().send_command(f"AUTH many-{index % 3} {token}") == "+OK", "the token is known")
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
        created = succeed("token", "create", "first", "--scope", "chat", database_url=self.database_url)
        self.assertIn("from now on every connection requires a token", created.stderr)
        wait_until(lambda: connection.send_command("PING").startswith("-NOAUTH "), "the open connection needs one, too")
        subscribed.read_to_end()
        self.assertTrue(connection.send_command(f"CONSUME {user}").startswith("-NOAUTH "))
        self.assertEqual(self.count(user), 1)
        self.assertEqual(connection.send_command(f"AUTH {created.stdout.strip()}"), "+OK")
        self.assertTrue(connection.send_command(f"CONSUME {user}").startswith("+ALLOWED "), "the same connection works")
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
        self.assertIn("headroom token create", service.log())
        service.stop()


class DatabaseUnreachable(TokenCase):
    """Tokens that the service has read stay valid while the database is unreachable."""

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
        self.assertRegex(reasons, "tokens: the tokens were never read since the start: .* SQLSTATE 42501")
        self.assertEqual(service.log().count('level=warning msg="the tokens cannot be read'), 1)
        self.permit()
        wait_until(lambda: connection.send_command(f"AUTH {token}") == "+OK", "the token is known")
        wait_until(lambda: self.readiness(service) == (200, True, ""), "it is ready")
        self.assertIn("+ALLOWED ", connection.send_command(f"CONSUME {self.user()}"))
        self.assertEqual(service.log().count('msg="the tokens can be read again"'), 1)
        service.stop()

    def test_known_tokens_stay_valid_and_staleness_is_reported_after_ten_seconds(self):
        _, token = self.token("known", "chat", "dashboard")
        service = self.serve()
        connection = self.connect(token, service=service)
        wait_until(lambda: self.readiness(service) == (200, True, ""), "it is ready")
        self.forbid()
        over_http = {"Authorization": f"Bearer {token}"}
        wait_until(lambda: self.readiness(service)[1] is False, "/readyz reports it")
        status, _, reasons = self.readiness(service)
        self.assertEqual(status, 503)
        self.assertRegex(reasons, r"tokens: the tokens were last read [1-9][0-9]+ s ago: .* SQLSTATE 42501")
        wait_until(lambda: "the last ones stay valid" in service.log(), "the log line")
        metrics = service.http("GET", "/metrics", headers=over_http).text
        self.assertGreaterEqual(int(metrics.split("\nheadroom_tokens_age_seconds ")[1].split()[0]), 10)
        self.assertGreaterEqual(int(dict(e[1:].split("=", 1) for e in connection.send_list_command("INFO"))["tokens_age_s"]), 10)
        self.assertIn("+ALLOWED ", connection.send_command(f"CONSUME {self.user()}"))
        self.assertIn("+ALLOWED ", self.connect(token, service=service).send_command(f"CONSUME {self.user()}"))
        self.permit()
        wait_until(lambda: self.readiness(service) == (200, True, ""), "they are read again")
        log = service.log()
        self.assertEqual(log.count('level=warning msg="the tokens cannot be read'), 1)
        self.assertEqual(log.count('msg="the tokens can be read again"'), 1)
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
        wait_until(lambda: "\nheadroom_tokens_refused 0\n" in running.http("GET", "/metrics", headers=over_http).text, "they are revoked")
        self.psql.run("delete from headroom.tokens where name = 'bad'")
        self.psql.run("alter table headroom.tokens alter scopes set not null")
        for name, definition in definitions.items():
            self.psql.run(f"alter table headroom.tokens add constraint {name} {definition}")
