"""Rows that an operator's transaction in psql locks for a long time: requests about other users are answered."""

from support.case import Case
from support.postgres import SQLError
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
