"""Effects of an adopted table on a running and on a starting service."""

import json

from support.case import Case
from support.service import succeed
from support.waiting import wait_until
from support.wire import Answer


class AdoptionWithAForeignKey(Case):
    """A foreign key to auth.users, as on Supabase."""

    FLAGS = None
    MIGRATED = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run("create schema auth")
        cls.psql.run("create table auth.users (id uuid primary key)")
        cls.psql.run(
            "create table message_usage (user_id uuid not null references auth.users on delete cascade, billing_period text not"
            ' null, message_count integer default 0, "limit" integer, updated_at timestamptz, primary key (user_id, billing_period))'
        )
        cls.service = cls.serve()

    REFUSED = "-NOTFOUND user is not in auth.users, "

    def sign_up(self, user):
        self.psql.run(f"insert into auth.users values ('{user}')")

    def test_an_unknown_user_is_not_found_on_every_path_and_counted_once_known(self):
        for request in ("CONSUME {} 1", "CONSUME {} 1 key=a", "RESERVE {} 1 key=b", "GRANT {} 5 key=c"):
            with self.subTest(request=request):
                user = self.user()
                answer = self.send_command(request.format(user))
                self.assertTrue(answer.startswith(self.REFUSED), answer)
                self.assertNotIn(user, answer)
                self.assertEqual(self.count(user), 0)
                self.sign_up(user)
                self.assertRegex(self.send_command(request.format(user)), r"^\+(ALLOWED|HELD|OK) ")
        self.assertNotIn("level=error", self.service.log())

    def test_neighbours_in_the_same_batch_are_counted(self):
        users = sorted(self.user() for _ in range(40))
        for user in users[::2]:
            self.sign_up(user)
        with self.service.connect() as connection:
            connection.send("".join(f"CONSUME {user}\n" for user in users))
            answers = connection.read_lines(len(users))
        for answer in answers[::2]:
            self.assertTrue(answer.startswith("+ALLOWED "), answer)
        for answer in answers[1::2]:
            self.assertTrue(answer.startswith(self.REFUSED), answer)

    def test_a_plan_can_be_set_before_a_row_is_needed(self):
        user = self.user()
        self.assertTrue(self.send_command(f"SETPLAN {user} paid").startswith("+OK "))
        self.assertTrue(self.send_command(f"CONSUME {user}").startswith(self.REFUSED))

    def test_setplan_for_a_forgotten_user_with_a_spent_trial(self):
        user = self.user()
        self.sign_up(user)
        self.assertIn("+ALLOWED", self.send_command(f"CONSUME {user}"))
        self.assertEqual(self.send_command(f"FORGET {user}"), "+OK")
        self.psql.run(f"delete from auth.users where id = '{user}'")
        answer = self.send_command(f"SETPLAN {user} paid")
        self.assertTrue(answer.startswith(self.REFUSED), answer)

    def test_a_billing_event_is_recorded_as_failed_and_applied_by_a_replay_once_the_user_is_there(self):
        user = self.user()
        event = json.dumps({
            "source": "chargebee", "id": user, "at": "2026-11-05T12:00:00Z", "kind": "granted", "user": user,
            "transaction": user, "messages": 50,
        })  # fmt: skip
        refused = self.service.http("POST", "/v1/billing-events", event)
        self.assertEqual((refused.status, refused.json["outcome"], refused.json["user"]), (200, "failed", user))
        self.assertIn("user is not in auth.users", refused.json["problem"])
        self.sign_up(user)
        succeed("events", "replay", "chargebee", user, database_url=self.database_url)
        self.assertEqual(self.service.http("POST", "/v1/billing-events", event).json["outcome"], "duplicate")
        self.assertEqual(Answer(self.send_command(f"USAGE {user}"))["limit"], "150")


class ReadyMeansThatItCounts(Case):
    """The table changes after it was adopted."""

    FLAGS = None

    def refused(self, *statements):
        for statement in statements:
            self.psql.run(statement)
        service = self.serve(wait=False)
        self.assertNotEqual(service.wait(), 0)
        self.assertEqual(service.output(), "")
        self.assertIn("counting one message on trial failed", service.log())
        self.assertNotIn("Stack dump", service.log())
        return service.log()

    def test_a_service_that_cannot_count_does_not_start(self):
        with self.subTest("a trigger"):
            error = self.refused(
                "create function skip() returns trigger language plpgsql as $$ begin return null; end $$",
                "create trigger skip before update on message_usage for each row execute function skip()",
            )
            self.assertIn("message_usage does not keep what is counted", error)
            self.psql.run("drop trigger skip on message_usage")
        with self.subTest("a right"):
            error = self.refused("revoke update on message_usage from headroom_service")
            self.assertIn("permission denied for table message_usage", error)
            self.psql.run("grant update on message_usage to headroom_service")
        with self.subTest("a right that the first message of a user needs"):
            # The check uses a new user only if there is no existing one.
            self.psql.run("delete from message_usage")
            error = self.refused("revoke insert on headroom.subscriptions from headroom_service")
            self.assertIn("permission denied for table subscriptions", error)
            self.psql.run("grant insert on headroom.subscriptions to headroom_service")
        service = self.serve()
        self.assertIn("+ALLOWED", service.send_command(f"CONSUME {self.user()}"))
        self.assertEqual(self.psql.number("select count(*) from message_usage where billing_period = '9999-12'"), 0)
        service.stop()

    def test_it_is_not_ready_before_a_lane_is_connected(self):
        # A lane deletes old receipts when it connects.
        self.psql.run("revoke delete on headroom.lane_receipts from headroom_service")
        service = self.serve("--log-level", "debug", "--lanes", "1", wait=False)
        away = "database is still away"
        wait_until(lambda: service.log().count(away) >= 8 or service.is_ready(), "the lanes try again and again")
        self.assertEqual(service.output(), "")
        self.psql.run("grant delete on headroom.lane_receipts to headroom_service")
        self.assertIn("+ALLOWED", service.ready().send_command(f"CONSUME {self.user()}"))
        service.stop()
