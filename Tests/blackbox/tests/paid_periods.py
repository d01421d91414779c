"""The periods that were paid: what each of several purchases, renewals, changes and ends gives, in the stores' own events."""

from support.service import command
from support.stores import revenuecat, stripe_subscription
from support.webhooks import Webhooks
from support.wire import Answer

BOUGHT, ENDS = "2026-03-05T18:00:00Z", "2026-04-05T18:00:00Z"


class Periods(Webhooks):
    CLOCK = BOUGHT

    def setUp(self):
        super().setUp()
        self.buyer, self.sold = self.user(), self.transaction()

    def event(self, kind, at, start=None, end=None, transaction=None, **fields):
        """An event of RevenueCat at that instant, by the clock too."""
        self.set_clock(at)
        for name, value in (("purchased_at_ms", start), ("expiration_at_ms", end)):
            if value:
                fields[name] = value
        answer = self.deliver(revenuecat(kind, at, self.buyer, transaction or self.sold, **fields))
        self.assertEqual(answer["outcome"], "applied", answer)

    def stripe(self, kind, status, at, *period, transaction=None, **fields):
        self.set_clock(at)
        event = stripe_subscription(kind, status, at, self.buyer, transaction or self.sold, period, **fields)
        self.assertEqual(self.deliver(event)["outcome"], "applied")

    def transfer(self, at):
        """Gives the subscriptions to a new user."""
        giver, self.buyer = self.buyer, self.user()
        self.set_clock(at)
        event = revenuecat("TRANSFER", at, ..., ..., transferred_from=[giver], transferred_to=[self.buyer], aliases=...)
        self.assertEqual(self.deliver(event)["outcome"], "applied")

    def consume(self, messages, status="ALLOWED", at=None):
        if at:
            self.set_clock(at)
        answer = Answer(self.send_command(f"CONSUME {self.buyer} {messages}"))
        self.assertEqual(answer.status, status, answer.text)
        return answer

    def assert_period(self, period, used, resets, at=None, **fields):
        """By TCP, by HTTP and in SQL."""
        if at:
            self.set_clock(at)
        expected = {"period": period, "used": used, "resets": resets, **fields}
        usage = Answer(self.send_command(f"USAGE {self.buyer}"))
        self.assertEqual({name: usage.used if name == "used" else usage.get(name) for name in expected}, expected, usage.text)
        over_http = self.service.http("GET", f"/v1/usage/{self.buyer}").json
        self.assertEqual((over_http["period"], over_http["used"], over_http["resets"]), (period, used, resets))
        in_sql = self.psql.run(f"select period, used, resets, state from current_usage where user_id = '{self.buyer}'")
        self.assertEqual(in_sql, [[period, str(used), resets, usage["state"]]])

    def buy(self, start=BOUGHT, end=ENDS, **fields):
        self.event("INITIAL_PURCHASE", start, start, end, **fields)


