"""What keeps statements cheap, also where Citus executes them: plans that are kept, functions that a view calls once for each row, and
tables that are read in parts."""

import uuid
from pathlib import Path

from support import citus
from support.case import Case

QUERIES = Path(__file__).resolve().parents[3] / "sql/queries"
EXECUTIONS = 12
"""PostgreSQL plans the first five for their values, and then decides."""


class StatementCase(Case):
    FLAGS = None

    def servers(self):
        """Those to which lanes connect, each with a bucket that it has."""
        if not citus.is_asked_for():
            return [(self.cluster, 0)]
        buckets = {node.name: (node, bucket) for bucket, (_, node) in self.cluster.placements(self.database).items()}
        return list(buckets.values())


class KeptPlans(StatementCase):
    def generic_plans(self, session, name, arguments):
        """How many of the executions used a plan that was kept."""
        statement = (QUERIES / f"{name}.sql").read_text()
        session.run(f"prepare {name} as {statement}")
        for number in range(1, EXECUTIONS + 1):
            session.run(f"execute {name}({arguments(number)})")
        return session.number(f"select generic_plans from pg_prepared_statements where name = '{name}'")

    def test_the_call_of_each_batch_is_planned_once(self):
        revision = self.psql.number("select buckets_revision from headroom.plan_revision")
        keys, parts = "'{}', " * 11, "'{}', " * 8
        for server, bucket in self.servers():
            for name, arguments in (
                ("count_batch", lambda number: f"{bucket}, '{lane}', {number}, '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', {revision}"),
                ("derive_and_count", lambda number: f"{bucket}, '{lane}', {number}, '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', {revision}"),
                ("count_keyed_batch", lambda number: f"{bucket}, '{lane}', {number}, {keys}0, {parts}{revision}"),
                ("read_parts", lambda number: f"{bucket}, '{{}}', '{{}}', '{{}}', '{{}}', true"),
                ("read_batch", lambda number: f"{bucket}, '{{}}', '{{}}', 'trial', false"),
            ):
                lane = uuid.uuid4()
                session = server.session(self.database)
                self.addCleanup(session.close)
                opened = (QUERIES / "open_lane.sql").read_text()
                session.run(f"prepare open_lane as {opened}")
                session.run(f"execute open_lane({bucket}, '{lane}')")
                with self.subTest(statement=name, server=server):
                    self.assertGreater(self.generic_plans(session, name, arguments), 0)

    def test_a_worker_reads_its_own_copy_of_the_revisions(self):
        definition = "select pg_get_viewdef('headroom.present_revisions'::regclass)"
        for server, _ in self.servers():
            session = server.session(self.database)
            self.addCleanup(session.close)
            source = r"headroom\.plan_revision_\d+ revised" if citus.is_asked_for() else r"headroom\.plan_revision revised"
            self.assertRegex(" ".join(line for (line,) in session.run(definition)), source)

    def test_no_check_constraint_calls_a_function_of_headroom(self):
        # PostgreSQL inlines and prepares each one for each UPDATE, whatever it changes.
        found = self.psql.run(
            "select conrelid::regclass, conname from unnest(headroom.divided_tables()) as divided (name)"
            " join pg_constraint on conrelid = divided.name::regclass"
            r" where contype = 'c' and pg_get_constraintdef(pg_constraint.oid) ~ 'headroom\.[a-z_]+\('"
        )
        self.assertEqual(found, [])


class Reports(StatementCase):
    def test_views_whose_functions_are_called_once_per_row_say_so_twice(self):
        # PostgreSQL heeds the option, and Citus, which replaces a view by its query, passes on the ORDER BY.
        views = self.psql.run(
            "select oid::regclass, pg_get_viewdef(oid) ~ 'ORDER BY NULL::boolean;$' from pg_class"
            " where relnamespace = 'headroom'::regnamespace and reloptions @> '{security_barrier=true}'"
        )
        self.assertGreaterEqual(len(views), 4)
        self.assertEqual([view for view, has_order in views if has_order != "t"], [])

    def test_calls_no_function_for_each_row(self):
        # Of one shard, and in the session that executes the functions of its rows.
        server, bucket = self.servers()[0]
        user = next(user for user in iter(self.user, None) if self.psql.number(f"select headroom.bucket_of('{user}')") == bucket)
        self.psql.run(
            "insert into message_usage (bucket, user_id, billing_period, message_count, plan, state)"
            f" values ({bucket}, '{user}', 'trial', 1, 'trial', 'trial')"
        )
        calls = (
            "select coalesce(sum(calls), 0) from pg_stat_xact_user_functions"
            " where schemaname = 'headroom' and funcname = 'current_answer'"
        )
        session = server.session(self.database)
        self.addCleanup(session.close)
        session.run("set track_functions = 'all'")
        session.run("begin")
        rows = session.run(f"select tier, used, is_open, plan, \"limit\", resets_at, held from headroom.usage_rows where bucket = {bucket}")
        self.assertTrue(rows)
        self.assertEqual(session.number(calls), 0, "the periods are derived in a set")

    def test_the_table_is_as_large_as_its_largest_part(self):
        users = [self.user() for _ in range(64)]
        self.psql.run(
            "insert into message_usage (bucket, user_id, billing_period)"
            f" select headroom.bucket_of(id), id, '2026-03' from unnest('{{{','.join(users)}}}'::uuid[]) as users (id)"
        )
        self.assertGreater(self.psql.number("select headroom.usage_pages()"), 0)
