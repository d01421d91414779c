"""Functions and operators that an attacker planted in a schema of the search path: Headroom must never call one.

PostgreSQL chooses the function or operator whose types fit a call best, from all schemas on the path. One in `public` that
takes `regprocedure` or `name` fits better than a built-in one that takes `anyelement` or `text`.
"""

import pathlib
import re

from support import processes
from support.case import Case
from support.postgres import psql
from support.service import Service, command, succeed
from support.stores import AUTHORIZATION, revenuecat
from support.webhooks import compact

ROOT = pathlib.Path(__file__).resolve().parents[3]
TYPES = (
    "text", "name", "oid", "regclass", "regprocedure", "regtype", "regrole", "integer", "bigint", "boolean", "uuid",
    "timestamptz", "interval", "jsonb", "bytea", "text[]",
)  # fmt: skip
OPERATORS = {
    "boolean": ("=", "<>", "<", "<=", ">", ">=", "~", "!~", "~*", "!~~", "~~", "@>", "<@", "&&"),
    "text": ("||", "+", "-", "*", "/", "%", "#", "->", "->>"),
}

PLANT = """
create sequence public.planted_calls;
grant usage on sequence public.planted_calls to public;
do $$
declare
    v_types constant text[] := '{types}';
    v_body constant text := 'begin perform pg_catalog.nextval(''public.planted_calls''); '
        'raise exception ''a planted function ran''; end';
    v_name text;
    v_one text;
    v_other text;
    v_result text;
    v_operator text;
begin
    foreach v_name in array '{names}'::text[] loop
        execute format('create function public.%I() returns text language plpgsql as %L', v_name, v_body);
        foreach v_one in array v_types loop
            execute format('create function public.%I(%s) returns text language plpgsql as %L', v_name, v_one, v_body);
            execute format('create function auth.%I(%s) returns text language plpgsql as %L', v_name, v_one, v_body);
            foreach v_other in array v_types loop
                execute format(
                    'create function public.%I(%s, %s) returns text language plpgsql as %L', v_name, v_one, v_other, v_body
                );
            end loop;
        end loop;
    end loop;
    foreach v_result in array array['boolean', 'text'] loop
        foreach v_one in array v_types loop
            foreach v_other in array v_types loop
                execute format(
                    'create function public.%I(%s, %s) returns %s language plpgsql as %L',
                    'planted_' || v_result, v_one, v_other, v_result, v_body
                );
                foreach v_operator in array case v_result when 'text' then '{texts}'::text[] else '{booleans}' end loop
                    execute format(
                        'create operator public.%s (function = public.%I, leftarg = %s, rightarg = %s)',
                        v_operator, 'planted_' || v_result, v_one, v_other
                    );
                end loop;
            end loop;
        end loop;
    end loop;
    execute format('create function auth.uid() returns uuid language plpgsql as %L', v_body);
end
$$;
"""


