"""Everything that prevents the adoption of a message_usage is reported before any change."""

from support.case import Case
from support.service import command, succeed


class AdoptionThatIsRefused(Case):
    """Each finding with the statement that solves it, after which the table is adopted."""

    FLAGS = None
    MIGRATED = False
    TABLE = (
        'create table message_usage (user_id uuid not null, billing_period text not null, message_count integer default 0,'
        ' "limit" integer, updated_at timestamptz default now(){})'
    )

    def prepare(self, *statements):
        name = self.cluster.new_database()
        session = self.cluster.session(name)
        self.addCleanup(session.close)
        for statement in statements:
            session.run(statement)
        return session, self.cluster.url(name)

    def assert_refused(self, url, session):
        before = session.run("select attname, atttypid, attnotnull from pg_attribute where attrelid = to_regclass('message_usage')")
        outcome = command("migrate", database_url=url)
        self.assertNotEqual(outcome.returncode, 0)
        self.assertNotIn("Stack dump", outcome.stderr)
        self.assertEqual(session.number("select count(*) from pg_namespace where nspname = 'headroom'"), 0)
        self.assertEqual(
            session.run("select attname, atttypid, attnotnull from pg_attribute where attrelid = to_regclass('message_usage')"), before
        )
        return outcome.stderr

    def check(self, statements, *words, fixed_by=None):
        """Checks the refusal with these words. The last is the statement that solves it, unless `fixed_by` is given."""
        session, url = self.prepare(*statements)
        error = self.assert_refused(url, session)
        for word in words:
            self.assertIn(word, error)
        for statement in fixed_by or words[-1:]:
            session.run(statement)
        return succeed("migrate", database_url=url)

    def with_column(self, name, definition):
        table = self.TABLE.format("")
        start = table.index(name + " ")
        end = min(i for i in (table.find(",", start), len(table) - 1) if i > 0)
        return table[:start] + f"{name} {definition}" + table[end:]

    def test_a_generated_column(self):
        self.check(
            [self.with_column("message_count", "integer generated always as (0) stored")], "message_usage.message_count is a generated",
            "alter table public.message_usage alter column message_count drop expression",
        )  # fmt: skip

    def test_an_identity_column(self):
        self.check(
            [self.with_column("message_count", "integer generated always as identity")], "message_usage.message_count is an identity",
            "alter table public.message_usage alter column message_count drop identity",
        )  # fmt: skip

    def test_a_rule(self):
        self.check(
            [self.TABLE.format(""), "create rule nothing as on update to message_usage do instead nothing"], "the rule nothing changes",
            "drop rule nothing on public.message_usage",
        )  # fmt: skip

    def test_triggers_that_skip_a_row_or_change_its_count_or_keep_it(self):
        for name, when, event, body in (
            ("skip", "trigger", "before update", "return null;"),
            ("twice", "trigger", "before update", "new.message_count := new.message_count + 1; return new;"),
            ("keep", "trigger", "before delete", "return null;"),
            # It would fail at the commit.
            ("late", "constraint trigger", "after insert", "raise exception 'too late';"),
        ):
            function = f"create function {name}() returns trigger language plpgsql as $$ begin {body} end $$"
            deferred = " deferrable initially deferred" if when == "constraint trigger" else ""
            trigger = f"create {when} {name} {event} on message_usage{deferred} for each row execute function {name}()"
            with self.subTest(trigger=name):
                self.check(
                    [self.TABLE.format(""), function, trigger], f"the trigger {name} refuses or changes a row",
                    f"alter table public.message_usage disable trigger {name}",
                )  # fmt: skip

    def test_a_trigger_with_a_name_of_headrooms(self):
        self.check(
            [
                self.TABLE.format(""),
                "create function touch() returns trigger language plpgsql as $$ begin new.updated_at := now(); return new; end $$",
                "create trigger advance_entitlement_version before update on message_usage for each row execute function touch()",
            ],
            "the trigger advance_entitlement_version has the name of a trigger of Headroom's",
            "alter trigger advance_entitlement_version on public.message_usage rename to advance_entitlement_version_before",
        )  # fmt: skip

    def test_a_trigger_that_finds_its_own_tables_by_the_search_path_alone(self):
        self.check(
            [
                self.TABLE.format(""), "create table counted (at timestamptz)",
                "create function note() returns trigger language plpgsql as"
                " $$ begin insert into counted values (now()); return new; end $$",
                "create trigger note after update on message_usage for each row execute function note()",
            ],
            'the trigger note refuses or changes a row that Headroom writes (relation "counted" does not exist)',
            "alter table public.message_usage disable trigger note",
        )  # fmt: skip

    def test_a_trigger_that_sets_updated_at_stays(self):
        session, url = self.prepare(
            self.TABLE.format(""),
            "create function touch() returns trigger language plpgsql as $$ begin new.updated_at := now(); return new; end $$",
            "create trigger touch before update on message_usage for each row execute function touch()",
        )
        self.assertEqual(command("migrate", database_url=url).returncode, 0)

    def test_a_table_that_is_no_ordinary_table(self):
        copied = "create table public.message_usage as select * from public.message_usage_before"
        for definition, kind in (
            (self.TABLE.format("") + " partition by hash (user_id)", "table"),
            (self.TABLE.format("").replace("message_usage", "counts") + "; create view message_usage as select * from counts", "view"),
        ):
            with self.subTest(kind=kind):
                rename = f"alter {kind} public.message_usage rename to message_usage_before"
                self.check(definition.split("; "), "must be an ordinary table", f"{rename}; {copied}", fixed_by=[rename, copied])

    def test_inheritance(self):
        self.check(
            [self.TABLE.format(""), "create table old_usage () inherits (message_usage)"], "the table public.old_usage inherits",
            "alter table public.old_usage no inherit public.message_usage",
        )  # fmt: skip
        self.check(
            [self.TABLE.format("").replace("message_usage", "all_usage"), "create table message_usage () inherits (all_usage)"],
            "message_usage inherits from public.all_usage", "alter table public.message_usage no inherit public.all_usage",
        )  # fmt: skip

    def test_a_table_of_a_type(self):
        columns = 'user_id uuid, billing_period text, message_count integer, "limit" integer, updated_at timestamptz'
        self.check(
            [f"create type usage as ({columns})", "create table message_usage of usage"], "message_usage is a table of a type",
            "alter table public.message_usage not of",
        )  # fmt: skip

    def test_row_level_security_that_hides_rows_from_the_migrating_role(self):
        session, url = self.prepare()
        role = "owner_of_" + session.value("select current_database()")
        roles = command("roles")
        for statement in (
            f"create role {role} login", f"alter database {session.value('select current_database()')} owner to {role}",
            roles.stdout, f"set session authorization {role}", self.TABLE.format(""),
            "alter table message_usage enable row level security", "alter table message_usage force row level security",
        ):  # fmt: skip
            session.run(statement)
        url = url.replace("user=postgres ", f"user={role} ")
        fixed_by = "alter table public.message_usage no force row level security"
        self.assertIn(f"row level security hides rows from their owner, who migrates: {fixed_by}", self.assert_refused(url, session))
        session.run(fixed_by)
        succeed("migrate", database_url=url)

    def test_an_invalid_index_is_no_key(self):
        session, url = self.prepare(
            self.TABLE.format(""), "create unique index unfinished on message_usage (user_id, billing_period)",
            # As after a `create index concurrently` that failed.
            "update pg_index set indisvalid = false where indexrelid = 'unfinished'::regclass",
        )  # fmt: skip
        succeed("migrate", database_url=url)
        self.assertEqual(
            session.number("select count(*) from pg_index where indrelid = 'message_usage'::regclass and indisunique and indisvalid"), 1
        )

    def test_a_column_that_must_be_given(self):
        self.check(
            [self.TABLE.format(", tenant text not null")], "message_usage.tenant has no default and must not be null",
            "alter table public.message_usage alter column tenant drop not null",
        )  # fmt: skip

    def test_a_column_that_is_missing(self):
        self.check(
            [self.TABLE.format("").replace(', updated_at timestamptz default now()', "")], "the column updated_at is missing",
            "alter table public.message_usage add column updated_at timestamp with time zone",
        )  # fmt: skip

    def test_check_constraints_that_refuse_what_headroom_writes(self):
        for rule, condition in (("months", "billing_period ~ '^[0-9]{4}-[0-9]{2}$'"), ("below", 'message_count <= "limit"')):
            with self.subTest(rule=rule):
                self.check(
                    [self.TABLE.format(f", constraint {rule} check ({condition})")], f"the check constraint {rule} refuses a row",
                    f"alter table public.message_usage drop constraint {rule}",
                )  # fmt: skip

    def test_a_restrictive_policy_for_the_service(self):
        self.check(
            [self.TABLE.format(""), "create policy mine on message_usage as restrictive to headroom_service using (false)"],
            "the restrictive policy mine concerns headroom_service", fixed_by=["alter policy mine on message_usage to pg_monitor"],
        )  # fmt: skip

    def test_a_key_that_allows_one_row_for_each_user(self):
        self.check(
            [self.TABLE.format(", constraint one_row unique (user_id)")], "one_row does not allow a row for each user and period",
            "alter table public.message_usage drop constraint one_row",
        )  # fmt: skip

    def test_a_deferrable_key(self):
        self.check(
            [self.TABLE.format(", constraint late unique (user_id, billing_period) deferrable")], "late is deferrable",
            "alter table public.message_usage drop constraint late",
        )  # fmt: skip

    def test_a_foreign_key_on_the_period(self):
        self.check(
            ["create table periods (label text primary key)",
             self.TABLE.format(", constraint known foreign key (billing_period) references periods")],
            "the foreign key known refuses values that Headroom writes",
            "alter table public.message_usage drop constraint known",
        )  # fmt: skip

    def test_a_foreign_key_that_keeps_rows_from_being_deleted(self):
        self.check(
            [self.TABLE.format(", id bigserial primary key"),
             "create table notes (usage_id bigint, constraint of_usage foreign key (usage_id) references message_usage)"],
            "keeps FORGET from deleting rows", "alter table public.notes drop constraint of_usage",
        )  # fmt: skip

    def test_columns_with_the_names_of_all_that_headroom_adds(self):
        own = {"user_id", "billing_period", "message_count", "limit", "updated_at"}
        migrated, url = self.prepare()
        self.assertEqual(command("migrate", database_url=url).returncode, 0)
        names = migrated.value(
            "select string_agg(attname, ',') from pg_attribute"
            " where attrelid = 'message_usage'::regclass and attnum > 0 and not attisdropped"
        )
        added = set(names.split(",")) - own
        self.assertIn("previous_plan", added)
        session, url = self.prepare(self.TABLE.format("".join(f", {name} text" for name in sorted(added))))
        error = self.assert_refused(url, session)
        for name in added:
            self.assertIn(f"message_usage.{name} has the name of a column of Headroom's", error)

    def test_a_column_with_a_name_of_headrooms(self):
        self.check(
            [self.TABLE.format(", plan text")], "message_usage.plan has the name of a column of Headroom's",
            "alter table public.message_usage rename column plan to plan_before",
        )  # fmt: skip

    def test_values_that_cannot_be_converted(self):
        for column, definition, value, words in (
            ("user_id", "text not null", "'somebody', '2026-11', 1, 9", "message_usage.user_id is of type text, and no uuid in 1 of"),
            ("message_count", "bigint", "gen_random_uuid(), '2026-11', 3000000000, 9", "is of type bigint, and no integer in 1 of"),
            ('"limit"', "numeric", "gen_random_uuid(), '2026-11', 1, 9.5", "message_usage.limit is of type numeric, and no integer in 1"),
        ):  # fmt: skip
            with self.subTest(column=column):
                error = self.check(
                    [self.with_column(column, definition),
                     f'insert into message_usage (user_id, billing_period, message_count, "limit") select {value}'],
                    words, fixed_by=["delete from message_usage"],
                )  # fmt: skip
                self.assertIn("of type", error.stderr)

    def test_a_type_that_holds_other_values(self):
        self.check(
            [self.with_column("billing_period", "date not null")], "message_usage.billing_period is of type date",
            fixed_by=["alter table message_usage alter column billing_period type text using to_char(billing_period, 'YYYY-MM')"],
        )  # fmt: skip

    def test_a_view_that_keeps_a_column_from_being_converted(self):
        self.check(
            [self.with_column("message_count", "bigint"), "create view mine as select message_count from message_usage"],
            "depends on column", "drop what depends on it", fixed_by=["drop view mine"],
        )  # fmt: skip

    def test_all_findings_are_reported_at_once(self):
        session, url = self.prepare(
            self.with_column("message_count", "bigint").replace(
                "now())", "now(), plan text, constraint months check (billing_period ~ '^[0-9]'), constraint one unique (user_id))"
            ),
            "create function skip() returns trigger language plpgsql as $$ begin return null; end $$",
            "create trigger skip before update on message_usage for each row execute function skip()",
            "insert into message_usage (user_id, billing_period, message_count, updated_at)"
            " select gen_random_uuid(), '2026-11', 1, 'infinity'",
        )
        error = self.assert_refused(url, session)
        for word in ("message_usage.plan has the name", "one does not allow", "months refuses", "the trigger skip", "is infinite"):
            self.assertIn(word, error)
