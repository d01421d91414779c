"""Database roles: a least-privileged login of the service, an owner without superuser, Supabase's roles, and a table
with grants."""

import unittest
from concurrent.futures import ThreadPoolExecutor

from support import supabase
from support.case import Case, needs_one_machine
from support.postgres import Cluster, SQLError
from support.service import Service, command, succeed
from support.waiting import wait_until
from support.wire import Answer

USERS = [f"00000000-0000-4000-8000-00000000000{i}" for i in range(5)]


def attempt(session, sql, role=None, subject=None):
    """Runs a statement in a transaction that is rolled back. Sets the role, and the claims of the user `subject`, as
    PostgREST does. Returns the rows, or the text of the error."""
    session.run("begin")
    try:
        if role:
            session.run(f"set local role {role}")
        if subject:
            session.run(f"""set local request.jwt.claims = '{{"sub": "{subject}", "role": "{role}"}}'""")
        try:
            return session.run(sql)
        except SQLError as error:
            return str(error)
    finally:
        session.run("rollback")


class LeastPrivilegedLogin(Case):
    """The service's login is a member of headroom_service and has no other rights, as in all other tests."""

    def setUp(self):
        super().setUp()
        self.url = self.database_url.replace("user=postgres ", "user=backend ")

    def migrations(self):
        return self.psql.value("select string_agg(m::text, ' ' order by number) from headroom.migrations as m")

    def log_of_failed_start(self, url):
        service = Service(database_url=url, wait=False)
        self.assertNotEqual(service.wait(), 0)
        self.assertEqual(service.output(), "")
        return service.log()

    def test_the_service_acts_as_headroom_service_and_logs_in_as_itself(self):
        user = self.subscriber("paid", used=3)
        self.send_command(f"RESETUSAGE {user}")
        actors = self.psql.run(f"select distinct actor from audit_trail where user_id = '{user}' and action = 'reset'")
        self.assertEqual(actors, [["headroom_service"]])
        lanes = f"from pg_stat_activity where application_name = 'headroom lane' and datname = '{self.database}'"
        logins = {row[0] for row in self.cluster.rows_of_each(f"select usename {lanes}", self.database)}
        self.assertEqual(logins, {"backend"})

    def test_counting_writes_nothing_to_the_audit_log(self):
        user = self.user()
        with self.service.connect() as connection:
            for used in range(1, 51):
                self.assertEqual(connection.answer(f"CONSUME {user}").used, used)
        self.assertEqual(self.psql.run(f"select * from audit_trail where user_id = '{user}'"), [])

    def test_the_log_of_a_login_without_the_service_role_has_the_grant_to_run(self):
        self.psql.run("create role guest_of_roles login")
        try:
            log = self.log_of_failed_start(self.database_url.replace("user=postgres ", "user=guest_of_roles "))
        finally:
            self.psql.run("drop role guest_of_roles")
        self.assertIn("grant headroom_service to", log)
        self.assertIn("guest", log)
        self.assertIn("headroom migrate", log)

    def test_an_older_schema_is_reported_with_its_owner_and_not_changed(self):
        newest = self.psql.run("delete from headroom.migrations where number = (select max(number) from headroom.migrations)"
                               " returning number, name, checksum, applied_at")[0]  # fmt: skip
        before = self.migrations()
        try:
            log = self.log_of_failed_start(self.url)
            self.assertEqual(self.migrations(), before)
        finally:
            self.psql.run(f"insert into headroom.migrations values ({newest[0]}, '{newest[1]}', '{newest[2]}', '{newest[3]}')")
        self.assertIn(f"{int(newest[0]):04}_{newest[1]}.sql", log)
        self.assertIn("have a superuser or a login that may act as headroom_owner run", log)
        self.assertIn("headroom migrate", log)

    def test_a_newer_schema_is_refused(self):
        self.psql.run("insert into headroom.migrations (number, name, checksum) values (9999, 'of_the_future', 'x')")
        try:
            log = self.log_of_failed_start(self.url)
        finally:
            self.psql.run("delete from headroom.migrations where number = 9999")
        self.assertIn("newer than this binary", log)

    def test_user_visible_sentences_of_another_release_are_reported(self):
        self.psql.run("update headroom.shipped_words set other = 'No.' where word = 'blocked_monthly'")
        try:
            service = Service(database_url=self.url)
            service.stop()
        finally:
            command("migrate", database_url=self.database_url)
        self.assertIn("another release's sentences", service.log())

    def test_losing_the_role_while_serving_is_logged_and_recovers(self):
        self.psql.run("create role shortly login in role headroom_service")
        service = Service(database_url=self.database_url.replace("user=postgres ", "user=shortly "))
        user = self.user()
        try:
            self.assertEqual(Answer(service.send_command(f"CONSUME {user}")).used, 1)
            self.psql.run("revoke headroom_service from shortly")
            ended = "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'shortly'"
            self.cluster.rows_of_each(ended, self.database)
            wait_until(lambda: "grant headroom_service to" in service.log(), "the log has the statement to run")
            self.assertIn("-UNAVAILABLE", service.send_command(f"CONSUME {user}"))
            self.psql.run("grant headroom_service to shortly")
            wait_until(lambda: service.send_command(f"CONSUME {user}").startswith("+ALLOWED"), "it counts again")
        finally:
            service.stop()
            self.psql.run("drop role shortly")

    def test_the_service_role_is_enough_to_prune_keys(self):
        outcome = command("prune", database_url=self.url)
        self.assertEqual((outcome.returncode, outcome.stdout), (0, "deleted 0 keys\n"), outcome.stderr)