class PaidPeriods(Periods):
    def test_who_cancels_has_no_second_allowance_in_the_last_hours(self):
        self.buy()
        self.consume(800)
        self.event("CANCELLATION", "2026-03-10T12:00:00Z", cancel_reason="UNSUBSCRIBE", expiration_at_ms=ENDS)
        self.consume(1, "BLOCKED", at="2026-04-05T00:01:00Z")
        self.assert_period("2026-03", 800, ENDS, state="cancelled")

    def test_the_messages_of_who_renews_come_back_with_the_renewal_and_those_of_who_cancels_do_not(self):
        self.buy()
        self.consume(800)
        cancelled = "2026-04-04T18:00:00Z"
        self.set_clock(cancelled)
        self.assert_refused("86400", " Your next session refreshes on April 5.")
        self.event("CANCELLATION", cancelled, cancel_reason="UNSUBSCRIBE", expiration_at_ms=ENDS)
        self.assert_refused(None, "")

    def assert_refused(self, wait, date):
        """Over TCP, over HTTP and in SQL."""
        expected = (wait, "We've had a lot of great conversations!" + date)
        refused = self.consume(1, "BLOCKED")
        self.assertEqual((refused.get("retry_after"), refused["banner"]), expected)
        over_http = self.service.http("POST", f"/v1/usage/{self.buyer}/consume", {})
        self.assertEqual((over_http.headers.get("Retry-After"), over_http.json["banner"]), expected)
        self.assertEqual(self.psql.value(f"select retry_after from increment_and_check_usage('{self.buyer}', 1)"), wait)

    def test_a_renewal_begins_where_the_paid_time_ended(self):
        self.buy()
        self.consume(300)
        self.event("RENEWAL", "2026-04-05T17:30:00Z", "2026-04-05T17:29:58Z", "2026-05-05T18:00:00Z")
        self.assert_period("2026-03", 300, ENDS)
        self.assert_period("2026-04", 0, "2026-05-05T18:00:00Z", at=ENDS)
        self.event("RENEWAL", "2026-05-06T18:00:00Z", "2026-05-06T18:00:00Z", "2026-06-06T18:00:00Z")
        self.assert_period("2026-05", 0, "2026-06-06T18:00:00Z")

    def test_stripes_restarted_cycle_begins_anew(self):
        self.stripe("created", "active", BOUGHT, BOUGHT, ENDS, billing_cycle_anchor=...)
        self.consume(800)
        restarted = ("2026-03-20T10:00:00Z", "2026-04-20T10:00:00Z")
        self.stripe("updated", "active", restarted[0], *restarted, previous={"billing_cycle_anchor": 1, "latest_invoice": "in_1"})
        self.assert_period("2026-03.2", 0, restarted[1], renews=restarted[1])
        self.consume(800)
        self.consume(1, "BLOCKED", at="2026-04-05T18:01:00Z")
        rows = self.psql.run(
            "select billing_period, message_count, resets_at at time zone 'UTC' from message_usage"
            f" where user_id = '{self.buyer}' order by billing_period"
        )
        self.assertEqual(rows, [["2026-03", "800", "2026-03-20 10:00:00"], ["2026-03.2", "800", "2026-04-20 10:00:00"]])
        history = self.service.http("GET", f"/v1/history/{self.buyer}").json
        self.assertEqual([period["period"] for period in history["periods"]], ["2026-03.2", "2026-03"])

    def test_a_year_instead_of_a_month_begins_anew_and_has_twelve_months(self):
        self.stripe("created", "active", BOUGHT, BOUGHT, ENDS)
        self.consume(800)
        year = ("2026-03-20T10:00:00Z", "2027-03-20T10:00:00Z")
        self.stripe("updated", "active", year[0], *year, previous={"items": {}, "current_period_start": 1})
        self.assert_period("2026-03.2", 0, "2026-04-20T10:00:00Z")
        self.assert_period("2027-02", 0, year[1], at="2027-03-20T09:59:59Z")

    def test_the_plan_bought_again_begins_anew_and_moves_no_reset(self):
        self.stripe("created", "active", "2026-03-03T10:00:00Z", "2026-03-03T10:00:00Z", "2026-04-03T10:00:00Z")
        self.consume(800)
        self.stripe(
            "deleted", "canceled", "2026-03-20T09:59:00Z", "2026-03-03T10:00:00Z", "2026-04-03T10:00:00Z", ended_at="2026-03-20T09:59:00Z"
        )
        again = ("2026-03-20T10:00:00Z", "2026-04-20T10:00:00Z")
        self.stripe("created", "active", again[0], *again, transaction=self.transaction())
        self.assert_period("2026-03.2", 0, again[1])
        self.consume(1)

    def test_after_a_refund_a_purchase_in_the_refunded_time_keeps_the_count(self):
        self.buy()
        self.consume(800)
        self.event("CANCELLATION", "2026-03-15T12:00:00Z", cancel_reason="CUSTOMER_SUPPORT", expiration_at_ms=ENDS)
        self.buy("2026-03-20T12:00:00Z", "2026-04-20T12:00:00Z", transaction=self.transaction())
        self.assert_period("2026-03", 800, ENDS)
        self.assert_period("2026-04", 0, "2026-04-20T12:00:00Z", at=ENDS)

    def test_in_a_grace_period_the_next_period_begins_and_its_payment_continues_it(self):
        self.buy()
        self.consume(800)
        self.event("BILLING_ISSUE", ENDS, end=ENDS, grace_period_expiration_at_ms="2026-04-21T18:00:00Z")
        self.consume(5)
        self.assert_period("2026-04", 5, "2026-05-05T18:00:00Z", state="grace_period")
        self.event("RENEWAL", "2026-04-10T12:00:00Z", ENDS, "2026-05-05T18:00:00Z")
        self.assert_period("2026-04", 5, "2026-05-05T18:00:00Z", state="active")

    def test_an_operators_plan_keeps_its_day_and_the_newest_count(self):
        self.buy()
        self.consume(800)
        self.buy("2026-03-20T12:00:00Z", "2026-04-20T12:00:00Z", transaction=self.transaction())
        self.consume(7)
        self.assertIn("+OK", self.send_command(f"SETPLAN {self.buyer} paid anchor=5"))
        self.assert_period("2026-03.2", 7, "2026-04-05T00:00:00Z")
        self.assert_period("2026-04", 0, "2026-05-05T00:00:00Z", at="2026-04-05T00:00:00Z")

    def test_a_transfer_of_a_second_period_takes_its_count_along(self):
        self.buy()
        self.consume(800)
        second = self.transaction()
        self.buy("2026-03-20T12:00:00Z", "2026-04-20T12:00:00Z", transaction=second)
        self.consume(7)
        self.transfer("2026-03-21T12:00:00Z")
        self.assert_period("2026-03", 7, "2026-04-20T12:00:00Z")

    def test_a_key_of_a_closed_period_is_given_back_there(self):
        self.buy()
        self.assertIn("+ALLOWED", self.send_command(f"CONSUME {self.buyer} 3 key=a"))
        self.set_clock("2026-03-20T11:59:50Z")
        self.assertIn("+HELD", self.send_command(f"RESERVE {self.buyer} 2 key=b"))
        self.buy("2026-03-20T12:00:00Z", "2026-04-20T12:00:00Z", transaction=self.transaction())
        self.assertIn("+ALLOWED", self.send_command(f"CONSUME {self.buyer} 1 key=c"))
        self.send_command(f"RELEASE {self.buyer} key=a")
        self.send_command(f"COMMIT {self.buyer} key=b")
        counts = self.psql.run(f"select billing_period, message_count from message_usage where user_id = '{self.buyer}' order by 1")
        self.assertEqual(counts, [["2026-03", "2"], ["2026-03.2", "1"]])


