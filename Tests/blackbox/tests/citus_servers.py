"""What each server of a distributed database has, and does with a batch whose bucket is on another one."""

import uuid

from support.case import Case
from support.wire import Answer

TYPES = (
    "select type.typname from pg_type as type join pg_class as class on class.oid = type.typrelid"
    " where type.typnamespace = 'headroom'::regnamespace and class.relkind = 'c' order by 1"
)


class Servers(Case):
    NEEDS_CITUS = True

    def test_each_has_all_types_also_those_that_only_bodies_of_functions_name(self):
        expected = self.psql.run(TYPES)
        self.assertIn("counted_row", [name for (name,) in expected])
        for worker in self.cluster.workers:
            session = worker.session(self.database)
            self.addCleanup(session.close)
            self.assertEqual(session.run(TYPES), expected, worker.name)

    def test_a_batch_finds_a_key_through_a_server_that_forwards_it(self):
        user, lane = self.user(), uuid.uuid4()
        answer = Answer(self.send_command(f"CONSUME {user} key=used"))
        bucket, revision = self.psql.run(f"select headroom.bucket_of('{user}'), buckets_revision from headroom.plan_revision")[0]
        parts = "'{}', " * 8
        for node in self.cluster.nodes:
            session = node.session(self.database)
            self.addCleanup(session.close)
            session.run("begin")
            session.run(f"insert into headroom.lane_receipts (bucket, lane, number, updated_at) values ({bucket}, '{lane}', 0, now())")
            counted = session.number(
                f"select cardinality(counts) from headroom.count_keyed_batch({bucket}::smallint, '{lane}', 1, array['{user}']::uuid[],"
                f" array['{answer['period']}'], array[1], array[1::bigint], array[0::bigint], array['used'], array['consume'], array[1],"
                f" array[1::bigint], array[0], '{{}}', 0, {parts}{revision}) as batch"
                " where batch.counts is not null"
            )
            session.run("rollback")
            self.assertEqual(counted, 0, f"the key was used: {node.name}")
