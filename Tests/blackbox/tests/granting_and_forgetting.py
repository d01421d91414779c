"""GRANT, which adds messages to a user's limit, and FORGET, which erases a user: over the line protocol and in psql,
with a running service."""

import json
import threading

from support.case import MID_MONTH, Case
from support.postgres import SQLError
from support.wire import Answer, array


class Granting(Case):
    CLOCK = MID_MONTH

    def test_a_grant_unblocks_at_once_and_answers_like_setplan(self):
        user = self.subscriber("paid", used=800)
        self.assertIn("+BLOCKED ", self.send_command(f"CONSUME {user}"))
        self.assertEqual(
            self.send_command(f"GRANT {user} 50 key=ticket-1"),
            f"+OK user={user} plan=paid state=active tier=gentle display=compact used=800 limit=850 remaining=50"
            " period=2026-03 resets=2026-04-01T00:00:00Z"
            ' banner="You have 50 conversations left this month"',
        )
        self.assertEqual(Answer(self.send_command(f"CONSUME {user} 50")).used, 850)
        self.assertIn("+BLOCKED ", self.send_command(f"CONSUME {user}"))

    def test_a_grant_counts_once_per_key(self):
        user = self.subscriber("paid", used=1)
        first = Answer(self.send_command(f"GRANT {user} 50 key=k"))
        self.assertEqual((first["limit"], first.get("replayed")), ("850", None))
        self.send_command(f"CONSUME {user}")
        again = Answer(self.send_command(f"GRANT {user} 50 key=k"))
        self.assertEqual((again["limit"], again["replayed"], again.used), ("850", "1", 2))
        self.assertTrue(self.send_command(f"GRANT {user} 51 key=k").startswith("-CONFLICT "))
        self.assertEqual(Answer(self.send_command(f"GRANT {user} 50 key=l"))["limit"], "900")
        self.psql.run(f"select grant_messages('{user}', 50, p_key => 'l')")
        self.assertEqual(Answer(self.send_command(f"CHECK {user}"))["limit"], "900")

    def test_concurrent_grants_with_one_key_grant_once(self):
        user = self.subscriber("paid", used=1)
        other = self.serve()
        replies = []

        def grant(service):
            with service.connect() as connection:
                for _ in range(20):
                    replies.append(Answer(connection.send_command(f"GRANT {user} 10 key=same")))

        threads = [threading.Thread(target=grant, args=(service,)) for service in (self.service, other) * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({reply["limit"] for reply in replies}, {"810"})
        self.assertEqual(len([reply for reply in replies if reply.get("replayed") is None]), 1)

    def test_reason_and_author_are_in_the_audit_trail(self):
        user = self.subscriber("paid", used=1)
        with self.service.connect() as connection:
            connection.send(array("GRANT", user, "5", "key=k", "reason=the outage of the 21st; drop table x --"))
            self.assertIn("+OK ", connection.read_line())
        self.set_clock("2026-03-15T09:30:01Z")
        self.psql.run("set headroom.actor = 'ann'")
        self.psql.run("set headroom.reason = 'asked'")
        self.psql.run(f"select reset_usage('{user}')")
        self.psql.run("reset headroom.actor")
        self.psql.run("reset headroom.reason")
        audit_trail = self.psql.run(
            f"select action, detail, actor = 'ann', reason from audit_trail where user_id = '{user}' order by at, id"
        )
        self.assertEqual(
            audit_trail[-2:],
            [
                ["grant", "count 1, limit 800 → 805, period 2026-03", "f", "the outage of the 21st; drop table x --"],
                ["reset", "count 1 → 0, limit 805, period 2026-03", "t", "asked"],
            ],
        )

    def test_bad_grants_are_refused_and_change_nothing(self):
        user = self.subscriber("paid", used=1)
        self.psql.run(f"update message_usage set \"limit\" = 2147483647 where user_id = '{user}'")
        for request, code in [
            (f"GRANT {user}", "-BADARG "), (f"GRANT {user} 5", "-BADARG "), (f"GRANT {user} key=k", "-BADARG "),
            (f"GRANT {user} 0 key=k", "-BADARG "), (f"GRANT {user} -5 key=k", "-BADARG "),
            (f"GRANT {user} 1000001 key=k", "-BADARG "), (f"GRANT {user} 5.5 key=k", "-BADARG "),
            (f"GRANT {user} 5 key=", "-BADARG "), (f"GRANT {user} 5 key=k reason=", "-BADARG "),
            (f"GRANT {user} 5 key=k key=k", "-BADARG "), (f"GRANT {user} 5 key=k ttl=5", "-BADARG "),
            (f"GRANT {user} 5 5 key=k", "-BADARG "), (f"GRANT {user[:-1]} 5 key=k", "-BADARG "),
            (f"GRANT {user} 5 key={'k' * 129}", "-BADARG "), (f"GRANT {user} 5 key=k", "-BADARG the limit would be"),
        ]:  # fmt: skip
            with self.subTest(request=request):
                self.assertTrue(self.send_command(request).startswith(code), self.send_command(request))
        with self.service.connect() as connection:
            connection.send(array("GRANT", user, "5", "key=k", "reason=a\nb"))
            self.assertTrue(connection.read_line().startswith("-BADARG "))
        self.assertEqual(Answer(self.send_command(f"CHECK {user}"))["limit"], "2147483647")
        self.assertEqual(self.psql.number(f"select count(*) from headroom.grants where user_id = '{user}'"), 0)


class Forgetting(Case):
    CLOCK = MID_MONTH

    def test_a_forgotten_user_is_unknown_everywhere(self):
        user = self.subscriber("paid", used=5)
        self.send_command(f"CONSUME {user} key=a")
        self.send_command(f"RESERVE {user} key=b")
        self.send_command(f"GRANT {user} 5 key=c")
        self.assertEqual(self.send_command(f"FORGET {user}"), "+OK")
        with self.service.connect() as connection:
            self.assertEqual(connection.send_command(f"HISTORY {user}"), "*0")
        for request in (f"USAGE {user} 2026-03", f"COMMIT {user} key=b", f"RELEASE {user} key=a"):
            self.assertTrue(self.send_command(request).startswith("-NOTFOUND "), request)
        answer = Answer(self.send_command(f"CHECK {user}"))
        self.assertEqual((answer["plan"], answer.used, answer["limit"]), ("trial", 0, "100"))
        self.assertEqual(self.psql.number(f"select count(*) from audit_trail where user_id = '{user}'"), 0)
        self.assertEqual(self.send_command(f"FORGET {user}"), "+OK")
        self.assertEqual(self.send_command(f"FORGET {self.user()}"), "+OK")

    def test_messages_during_forget_are_answered_and_leave_no_partial_state(self):
        user = self.user()
        replies = []

        def send():
            with self.service.connect() as connection:
                for _ in range(200):
                    replies.append(connection.send_command(f"CONSUME {user}"))

        threads = [threading.Thread(target=send) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(30):
            self.psql.run(f"select forget_user('{user}')")
        for thread in threads:
            thread.join()
        self.assertEqual({line.split(" ")[0] for line in replies}, {"+ALLOWED", "+BLOCKED"})
        allowed = len([line for line in replies if line.startswith("+ALLOWED")])
        self.assertEqual(allowed, 100, "FORGET neither returned nor used messages")
        self.assertEqual(Answer(self.send_command(f"CHECK {user}")).used, 100)

    def test_bad_requests_forget_nobody(self):
        user = self.subscriber("paid", used=5)
        for request in ("FORGET", f"FORGET {user} now", f"FORGET {user} key=k", f"FORGET {user[:-1]}", "FORGET *"):
            self.assertTrue(self.send_command(request).startswith("-BADARG "), request)
        with self.assertRaises(SQLError):
            self.psql.run("select forget_user(null)")
        self.assertEqual(self.count(user), 5)

    def test_sql_answers_like_the_line_protocol(self):
        user = self.subscriber("paid", used=5)
        self.send_command(f"FORGET {user}")
        row = json.loads(self.psql.value(f"select to_json(grant_messages('{user}', 7, p_key => 'k'))"))
        wire = Answer(self.send_command(f"GRANT {user} 7 key=k"))
        self.assertEqual((str(row["limit"]), row["used"], row["tier"]), (wire["limit"], wire.used, wire["tier"]))
