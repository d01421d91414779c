"""An existing message_usage table is adopted with its counts."""

from support.case import Case
from support.service import command
from support.wire import Answer

USERS = [f"00000000-0000-4000-8000-00000000000{i}" for i in range(6)]
MONTH = "to_char(now() at time zone 'UTC', 'YYYY-MM')"


class Adoption(Case):
    FLAGS = None
    MIGRATED = False
    ROWS = None
    KIND = "table"
    VIEW = "create view my_dashboard as select user_id, message_count from message_usage"
    """An application's view of the table."""
    COLUMNS = """
        user_id uuid not null, billing_period text not null, message_count integer not null default 0,
        "limit" integer not null, updated_at timestamptz not null default now(), primary key (user_id, billing_period)
    """

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run(f"create {cls.KIND} public.message_usage ({cls.COLUMNS})")
        cls.psql.run(
            f"insert into message_usage (user_id, billing_period, message_count, \"limit\") values"
            f" ('{USERS[0]}', {MONTH}, 123, 800), ('{USERS[0]}', '2020-05', 800, 800), ('{USERS[1]}', {MONTH}, 800, 800),"
            f" ('{USERS[2]}', 'trial', 41, 100), ('{USERS[4]}', '2019-07', 77, 80)"
        )
        if cls.ROWS:
            cls.psql.run(f"insert into message_usage (user_id, billing_period, message_count, \"limit\", updated_at) {cls.ROWS}")
        cls.psql.run(cls.VIEW)
        cls.service = cls.serve()

    def test_counts_limits_and_periods_are_as_they_were(self):
        rows = self.psql.run(
            f'select user_id, billing_period = {MONTH}, message_count, "limit" from message_usage'
            f" where user_id in ('{USERS[1]}', '{USERS[4]}') order by 1"
        )
        self.assertEqual(rows, [[USERS[1], "t", "800", "800"], [USERS[4], "f", "77", "80"]])

    def test_a_subscriber_continues_from_the_adopted_count(self):
        self.assertEqual(Answer(self.send_command(f"SETPLAN {USERS[0]} paid")).used, 123)
        answer = Answer(self.send_command(f"CONSUME {USERS[0]}"))
        self.assertEqual((answer.status, answer.used, answer["limit"]), ("ALLOWED", 124, "800"))
        with self.service.connect() as connection:
            history = [Answer(entry) for entry in connection.send_list_command(f"HISTORY {USERS[0]}")]
        self.assertEqual([(h.used, h["limit"]) for h in history], [(124, "800"), (800, "800")])
        self.assertEqual(history[1]["period"], "2020-05")

    def test_a_user_at_the_limit_stays_blocked(self):
        self.send_command(f"SETPLAN {USERS[1]} paid")
        answer = Answer(self.send_command(f"CONSUME {USERS[1]}"))
        self.assertEqual((answer.status, answer.used), ("BLOCKED", 800))

    def test_a_trial_continues_from_the_adopted_count(self):
        answer = Answer(self.send_command(f"CONSUME {USERS[2]}"))
        self.assertEqual((answer.status, answer.used, answer["period"]), ("ALLOWED", 42, "trial"))

    def test_a_new_user_gets_no_row_of_another_user(self):
        self.assertEqual(Answer(self.send_command(f"CONSUME {USERS[3]}")).used, 1)

    def test_a_view_on_the_table_goes_on_working(self):
        self.assertGreaterEqual(self.psql.number("select count(*) from my_dashboard"), 4)


class AdoptionWithAnotherPrimaryKey(Adoption):
    COLUMNS = """
        id bigint generated always as identity primary key, user_id uuid, billing_period text, message_count integer,
        "limit" integer, updated_at timestamptz
    """

    ROWS = f"values ('{USERS[5]}'::uuid, {MONTH}, null::integer, null::integer, null::timestamptz)"

    def test_a_later_row_without_a_user_changes_nothing(self):
        self.psql.run("alter table message_usage alter column user_id drop not null")
        self.psql.run(f"insert into message_usage (billing_period, message_count) values ({MONTH}, 7000000)")
        with self.service.connect() as connection:
            self.assertNotIn("used=7000000", " ".join(connection.send_list_command("TOP")))
        self.assertEqual(Answer(self.send_command(f"CONSUME {self.user()}")).status, "ALLOWED")
        self.assertIn("user_id is NULL instead of uuid", self.service.log())

    def test_a_count_that_was_null_is_0(self):
        self.send_command(f"SETPLAN {USERS[5]} paid")
        for used in (1, 2):
            answer = Answer(self.send_command(f"CONSUME {USERS[5]}"))
            self.assertEqual((answer.status, answer.used), ("ALLOWED", used))
        self.assertEqual(self.count(USERS[5]), 2)


