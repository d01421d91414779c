"""`headroom distribute`: dividing the users of a database into buckets while messages are counted."""

import signal
import subprocess
import unittest

from support import settings
from support.case import Case, needs_one_machine
from support.load import Load
from support.postgres import PortCluster, SQLError
from support.service import Service, command, environment, least_privileged
from support.waiting import wait_until
from support.wire import Answer

TABLES = (
    "message_usage", "headroom.usage_parts", "headroom.subscribers", "headroom.subscriptions", "headroom.message_keys",
    "headroom.grants", "headroom.audit_log",
)  # fmt: skip


@needs_one_machine("it divides a database that is not divided yet")
class Division(Case):
    """A division cannot be undone, so each class has one test that divides its database."""

    def distribute(self, *flags):
        return command("distribute", *flags, database_url=self.database_url)

    def buckets(self):
        return self.psql.number("select cardinality(buckets) from headroom.bucket_map")

    def misplaced(self):
        counts = " + ".join(f"(select count(*) from {table} where bucket <> headroom.bucket_of(user_id))" for table in TABLES)
        return self.psql.number(f"select {counts}")

    def divide(self, buckets):
        done = self.distribute("--buckets", str(buckets))
        self.assertEqual((done.returncode, self.misplaced()), (0, 0), done.stderr)
        return done


class Moving(Division):
    def parts(self, user):
        """The messages with the model, and those of the member."""
        return [int(used) for (used,) in self.psql.run(f"select used from headroom.usage_parts where user_id = '{user}'")]

    def test_everything_about_a_user_moves_along_and_each_message_counts_once(self):
        self.psql.run(
            "update headroom.plans set allowance = 1000000 where plan = 'trial';"
            "insert into headroom.plan_limits (plan, kind, name) values ('trial', 'model', 'large'), ('trial', 'member', '*')"
        )
        parts = f"model=large member={self.user()}"
        users = [self.user() for _ in range(24)]
        forgotten, unsettled = self.user(), users[:8]
        for user in users:
            self.send_command(f"CONSUME {user} 3 key=counted")
        for user in unsettled:
            self.send_command(f"RESERVE {user} 2 key=held {parts}")
            self.send_command(f"GRANT {user} 7 key=given")
        self.send_command(f"CONSUME {forgotten} 90")
        self.send_command(f"FORGET {forgotten}")

        load = Load([self.service, self.serve()], users[8:], options=parts)
        plan = self.distribute("--buckets", "8", "--plan")
        self.assertIn("to do: move about ", plan.stdout)
        self.assertEqual(self.buckets(), 1)
        done = self.divide(8)
        self.assertRegex(done.stdout, r"^the database has 8 buckets now: \d+ rows moved, the longest step took \d+ ms$")
        load.stop()
        self.assertEqual([(client.refused, client.unknown) for client in load.clients], [([], [])] * len(load.clients))
        counted = {user: sum(map(len, load.outcomes_of(user)[0])) for user in users[8:]}
        self.assertEqual({user: self.count(user) - 3 for user in users[8:]}, counted)
        self.assertEqual([self.parts(user) for user in users[8:]], [[count, count] for count in counted.values()])

        self.assertGreater(self.psql.number("select count(distinct bucket) from message_usage"), 4)
        for user in users:
            self.assertEqual(Answer(self.send_command(f"CONSUME {user} 3 key=counted"))["replayed"], "1")
        for user in unsettled:
            self.assertEqual(Answer(self.send_command(f"GRANT {user} 7 key=given"))["replayed"], "1")
            self.assertEqual(Answer(self.send_command(f"COMMIT {user} key=held")).used, 5)
            self.assertEqual(self.parts(user), [2, 2])
        # The trial stays spent.
        self.assertEqual(Answer(self.send_command(f"CONSUME {forgotten}")).used, 91)
        self.assertEqual(self.misplaced(), 0)

        self.assertEqual(self.distribute("--buckets", "8").stdout, "the database has 8 buckets already\n")
        self.assertEqual(self.distribute("--buckets", "8", "--plan").stdout, "users: they are divided into 8 buckets\n")
        other = self.distribute("--buckets", "16")
        self.assertEqual((other.returncode, "the database has 8 buckets, and their number cannot be changed" in other.stderr), (64, True))


