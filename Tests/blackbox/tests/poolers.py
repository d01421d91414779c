"""PgBouncer: pools that share sessions are refused before any setting is made; other pools work like a direct connection."""

from support import pooler
from support.case import LONG_TIMEOUTS, Case, needs_one_machine
from support.pooler import Pooler
from support.postgres import Session
from support.service import Service, command, least_privileged, succeed
from support.waiting import wait_until

ADVICE = "pool_mode = session"


@needs_one_machine("lanes connect to each worker directly, not through a pooler of one server")
class PoolerCase(Case):
    FLAGS = None

    def setUp(self):
        super().setUp()
        if pooler.PROGRAM is None:
            self.skipTest("pgbouncer is not installed")

    def pool(self, mode, **settings):
        pool = Pooler(self.cluster, mode, **settings)
        self.addCleanup(pool.stop)
        return pool

    def other_client(self, pool, login="postgres"):
        """Another client's psql in the same pool."""
        url = pool.url(self.database)
        session = Session(self.cluster.bin, url if login == "postgres" else least_privileged(url))
        self.addCleanup(session.close)
        return session

    LEFT = """select current_user = session_user, current_setting('search_path') = '"$user", public',
        coalesce(current_setting('headroom.unknown_users', true), '') = '',
        (select count(*) from pg_prepared_statements)"""
    """The settings that Headroom could leave in a session: role, path, its own setting, statements."""

    def start(self, pool, *flags, **options):
        service = Service(*flags, database_url=pool.url(self.database), wait=False, env=LONG_TIMEOUTS, **options)
        self.services.append(service)
        return service

    def expect_refused(self, pool):
        service = self.start(pool)
        self.assertNotEqual(service.wait(), 0)
        self.assertIn(ADVICE, service.log())
        self.assertEqual(service.log().count("retrying"), 0, "waiting does not help")
        self.assertEqual(service.output(), "")
        for words in (["migrate"], ["migrate", "--status"], ["token", "list"], ["prune"]):
            ran = command(*words, database_url=pool.url(self.database))
            self.assertNotEqual(ran.returncode, 0, words)
            self.assertIn(ADVICE, ran.stderr, words)
        # The pool gives our sessions to other clients.
        for login in pooler.USERS:
            self.assertEqual(self.other_client(pool, login).run(self.LEFT), [["t", "t", "t", "0"]], login)


class SharedPools(PoolerCase):
    """Pools that share a session between transactions of several clients."""

    def test_transaction_mode_is_refused_with_advice_and_leaves_no_settings(self):
        self.expect_refused(self.pool("transaction"))

    def test_statement_mode_is_refused_with_advice_and_leaves_no_settings(self):
        self.expect_refused(self.pool("statement"))

    def test_a_round_robin_pool_is_refused(self):
        pool = self.pool("transaction", server_round_robin=1, min_pool_size=3)
        # So that the pool has several sessions.
        open_ones = [self.other_client(pool, login) for _ in range(3) for login in pooler.USERS]
        for session in open_ones:
            session.run("begin")
        for session in open_ones:
            session.run("rollback")
        self.expect_refused(pool)

    def test_a_pool_of_one_connection_is_refused(self):
        self.expect_refused(self.pool("transaction", default_pool_size=1))


