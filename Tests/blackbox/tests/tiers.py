"""Whole lines, a trial's messages to the last one, and the order of pipelined requests. `golden_answers` has tiers and refusals."""

from support.case import MID_MONTH, Case
from support.wire import Answer


class Tiers(Case):
    CLOCK = MID_MONTH
    SHARED = True

    def test_a_trial_user_gets_each_crossed_tier_once(self):
        user = self.user()
        with self.service.connect() as connection:
            connection.send(f"CONSUME {user}\n" * 102)
            answers = [Answer(line) for line in connection.read_lines(102)]
        crossed = {answer.used: answer["crossed"] for answer in answers if "crossed" in answer}
        self.assertEqual(crossed, {80: "gentle", 95: "prominent", 100: "blocked"})
        self.assertEqual([a.status for a in answers], ["ALLOWED"] * 100 + ["BLOCKED"] * 2)
        self.assertEqual([a.used for a in answers], [*range(1, 101), 100, 100])

    def test_the_whole_line_of_a_paid_user_is_as_documented(self):
        user = self.subscriber("paid", used=639)
        self.assertEqual(
            self.send_command(f"CONSUME {user}"),
            f"+ALLOWED user={user} plan=paid state=active tier=gentle display=compact used=640 limit=800 remaining=160"
            ' period=2026-03 resets=2026-04-01T00:00:00Z crossed=gentle banner="You have 160 conversations left this month"',
        )
        self.assertEqual(
            self.send_command(f"USAGE {user}"),
            f"+OK user={user} plan=paid state=active tier=gentle display=compact used=640 limit=800 remaining=160"
            ' period=2026-03 resets=2026-04-01T00:00:00Z label=Premium state_label=Active accessible="640 of 800 messages used this month"'
            ' banner="You have 160 conversations left this month"',
        )

    def test_a_trial_users_usage_names_the_day_and_the_sentence_for_a_screen_reader(self):
        user = self.user()
        self.send_command(f"CONSUME {user} 41")
        answer = self.service.connect().answer(f"USAGE {user}")
        self.assertEqual(answer["label"], "Trial — Day 1 of 3")
        self.assertEqual(answer["accessible"], "41 of 100 trial messages used")
        self.assertEqual((answer["day"], answer["days"]), ("1", "3"))

    def test_pipelined_requests_of_one_user_are_answered_one_after_the_other(self):
        user = self.subscriber("paid", used=795)
        with self.service.connect() as connection:
            connection.send("".join(f"{request}\n" for request in (
                f"CONSUME {user} 4", f"CONSUME {user} 3", f"CHECK {user}", f"CONSUME {user} 1", f"USAGE {user}",
                f"CHECK {user}",
            )))  # fmt: skip
            answers = [Answer(connection.read_line()) for _ in range(6)]
        self.assertEqual([a.status for a in answers], ["ALLOWED", "BLOCKED", "ALLOWED", "ALLOWED", "OK", "BLOCKED"])
        self.assertEqual([a.used for a in answers], [799, 799, 799, 800, 800, 800])
        self.assertEqual(self.count(user), 800)

    def test_pipelined_changes_take_effect_in_their_order(self):
        user = self.user()
        with self.service.connect() as connection:
            connection.send("".join(f"{request}\n" for request in (
                f"CONSUME {user} 100", f"CONSUME {user}", f"SETPLAN {user} paid", f"CONSUME {user} 2", f"HISTORY {user}",
                f"RESETUSAGE {user}", f"CONSUME {user} 3", f"USAGE {user} trial",
            )))  # fmt: skip
            statuses = [connection.read_line().split(" ")[0] for _ in range(4)]
            self.assertEqual(statuses, ["+ALLOWED", "+BLOCKED", "+OK", "+ALLOWED"])
            self.assertEqual(connection.read_line(), "*2")
            self.assertEqual(connection.read_line(), f"+PERIOD user={user} period=2026-03 used=2 limit=800 tier=silent")
            self.assertEqual(connection.read_line(), f"+PERIOD user={user} period=trial used=100 limit=100 tier=blocked")
            self.assertIn(" used=0 ", connection.read_line())
            self.assertIn(" used=3 ", connection.read_line())
            self.assertIn(" used=100 ", connection.read_line())