@needs_one_machine("it prepares and migrates an empty database, and only a migrated one can be distributed")
class OwnerWithFewRights(Case):
    """An owner of the database that is no superuser."""

    FLAGS = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(has_roles=False)
        cls.services, cls.service = [], None
        cls.administrator = cls.cluster.session("postgres")
        cls.administrator.run("create role app login")
        cls.administrator.run("create database app owner app")
        cls.psql = cls.cluster.session("app")
        cls.database_url = cls.cluster.url("app").replace("user=postgres ", "user=app ")

    @classmethod
    def tearDownClass(cls):
        for service in cls.services:
            service.stop()
        cls.cluster.stop_immediately()

    def test_a_login_without_createrole_gets_instructions_and_then_migrates_and_serves(self):
        outcome = command("migrate", database_url=self.database_url)
        self.assertNotEqual(outcome.returncode, 0)
        self.assertIn("headroom roles | psql app", outcome.stderr)
        self.assertEqual(self.administrator.number("select count(*) from pg_roles where rolname like 'headroom%'"), 0)
        script = succeed("roles")
        for _ in range(2):
            self.psql.run(script.stdout)
        succeed("migrate", database_url=self.database_url)
        self.psql.run("create role backend login in role headroom_service")
        user = self.user()
        for used, login in enumerate(["app", "backend"], start=1):
            service = Service(database_url=self.cluster.url("app").replace("postgres", login))
            self.services.append(service)
            self.assertEqual(Answer(service.send_command(f"CONSUME {user}")).used, used)
            self.assertIn("+OK", service.send_command(f"USAGE {user}"))
        # The audit log has the owner's manual changes, and nothing about counting.
        owner = self.cluster.session("app")
        owner.run("set session authorization app")
        owner.run(f"update message_usage set message_count = 9 where user_id = '{user}'")
        owner.run(f"select increment_and_check_usage('{user}')")
        self.assertEqual(self.psql.run("select action, actor from audit_trail"), [["update", "app"]])
        # Without CREATEROLE it stays a member of headroom_owner, as later migrations need it.
        session = self.cluster.session("app")
        session.run("drop trigger record_manual_change on headroom.plans")
        session.close()
        outcome = command("migrate", database_url=self.database_url)
        self.assertIn("restored trigger record_manual_change on headroom.plans", outcome.stdout)
        owner.close()

    def test_databases_of_a_new_cluster_may_be_migrated_concurrently(self):
        cluster = Cluster(has_roles=False)
        names = [cluster.new_database() for _ in range(6)]
        with ThreadPoolExecutor(len(names)) as pool:
            outcomes = list(pool.map(lambda name: command("migrate", database_url=cluster.url(name)), names))
        for outcome in outcomes:
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
        cluster.stop_immediately()

    def test_a_login_with_createrole_needs_no_administrator(self):
        cluster = Cluster(has_roles=False)
        administrator = cluster.session("postgres")
        administrator.run("create role app login createrole")
        administrator.run("create database app owner app")
        url = cluster.url("app").replace("postgres", "app")
        succeed("migrate", database_url=url)
        service = Service(database_url=url)
        self.assertEqual(Answer(service.send_command(f"CONSUME {self.user()}")).used, 1)
        service.stop()
        # Roles belong to the cluster: a second database finds them, and uses the same ones.
        administrator.run("create database other owner app")
        succeed("migrate", database_url=url.replace("dbname=app", "dbname=other"))
        administrator.close()
        cluster.stop_immediately()