class DedicatedPools(PoolerCase):
    """A pool that gives a session to one client until it leaves."""

    def send_from_all(self, service):
        """Uses role, settings, statements and notifications."""
        user = self.user()
        self.assertIn("+OK ", service.send_command(f"SETPLAN {user} paid"))
        for used in range(1, 4):
            self.assertIn(f" used={used} ", service.send_command(f"CONSUME {user} key=k{used}"))
        self.assertIn(" used=3 ", service.send_command(f"USAGE {user}"))
        self.assertIn("+REPORT ", service.send_command("REPORT"))
        # The role distinguishes counting from changes by hand.
        actions = f"select string_agg(action, ' ') from headroom.audit_log where user_id = '{user}'"
        self.assertEqual(self.psql.value(actions), "plan")

    def test_session_mode_serves_and_leaves_no_settings(self):
        pool = self.pool("session")
        service = self.start(pool).ready()
        wait_until(lambda: service.http("GET", "/readyz").status == 200, "the lanes are connected")
        self.send_from_all(service)
        created = succeed("token", "create", "app", "--scope", "chat", database_url=pool.url(self.database))
        connection = service.connect()
        self.addCleanup(connection.close)
        wait_until(lambda: connection.send_command(f"AUTH {created.stdout.strip()}") == "+OK", "the service has read the token")
        self.assertIn("+ALLOWED ", connection.send_command(f"CONSUME {self.user()}"))
        self.assertEqual(service.stop(), 0)
        for _ in range(3):
            self.assertEqual(self.other_client(pool, "backend").run(self.LEFT), [["t", "t", "t", "0"]])

    def test_a_pool_without_a_reset_query_serves_and_inherits_no_settings(self):
        pool = self.pool("session", server_reset_query="", default_pool_size=12)
        # Sessions with leftover settings, in a pool without a reset query.
        dirty = [self.other_client(pool, "backend") for _ in range(12)]
        for session in dirty:
            session.run("prepare count_batch as select 1")
            session.run("set default_transaction_read_only = on")
            session.run("set role headroom_service")
        for session in dirty:
            session.close()
        service = self.start(pool, "--authentication", "off").ready()
        user = self.user()
        wait_until(lambda: service.send_command(f"CONSUME {user}").startswith("+ALLOWED "), "the lanes are connected")
        self.assertNotIn("database is away", service.log())

    def test_a_pool_without_a_connection_to_spare_serves(self):
        """The check for a shared session needs a second one; if there is none, it gives up soon."""
        pool = self.pool("session", default_pool_size=3)
        service = self.start(pool, "--lanes", "1", "--authentication", "off").ready()
        user = self.user()
        wait_until(lambda: service.send_command(f"CONSUME {user}").startswith("+ALLOWED "), "the lane is connected")

    def test_a_pool_that_becomes_shared_is_detected_and_logged(self):
        pool = self.pool("session")
        service = self.start(pool, "--authentication", "off").ready()
        wait_until(lambda: service.http("GET", "/readyz").status == 200, "the lanes are connected")
        pool.reload("transaction")
        # The new mode applies to new connections.
        self.psql.run("select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'headroom%'"
                      f" and datname = '{self.database}'")  # fmt: skip
        answer = wait_until(lambda: (lambda a: a.status == 503 and a)(service.http("GET", "/readyz")), "it is not ready")
        wait_until(lambda: ADVICE in service.log(), "the log has the advice")
        self.assertFalse(answer.json["checks"]["database"])
        wait_until(lambda: "pooler" in " ".join(service.http("GET", "/readyz").json["reasons"]), "/readyz has the reason")
        pool.reload("session")
        wait_until(lambda: service.http("GET", "/readyz").status == 200, "it is ready again")
        self.assertIn("+ALLOWED ", service.send_command(f"CONSUME {self.user()}"))

    def test_open_connections_detect_a_shared_pool_and_count_each_message_once(self):
        pool = self.pool("session")
        service = self.start(pool, "--authentication", "off", "--request-timeout-ms", "1000").ready()
        wait_until(lambda: service.http("GET", "/readyz").status == 200, "the lanes are connected")
        user = self.user()
        # Not through the service, which has a second for each request.
        self.psql.run(f"select set_plan('{user}', 'paid')")
        pool.reload("transaction")
        keys = []

        def is_noticed():
            keys.append(f"k{len(keys)}")
            service.send_command(f"CONSUME {user} key={keys[-1]}")
            return ADVICE in service.log()

        wait_until(is_noticed, "a shared session is detected and the log has the advice")
        pool.reload("session")
        for key in keys:
            wait_until(lambda: service.send_command(f"CONSUME {user} key={key}").startswith("+ALLOWED "), "the lane is connected again")
        self.assertEqual(self.count(user), len(keys))