class AdoptionWithASurrogateUUID(Adoption):
    """A typical table of a Supabase project: a generated key, a unique constraint, row level security for the clients."""

    COLUMNS = """
        id uuid primary key default gen_random_uuid(), user_id uuid not null, billing_period text not null,
        message_count integer default 0, "limit" integer default 800, created_at timestamptz default now(),
        updated_at timestamptz default now(), unique (billing_period, user_id)
    """

    def test_an_existing_unique_constraint_is_enough(self):
        self.assertEqual(self.psql.number("select count(*) from pg_index where indrelid = 'message_usage'::regclass"), 2)


class AdoptionOfOtherTypes(Adoption):
    """Columns of other types with valid values are converted: serial keys and text ids, as some frameworks create them."""

    KIND = "unlogged table"
    VIEW = "create view my_dashboard as select 1 as user_id from generate_series(1, 4)"
    COLUMNS = """
        user_id varchar(40) not null, billing_period char(9) not null, message_count bigint not null default 0,
        "limit" smallint, updated_at timestamp not null default now(), primary key (user_id, billing_period)
    """

    def test_the_columns_have_the_types_that_clients_decode(self):
        types = self.psql.run(
            "select format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'message_usage'::regclass"
            " and attname in ('user_id', 'billing_period', 'message_count', 'limit', 'updated_at') order by attnum"
        )
        self.assertEqual([t for (t,) in types], ["uuid", "text", "integer", "integer", "timestamp with time zone"])
        self.assertEqual(self.psql.value("select relpersistence from pg_class where oid = 'message_usage'::regclass"), "p")

    def test_instants_keep_their_values(self):
        self.assertEqual(
            self.psql.value("select now() - updated_at between interval '0' and interval '1 hour' from message_usage limit 1"), "t"
        )


class AdoptionOfAnApplicationThatCountsByItself(Case):
    """The application has a function with the name of ours that its clients call, and a view with a name of ours."""

    FLAGS = None
    MIGRATED = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run(f"create table message_usage ({Adoption.COLUMNS})")
        cls.psql.run(
            "create function increment_and_check_usage(p_user_id uuid, p_billing_period text, p_limit int) returns jsonb"
            " language sql as $$ select '{\"theirs\": true}'::jsonb $$"
        )
        cls.psql.run("create function increment_and_check_usage(a uuid, b int) returns int language sql as 'select 7'")
        cls.psql.run("create function increment_and_check_usage(a uuid) returns int language sql as 'select 8'")
        cls.psql.run("create function increment_and_check_usage(a uuid, b text) returns int language sql as 'select 9'")
        cls.psql.run("create view monthly_usage as select user_id, message_count as messages from message_usage")
        cls.psql.run("create view reports as select sum(messages) as messages from monthly_usage")
        cls.migration = command("migrate", database_url=cls.database_url)
        cls.service = cls.serve()

    def call(self, arguments, schema="public"):
        return self.psql.run(f"select {schema}.increment_and_check_usage('{USERS[0]}'{arguments})")[0][0]

    def test_callers_reach_headrooms_function(self):
        self.assertIn('"current_count": 1', self.call(", '2026-11', 5"))
        counted = self.psql.run(f"select status, used from increment_and_check_usage('{USERS[1]}')")
        self.assertEqual(counted, [["ALLOWED", "1"]])
        self.assertGreaterEqual(self.psql.number("select count(*) from monthly_usage where tier = 'silent'"), 1)

    def test_the_old_functions_are_set_aside(self):
        self.assertEqual(self.call(", '2026-11', 5", "headroom_set_aside"), '{"theirs": true}')
        self.assertEqual(self.call(", 5", "headroom_set_aside"), "7")
        self.assertEqual(self.call("", "headroom_set_aside"), "8")
        self.psql.run("select user_id, messages from headroom_set_aside.monthly_usage")
        self.psql.run("select messages from reports")

    def test_a_function_with_other_arguments_stays(self):
        self.assertEqual(self.call(", '2026-11'"), "9")

    def test_the_log_says_what_to_grant(self):
        finding = [line for line in self.migration.stderr.splitlines() if "headroom_set_aside" in line]
        self.assertEqual(len(finding), 4, finding)
        for line in finding:
            self.assertIn("headroom_user", line)