class Interrupted(Division):
    def test_goes_on_where_it_was_interrupted(self):
        users = [self.user() for _ in range(40)]
        for user in users:
            self.send_command(f"CONSUME {user}")
        # The division waits for this lock.
        self.psql.run("begin")
        self.psql.run("lock table headroom.subscriptions in access exclusive mode")
        interrupted = subprocess.Popen(
            [settings.binary, "distribute", "--buckets", "4"], env=environment(DATABASE_URL=self.database_url),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
        )
        other = self.cluster.session(self.database)
        waiting = "select count(*) from pg_stat_activity where application_name = 'headroom migrate' and wait_event_type = 'Lock'"
        wait_until(lambda: other.number(waiting), "the division waits for the lock")
        interrupted.send_signal(signal.SIGKILL)
        interrupted.wait()
        self.psql.run("rollback")
        other.close()

        self.divide(4)
        self.assertEqual([Answer(self.send_command(f"CONSUME {user}")).used for user in users], [2] * len(users))
        indexes = self.psql.number("select count(*) from pg_class where relkind = 'i' and relname like '%\\_part'")
        self.assertEqual(indexes, 0)


class Installed(Division):
    def test_leaves_a_schema_as_it_was_installed(self):
        self.divide(2)
        status = command("migrate", "--status", database_url=self.database_url)
        self.assertEqual((status.returncode, "the schema is current" in status.stdout), (0, True), status.stdout)
        # A login that may not migrate refuses functions that were altered.
        service = Service(database_url=least_privileged(self.database_url))
        self.services.append(service)
        self.assertTrue(service.is_ready())
        user = self.user()
        self.assertEqual(Answer(service.send_command(f"CONSUME {user}")).used, 1)


class WrittenByHand(Division):
    FLAGS = None

    def test_refuses_rows_without_their_bucket(self):
        self.divide(2)
        user = next(user for user in (self.user() for _ in range(64)) if self.psql.number(f"select headroom.bucket_of('{user}')") != 0)
        with self.assertRaisesRegex(SQLError, "which is not the bucket of its user"):
            self.psql.run(f"insert into message_usage (user_id, billing_period) values ('{user}', '2026-03')")
        self.psql.run(
            f"insert into message_usage (user_id, billing_period, bucket) values ('{user}', '2026-03', headroom.bucket_of('{user}'))"
        )


class Arguments(Division):
    FLAGS = None

    def test_takes_a_power_of_two(self):
        for count in ("1", "3", "2048", "-4"):
            refused = self.distribute("--buckets", count)
            self.assertEqual(refused.returncode, 64, refused.stderr)
            self.assertEqual(self.buckets(), 1)


class WithoutCitus(unittest.TestCase):
    """What can be seen where no server has the extension; the distribution itself is checked by `script/test --citus`."""

    @classmethod
    def setUpClass(cls):
        cls.server = PortCluster()
        cls.addClassCleanup(cls.server.end)
        cls.database = cls.server.new_database(True)
        cls.database_url = cls.server.url(cls.database)
        cls.worker = cls.server.url("postgres")

    def refused(self, *arguments):
        outcome = command(*arguments, database_url=self.database_url)
        self.assertEqual(outcome.returncode, 64, outcome.stdout + outcome.stderr)
        self.assertEqual(self.server.number("select cardinality(buckets) from headroom.bucket_map", self.database), 1)
        return outcome.stderr

    def test_says_what_each_server_lacks_and_changes_nothing(self):
        plan = command("distribute", "--workers", self.worker, "--plan", database_url=self.database_url)
        self.assertEqual(plan.returncode, 1, plan.stdout + plan.stderr)
        self.assertEqual(plan.stdout.count(f"127.0.0.1:{self.server.port}: not ready\n"), 2, plan.stdout)
        self.assertEqual(plan.stdout.count("set shared_preload_libraries = 'citus'"), 2, plan.stdout)
        self.assertEqual(plan.stdout.count("set wal_level = logical"), 2, plan.stdout)
        self.assertIn(f"database is postgres, on the coordinator {self.database}; all nodes must have the same", plan.stdout)
        self.assertIn("not all servers are ready, and nothing was changed", self.refused("distribute", "--workers", self.worker))

    def test_a_rebalancing_needs_workers(self):
        for flags in ([], ["--plan"], ["--workers", self.worker], ["--remove", "w1:5432"]):
            self.assertIn("the database has no workers", self.refused("rebalance", *flags))

    def test_refuses_arguments_that_do_not_belong_together(self):
        self.refused("distribute", "--coordinator", "db:1")
        self.refused("distribute", "--workers", self.worker, "--coordinator", "/run/postgresql")
        self.refused("rebalance", "--remove", "w1", "--workers", self.worker)
        self.refused("rebalance", "--remove", "w1:port")

    def test_each_server_needs_an_address_for_the_others(self):
        socket = f"host={self.server.home} port={self.server.port} user=postgres dbname=postgres"
        self.assertIn("each URL must name its server by a host", self.refused("distribute", "--workers", socket))
