"""The answers of each verb in every subscription state. The clock is fixed, so each line is known to the byte."""

from support.case import MID_MONTH, Case
from support.wire import Answer

NO_ACCESS = "Ready to come back? Your conversations are still here."
ENDED = "Your time with Premium ended on March 15 — shall we go on?"
NOT_ACTIVE = "Your subscription is no longer active, so I have to stop here for now. You can subscribe again anytime."
PAUSED = "We're on a short pause until your payment goes through. I'll be right here."
NEVER_SUBSCRIBED = "Ready to begin? A subscription opens our conversations."
GRACE = "There's a hiccup with your payment. Let's get that sorted. Your access stays until March 25."
UNPAID = "I couldn't renew your subscription. Update your payment method and we can go on right away."
NOTICE_CANCELLED = "Your subscription is active until {}. You can resubscribe anytime."


class States(Case):
    CLOCK = MID_MONTH
    SHARED = True

    def lines(self, user):
        """The answers to CHECK, USAGE and CONSUME; the first two show the usage before the message."""
        with self.service.connect() as connection:
            return [Answer(connection.send_command(f"{verb} {user}")) for verb in ("CHECK", "USAGE", "CONSUME")]

    def assert_refused(self, user, reason, **fields):
        check, usage, consume = self.lines(user)
        self.assertEqual([a.status for a in (check, usage, consume)], ["BLOCKED", "OK", "BLOCKED"])
        self.assertEqual(check.text, consume.text, "CHECK is the line that CONSUME would give")
        self.assertEqual(consume["reason"], reason)
        self.assertEqual(usage["reason"], reason, "there is no access at all")
        for answer in (check, usage, consume):
            self.assertEqual((answer["tier"], answer["display"], answer["remaining"]), ("blocked", "blocked", "0"))
            self.assertNotIn("retry_after", answer, "waiting alone does not restore access")
            self.assertNotIn("crossed", answer)
            for name, value in fields.items():
                self.assertEqual(answer.get(name), value, f"{name} in {answer.text}")
        return consume

    def assert_allowed(self, user, **fields):
        check, usage, consume = self.lines(user)
        self.assertEqual([a.status for a in (check, usage, consume)], ["ALLOWED", "OK", "ALLOWED"])
        self.assertEqual(consume.used, check.used + 1)
        for answer in (check, usage, consume):
            self.assertNotIn("reason", answer)
            for name, value in fields.items():
                self.assertEqual(answer.get(name), value, f"{name} in {answer.text}")
        return consume

    # The plan, options of SETPLAN, the reason of a refusal, and what the answers show. None is no such field.
    STATES = [
        ("paid", "", None, dict(state="active", limit="800", period="2026-03", resets="2026-04-01T00:00:00Z", expires=None, notice=None,
                                banner=None, day=None, previous_plan=None)),
        ("paid", "state=cancelled expires=2026-03-20", None, dict(
            state="cancelled", limit="800", resets="2026-04-01T00:00:00Z", expires="2026-03-20T00:00:00Z",
            notice=NOTICE_CANCELLED.format("March 20"), banner=None)),
        # Without a date it lasts to the end of the period; with one that has passed it is expired.
        ("paid", "state=cancelled anchor=20", None, dict(
            state="cancelled", period="2026-02", expires="2026-03-20T00:00:00Z", resets="2026-03-20T00:00:00Z",
            notice=NOTICE_CANCELLED.format("March 20"))),
        ("paid", "state=cancelled expires=2026-03-15T09:30:00Z", "expired", dict(
            state="expired", banner=ENDED, notice=None, previous_plan="paid")),
        ("paid", "state=grace_period grace_until=2026-03-25", None, dict(
            state="grace_period", limit="800", notice=GRACE, expires=None, banner=None)),
        ("paid", "state=grace_period grace_until=2026-03-15T09:29:59Z", "billing_retry", dict(
            state="billing_retry", notice=UNPAID, banner=PAUSED)),
        ("paid", "state=billing_retry", "billing_retry", dict(
            plan="paid", state="billing_retry", notice=UNPAID, banner=PAUSED, resets=None, expires=None, previous_plan="paid")),
        ("paid", "state=expired", "expired", dict(
            plan="paid", state="expired", notice=None, banner=ENDED, previous_plan="paid", resets=None)),
        ("paid", "state=revoked expires=2026-12-01", "revoked", dict(state="revoked", notice=None, banner=NOT_ACTIVE)),
        ("free", "", "no_subscription", dict(plan="free", state="free", limit="0", period="free", resets=None, expires=None,
                                             banner=NEVER_SUBSCRIBED, notice=None, day=None)),
        ("trial", "", None, dict(plan="trial", state="trial", period="trial", limit="100", expires="2026-03-18T09:30:00Z", day="1",
                                 days="3", resets=None, display="trial")),
        # With a store's dates.
        ("trial", "started=2026-03-13T09:30:00Z expires=2026-03-16", None, dict(day="3", expires="2026-03-16T00:00:00Z")),
        ("trial", "started=2026-03-12T09:30:00Z", "trial_ended", dict(
            state="trial", day="3", expires="2026-03-15T09:30:00Z", banner="Your trial has ended — ready to continue?")),
        ("trial", "state=expired", "expired", dict(
            plan="trial", state="expired", banner="Your trial has ended — ready to continue?")),
        ("trial", "state=revoked", "revoked", dict(plan="trial", state="revoked", banner=NOT_ACTIVE)),
        ("pro", "", None, dict(plan="pro", limit="unlimited", remaining="unlimited", resets=None, period="2026-03")),
    ]  # fmt: skip

    def test_each_state_has_its_access_dates_and_sentences(self):
        for plan, options, reason, fields in self.STATES:
            with self.subTest(plan=plan, options=options):
                user = self.subscriber(plan, options)
                if reason:
                    self.assert_refused(user, reason, **fields)
                else:
                    self.assert_allowed(user, **fields)

    def test_what_was_used_stays_readable_without_access(self):
        for state in ("expired", "revoked"):
            user = self.subscriber("paid", used=7)
            self.send_command(f"SETPLAN {user} paid state={state}")
            self.assert_refused(user, state, used="7")
            self.assertEqual(self.count(user), 7)
            with self.service.connect() as connection:
                history = connection.send_list_command(f"HISTORY {user}")
            self.assertEqual(history, [f"+PERIOD user={user} period=2026-03 used=7 limit=800 tier=blocked"])

    def test_a_user_who_left_a_plan_is_asked_to_come_back(self):
        user = self.subscriber("paid")
        self.send_command(f"SETPLAN {user} free")
        self.assert_refused(user, "no_subscription", plan="free", banner=NO_ACCESS, previous_plan="paid")

    def test_history_and_accessible_words_know_no_limit(self):
        user = self.subscriber("pro", used=123_457)
        with self.service.connect() as connection:
            self.assertEqual(connection.answer(f"USAGE {user}")["accessible"], "123457 messages used this month")
            history = connection.send_list_command(f"HISTORY {user}")
        self.assertEqual(history, [f"+PERIOD user={user} period=2026-03 used=123457 limit=unlimited tier=silent"])

    def test_a_state_that_does_not_fit_the_plan_is_refused_and_changes_nothing(self):
        user = self.subscriber("paid", used=3)
        before = self.send_command(f"USAGE {user}")
        for options in ("free state=active", "trial state=cancelled", "pro state=trial", "paid state=free"):
            self.assertTrue(self.send_command(f"SETPLAN {user} {options}").startswith("-BADARG "), options)
        self.assertTrue(self.send_command(f"SETPLAN {user} nosuchplan").startswith("-NOTFOUND "))
        self.assertEqual(self.send_command(f"USAGE {user}"), before)

    def test_trial_to_paid_starts_at_0_and_the_trial_row_stays(self):
        user = self.user()
        self.send_command(f"CONSUME {user} 41")
        self.send_command(f"SETPLAN {user} paid")
        self.assertEqual(self.assert_allowed(user, plan="paid", period="2026-03").used, 1)
        with self.service.connect() as connection:
            self.assertEqual(
                connection.send_list_command(f"HISTORY {user}"),
                [
                    f"+PERIOD user={user} period=2026-03 used=1 limit=800 tier=silent",
                    f"+PERIOD user={user} period=trial used=41 limit=100 tier=silent",
                ],
            )

    def test_usage_of_a_past_period_shows_its_row_without_a_banner(self):
        user = self.subscriber("paid", used=3)
        self.psql.run(
            "insert into message_usage (bucket, user_id, billing_period, message_count, \"limit\")"
            f" values (headroom.bucket_of('{user}'), '{user}', '2026-01', 790, 800)"
        )
        answer = Answer(self.send_command(f"USAGE {user} 2026-01"))
        self.assertEqual((answer.used, answer["period"], answer["limit"]), (790, "2026-01", "800"))
        self.assertNotIn("banner", answer)
        self.assertTrue(self.send_command(f"USAGE {user} 2025-12").startswith("-NOTFOUND "))
        self.assertTrue(self.send_command(f"RESETUSAGE {user} 2025-12").startswith("-NOTFOUND "))
        reset = Answer(self.send_command(f"RESETUSAGE {user} 2026-01"))
        self.assertEqual((reset.used, reset["period"]), (0, "2026-01"))
        self.assertEqual(self.count(user), 3, "the current period keeps its count")

    def test_history_is_newest_first_and_as_long_as_asked(self):
        user = self.subscriber("paid", used=5)
        self.psql.run(
            "insert into message_usage (bucket, user_id, billing_period, message_count, \"limit\") select"
            f" headroom.bucket_of('{user}'), '{user}', to_char(month, 'YYYY-MM'), 700, 800"
            " from generate_series(timestamp '2024-12-01', timestamp '2026-02-01', interval '1 month') as month"
        )
        with self.service.connect() as connection:
            periods = [Answer(entry)["period"] for entry in connection.send_list_command(f"HISTORY {user}")]
            self.assertEqual(periods[:4], ["2026-03", "2026-02", "2026-01", "2025-12"])
            self.assertEqual(len(periods), 12)
            self.assertEqual(periods, sorted(periods, reverse=True))
            self.assertEqual(len(connection.send_list_command(f"HISTORY {user} 2")), 2)
            self.assertEqual(len(connection.send_list_command(f"HISTORY {user} 1200")), 16)
            self.assertEqual(connection.send_list_command(f"HISTORY {self.user()}"), [])


