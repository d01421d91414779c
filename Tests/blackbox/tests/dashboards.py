"""The answers to REPORT and TOP equal the results of SQL queries, also while messages are counted."""

import threading

from support.case import MID_MONTH, Case
from support.wire import Answer


class Dashboards(Case):
    CLOCK = MID_MONTH

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run(
            "insert into message_usage (bucket, user_id, billing_period, message_count, \"limit\", plan, plan_limit)"
            " select headroom.bucket_of(users.id), users.id, '2026-02', (random() * 850)::int, 800, 'paid', 800"
            " from (select gen_random_uuid() as id from generate_series(1, 5000)) as users"
        )

    def report(self, period=""):
        return Answer(self.send_command(f"REPORT {period}"))

    def assertReportIsOfTheView(self, report, period):
        rows = "is_open" if period == "open" else f"billing_period = '{period}'"
        row = self.psql.run(
            "select count(*), coalesce(sum(used), 0), count(*) filter (where tier = 'silent'),"
            " count(*) filter (where tier = 'gentle'), count(*) filter (where tier = 'prominent'),"
            f" count(*) filter (where tier = 'blocked') from monthly_usage where {rows}"
        )[0]
        names = ["users", "messages", "silent", "gentle", "prominent", "blocked"]
        self.assertEqual([report[name] for name in names], row)
        self.assertEqual((report.status, report["period"]), ("REPORT", period))

    def test_a_report_equals_the_view(self):
        self.subscriber("paid", used=640)
        self.subscriber("paid", used=760)
        self.subscriber("paid", used=800)
        self.subscriber("pro", used=5_000)
        self.assertReportIsOfTheView(self.report(), "open")
        self.assertReportIsOfTheView(self.report("2026-03"), "2026-03")
        self.assertReportIsOfTheView(self.report("2026-02"), "2026-02")
        self.send_command(f"CONSUME {self.user()} 81")
        self.assertReportIsOfTheView(self.report("trial"), "trial")

    def test_a_message_that_was_answered_is_in_the_next_report_of_any_instance(self):
        other = self.serve()
        user = self.subscriber("paid")
        before = int(Answer(other.send_command("REPORT")).get("messages"))
        for number in range(1, 6):
            self.send_command(f"CONSUME {user} 3")
            self.assertEqual(int(Answer(other.send_command("REPORT"))["messages"]), before + 3 * number)

    def test_a_period_without_rows_gives_zeros_and_an_empty_list(self):
        self.assertEqual(
            self.send_command("REPORT 1999-12"), "+REPORT period=1999-12 users=0 messages=0 silent=0 gentle=0 prominent=0 blocked=0"
        )
        self.assertEqual(self.send_command("TOP 1999-12"), "*0")

    def test_a_number_alone_is_n_for_open_periods(self):
        for _ in range(3):
            self.subscriber("paid", used=5)
        with self.service.connect() as connection:
            lines = connection.send_list_command("TOP 2")
        self.assertEqual(len(lines), 2)
        # The 5,000 rows of February have more messages, but their periods have ended.
        self.assertTrue(all(" period=2026-02 " not in entry for entry in lines), lines)

    def test_replies_keep_their_order_behind_a_report(self):
        user = self.subscriber("paid")
        with self.service.connect() as connection:
            connection.send(f"REPORT 2026-02\nCONSUME {user}\nTOP 2026-02 1\nPING\n")
            first, second, third, _, last = connection.read_lines(5)
        self.assertTrue(first.startswith("+REPORT "), first)
        self.assertTrue(second.startswith("+ALLOWED "), second)
        self.assertEqual((third, last), ("*1", "+PONG"))

    def test_reports_while_messages_are_counted_lie_between_the_counts_before_and_after(self):
        users = [self.subscriber("pro", used=1_000_000) for _ in range(50)]
        stop = threading.Event()
        failures = []

        def count(own):
            with self.service.connect() as connection:
                while not stop.is_set():
                    connection.send("".join(f"CONSUME {user}\n" for user in own))
                    for reply in connection.read_lines(len(own)):
                        if not reply.startswith("+ALLOWED "):
                            failures.append(reply)

        # Of one period, because the table has fewer pages than one range of such a scan, so it is read at one instant.
        # Open periods are read in smaller ranges, between which a row may move.
        total = "select coalesce(sum(used), 0) from monthly_usage where billing_period = '2026-03'"
        users_in_period = "select count(*) from monthly_usage where billing_period = '2026-03'"
        threads = [threading.Thread(target=count, args=(users[start::4],)) for start in range(4)]
        for thread in threads:
            thread.start()
        try:
            with self.service.connect() as connection:
                for _ in range(20):
                    before = self.psql.number(total)
                    report = connection.answer("REPORT 2026-03")
                    after = self.psql.number(total)
                    self.assertLessEqual(before, int(report["messages"]))
                    self.assertLessEqual(int(report["messages"]), after)
                    self.assertEqual(int(report["users"]), self.psql.number(users_in_period))
                    listed = connection.send_list_command("TOP 2026-03 1000")
                    self.assertLessEqual(set(users), {entry.split("user=")[1].split(" ")[0] for entry in listed})
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(failures, [])

    def test_a_drain_answers_waiting_reports(self):
        service = self.serve("--drain-timeout-ms", "500")
        self.psql.run("begin")
        self.psql.run("lock table message_usage in access exclusive mode")
        try:
            with service.connect() as connection:
                connection.send("PING\nREPORT\n")
                self.assertEqual(connection.read_line(), "+PONG")
                service.signal(15)
                refused = connection.read_line()
            self.assertTrue(refused.startswith("-UNAVAILABLE "), refused)
            self.assertIn("shutting down", refused)
            self.assertEqual(service.wait(), 0)
        finally:
            self.psql.run("rollback")
