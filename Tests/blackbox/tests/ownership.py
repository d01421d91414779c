"""Who owns Headroom's functions and tables, and that nobody else can plant in them what a superuser runs."""


from support import processes
from support.case import Case, needs_one_machine
from support.postgres import Cluster, SQLError
from support.service import Service, command, succeed
from support.wire import Answer

SET_PLAN = "public.set_plan(uuid,text,text,timestamp with time zone,timestamp with time zone,timestamp with time zone,integer)"
# The keys of advisory locks that earlier development versions took.
ADVISORY_LOCKS = "select pg_advisory_lock(7522525836636811117), pg_advisory_lock(hashtextextended('headroom.tokens', 0))"
# What an attacker, or a careless superuser, changes, and how it is reported. None excludes another.
ALTERATIONS = {
    "alter function headroom.record_manual_change() security invoker":
        "function headroom.record_manual_change(): security is invoker instead of definer, the definition was changed",
    "alter function headroom.end_holds() set search_path = public":
        "settings is search_path=public instead of search_path=pg_catalog, pg_temp",
    f"grant execute on function {SET_PLAN} to eve": f"function {SET_PLAN}: EXECUTE to eve was granted",
    "revoke execute on function reset_usage from headroom_operator":
        "function public.reset_usage(uuid,text,text,uuid): EXECUTE to headroom_operator was revoked",
    "create or replace function headroom.bucket_of(p_user_id uuid) returns smallint language sql immutable parallel safe"
    " return 0::smallint + 0::smallint": "function headroom.bucket_of(uuid): the definition was changed",
    "drop trigger record_manual_change on headroom.plans": "trigger record_manual_change on headroom.plans: it was dropped",
    "alter table message_usage disable trigger record_manual_change":
        "trigger record_manual_change on public.message_usage: state is disabled instead of enabled",
    "create trigger planted after insert on headroom.words for each row execute function suppress_redundant_updates_trigger()":
        "trigger planted on headroom.words: it was added",
    "alter table message_usage disable row level security": "table public.message_usage: row level security is off instead of on",
    "alter policy headroom_user on message_usage using (true)": "policy headroom_user on public.message_usage: the definition was changed",
    "drop policy headroom_operator on message_usage": "policy headroom_operator on public.message_usage: it was dropped",
    "grant create on schema headroom to eve": "schema headroom: CREATE to eve was granted",
    "alter table headroom.plans owner to eve": "table headroom.plans: owner is eve instead of headroom_owner",
    "alter function headroom.actor() owner to eve": "function headroom.actor(): owner is eve instead of headroom_owner",
}  # fmt: skip
STATE = "select string_agg(object || facts, e'\n' order by object) from headroom.installed_objects"