class RenewalLeeway(Periods):
    MORE_FLAGS = ("--renewal-leeway", "1h")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run("set headroom.renewal_leeway = '1h'")

    def test_a_renewal_that_is_late_keeps_access_within_what_is_left(self):
        self.buy()
        self.consume(700)
        self.consume(1, at="2026-04-05T18:59:59Z")
        self.assert_period("2026-03", 701, "2026-04-05T19:00:00Z", state="active")
        self.consume(100, "BLOCKED")
        self.event("RENEWAL", "2026-04-05T18:59:59Z", ENDS, "2026-05-05T18:00:00Z")
        self.assert_period("2026-04", 0, "2026-05-05T18:00:00Z")

    def test_a_transfer_while_the_renewal_is_late_takes_the_count_along(self):
        self.buy()
        self.consume(700)
        for at in ("2026-04-05T18:10:00Z", "2026-04-05T18:20:00Z"):
            self.transfer(at)
            self.assert_period("2026-03", 700, "2026-04-05T19:00:00Z", state="active")
            self.consume(101, "BLOCKED")
        self.event("RENEWAL", "2026-04-05T18:30:00Z", ENDS, "2026-05-05T18:00:00Z")
        self.assert_period("2026-04", 0, "2026-05-05T18:00:00Z")

    def test_a_transfer_right_after_the_renewal_takes_the_new_count_along(self):
        self.buy()
        self.consume(700, at="2026-04-05T18:10:00Z")
        self.event("RENEWAL", "2026-04-05T18:20:00Z", ENDS, "2026-05-05T18:00:00Z")
        self.consume(5)
        self.transfer("2026-04-05T18:30:00Z")
        self.assert_period("2026-04", 5, "2026-05-05T18:00:00Z")

    def test_access_ends_after_the_leeway_or_at_once_where_nothing_is_renewed(self):
        self.buy()
        self.consume(1, "BLOCKED", at="2026-04-05T19:00:00Z")
        self.buyer, self.sold = self.user(), self.transaction()
        self.buy()
        self.event("CANCELLATION", "2026-03-10T12:00:00Z", cancel_reason="UNSUBSCRIBE", expiration_at_ms=ENDS)
        self.consume(1, "BLOCKED", at=ENDS)
        self.buyer, self.sold = self.user(), self.transaction()
        self.buy()
        self.event("EXPIRATION", ENDS, end=ENDS, expiration_reason="BILLING_ERROR")
        self.consume(1, "BLOCKED")


class RenewalLeewaySetting(Webhooks):
    def test_the_setting_is_at_most_three_days(self):
        for value in ("4d", "-1", "soon"):
            done = command("serve", f"--renewal-leeway={value}", database_url=self.database_url)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn("renewal-leeway (HEADROOM_RENEWAL_LEEWAY) must be 0 to 3d", done.stderr)
        for value in ("4d", "-1s"):
            self.psql.run(f"set headroom.renewal_leeway = '{value}'")
            with self.assertRaisesRegex(Exception, "not 0 to 3 days"):
                self.psql.run("select headroom.renewal_leeway()")
        self.psql.run("reset headroom.renewal_leeway")
