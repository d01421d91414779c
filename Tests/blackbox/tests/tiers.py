"""Tiers near the limit, and their sentences."""

from support.case import MID_MONTH, Case
from support.wire import Answer

GENTLE = "You have {} conversations left this month"
PROMINENT = "Almost there — {} messages left until April 1"
BLOCKED = "We've had a lot of great conversations this month! Your next session refreshes on April 1."
TRIAL = "{} of 100 trial messages remaining"
TRIAL_OVER = "You've used your trial sessions — ready to continue?"


class Tiers(Case):
    CLOCK = MID_MONTH
    SHARED = True

    PAID = [
        (0, "silent", "hidden", None),
        (639, "silent", "hidden", None),
        (640, "gentle", "compact", GENTLE.format(160)),
        (759, "gentle", "compact", GENTLE.format(41)),
        (760, "prominent", "compact", PROMINENT.format(40)),
        (799, "prominent", "compact", "Almost there — 1 message left until April 1"),
        (800, "blocked", "blocked", BLOCKED),
        (801, "blocked", "blocked", BLOCKED),
    ]
    TRIAL = [
        (0, "silent", "trial", TRIAL.format(100)),
        (79, "silent", "trial", TRIAL.format(21)),
        (80, "gentle", "trial", TRIAL.format(20)),
        (94, "gentle", "trial", TRIAL.format(6)),
        (95, "prominent", "trial", TRIAL.format(5)),
        (99, "prominent", "trial", TRIAL.format(1)),
        (100, "blocked", "blocked", TRIAL_OVER),
    ]

    def fields(self, answer):
        return (answer.used, answer["tier"], answer["display"], answer.get("banner"))

    def test_check_and_usage_show_a_paid_user_the_tier_of_each_boundary(self):
        user = self.subscriber("paid", used=0)
        with self.service.connect() as connection:
            for used, tier, display, banner in self.PAID:
                with self.subTest(used=used):
                    self.set_count(user, used)
                    for verb in ("CHECK", "USAGE"):
                        answer = connection.answer(f"{verb} {user}")
                        self.assertEqual(self.fields(answer), (used, tier, display, banner), verb)
                        self.assertEqual(answer["remaining"], str(max(0, 800 - used)))
                        self.assertNotIn("crossed", answer)

    def test_check_and_usage_show_a_trial_user_the_counter_at_every_tier(self):
        user = self.user()
        self.assertIn("+ALLOWED", self.send_command(f"CONSUME {user}"))
        with self.service.connect() as connection:
            for used, tier, display, banner in self.TRIAL:
                with self.subTest(used=used):
                    self.set_count(user, used)
                    for verb in ("CHECK", "USAGE"):
                        answer = connection.answer(f"{verb} {user}")
                        self.assertEqual(self.fields(answer), (used, tier, display, banner), verb)

    def test_a_paid_user_gets_each_crossed_tier_once(self):
        user = self.subscriber("paid", used=0)
        steps = [
            (0, "silent", None), (638, "silent", None), (639, "gentle", "gentle"), (640, "gentle", None),
            (758, "gentle", None), (759, "prominent", "prominent"), (760, "prominent", None),
            (798, "prominent", None), (799, "blocked", "blocked"),
        ]  # fmt: skip
        with self.service.connect() as connection:
            for before, tier, crossed in steps:
                with self.subTest(before=before):
                    self.set_count(user, before)
                    answer = connection.answer(f"CONSUME {user}")
                    self.assertEqual(answer.status, "ALLOWED")
                    self.assertEqual((answer.used, answer["tier"], answer.get("crossed")), (before + 1, tier, crossed))
            refused = connection.answer(f"CONSUME {user}")
            self.assertEqual((refused.status, refused["reason"]), ("BLOCKED", "limit_reached"))
            self.assertNotIn("crossed", refused)
            # 16 days and 14.5 hours until April 1, 00:00.
            self.assertEqual(refused["retry_after"], str((16 * 24 + 14) * 3600 + 1800))
            self.assertEqual(self.count(user), 800)

    def test_a_trial_user_gets_each_crossed_tier_once(self):
        user = self.user()
        crossed = {}
        with self.service.connect() as connection:
            connection.send(f"CONSUME {user}\n" * 102)
            answers = [Answer(connection.read_line()) for _ in range(102)]
        for answer in answers:
            if "crossed" in answer:
                crossed[answer.used] = answer["crossed"]
        self.assertEqual(crossed, {80: "gentle", 95: "prominent", 100: "blocked"})
        self.assertEqual([a.status for a in answers], ["ALLOWED"] * 100 + ["BLOCKED"] * 2)
        self.assertEqual([a.used for a in answers], [*range(1, 101), 100, 100])
        for answer in answers[100:]:
            self.assertEqual(answer["reason"], "trial_limit_reached")
            self.assertNotIn("retry_after", answer, "a trial never comes back")
            self.assertEqual(answer["banner"], TRIAL_OVER)

    def test_no_date_is_shown_if_access_ends_before_the_reset(self):
        for options, is_dated in [
            ("state=cancelled expires=2026-03-31T23:59:59Z", False), ("state=cancelled", False), ("expires=2026-04-01", False),
            ("state=grace_period grace_until=2026-03-20", False), ("state=cancelled expires=2026-04-01T00:00:01Z", True),
            ("", True),
        ]:  # fmt: skip
            user = self.subscriber("paid", options, used=1)
            for used, undated, date in [
                (640, "You have 160 conversations left this month", ""),
                (798, "Almost there — 2 messages left", " until April 1"),
                (799, "Almost there — 1 message left", " until April 1"),
                (800, "We've had a lot of great conversations this month!", " Your next session refreshes on April 1."),
            ]:
                self.set_count(user, used)
                expected = undated + (date if is_dated else "")
                with self.subTest(options=options, used=used):
                    self.assertEqual(Answer(self.send_command(f"USAGE {user}"))["banner"], expected)
                    self.assertEqual(self.service.http("GET", f"/v1/usage/{user}").json["banner"], expected)
                    self.assertEqual("retry_after" in Answer(self.send_command(f"CHECK {user} 9")), is_dated and used > 791)

    def test_a_message_that_skips_a_tier_crosses_into_the_last_one_only(self):
        user = self.subscriber("paid", used=1)
        answer = self.service.connect().answer(f"CONSUME {user} 799")
        self.assertEqual((answer["tier"], answer.get("crossed"), answer.used), ("blocked", "blocked", 800))

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

    def test_n_is_all_or_nothing(self):
        user = self.subscriber("paid", used=795)
        with self.service.connect() as connection:
            refused = connection.answer(f"CONSUME {user} 6")
            self.assertEqual((refused.status, refused.used, refused["remaining"]), ("BLOCKED", 795, "5"))
            self.assertEqual((refused["tier"], refused["reason"]), ("prominent", "exceeds_remaining"))
            self.assertEqual(connection.answer(f"CHECK {user} 6").status, "BLOCKED")
            self.assertEqual(connection.answer(f"CHECK {user} 5").status, "ALLOWED")
            allowed = connection.answer(f"CONSUME {user} 5")
            self.assertEqual((allowed.status, allowed.used), ("ALLOWED", 800))

    def test_more_messages_than_remain_have_a_reason_of_their_own(self):
        user, trial = self.subscriber("paid", used=700), self.user()
        self.send_command(f"CONSUME {trial} 99")
        with self.service.connect() as connection:
            for verb in ("CONSUME {} 101", "CHECK {} 101", "RESERVE {} 101 key=more"):
                refused = connection.answer(verb.format(user))
                self.assertEqual((refused.status, refused["reason"], refused["tier"]), ("BLOCKED", "exceeds_remaining", "gentle"))
                self.assertEqual((refused["display"], refused["remaining"]), ("compact", "100"))
                self.assertEqual(refused["banner"], "That needs 101 messages, and 100 are left until April 1.")
                self.assertIn("retry_after", refused)
            refused = connection.answer(f"CONSUME {trial} 2")
            self.assertEqual((refused["reason"], refused["banner"]), ("exceeds_remaining", "That needs 2 messages, and 1 is left."))
            self.assertNotIn("retry_after", refused)
            connection.answer(f"CONSUME {trial}")
            self.assertEqual(connection.answer(f"CONSUME {trial} 2")["reason"], "trial_limit_reached")

    def test_a_message_larger_than_the_whole_allowance_has_no_retry_after(self):
        user = self.subscriber("paid", used=1)
        self.assertIn("retry_after", self.service.connect().answer(f"CONSUME {user} 800"))
        self.assertNotIn("retry_after", self.service.connect().answer(f"CONSUME {user} 801"))

    def test_check_counts_nothing_and_creates_nothing(self):
        user = self.user()
        for _ in range(3):
            answer = self.service.connect().answer(f"CHECK {user}")
            self.assertEqual((answer.status, answer.used, answer["remaining"]), ("ALLOWED", 0, "100"))
            self.assertEqual((answer["plan"], answer["day"]), ("trial", "1"))
        self.send_command(f"USAGE {user}")
        for table in ("public.message_usage", "headroom.subscribers", "headroom.subscriptions"):
            self.assertEqual(self.psql.number(f"select count(*) from {table} where user_id = '{user}'"), 0, table)

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
