"""Several servers of one database: a primary, its standby, and a primary that was superseded."""

from support.case import Case, needs_one_machine
from support.postgres import Cluster
from support.service import Service, command
from support.waiting import wait_until


def address_of(*clusters, database):
    """A connection string that names the clusters in this order."""
    return f"host={','.join(cluster.home for cluster in clusters)} user=postgres dbname={database}"


@needs_one_machine("its second server is a standby of the only one")
class WithTwoServers(Case):
    OWN_CLUSTER = True
    FLAGS = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.standby = Cluster(primary=cls.cluster)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.standby.stop_immediately()

    @classmethod
    def serve_over(cls, *clusters, wait=True, env=None):
        url = address_of(*clusters, database=cls.database)
        service = Service(database_url=url, wait=wait, env=env)
        cls.services.append(service)
        return service


class OfThePrimary(WithTwoServers):
    def test_the_primary_is_found_wherever_it_stands_in_the_connection_string(self):
        for clusters in ((self.standby, self.cluster), (self.cluster, self.standby)):
            service = self.serve_over(*clusters)
            self.assertRegex(service.send_command(f"CONSUME {self.user()}"), r"^\+ALLOWED ")
            info = wait_until(lambda service=service: "primary" in service.info() and service.info(), "the database was looked at")
            self.assertIn(self.cluster.home, info["primary"])
            self.assertEqual(info["timeline"], "1")
            self.assertNotIn("superseded_primaries", info)

    def test_without_a_primary_a_command_says_what_each_server_is(self):
        away = Cluster(primary=self.cluster)
        away.stop()
        url = address_of(self.standby, away, database=self.database)
        outcome = command("migrate", "--status", database_url=url)
        self.assertNotEqual(outcome.returncode, 0)
        self.assertIn("no server takes writes", outcome.stderr)
        self.assertIn(f"{self.standby.home}: the server is a standby", outcome.stderr)
        self.assertIn(away.home, outcome.stderr)

    def test_a_connection_string_that_asks_for_a_standby_is_refused(self):
        url = address_of(self.standby, self.cluster, database=self.database)
        outcome = command("migrate", "--status", database_url=f"{url} target_session_attrs=standby")
        self.assertNotEqual(outcome.returncode, 0)
        self.assertIn("target_session_attrs=standby asks for a server that takes no writes", outcome.stderr)

    def test_an_asynchronous_standby_is_reported(self):
        service = self.serve_over(self.cluster, self.standby)
        wait_until(lambda: service.info().get("replication") == "asynchronous", "that the standby is seen")
        readiness = service.http("GET", "/readyz").json
        self.assertTrue(readiness["ready"])
        self.assertIn("asynchronously", readiness["warnings"][0])
        self.assertIn("a failover loses the messages that the standby does not have yet", service.log())
        self.assertIn('headroom_replication{mode="asynchronous"} 1', service.http("GET", "/metrics").text)


class AfterAPromotion(WithTwoServers):
    def test_messages_are_counted_on_the_promoted_server_although_the_old_primary_comes_first(self):
        service = self.serve_over(self.cluster, self.standby)
        user = self.user()
        self.assertRegex(service.send_command(f"CONSUME {user}"), r"^\+ALLOWED .*used=1 ")
        replica = self.standby.session(self.database)
        counted = f"select coalesce(sum(message_count), 0) from message_usage where user_id = '{user}'"
        wait_until(lambda: replica.number(counted) == 1, "that the message is replicated")
        replica.run("select pg_promote()")

        # The old primary still runs and takes writes.
        wait_until(lambda: service.info().get("superseded_primaries") == "1", "that the promotion is seen")
        self.assertRegex(service.send_command(f"CONSUME {user}"), r"^\+ALLOWED .*used=2 ")
        self.assertEqual((replica.number(counted), self.psql.number(counted)), (2, 1))
        wait_until(lambda: service.info().get("timeline") == "2", "that the monitor is connected to the successor")
        self.assertIn(self.standby.home, service.info()["primary"])
        self.assertIn("a superseded server takes writes", service.log())
        self.assertIn("superseded", service.http("GET", "/readyz").json["warnings"][0])
        self.assertIn("headroom_database_superseded_primaries 1", service.http("GET", "/metrics").text)

        # An instance that starts now, and asks both, does not count on the old primary either.
        later = self.serve_over(self.cluster, self.standby)
        self.assertRegex(later.send_command(f"CONSUME {user}"), r"^\+ALLOWED .*used=3 ")
        # One that reaches the old primary alone finds the note there.
        wait_until(lambda: self.psql.number("select count(*) from headroom.newest_timelines") == 1, "the note")
        misled = self.serve_over(self.cluster, wait=False)
        wait_until(lambda: "timeline 2 was seen" in misled.log(), "that it refuses the old primary")
        self.assertFalse(misled.is_ready())
        self.assertEqual(self.psql.number(counted), 1)

        # Once it is stopped, there is nothing more to warn of.
        self.cluster.stop_immediately()
        wait_until(lambda: "superseded_primaries" not in service.info(), "that the old primary is stopped")