@needs_one_machine("it prepares and migrates an empty database, and only a migrated one can be distributed")
class Ownership(Case):
    FLAGS = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.services, cls.service = [], None
        cls.psql = cls.cluster.session("postgres")
        cls.psql.run("create role eve login")

    @classmethod
    def tearDownClass(cls):
        cls.psql.close()
        cls.cluster.stop_immediately()

    def migrated(self, name):
        """The URL of a new database, and a superuser's session in it."""
        return self.cluster.create_database(name, copy_of=self.cluster.migrated()), self.cluster.session(name)

    def as_login(self, session, login, statement):
        """Runs a statement as a login. Returns the error's text, or None."""
        session.run(f"set session authorization {login}")
        try:
            session.run(statement)
        except SQLError as error:
            return str(error)
        finally:
            session.run("reset session authorization")
        return None

    def test_a_login_of_the_service_cannot_plant_what_a_superuser_runs(self):
        url, session = self.migrated("attacked")
        session.run("grant create on schema public to backend")
        escalation = (
            "create function public.{}({}) returns {} language plpgsql as $$ begin"
            " if current_setting('is_superuser') = 'on' then alter role backend superuser; end if; return {}; end $$"
        )
        for statement in (
            escalation.format("lower", "text", "text", "'update'"), escalation.format("record_manual_change", "", "trigger", "null"),
        ):  # fmt: skip
            self.assertIsNone(self.as_login(session, "backend", statement))
        for statement in (
            *[statement for statement in ALTERATIONS if "planted" not in statement],
            "alter function headroom.record_manual_change() set search_path = public, pg_catalog",
            "create or replace function headroom.record_manual_change() returns trigger language plpgsql as 'begin return null; end'",
            "alter table headroom.store_products disable trigger record_manual_change",
            "create trigger planted before insert on headroom.store_products for each row execute function public.record_manual_change()",
            "create trigger planted before update on message_usage for each row execute function public.record_manual_change()",
            "grant headroom_service to eve", "set role headroom_owner", "delete from headroom.installed_objects",
        ):  # fmt: skip
            with self.subTest(statement=statement):
                error = self.as_login(session, "backend", statement)
                # PostgreSQL only warns of a grant without the right to it.
                if not statement.startswith(("grant execute", "grant create", "revoke")):
                    self.assertRegex(str(error), "must be owner|permission denied|must have admin option")
        self.assertEqual(command("migrate", "--status", database_url=url).returncode, 0, "nothing is altered")
        for arguments in (
            ("product", "map", "revenuecat", "premium", "--plan", "paid"), ("events", "list"), ("token", "create", "a", "--scope", "chat"),
            ("migrate",),
        ):  # fmt: skip
            self.assertIn(command(*arguments, database_url=url).returncode, (0, 1), arguments)
        self.assertEqual(session.value("select rolsuper from pg_roles where rolname = 'backend'"), "f")
        self.assertEqual(session.run("select action, actor from headroom.audit_log"), [["insert", "postgres"]])
        session.run("drop owned by backend")
        session.close()

    def test_what_was_altered_is_restored_and_reported(self):
        url, session = self.migrated("altered")
        installed = session.value(STATE)
        # All at once, because each command takes a while, and one altered object has everything restored.
        for statement in ALTERATIONS:
            session.run(statement)
        plan = command("migrate", "--plan", database_url=url)
        self.assertEqual(plan.returncode, 1)
        self.assertIn(f"{len(ALTERATIONS)} objects restored", plan.stdout)
        status = command("migrate", "--status", database_url=url)
        self.assertEqual(status.returncode, 1)
        outcome = succeed("migrate", database_url=url)
        self.assertEqual(outcome.stderr.count("restored "), len(ALTERATIONS), outcome.stderr)
        for statement, report in ALTERATIONS.items():
            with self.subTest(statement=statement):
                for output in (plan.stdout, status.stdout, outcome.stdout):
                    self.assertIn(report, output)
        self.assertEqual(session.value(STATE), installed)
        self.assertEqual(command("migrate", "--status", database_url=url).returncode, 0)
        session.close()

    def test_a_restored_dump_is_as_it_was_installed(self):
        url, session = self.migrated("dumped")
        session.close()
        self.cluster.create_database("restored")
        file = self.cluster.home + "/dump"
        for words in (
            ["pg_dump", "--format=custom", f"--file={file}", url],
            ["pg_restore", "--exit-on-error", f"--dbname={self.cluster.url('restored')}", file],
        ):  # fmt: skip
            outcome = processes.completed([f"{self.cluster.bin}/{words[0]}", *words[1:]])
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
        succeed("migrate", "--status", database_url=self.cluster.url("restored"))

    def test_a_start_restores_the_audit_triggers(self):
        url, session = self.migrated("restarted")
        session.run("drop trigger record_manual_change on message_usage; drop trigger record_manual_change on headroom.plans")
        service = Service(database_url=url, as_owner=True)
        service.stop()
        self.assertIn("restored trigger record_manual_change on headroom.plans: it was dropped", service.log())
        session.run("insert into message_usage (user_id, billing_period) values (gen_random_uuid(), '2026-11')")
        session.run("update headroom.plans set label = 'Paid' where plan = 'paid'")
        self.assertEqual(session.run("select action from headroom.audit_log order by id"), [["insert"], ["update"]])
        session.close()

    def test_a_service_that_may_not_restore_says_what_was_altered_and_what_to_do(self):
        url, session = self.migrated("refused")
        session.run("drop trigger record_manual_change on headroom.plans")
        service = Service(database_url=url, wait=False)
        self.assertNotEqual(service.wait(), 0)
        self.assertIn("trigger record_manual_change on headroom.plans: it was dropped", service.log())
        self.assertIn("headroom migrate", service.log())
        self.assertEqual(command("migrate", database_url=url).returncode, 0)
        service = Service(database_url=url)
        self.assertEqual(Answer(service.send_command(f"CONSUME {self.user()}")).used, 1)
        service.stop()
        session.close()

    def test_a_login_that_owns_the_functions_is_reported_and_another_is_not(self):
        url, session = self.migrated("logged")
        for as_owner in (True, False):
            service = Service(database_url=url, as_owner=as_owner)
            service.stop()
            self.assertEqual(service.log().count("a login that is granted only headroom_service may not"), int(as_owner))
        session.close()

    def test_a_login_that_may_create_roles_owns_the_functions_only_while_it_migrates(self):
        self.psql.run("create role app login createrole")
        self.psql.run("create database of_app owner app")
        url = self.cluster.url("of_app").replace("user=postgres ", "user=app ")
        self.assertEqual(command("migrate", database_url=url).returncode, 0)
        session = self.cluster.session("of_app")
        for _ in range(2):
            self.assertEqual(session.run("select from pg_auth_members where roleid = 'headroom_owner'::regrole"), [])
            self.assertIn("must be owner", self.as_login(session, "app", "alter function headroom.record_manual_change() security invoker"))
            # It works in psql as an operator.
            self.assertIsNone(self.as_login(session, "app", f"select set_plan('{self.user()}', 'paid')"))
            self.assertIsNone(self.as_login(session, "app", "update message_usage set message_count = 1"))
            # It may restore.
            session.run("drop trigger record_manual_change on headroom.plans")
            service = Service(database_url=url, as_owner=True)
            service.stop()
            self.assertIn("restored trigger record_manual_change", service.log())
        self.assertEqual(session.value("select count(*) from headroom.audit_log where action = 'update' and actor = 'app'"), "3")
        session.close()

    def test_a_schema_of_another_role_is_not_used(self):
        self.cluster.create_database("prepared")
        session = self.cluster.session("prepared")
        session.run("grant create on database prepared to eve")
        session.run("set session authorization eve")
        session.run("create schema headroom; create table headroom.migrations (number int)")
        session.run("reset session authorization")
        outcome = command("migrate", database_url=self.cluster.url("prepared"))
        self.assertNotEqual(outcome.returncode, 0)
        self.assertIn("headroom belongs to eve", outcome.stderr)
        session.run("drop schema headroom cascade")
        self.assertEqual(command("migrate", database_url=self.cluster.url("prepared")).returncode, 0)
        session.close()

    def test_a_superuser_does_not_run_the_triggers_of_an_adopted_table(self):
        self.psql.run("create role shop login createrole")
        self.psql.run("create database of_shop owner shop")
        url = self.cluster.url("of_shop").replace("user=postgres ", "user=shop ")
        session = self.cluster.session("of_shop")
        session.run("set session authorization shop")
        session.run('create table message_usage (user_id uuid, billing_period text, message_count integer, "limit" integer,'
                    " updated_at timestamptz)")  # fmt: skip
        self.assertEqual(command("migrate", database_url=url).returncode, 0)
        session.run("create function escalate() returns trigger language plpgsql as $$ begin"
                    " reset role; alter role shop superuser; return null; end $$")  # fmt: skip
        session.run("create constraint trigger escalate after insert or update on message_usage deferrable initially deferred"
                    " for each row execute function escalate()")  # fmt: skip
        session.run("reset session authorization")
        session.run("insert into headroom.billing_events (source, id, type, happened_at, received_at, identities, effects, payload,"
                    " outcome, attempts) values ('revenuecat', 'e', 'TEST', now(), now(), '{}', '[]', '{}', 'ignored', 1)")  # fmt: skip
        for arguments in (("migrate",), ("events", "replay", "revenuecat", "e")):
            outcome = command(*arguments, database_url=self.cluster.url("of_shop"))
            self.assertNotEqual(outcome.returncode, 0, arguments)
            self.assertIn("message_usage belongs to shop", outcome.stderr, arguments)
        self.assertEqual(session.value("select rolsuper from pg_roles where rolname = 'shop'"), "f")
        session.close()

    def test_advisory_locks_of_a_login_without_rights_stop_nothing(self):
        url, session = self.migrated("locked")
        stranger = self.cluster.session("locked")
        stranger.run("set session authorization eve")
        stranger.run(ADVISORY_LOCKS)
        session.run("delete from headroom.definitions where file = 'rights.sql'")
        self.assertEqual(command("migrate", database_url=url).returncode, 0)
        self.assertEqual(command("token", "create", "backend", "--scope", "chat", database_url=url).returncode, 0)
        service = Service(database_url=url, as_owner=True)
        service.stop()
        self.assertEqual(stranger.value("select count(*) from pg_locks where locktype = 'advisory'"), "2")
        stranger.close()
        session.close()