class AdoptionOfATableInAViewsPlace(Case):
    FLAGS = None
    MIGRATED = False

    def test_it_is_reported_and_nothing_changes(self):
        self.psql.run("create table billing_period_report (billing_period text)")
        outcome = command("migrate", database_url=self.database_url)
        self.assertNotEqual(outcome.returncode, 0)
        self.assertIn("billing_period_report", outcome.stderr)
        self.assertIn("rename it, then migrate again", outcome.stderr)
        self.psql.run("alter table billing_period_report rename to reports_of_ours")
        self.assertEqual(command("migrate", database_url=self.database_url).returncode, 0)


class AdoptionOfATableThatDoesNotFit(Case):
    FLAGS = None
    MIGRATED = False

    def test_two_rows_for_one_user_and_period_are_reported_and_nothing_changes(self):
        self.psql.run("create table message_usage (user_id uuid, billing_period text, message_count integer, "
                      "\"limit\" integer, updated_at timestamptz)")  # fmt: skip
        self.psql.run(f"insert into message_usage values ('{USERS[0]}', '2020-05', 1, 9), ('{USERS[0]}', '2020-05', 2, 9)")
        outcome = command("migrate", database_url=self.database_url)
        self.assertNotEqual(outcome.returncode, 0)
        self.assertIn("0001_adopted_table.sql", outcome.stderr)
        self.assertIn("several rows for the same user and period", outcome.stderr)
        self.assertEqual(self.psql.number("select count(*) from message_usage"), 2)
        self.assertEqual(
            self.psql.number(
                "select count(*) from information_schema.columns where table_schema = 'public' and table_name = 'message_usage'"
            ),
            5,
        )


class AdoptionOfRowsOutOfRange(Case):
    FLAGS = None
    MIGRATED = False

    def refused(self, columns, row, *words):
        """Checks that such a table is refused and unchanged, and adopted after the suggested statement."""
        self.psql.run(f"create table message_usage ({columns})")
        self.psql.run(f"insert into message_usage values {row}")
        outcome = command("migrate", database_url=self.database_url)
        self.assertNotEqual(outcome.returncode, 0)
        for word in ("0001_adopted_table.sql", *words):
            self.assertIn(word, outcome.stderr)
        self.assertEqual(
            self.psql.number(
                "select count(*) from information_schema.columns where table_schema = 'public' and table_name = 'message_usage'"
            ),
            5,
        )
        return outcome.stderr

    def test_a_value_out_of_range_is_reported_with_a_query_and_nothing_changes(self):
        columns = "user_id uuid, billing_period text, message_count integer, \"limit\" integer, updated_at timestamptz"
        for column, row, problem, correction in (
            ("message_count", "-1, 9, now()", "is negative in 1 of its rows", "message_count = 0 where not (message_count >= 0)"),
            ("limit", "1, -1, now()", "is negative in 1 of its rows", '"limit" = 0 where not ("limit" >= 0)'),
            ("updated_at", "1, 9, 'infinity'", "outside the years 2000 to 9999", "updated_at = now() where not (updated_at >= "),
            ("updated_at", "1, 9, '1999-12-31T23:59:59Z'", "outside the years 2000 to 9999", "select * from message_usage"),
        ):  # fmt: skip
            with self.subTest(column=column, row=row):
                finding = self.refused(columns, f"('{USERS[0]}', '2020-05', {row})", f"message_usage.{column}", problem, correction)
                statement = "update message_usage set " + finding.split(", update message_usage set ")[1].split(" corrects them")[0]
                self.psql.run(statement)
                self.psql.run("drop table message_usage")