def array(values):
    return "{" + ",".join('"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values) + "}"


def called_names():
    """Every word before a parenthesis in our statements."""
    files = [*ROOT.glob("sql/**/*.sql"), *ROOT.glob("Sources/**/*.swift")]
    return {name.lower() for file in files for name in re.findall(r"\b([A-Za-z_]\w*)\(", file.read_text())}


class Planted(Case):
    FLAGS = None
    MIGRATED = False
    OWN_CLUSTER = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run("create role planter login")
        cls.psql.run("grant create on schema public to planter")
        cls.psql.run("create schema auth authorization planter")
        # An application's table, which is adopted.
        cls.psql.run('create table message_usage (user_id uuid, billing_period text, message_count integer, "limit" integer,'
                     " updated_at timestamptz)")  # fmt: skip
        cls.psql.run("create function reset_billing_period(text) returns integer language sql return 1")
        planted = array(sorted(called_names()))
        rows = cls.psql.run(
            "select distinct proname from pg_catalog.pg_proc where pronamespace = 'pg_catalog'::regnamespace"
            f" and proname = any ('{planted}'::text[])"
        )
        cls.names = sorted(name for (name,) in rows)
        planter = cls.cluster.session(cls.database)
        planter.run("set session authorization planter")
        planter.run("set search_path = pg_catalog")
        # All of the thousands of functions have one body, which a test below calls.
        planter.run("set check_function_bodies = off")
        planter.run(
            PLANT.replace("{types}", array(TYPES))
            .replace("{names}", array(cls.names))
            .replace("{texts}", array(OPERATORS["text"]))
            .replace("{booleans}", array(OPERATORS["boolean"]))
        )
        planter.close()

    def setUp(self):
        self.psql.run("alter sequence public.planted_calls restart")

    def assert_none_ran(self, what):
        self.assertEqual(self.psql.run("select is_called from public.planted_calls"), [["f"]], what)

    def perform(self, *arguments, status=0):
        outcome = command(*arguments, database_url=self.database_url)
        self.assertEqual(outcome.returncode, status, f"{arguments}: {outcome.stderr}")
        self.assert_none_ran(arguments)
        return outcome

    def test_a_session_with_the_default_path_calls_planted_functions(self):
        self.assertGreater(len(self.names), 80)
        for statement in ("select 'a'::text || 'b'::name", "select format('x'::text, 0::regprocedure)"):
            self.setUp()
            with self.assertRaisesRegex(Exception, "a planted function ran"):
                self.psql.run(statement)
            self.assertEqual(self.psql.run("select is_called from public.planted_calls"), [["t"]])

    def test_headroom_as_a_superuser_never_calls_planted_functions(self):
        self.perform("migrate", "--plan", status=1)
        roles = command("roles").stdout
        outcome = processes.completed(psql(self.database_url), input=roles)
        self.assertEqual((outcome.returncode, outcome.stderr), (0, ""))
        self.assert_none_ran("headroom roles | psql")
        self.perform("migrate")
        self.perform("migrate", "--status")
        self.check_service(as_owner=True)
        self.check_service(as_owner=False)
        self.check_commands()
        self.check_functions()

    def test_a_table_of_another_role_is_not_adopted(self):
        self.psql.run("create database of_somebody_else")
        session = self.cluster.session("of_somebody_else")
        session.run("create sequence planted_calls")
        session.run("grant usage on sequence planted_calls to public")
        session.run("grant create on schema public to planter")
        session.run("set session authorization planter")
        session.run('create table message_usage (user_id uuid, billing_period text, message_count integer, "limit" integer,'
                    " updated_at timestamptz)")  # fmt: skip
        session.run("insert into message_usage (user_id, billing_period) select gen_random_uuid(), '2026-11'")
        session.run("create function planted() returns trigger language plpgsql as"
                    " $$ begin perform nextval('planted_calls'); return new; end $$")  # fmt: skip
        session.run("create trigger planted before update on message_usage for each row execute function planted()")
        session.run("reset session authorization")
        outcome = command("migrate", database_url=self.cluster.url("of_somebody_else"))
        self.assertNotEqual(outcome.returncode, 0)
        self.assertIn("message_usage belongs to planter", outcome.stderr)
        self.assertIn("alter table message_usage owner to postgres", outcome.stderr)
        self.assertEqual(session.value("select is_called from planted_calls"), "f")
        session.run("drop trigger planted on message_usage")
        session.run("alter table message_usage owner to postgres")
        self.assertEqual(command("migrate", database_url=self.cluster.url("of_somebody_else")).returncode, 0)
        session.close()

    def test_a_superuser_acts_as_the_owner_of_the_schema(self):
        # An administrator lets a login without CREATEROLE own Headroom's objects.
        for statement in (
            "create role app login", "create database of_app owner app",
        ):  # fmt: skip
            self.psql.run(statement)
        administrator = self.cluster.session("of_app")
        administrator.run(command("roles").stdout)
        administrator.close()
        url = self.cluster.url("of_app")
        succeed("migrate", database_url=url.replace("user=postgres ", "user=app "))
        session = self.cluster.session("of_app")
        session.run("create sequence acted_as_superuser")
        session.run("set session authorization app")
        session.run("create function public.planted() returns trigger language plpgsql as $$ begin if current_setting("
                    "'is_superuser') = 'on' then perform nextval('public.acted_as_superuser'); end if; return null; end $$")  # fmt: skip
        session.run("reset session authorization")

        def plant():
            session.run("set session authorization app")
            for table in ("words", "tokens", "store_products", "migrations", "definitions", "installed_objects"):
                session.run(f"create or replace trigger planted after insert or update or delete on headroom.{table}"
                            " for each statement execute function public.planted()")  # fmt: skip
            session.run("reset session authorization")

        plant()
        session.run("delete from headroom.definitions where file = 'rights.sql'")
        self.assertEqual(session.value("select is_called from acted_as_superuser"), "t", "a superuser's own statement runs it")
        session.run("alter sequence acted_as_superuser restart")
        for arguments in (
            ("migrate", "--plan"), ("migrate",), ("token", "create", "backend", "--scope", "chat"),
            ("product", "map", "revenuecat", "premium", "--plan", "paid"), ("events", "list"),
        ):  # fmt: skip
            plant()
            outcome = command(*arguments, database_url=url)
            self.assertIn(outcome.returncode, (0, 1), outcome.stderr)
            self.assertEqual(session.value("select is_called from acted_as_superuser"), "f", arguments)
        plant()
        Service(database_url=url, as_owner=True).stop()
        self.assertEqual(session.value("select is_called from acted_as_superuser"), "f", "serve")
        self.assertEqual(session.value("select distinct created_by from headroom.tokens"), "postgres")
        session.close()

    def check_service(self, as_owner):
        service = Service(database_url=self.database_url, as_owner=as_owner, env={"HEADROOM_REVENUECAT_AUTHORIZATION": AUTHORIZATION})
        user, other = self.user(), self.user()
        try:
            with service.connect() as connection:
                for request, answer in (
                    (f"CONSUME {user}", "+ALLOWED"), (f"CONSUME {user} key=a", "+ALLOWED"), (f"CHECK {user}", "+ALLOWED"),
                    (f"RESERVE {user} key=b", "+HELD"), (f"COMMIT {user} key=b", "+ALLOWED"), (f"RELEASE {user} key=a", "+OK"),
                    (f"USAGE {user}", "+OK"), (f"SETPLAN {user} paid anchor=15", "+OK"), (f"CONSUME {user} 3", "+ALLOWED"),
                    (f"GRANT {user} 5 key=g", "+OK"), (f"RESETUSAGE {user}", "+OK"), ("REPORT", "+REPORT"),
                    (f"CONSUME {other}", "+ALLOWED"), (f"FORGET {other}", "+OK"), (f"CONSUME {other}", "+ALLOWED"),
                ):  # fmt: skip
                    self.assertTrue(connection.send_command(request).startswith(answer), request)
                    self.assert_none_ran(request)
                self.assertTrue(connection.send_command(f"HISTORY {user}").startswith("*"))
            self.assertTrue(service.send_command("TOP").startswith("*"))
            for kind in ("INITIAL_PURCHASE", "CANCELLATION", "EXPIRATION", "TRANSFER"):
                event = revenuecat(kind, "2026-03-15T09:30:00Z", other, "1000000000001")
                answer = service.http("POST", "/webhooks/revenuecat", compact(event), {"Authorization": AUTHORIZATION})
                self.assertEqual(answer.status, 200, kind)
                self.assert_none_ran(kind)
            self.assertEqual(service.http("GET", "/readyz").status, 200)
            self.assertEqual(service.http("GET", "/metrics").status, 200)
        finally:
            service.stop()
        self.assertNotIn("planted", service.log())
        self.assert_none_ran("the service")

    def check_commands(self):
        self.perform("token", "create", "backend", "--scope", "chat")
        self.perform("token", "list")
        self.perform("token", "revoke", "1")
        self.perform("product", "map", "revenuecat", "premium", "--plan", "paid")
        self.perform("product", "list")
        self.perform("events", "list")
        # The transfers name no user.
        self.perform("events", "replay", "--failed", status=1)
        (event,) = self.psql.run("select source, id from headroom.billing_events where type = 'CANCELLATION' limit 1")
        self.perform("events", "show", *event)
        self.perform("product", "unmap", "revenuecat", "premium")
        # There is no record of this user.
        self.perform("audit", self.user(), status=1)
        self.perform("prune")

    def check_functions(self):
        user, customer = self.user(), self.psql.value("select user_id from headroom.billing_events where user_id is not null limit 1")
        for call in (
            f"increment_and_check_usage('{user}')", f"increment_and_check_usage('{user}', 'trial', 5)",
            f"reset_usage('{user}')", "reset_billing_period('2026-03')", f"set_plan('{user}', 'paid')",
            f"grant_messages('{user}', 5)", f"set_plan('{user}', 'trial', 'expired')", f"forget_user('{user}')",
            f"forget_user('{customer}')", "headroom.map_product('revenuecat', 'premium', 'paid')",
            "headroom.unmap_product('revenuecat', 'premium')", "headroom.map_entitlement('revenuecat', 'premium', 'paid')",
            "headroom.unmap_entitlement('revenuecat', 'premium')", "headroom.prune_billing_events()",
            "headroom.prune_keys()", "monthly_usage", "billing_period_report", "audit_trail",
        ):  # fmt: skip
            self.psql.run(f"select * from {call}")
            self.assert_none_ran(call)
        self.psql.run("""set request.jwt.claims = '{"sub": "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"}'""")
        self.assertEqual(
            self.psql.value("select headroom.requesting_user()"), "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11", "as auth.uid() has it"
        )
        self.psql.run("reset request.jwt.claims")
        self.assert_none_ran("the end user")
        for change in ("update message_usage set message_count = 0", "update headroom.plans set label = label"):
            self.psql.run(change)
            self.assert_none_ran(change)
