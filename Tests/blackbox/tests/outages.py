"""Outages of the database: requests are answered in time, nothing is counted twice, and the service recovers by itself."""

import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.case import Case
from support.load import PAUSE_SECONDS, Load
from support.waiting import wait_until
from support.wire import Answer

KEEP_CHATTING = "I couldn't check your usage right now — don't worry, you can keep chatting."

TRY_AGAIN = "I couldn't check your usage right now. Let's try again in a moment."

LANES = "from pg_stat_activity where application_name = 'headroom lane'"


class UnderLoad(Case):
    """Six users, each with two clients on two instances, who send messages before, during and after the fault."""

    OWN_CLUSTER = True
    PAUSE_SECONDS = PAUSE_SECONDS
    """Of each client after an answer."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.other = cls.serve(*cls.FLAGS)
        cls.psql.run("insert into headroom.plans (plan, label, cycle) values ('endless', 'Endless', 'monthly')")
        cls.psql.close()

    def setUp(self):
        super().setUp()
        self.cluster.wait_until_ready()
        self.psql = self.cluster.session(self.database)
        self.users = [self.user() for _ in range(6)]
        for user in self.users:
            self.psql.run(f"select set_plan('{user}', 'pro')")
        self.load = Load([self.service, self.other], self.users, clients_per_user=2, pause=self.PAUSE_SECONDS)
        wait_until(lambda: self.load.every_client_allowed_since(0), "the load runs")

    def tearDown(self):
        if self.cluster.process.poll() is not None:
            self.cluster.start()
        self.cluster.signal_all(signal.SIGCONT)
        self.load.stop()
        self.psql.close()

    @classmethod
    def tearDownClass(cls):
        cls.psql = cls.cluster.session(cls.database)
        super().tearDownClass()

    def reopen_psql(self):
        self.psql.close()
        self.psql = self.cluster.session(self.database)

    def assert_resumes(self):
        """Checks that every client is served again."""
        since = time.monotonic()
        wait_until(lambda: self.load.every_client_allowed_since(since), "service is back")

    def assert_counted_once(self):
        """Checks allowed ≤ counted ≤ allowed + unknown, and that no value of `used` was answered twice."""
        self.load.stop()
        for user in self.users:
            each, unknown = self.load.outcomes_of(user)
            used = [value for values in each for value in values]
            count = self.count(user)
            self.assertEqual(len(set(used)), len(used), "no count was given out twice")
            self.assertLessEqual(len(used), count, "an ALLOWED that was sent is found afterwards")
            self.assertLessEqual(count, len(used) + unknown, "nothing was counted twice")
            self.assertLessEqual(max(used), count)
            for values in each:
                self.assertEqual(values, sorted(values), "in the order of time")

    def terminate_lanes(self):
        self.cluster.rows_of_each(f"select pg_terminate_backend(pid) {LANES}", self.database)


class Outages(UnderLoad):
    """Waits until requests were answered during the fault."""

    FLAGS = ("--request-timeout-ms", "1000")

    def test_an_immediate_stop_of_the_database(self):
        self.cluster.stop_immediately()
        refused = self.load.refused
        wait_until(lambda: self.load.refused >= refused + 24, "requests are refused while the database is away")
        with self.service.connect() as connection:
            self.assertRegex(connection.send_command(f"USAGE {self.users[0]}"), r"^-UNAVAILABLE retry_ms=\d+ ")
            self.assertRegex(connection.send_command(f"SETPLAN {self.users[0]} paid"), r"^-UNAVAILABLE retry_ms=\d+ ")
            self.assertEqual(connection.send_command("PING"), "+PONG", "the service itself is there")
        self.assertEqual(self.service.info()["database"], "down")
        self.cluster.start()
        self.assert_resumes()
        self.reopen_psql()
        self.assert_counted_once()
        wait_until(lambda: self.service.info()["database"] == "up", "all lanes are connected")

    def test_a_short_restart_refuses_few_requests(self):
        for _ in range(3):
            self.cluster.stop_immediately()
            self.cluster.start()
            self.assert_resumes()
        self.reopen_psql()
        self.assert_counted_once()

    def test_a_killed_backend_takes_the_server_down_for_a_moment(self):
        os.kill(int(self.cluster.rows_of_each(f"select pid {LANES}", self.database)[0][0]), signal.SIGKILL)
        self.cluster.on_each(lambda server: server.wait_until_ready())
        self.assert_resumes()
        self.reopen_psql()
        self.assert_counted_once()

    def test_a_database_that_hangs_and_comes_back(self):
        self.cluster.signal_all(signal.SIGSTOP)
        failures = self.load.refused + self.load.unknown
        wait_until(lambda: self.load.refused + self.load.unknown >= failures + 36, "requests are answered while it hangs")
        self.cluster.signal_all(signal.SIGCONT)
        self.assert_resumes()
        self.assert_counted_once()

    def stop_a_backend_between_statements(self) -> int:
        """A backend that is stopped during a flush holds the lock that every commit needs, and so stops all."""
        # A lane with users: by chance, one may have none of the six.
        now = self.psql.value("select clock_timestamp()")
        lanes = f"select pid, wait_event {LANES} and state_change > '{now}' order by pid"

        def at_work():
            return self.cluster.rows_of_each(lanes, self.database)

        for _ in range(200):
            hanging = int(wait_until(at_work, "a lane is at work")[0][0])
            os.kill(hanging, signal.SIGSTOP)
            if dict(at_work()).get(str(hanging)) == "ClientRead":
                return hanging
            os.kill(hanging, signal.SIGCONT)
        raise AssertionError("a lane's backend was never seen between two statements")

    def test_one_backend_that_hangs_does_not_stop_the_others(self):
        hanging = self.stop_a_backend_between_statements()
        try:
            failures = self.load.refused + self.load.unknown
            wait_until(lambda: self.load.refused + self.load.unknown > failures, "requests in progress there are answered")
            # Its own users may have to wait; all others are served.
            answered = time.monotonic()
            wait_until(
                lambda: sum(client.last_allowed_at > answered for client in self.load.clients) >= 6, "the others go on while it hangs"
            )
        finally:
            os.kill(hanging, signal.SIGCONT)
        self.assert_resumes()
        self.assert_counted_once()


class CutSessions(UnderLoad):
    """An operator ends sessions; the server keeps running. Clients notice nothing if there is time to reconnect."""

    # So short that many of the moments at which sessions end find a lane at work.
    PAUSE_SECONDS = 0.003

    def test_sessions_that_an_operator_terminates_lose_nothing_and_count_nothing_twice(self):
        for _ in range(25):
            before = self.load.allowed
            self.terminate_lanes()
            wait_until(lambda: self.load.allowed > before + 12, "the load goes on")
        self.assert_counted_once()
        self.assertEqual((self.load.refused, self.load.unknown), (0, 0), "no client noticed")
        for user in self.users:
            each, _ = self.load.outcomes_of(user)
            self.assertEqual(sorted(value for values in each for value in values), list(range(1, self.count(user) + 1)))
        self.assertGreater(int(self.service.info()["reconnects"]), 0, "the fault was seen to fire")

    def test_statements_that_an_operator_cancels_count_nothing_twice(self):
        for _ in range(25):
            before = self.load.answers
            self.cluster.rows_of_each(f"select pg_cancel_backend(pid) {LANES}", self.database)
            wait_until(lambda: self.load.answers > before + 12, "the load goes on")
        self.assert_counted_once()

    def test_changes_of_plans_survive_terminated_sessions(self):
        user = self.users[0]
        with self.service.connect() as connection:
            for turn in range(20):
                plan = ("pro", "endless")[turn % 2]
                connection.send(f"SETPLAN {user} {plan}\n")
                self.terminate_lanes()
                self.assertIn(f" plan={plan} ", connection.read_line())
        self.assert_counted_once()


class LetThrough(Case):
    """An instance that lets messages through while it finds no database."""

    OWN_CLUSTER = True
    # A lane waits a quarter of it for a lock, and answers before the deadline also on a slow machine.
    FLAGS = ("--request-timeout-ms", "8000", "--when-unavailable", "allow")

    def setUp(self):
        super().setUp()
        self.wait_until_lanes_are_connected()

    def consume(self, user, key):
        """Counts one message, however long it takes: it is sent again with its key. Returns `used`."""

        def counted():
            reply = self.send_command(f"CONSUME {user} key={key}")
            return Answer(reply) if reply.startswith("+ALLOWED ") and "degraded" not in reply else None

        return wait_until(counted, "the message is counted").used

    def subscriber_with_five(self):
        user = self.user()
        wait_until(lambda: self.send_command(f"SETPLAN {user} paid").startswith("+OK "), "the plan is set")
        self.consume(user, "first")
        self.set_count(user, 5)
        return user


class AllowedWhenUnavailable(LetThrough):
    def test_messages_are_let_through_uncounted_while_the_database_is_away(self):
        user = self.user()
        self.assertEqual(self.consume(user, "first"), 1)
        self.psql.close()
        self.cluster.stop_immediately()
        for verb in ("CONSUME", "CHECK"):
            self.assertEqual(self.send_command(f"{verb} {user.upper()}"), f'+ALLOWED user={user} degraded=1 banner="{KEEP_CHATTING}"')
        uncounted = f'degraded=1 banner="{KEEP_CHATTING}"'
        self.assertEqual(self.send_command(f"RESERVE {user} 2 key=stream ttl=60"), f"+HELD user={user} {uncounted}")
        self.assertEqual(self.send_command(f"COMMIT {user} key=stream"), f"+ALLOWED user={user} {uncounted}")
        self.assertEqual(self.send_command(f"RELEASE {user} key=stream"), f"+OK user={user} released=0 {uncounted}")
        let_through = {"user": user, "degraded": True, "banner": KEEP_CHATTING}
        for verb, fields in (
            ("consume", {"allowed": True}), ("check", {"allowed": True}), ("reserve", {"allowed": True}),
            ("commit", {"allowed": True}), ("release", {"released": 0}),
        ):  # fmt: skip
            headers = {} if verb == "check" else {"Idempotency-Key": "stream"}
            self.assertEqual(self.service.http("POST", f"/v1/usage/{user}/{verb}", headers=headers).json, {**let_through, **fields})
        self.assertRegex(self.send_command(f"USAGE {user}"), rf"^-UNAVAILABLE retry_ms=\d+ {TRY_AGAIN}$")
        self.assertEqual(self.service.http("GET", f"/v1/usage/{user}").json["detail"], TRY_AGAIN)
        for request in (f"USAGE {user}", f"HISTORY {user}", f"SETPLAN {user} pro", f"RESETUSAGE {user}"):
            self.assertRegex(self.send_command(request), r"^-UNAVAILABLE retry_ms=\d+ ", "only the question whether to send is lenient")
        self.cluster.start()
        type(self).psql = self.cluster.session(self.database)
        self.wait_until_lanes_are_connected()
        self.assertEqual(self.consume(user, "afterwards"), 2)
        wait_until(lambda: self.send_command(f"COMMIT {user} key=stream").startswith("-NOTFOUND "), "nothing was remembered")
        self.assertEqual(self.count(user), 2)

    def test_a_frozen_database_lets_messages_through_from_the_first_one_on(self):
        user = self.user()
        self.assertEqual(self.consume(user, "first"), 1)
        uncounted = f'degraded=1 banner="{KEEP_CHATTING}"'
        self.cluster.signal_all(signal.SIGSTOP)
        try:
            with self.service.connect() as connection, ThreadPoolExecutor(8) as pool:
                # The first is sent to the database, the second waits behind it; the others go to whatever lane.
                connection.send(f"CONSUME {user}\n")
                over_http = [pool.submit(self.service.http, "POST", f"/v1/usage/{self.user()}/consume") for _ in range(8)]
                connection.send(f"CONSUME {user}\nCHECK {user}\nRESERVE {user} key=k\nUSAGE {user}\n")
                for status in ("ALLOWED", "ALLOWED", "ALLOWED", "HELD"):
                    self.assertEqual(connection.read_line(), f"+{status} user={user} {uncounted}")
                self.assertRegex(connection.read_line(), rf"^-UNAVAILABLE retry_ms=\d+ {TRY_AGAIN}$")
                for answer in over_http:
                    self.assertEqual((answer.result().status, answer.result().json["degraded"]), (200, True))
        finally:
            self.cluster.signal_all(signal.SIGCONT)
        self.wait_until_lanes_are_connected()
        counted = self.consume(user, "afterwards")
        self.assertIn(counted, (2, 3), "what was sent may have counted, once; what was not sent has not")

    def test_a_standby_is_not_the_database(self):
        user = self.user()
        self.assertEqual(self.consume(user, "first"), 1)
        self.psql.close()
        self.cluster.stop()
        self.cluster.on_each(lambda server: Path(server.data, "standby.signal").touch())
        self.cluster.start()
        self.assertEqual(self.send_command(f"CONSUME {user}"), f'+ALLOWED user={user} degraded=1 banner="{KEEP_CHATTING}"')
        type(self).psql = self.cluster.session(self.database)
        self.cluster.on_each(lambda server: server.sql("select pg_promote()"))
        self.wait_until_lanes_are_connected()
        self.assertEqual(self.consume(user, "afterwards"), 2)


class RefusedWhileTheDatabaseIsThere(LetThrough):
    """With --when-unavailable allow, a database that is there lets no message through uncounted."""

    def assert_refused(self, user, verbs=("CONSUME",)):
        for verb in verbs:
            self.assertRegex(self.send_command(f"{verb} {user}"), r"^-(UNAVAILABLE|UNKNOWN) ")

    def test_lanes_that_hang_while_others_are_answered(self):
        user = self.user()
        self.assertEqual(self.consume(user, "first"), 1)
        # Also the backend that is executing nothing; the monitor's is answered.
        lanes = [int(row[0]) for row in self.cluster.rows_of_each(f"select pid {LANES}", self.database)]
        for lane in lanes:
            os.kill(lane, signal.SIGSTOP)
        try:
            self.assertRegex(self.send_command(f"CONSUME {user}"), "^-UNKNOWN ")
        finally:
            for lane in lanes:
                os.kill(lane, signal.SIGCONT)
        self.wait_until_lanes_are_connected()

    def test_a_locked_row(self):
        user = self.user()
        self.assertEqual(self.consume(user, "first"), 1)
        locker = self.lock_rows(user)
        self.assert_refused(user)
        locker.close()
        self.assertEqual(self.consume(user, "afterwards"), 2)
        self.assertEqual(self.count(user), 2, "each refusal counted nothing")

    def test_an_open_reset_of_a_billing_period(self):
        user = self.subscriber_with_five()
        period = self.psql.value(f"select billing_period from message_usage where user_id = '{user}'")
        resetter = self.cluster.session(self.database)
        resetter.run(f"begin; select reset_billing_period('{period}')")
        self.assert_refused(user)
        resetter.close()
        self.assertEqual(self.count(user), 5)

    def test_a_locked_table(self):
        user = self.subscriber_with_five()
        locker = self.cluster.session(self.database)
        locker.run("begin; lock table message_usage in access exclusive mode")
        self.assert_refused(user, ("CONSUME", "CHECK"))
        locker.close()
        self.assertEqual(self.count(user), 5)

    def test_a_database_out_of_memory_or_disk(self):
        user = self.subscriber_with_five()
        self.psql.run(
            "create function raise_53() returns trigger language plpgsql as"
            " $$ begin raise 'the disk is full' using errcode = 'disk_full'; end $$;"
            "create trigger full_disk before update on message_usage execute function raise_53()"
        )
        reply = self.send_command(f"CONSUME {user}")
        self.psql.run("drop trigger full_disk on message_usage")
        self.assertRegex(reply, r"^-UNAVAILABLE retry_ms=\d+ the database is out of resources")
        self.assertEqual(self.count(user), 5)

    def test_a_database_that_refuses_sessions(self):
        user = self.subscriber_with_five()
        allow = f'alter database "{self.database}" with allow_connections '
        self.cluster.on_each(lambda server: server.sql(allow + "false", f"select pg_terminate_backend(pid) {LANES}"))
        try:
            wait_until(lambda: self.service.info()["database"] == "down", "the sessions are lost")
            # Until the first attempt to connect, the loss of the sessions alone is known, which is an outage.
            refusal = r"^-UNAVAILABLE retry_ms=\d+ the database refuses the service's sessions"
            wait_until(lambda: re.search(refusal, self.send_command(f"CONSUME {user}")), "a refusal")
            self.assertRegex(self.send_command(f"CONSUME {user}"), refusal)
            usage = self.send_command(f"USAGE {user}")
            self.assertTrue(usage.endswith(" " + TRY_AGAIN), usage)
        finally:
            self.cluster.on_each(lambda server: server.sql(allow + "true"))
        self.wait_until_lanes_are_connected()
        self.assertEqual(self.consume(user, "afterwards"), 6)
