"""Rows that an operator's transaction in psql locks for a long time: requests about other users are answered."""

from support.case import Case
from support.postgres import SQLError
from support.waiting import wait_until
from support.wire import Answer


class RowLocks(Case):
    # One lane, so that requests that are sent together are one batch.
    FLAGS = ("--lanes", "1")

    def warm(self, count):
        users = sorted(self.user() for _ in range(count))
        with self.service.connect() as connection:
            for user in users:
                self.assertIn("+ALLOWED", connection.send_command(f"CONSUME {user}"))
        return users

    def test_a_locked_row_does_not_fail_its_neighbours_in_the_same_batch(self):
        users = self.warm(41)
        first, locked = users.pop(0), [users[7], users[20], users[21]]
        others = [user for user in users if user not in locked]
        before, locks = self.lock_rows(first), self.lock_rows(*locked)
        with self.service.connect() as opening, self.service.connect() as waiting, self.service.connect() as neighbours:

            def send_all():
                waiting.send("".join(f"CONSUME {user}\n" for user in locked))
                neighbours.send("".join(f"CONSUME {user}\n" for user in others))

            # It keeps the only lane waiting, so that all requests that arrive meanwhile are the next batch.
            opening.send(f"CONSUME {first}\n")
            self.wait_until_blocked()
            send_all()
            wait_until(
                # On a slow machine the lane waits no longer, and takes them as they come.
                lambda: int(self.service.info()["queue_depth"]) >= len(users) or neighbours.readable(0), "they wait for the lane"
            )
            before.close()
            self.assertEqual(opening.read_line().split()[0], "+ALLOWED")
            self.assert_allowed(neighbours, others, used=2)
            # Again, now that the lane knows who is locked.
            send_all()
            self.assert_allowed(neighbours, others, used=3)
            self.assertFalse(waiting.readable(0), "their rows are still locked")
            locks.close()
            for used in (2, 3):
                self.assert_allowed(waiting, locked, used)
        for user in users:
            self.assertEqual(self.count(user), 3)
        self.assertEqual(self.count(first), 2)

    def assert_allowed(self, connection, users, used):
        answers = [Answer(connection.read_line()) for _ in users]
        self.assertEqual([(a.status, a["user"], a.used) for a in answers], [("ALLOWED", user, used) for user in users])

    def test_reads_do_not_wait_for_locks(self):
        (user,) = self.warm(1)
        session = self.lock_rows(user)
        try:
            self.assertIn("+ALLOWED ", self.send_command(f"CHECK {user}"))
            self.assertIn("+OK ", self.send_command(f"USAGE {user}"))
            with self.service.connect() as connection:
                self.assertEqual(len(connection.send_list_command(f"HISTORY {user}")), 1)
        finally:
            session.close()

    def test_a_lock_released_in_time_delays_but_refuses_no_request(self):
        users = self.warm(10)
        session = self.lock_rows(users[4])
        with self.service.connect() as connection:
            connection.send("".join(f"CONSUME {user}\n" for user in users))
            self.wait_until_blocked()
            session.close()
            answers = [Answer(connection.read_line()) for _ in users]
        self.assertEqual([(a.status, a.used) for a in answers], [("ALLOWED", 2)] * 10)

    def test_a_blocked_user_of_a_lock_sees_what_the_lock_holder_committed(self):
        user = self.subscriber("paid", used=799)
        session = self.lock_rows(user)
        session.run(f"update message_usage set message_count = 800 where user_id = '{user}'")
        with self.service.connect() as connection:
            connection.send(f"CONSUME {user}\n")
            self.wait_until_blocked()
            session.run("commit")
            session.close()
            answer = Answer(connection.read_line())
        self.assertEqual((answer.status, answer.used), ("BLOCKED", 800))
        self.assertEqual(self.count(user), 800)

    def test_locks_in_reverse_order_end_and_lose_nothing(self):
        service = self.serve("--lanes", "1", "--request-timeout-ms", "2000")
        for turn in range(3):
            users = self.warm(2)
            with service.connect() as connection, self.subTest(turn=turn):
                session = self.lock_rows(users[1])
                connection.send(f"CONSUME {users[0]}\nCONSUME {users[1]}\n")
                self.wait_until_blocked()
                # The batch holds the first row and waits for the second; psql does the reverse.
                session.send(f"update message_usage set message_count = message_count where user_id = '{users[0]}'")
                replies = connection.read_lines(2)
                try:
                    session.receive()
                    session.run("commit")
                except SQLError as error:
                    self.assertIn("deadlock", str(error))
                session.close()
                for user, reply in zip(users, replies):
                    self.assertRegex(reply, r"^(\+ALLOWED|-UNAVAILABLE|-UNKNOWN) ")
                    counts = {"+ALLOWED": (2,), "-UNAVAILABLE": (1,), "-UNKNOWN": (1, 2)}[reply.split(" ")[0]]
                    self.assertIn(self.count(user), counts, reply)

    def test_a_reset_of_all_users_under_load_causes_no_deadlock(self):
        users = self.warm(200)
        period = self.psql.value(f"select billing_period from message_usage where user_id = '{users[0]}'")
        other = self.serve()
        with self.service.connect() as one, other.connect() as two:
            for _ in range(10):
                requests = "".join(f"CONSUME {user}\n" for user in users)
                one.send(requests)
                two.send("".join(reversed(requests.splitlines(keepends=True))))
                self.psql.run(f"select reset_billing_period('{period}')")
                for connection in (one, two):
                    for reply in connection.read_lines(len(users)):
                        self.assertTrue(reply.startswith("+ALLOWED "), reply)

    def test_setplan_and_messages_of_one_user_at_once_all_succeed(self):
        user = self.subscriber("pro")
        other = self.serve()
        with self.service.connect() as one, other.connect() as two:
            one.send(f"CONSUME {user}\n" * 300)
            two.send(f"SETPLAN {user} paid anchor=1\nSETPLAN {user} pro\n" * 50)
            for reply in two.read_lines(100):
                self.assertTrue(reply.startswith("+OK "), reply)
            for reply in one.read_lines(300):
                self.assertTrue(reply.startswith("+ALLOWED "), reply)
        self.assertEqual(self.count(user), 300)