class WithASynchronousStandby(WithTwoServers):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.sql("alter system set synchronous_standby_names = '*'", "select pg_reload_conf()")
        count = "select count(*) from pg_stat_replication where sync_state = 'sync'"
        wait_until(lambda: cls.cluster.sql(count) == "1", "the standby is synchronous")
        cls.instance = cls.serve_over(
            cls.cluster, cls.standby, env={"HEADROOM_PRIMARY_LEASE_MS": "100", "HEADROOM_REQUEST_TIMEOUT_MS": "1000"}
        )

    def test_nothing_is_answered_from_a_primary_that_its_standby_has_left(self):
        service, user, full = self.instance, self.user(), self.user()
        service.send_command(f"CONSUME {user}")
        self.assertRegex(service.send_command(f"CONSUME {full} 100"), r"^\+ALLOWED ")
        self.assertRegex(service.send_command(f"CONSUME {full}"), r"^\+BLOCKED ")
        self.assertRegex(service.send_command(f"USAGE {user}"), r"^\+OK .*used=1 ")
        wait_until(lambda: service.info().get("replication") == "synchronous", "that the standby is seen")
        self.standby.stop_immediately()
        try:
            # Whether it was promoted cannot be known here. The first of these may still be within the lease.
            for request in (f"USAGE {user}", f"CHECK {user}", f"CONSUME {full}"):
                wait_until(lambda request=request: service.send_command(request).startswith("-UNAVAILABLE"), f"no answer to {request}")
                self.assertRegex(service.send_command(request), "^-UNAVAILABLE ")
            self.assertRegex(service.send_command(f"CONSUME {user}"), "^-(UNAVAILABLE|UNKNOWN) ")

            # /readyz says what is wrong, and what to run.
            wait_until(lambda: service.http("GET", "/readyz").status == 503, "that it is not ready")
            wait_until(lambda: service.info().get("replication") == "stopped", "that no standby is seen")
            reasons = service.http("GET", "/readyz").json["reasons"]
            self.assertIn("every commit waits for a standby, and none is connected", reasons[0])
            self.assertIn("alter system set synchronous_standby_names = ''", reasons[0])
            self.assertIn("every commit waits for a standby, and none is connected", service.log())
        finally:
            self.standby.start()
        wait_until(lambda: service.send_command(f"USAGE {user}").startswith("+OK "), "an answer with the standby")
        wait_until(lambda: service.http("GET", "/readyz").status == 200, "that it is ready")

    def test_answers_without_a_commit_confirm_the_primary_at_most_once_in_a_lease(self):
        service = Service(
            "--lanes", "1", database_url=address_of(self.cluster, self.standby, database=self.database),
            env={"HEADROOM_PRIMARY_LEASE_MS": "60000"},
        )  # fmt: skip
        self.services.append(service)
        user = self.user()
        service.send_command(f"CONSUME {user}")
        written = "select max(updated_at) from headroom.lane_receipts"
        before = self.psql.value(written)
        for _ in range(20):
            self.assertRegex(service.send_command(f"CHECK {user}"), r"^\+")
        self.assertEqual(self.psql.value(written), before)