@needs_one_machine("it prepares and migrates an empty database, and only a migrated one can be distributed")
class Supabase(Case):
    """A database as in a Supabase project: the roles of its API, which inherit nothing, an owner without superuser, and
    default grants of everything to these roles."""

    FLAGS = None
    HAS_TABLE_BEFORE = False
    """Whether message_usage exists before the first migration, with row level security and a policy."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = supabase.project()
        cls.services, cls.service = [], None
        cls.psql = cls.cluster.session("project")
        if cls.HAS_TABLE_BEFORE:
            cls.psql.run("set role owner")
            cls.psql.run(
                "create table public.message_usage (user_id uuid, billing_period text, message_count integer default 0,"
                ' "limit" integer, updated_at timestamptz default now(), primary key (user_id, billing_period));'
                "alter table message_usage enable row level security;"
                "create policy own on message_usage for select using ((select auth.uid()) = user_id)"
            )
            cls.psql.run("reset role")
        succeed("migrate", database_url=supabase.url(cls.cluster))
        for user in USERS[:2]:
            cls.psql.run(f"select increment_and_check_usage('{user}', 7)")
        cls.client = cls.cluster.session("project")
        cls.client.run("set session authorization authenticator")

    @classmethod
    def tearDownClass(cls):
        for session in (cls.psql, cls.client):
            session.close()
        cls.cluster.stop_immediately()

    def test_a_client_reads_only_its_own_row(self):
        rows = attempt(self.client, "select user_id, message_count from message_usage", "authenticated", USERS[0])
        self.assertEqual(rows, [[USERS[0], "7"]])
        self.assertIn("permission denied", attempt(self.client, "select * from message_usage", "anon", USERS[0]))

    def test_a_client_reads_the_row_of_the_open_period_and_past_ones_in_monthly_usage(self):
        own = "select billing_period, message_count from message_usage where user_id = '{}'".format
        self.psql.run(f"insert into message_usage (user_id, billing_period, message_count) values ('{USERS[4]}', '2019-07', 3)")
        try:
            for statement, expected in (
                ("select increment_and_check_usage('{}', 41)", [["trial", "41"]]),
                # A trial that is over keeps its row.
                ("select set_plan('{}', 'trial', 'expired')", [["trial", "41"]]),
                ("select set_plan('{}', 'paid')", [["MONTH", "0"]]),
                ("select increment_and_check_usage('{}', 5)", [["MONTH", "5"]]),
                # Edited plans, and an edited row, which the next message writes again.
                ("update headroom.plans set allowance = allowance + 1 where plan = 'paid' and '{}' is not null", [["MONTH", "5"]]),
                ("update message_usage set usable_until = '-infinity' where user_id = '{}'", [["MONTH", "5"]]),
                # The next message writes the row.
                ("delete from message_usage where user_id = '{}' and billing_period = to_char(now() at time zone 'UTC', 'YYYY-MM')", []),
            ):
                self.psql.run(statement.format(USERS[4]))
                month = self.psql.value("select to_char(now() at time zone 'UTC', 'YYYY-MM')")
                expected = [[month if period == "MONTH" else period, count] for period, count in expected]
                with self.subTest(statement=statement):
                    self.assertEqual(attempt(self.client, own(USERS[4]), "authenticated", USERS[4]), expected)
                    self.assertEqual(attempt(self.client, own(USERS[0]), "authenticated", USERS[4]), [])
            months = "select user_id, billing_period, used from monthly_usage order by billing_period"
            past = [[USERS[4], "2019-07", "3"], [USERS[4], "trial", "41"]]
            self.assertEqual(attempt(self.client, months, "authenticated", USERS[4]), past)
            self.assertEqual(attempt(self.client, months, "authenticated"), [])
            self.assertGreater(len(attempt(self.client, months, "service_role")), 2)
        finally:
            self.psql.run(f"select forget_user('{USERS[4]}')")

    def test_a_client_counts_only_for_itself(self):
        call = "select increment_and_check_usage('{}', 'trial', 100) ->> 'current_count'".format
        self.assertEqual(attempt(self.client, call(USERS[0]), "authenticated", USERS[0]), [["8"]])
        self.assertIn("own user only", attempt(self.client, call(USERS[1]), "authenticated", USERS[0]))
        self.assertIn("nobody is signed in", attempt(self.client, call(USERS[1]), "authenticated"))
        self.assertIn("permission denied", attempt(self.client, call(USERS[1]), "anon"))
        status = "select status from increment_and_check_usage('{}')".format
        self.assertEqual(attempt(self.client, status(USERS[0]), "authenticated", USERS[0]), [["ALLOWED"]])
        self.assertIn("own user only", attempt(self.client, status(USERS[1]), "authenticated", USERS[0]))

    def test_clients_have_no_other_rights(self):
        for role in ("anon", "authenticated"):
            for statement in [
                f"select reset_usage('{USERS[0]}')", "select reset_billing_period('trial')", f"select set_plan('{USERS[0]}', 'pro')",
                f"select grant_messages('{USERS[0]}', 5)", f"select forget_user('{USERS[0]}')", "select headroom.write_customer('{}')",
                "select * from current_usage", "select * from billing_period_report", "select * from audit_trail",
                "select headroom.current_answer('00000000-0000-0000-0000-000000000001')",
                "select * from headroom.plans", "truncate message_usage", f"insert into message_usage values ('{USERS[3]}', 'trial')",
            ]:  # fmt: skip
                with self.subTest(role=role, statement=statement):
                    self.assertRegex(str(attempt(self.client, statement, role, USERS[0])), "permission denied|row-level security")
            for statement in (
                "update message_usage set message_count = 0", "delete from message_usage",
                "create trigger t before update on message_usage for each row execute function suppress_redundant_updates_trigger()",
                *[f"lock table message_usage in {mode} mode" for mode in ("row share", "row exclusive", "share", "access exclusive")],
            ):  # fmt: skip
                self.assertIn("permission denied", attempt(self.client, statement, role, USERS[0]), f"{role}: {statement}")
        self.assertIn("permission denied", attempt(self.client, "truncate message_usage", "service_role"))

    def test_clients_need_each_of_their_rights(self):
        rows = self.psql.run(
            "select name, grantee::regrole, string_agg(privilege_type, ' ' order by privilege_type) from ("
            " select oid::regprocedure::text, proacl from pg_proc where pronamespace in"
            "  ('public'::regnamespace, 'headroom'::regnamespace)"
            " union all select oid::regclass::text, relacl from pg_class where relnamespace in"
            "  ('public'::regnamespace, 'headroom'::regnamespace)"
            " union all select nspname, nspacl from pg_namespace where nspname = 'headroom'"
            ") as objects (name, rights), aclexplode(rights)"
            " where grantee in (0, 'anon'::regrole, 'authenticated'::regrole) and name <> 'message_usage' group by 1, 2 order by 1, 2"
        )
        in_schema = {name for name, _, _ in rows if name.startswith("headroom.")}
        self.assertEqual([row for row in rows if row[0] not in in_schema], [
            ["increment_and_check_usage(uuid,integer,text,uuid)", "authenticated", "EXECUTE"],
            ["increment_and_check_usage(uuid,text,integer)", "authenticated", "EXECUTE"],
            ["increment_and_check_usage(uuid,text,text)", "authenticated", "EXECUTE"],
            ["monthly_usage", "authenticated", "SELECT"],
        ])  # fmt: skip
        # Those that policies and the view call; without USAGE on the schema, clients cannot call them by name.
        self.assertIn("headroom.requesting_period()", in_schema)
        for name in in_schema - {"headroom.requesting_user()", "headroom.requesting_period()"}:
            with self.subTest(function=name):
                self.assertIn(name, self.psql.value("select headroom.called_functions('{public.monthly_usage}')"))
        self.assertEqual(
            attempt(self.client, "select headroom.now()", "authenticated", USERS[0]).splitlines()[0],
            "ERROR:  permission denied for schema headroom",
        )

    def test_the_backends_role_calls_everything_and_its_manual_changes_are_recorded(self):
        for statement in [
            f"select increment_and_check_usage('{USERS[0]}')", f"select reset_usage('{USERS[0]}')", f"select set_plan('{USERS[0]}', 'pro')",
            f"select grant_messages('{USERS[0]}', 5)", f"select forget_user('{USERS[0]}')", "select * from monthly_usage",
            "select * from audit_trail", "select * from billing_period_report", f"insert into message_usage values ('{USERS[3]}', 'trial')",
        ]:  # fmt: skip
            with self.subTest(statement=statement):
                self.assertNotIsInstance(attempt(self.client, statement, "service_role"), str)
        self.client.run("begin")
        self.client.run("set local role service_role")
        self.client.run("update message_usage set message_count = message_count + 1")
        self.assertEqual(self.client.run("select distinct action, actor from audit_trail"), [["update", "service_role"]])
        self.client.run("rollback")

    def test_a_service_with_a_login_of_its_own_counts(self):
        self.psql.run("create role backend login in role headroom_service")
        service = Service(database_url=self.cluster.url("project").replace("postgres", "backend"))
        self.assertEqual(Answer(service.send_command(f"CONSUME {USERS[2]}")).used, 1)
        service.stop()


class SupabaseWithATableOfItsOwn(Supabase):
    HAS_TABLE_BEFORE = True

    def test_a_client_reads_only_its_own_row(self):
        rows = attempt(self.client, "select user_id, message_count from message_usage", "authenticated", USERS[0])
        self.assertEqual(rows, [[USERS[0], "7"]])
        # The table's own policy is for everybody.
        self.assertEqual(attempt(self.client, "select * from message_usage", "anon"), [])

    def test_what_a_policy_lets_clients_do_stays_theirs(self):
        self.cluster.create_database("writable")
        administrator = self.cluster.session("writable")
        administrator.run("alter database writable owner to owner")
        administrator.run("create table message_usage (user_id uuid, billing_period text, message_count integer default 0,"
                          ' "limit" integer, updated_at timestamptz default now(), primary key (user_id, billing_period));'
                          "alter table message_usage owner to owner; alter table message_usage enable row level security;"
                          "grant all on message_usage to anon, authenticated, service_role;"
                          "create policy own on message_usage for update to authenticated using (true)")  # fmt: skip
        succeed("migrate", database_url=self.cluster.url("writable").replace("postgres", "owner"))
        rows = administrator.run(
            "select grantee::regrole, string_agg(privilege_type, ' ' order by privilege_type) from pg_class, aclexplode(relacl)"
            " where oid = 'message_usage'::regclass and grantee = any ('{anon,authenticated,service_role}'::regrole[])"
            " group by 1 order by 1"
        )
        self.assertEqual(rows, [["authenticated", "SELECT UPDATE"], ["service_role", "DELETE INSERT SELECT UPDATE"]])
        administrator.close()

    def test_an_existing_policy_stays(self):
        self.assertEqual(
            self.psql.run("select polname from pg_policy where polrelid = 'message_usage'::regclass order by 1"),
            [["headroom_open_period"], ["headroom_operator"], ["headroom_service"], ["headroom_user"], ["own"]],
        )


@needs_one_machine("it prepares and migrates an empty database, and only a migrated one can be distributed")
class RolesOfSupabaseAfterAMigration(unittest.TestCase):
    def test_migrate_finds_them_and_grants_their_rights(self):
        cluster = Cluster()
        self.addCleanup(cluster.stop_immediately)
        cluster.create_database("early")
        url = cluster.url("early")
        self.assertEqual(command("migrate", database_url=url).returncode, 0)
        session = cluster.session("early")
        self.addCleanup(session.close)
        session.run(
            "create role anon nologin noinherit; create role authenticated nologin noinherit;"
            "create role service_role nologin noinherit bypassrls; create role authenticator login noinherit;"
            "grant anon, authenticated, service_role to authenticator; grant usage on schema public to public"
        )
        for flag, text in (
            ("--plan", "grant authenticated its rights: it was created after the last migration"),
            ("--status", "created after the last migration, without rights: authenticated"),
        ):
            shown = command("migrate", flag, database_url=url)
            self.assertEqual(shown.returncode, 1, shown.stdout)
            self.assertIn(text, shown.stdout)
        migrated = succeed("migrate", database_url=url)
        self.assertIn("granted authenticated its rights", migrated.stdout)
        self.assertIn("granted service_role its rights", migrated.stdout)
        count = f"select used from increment_and_check_usage('{USERS[0]}')"
        self.assertEqual(attempt(session, count, "authenticated", USERS[0]), [["1"]])
        session.run(f"select increment_and_check_usage('{USERS[0]}', 7)")
        rows = "select user_id, message_count from message_usage"
        self.assertEqual(attempt(session, rows, "authenticated", USERS[0]), [[USERS[0], "7"]])
        self.assertEqual(attempt(session, "select used from monthly_usage", "service_role"), [["7"]])
        self.assertIn("permission denied", attempt(session, rows, "anon", USERS[0]))
        self.assertIn("the schema is current", command("migrate", database_url=url).stdout)
        self.assertEqual(command("migrate", "--status", database_url=url).returncode, 0)


@needs_one_machine("it prepares and migrates an empty database, and only a migrated one can be distributed")
class AdoptedGrants(Case):
    """message_usage exists before the first migration, without row level security; other roles have grants on it."""

    FLAGS = None
    TABLE = ("create table public.message_usage (user_id uuid, billing_period text, message_count integer default 0,"
             ' "limit" integer, updated_at timestamptz default now(), primary key (user_id, billing_period))')  # fmt: skip

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.cluster.create_database("adopted")
        cls.services, cls.service = [], None
        cls.database_url = cls.cluster.url("adopted")
        cls.psql = cls.cluster.session("adopted")
        cls.psql.run(cls.TABLE)
        cls.psql.run(f"insert into message_usage values ('{USERS[0]}', 'trial', 41, 100), ('{USERS[1]}', 'trial', 42, 100)")
        cls.psql.run('create role reader; create role writer; create role "Column Reader"; create role other')
        cls.psql.run(
            "grant select on message_usage to reader; grant select, insert, update, delete on message_usage to writer;"
            'grant select (user_id, message_count) on message_usage to "Column Reader"; grant select on message_usage to public'
        )
        cls.outcome = command("migrate", database_url=cls.database_url)

    @classmethod
    def tearDownClass(cls):
        cls.psql.close()
        cls.cluster.stop_immediately()

    def test_a_role_with_a_grant_sees_every_row_as_before(self):
        self.assertEqual(self.outcome.returncode, 0, self.outcome.stderr)
        for role in ("reader", "writer", '"Column Reader"'):
            rows = attempt(self.psql, "select message_count from message_usage order by 1", role)
            self.assertEqual(rows, [["41"], ["42"]], role)
        self.assertIn("permission denied", attempt(self.psql, "select * from message_usage", '"Column Reader"'))
        self.assertIn("permission denied", attempt(self.psql, "update message_usage set message_count = 0", "reader"))

    def test_a_role_that_could_write_still_can_and_its_changes_are_recorded(self):
        for statement in [
            f"insert into message_usage (user_id, billing_period) values ('{USERS[2]}', 'trial') returning 1",
            f"update message_usage set message_count = 1 where user_id = '{USERS[0]}' returning 1",
            f"delete from message_usage where user_id = '{USERS[0]}' returning 1",
        ]:
            self.assertEqual(attempt(self.psql, statement, "writer"), [["1"]], statement)
        self.psql.run("begin")
        self.psql.run("set local role writer")
        self.psql.run(f"update message_usage set message_count = 1 where user_id = '{USERS[0]}'")
        self.psql.run("reset role")
        self.assertEqual(self.psql.run("select action, actor from audit_trail"), [["update", "writer"]])
        self.psql.run("rollback")

    def test_a_grant_to_public_no_longer_gives_access(self):
        self.assertIn("permission denied", attempt(self.psql, "select * from message_usage", "other"))

    def test_a_restrictive_policy_for_everybody_is_reported_and_nothing_changes(self):
        self.cluster.create_database("restricted")
        session = self.cluster.session("restricted")
        session.run(self.TABLE)
        session.run("create policy only_mine on message_usage as restrictive using (user_id is null)")
        outcome = command("migrate", database_url=self.cluster.url("restricted"))
        self.assertNotEqual(outcome.returncode, 0)
        self.assertIn("restrictive policy only_mine", outcome.stderr)
        self.assertEqual(session.number("select count(*) from pg_namespace where nspname = 'headroom'"), 0)
        session.run("alter policy only_mine on message_usage to pg_monitor")
        self.assertEqual(command("migrate", database_url=self.cluster.url("restricted")).returncode, 0)
        session.close()
