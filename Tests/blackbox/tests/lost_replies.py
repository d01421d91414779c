"""The connection to the database breaks after the commit, before the service gets the reply."""

from support.case import Case, needs_one_machine
from support.proxy import DatabaseProxy, commits, runs, runs_any_of
from support.waiting import wait_until
from support.wire import Answer

SLOW_PATH = (b"derive_and_count", b"write_receipt")
"""Names of the slow path's prepared statements."""


@needs_one_machine("a proxy stands before the Unix socket of the only server; lanes connect to workers directly")
class LostReplies(Case):
    FLAGS = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.proxy = DatabaseProxy(cls.cluster)
        direct, cls.database_url = cls.database_url, cls.proxy.url(cls.database)
        cls.service = cls.serve("--lanes", "1")
        cls.database_url = direct

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.proxy.close()

    def setUp(self):
        super().setUp()
        self.fired = self.proxy.fired

    def assert_fired(self, times):
        self.assertEqual(self.proxy.fired - self.fired, times, "the fault was seen to fire")

    def test_a_message_is_counted_once_wherever_the_connection_breaks(self):
        user = self.subscriber("paid", used=0)
        self.assertEqual(Answer(self.send_command(f"CONSUME {user}")).used, 1)
        for used in range(2, 42):
            cut = self.proxy.cut_after_commit if used % 2 else self.proxy.cut_before_request
            cut(runs(b"count_batch"))
            answer = Answer(self.send_command(f"CONSUME {user}"))
            self.assertEqual((answer.status, answer.used), ("ALLOWED", used))
            self.assertEqual(self.count(user), used)
        self.assert_fired(40)

    def test_a_first_message_with_a_lost_commit_reply_is_counted_once(self):
        for number in range(10):
            user = self.user()
            self.proxy.cut_after_commit(runs_any_of(*SLOW_PATH))
            # With a key, the service decides the request; without one, the database counts.
            answer = Answer(self.send_command(f"CONSUME {user} 3" + (" key=first" if number % 2 else "")))
            self.assertEqual((answer.status, answer.used), ("ALLOWED", 3))
            self.assertEqual(self.count(user), 3)
            self.assertEqual(Answer(self.send_command(f"CONSUME {user}")).used, 4)
        self.assert_fired(10)

    def test_a_change_with_a_lost_commit_reply_is_made_once_and_answered(self):
        user = self.subscriber("paid", used=5)
        self.proxy.cut_after_commit(commits)
        self.assertIn(" plan=pro ", self.send_command(f"SETPLAN {user} pro"))
        self.assertEqual(Answer(self.send_command(f"CONSUME {user}"))["previous_plan"], "paid")
        self.proxy.cut_after_commit(commits)
        self.assertEqual(Answer(self.send_command(f"RESETUSAGE {user}")).used, 0)
        self.assertEqual(Answer(self.send_command(f"CONSUME {user}")).used, 1)
        self.assert_fired(2)

    def test_a_reset_between_a_lost_reply_and_its_repetition_is_not_undone(self):
        user = self.subscriber("paid", used=100)
        self.assertEqual(Answer(self.send_command(f"CONSUME {user}")).used, 101)
        self.proxy.cut_after_commit(runs(b"count_batch"))
        with self.service.connect() as connection:
            connection.send(f"CONSUME {user}\n")
            wait_until(lambda: self.count(user) in (0, 102), "it was counted")
            self.psql.run(f"select reset_usage('{user}')")
            self.assertEqual(Answer(connection.read_line()).used, 102, "as it was counted")
        self.assertEqual(self.count(user), 0, "nothing was counted again")
        self.assert_fired(1)

    def test_a_read_with_a_lost_reply_is_repeated(self):
        user = self.subscriber("paid", used=7)
        for request in (f"CHECK {user}", f"USAGE {user}"):
            self.proxy.cut_after_commit(runs(b"read_batch"))
            self.assertEqual(Answer(self.send_command(request)).used, 7)
        self.assert_fired(2)