class UnknownUsersFree(Case):
    CLOCK = MID_MONTH
    FLAGS = ("--unknown-users", "free")

    def test_an_unknown_user_is_on_the_free_plan(self):
        user = self.user()
        for verb in ("CHECK", "CONSUME"):
            answer = Answer(self.send_command(f"{verb} {user}"))
            self.assertEqual(
                (answer.status, answer["plan"], answer["state"], answer["reason"]),
                ("BLOCKED", "free", "free", "no_subscription"),
            )
        self.assertEqual(self.count(user), 0)

    def test_an_unknown_user_may_use_up_a_free_allowance_once(self):
        self.psql.run("update headroom.plans set allowance = 3 where plan = 'free'")
        user = self.user()
        answers = [Answer(self.send_command(f"CONSUME {user}")) for _ in range(4)]
        self.assertEqual([a.status for a in answers], ["ALLOWED"] * 3 + ["BLOCKED"])
        self.assertEqual((answers[3]["reason"], answers[3]["period"]), ("limit_reached", "free"))
        self.assertEqual((answers[0]["display"], answers[0]["banner"]), ("compact", "1 of 3 messages used"))
        self.assertNotIn("retry_after", answers[3])
        self.assertEqual(answers[3]["banner"], "You've used all 3 messages.")
        self.psql.run("update headroom.plans set allowance = 0 where plan = 'free'")


class UnknownUsersDenied(Case):
    CLOCK = MID_MONTH
    FLAGS = ("--unknown-users", "deny")

    def test_an_unknown_user_is_refused_whatever_the_free_plan_allows(self):
        self.psql.run("update headroom.plans set allowance = 3 where plan = 'free'")
        user = self.user()
        for verb in ("CHECK", "CONSUME"):
            answer = Answer(self.send_command(f"{verb} {user}"))
            self.assertEqual((answer.status, answer["reason"]), ("BLOCKED", "no_subscription"))
            self.assertEqual(answer["banner"], NEVER_SUBSCRIBED)
            self.assertEqual((answer["limit"], answer["remaining"]), ("0", "0"))
        self.assertEqual(self.psql.number(f"select count(*) from message_usage where user_id = '{user}'"), 0)
        self.assertIn("+OK ", self.send_command(f"SETPLAN {user} paid"))
        self.assertIn("+ALLOWED ", self.send_command(f"CONSUME {user}"))
