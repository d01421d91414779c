"""Purchases that name no user, such as a family member's, and links of them with users: by command, over HTTP and in psql."""


from support.postgres import SQLError
from support.service import command
from support.webhooks import END, PURCHASE, Webhooks

LATER = "2026-03-01T12:00:01Z"
PAID = {"plan": "paid", "state": "active", "renews": END, "status": "ALLOWED"}


class CustomerLinks(Webhooks):
    def family(self, **fields):
        """The original transaction of a family member's purchase, which the service has received."""
        transaction = self.transaction()
        shared = {"purchaseDate": PURCHASE, "expiresDate": END, "inAppOwnershipType": "FAMILY_SHARED", **fields}
        answer = self.deliver(self.app_store.notification("SUBSCRIBED", "INITIAL_BUY", PURCHASE, None, transaction, **shared))
        self.assertEqual(answer["outcome"], "failed")
        self.assertIn("headroom customer link", answer["problem"])
        return transaction

    def link(self, *arguments, status=0):
        done = command("customer", "link", *arguments, database_url=self.database_url)
        self.assertEqual(done.returncode, status, f"{arguments}\n{done.stdout}{done.stderr}")
        return done.stderr if status else done.stdout

    def send(self, user, status=200, **body):
        answered, answer = self.post(f"/v1/users/{user}/links", body)
        self.assertEqual(answered, status, answer)
        return answer

    def audit(self, user):
        return [reason for [reason] in self.psql.run(f"select distinct reason from audit_trail where user_id = '{user}' order by 1")]

    def test_a_family_members_transaction_is_linked_by_a_command(self):
        user, transaction = self.user(), self.family()
        linked = self.link("appstore", transaction, user, "--reason", "ticket 4711")
        self.assertEqual(linked, f"1 event applied; {user}: paid, active until {END}\n")
        self.assert_answers(user, PAID, "linked")
        self.assertEqual(self.audit(user), ["link of appstore; ticket 4711", "ticket 4711"])
        again = self.link("appstore", transaction, user)
        self.assertEqual(again, f"nothing changed; it belongs to {user} already\n")
        refund = self.app_store.notification("REFUND", None, LATER, None, transaction, status=5, purchaseDate=PURCHASE, expiresDate=END)
        self.assertEqual(self.deliver(refund)["outcome"], "applied")
        self.assert_answers(user, {"state": "revoked", "status": "BLOCKED"}, "what follows is the user's")

    def test_over_http_it_is_the_same_with_the_number_of_events(self):
        user, transaction = self.user(), self.family()
        linked = self.send(user, source="appstore", name=transaction, reason="ticket 1")
        self.assertEqual(
            linked,
            {
                "outcome": "applied", "events": {"applied": 1}, "user": user, "plan": "paid", "state": "active", "access": True,
                "expires": END,
            },
        )  # fmt: skip
        self.assert_answers(user, PAID, "linked")
        self.assertEqual(self.send(user, source="appstore", name=transaction), {"outcome": "duplicate", "events": {}, "user": user})
        self.assertEqual(self.audit(user), ["link of appstore; ticket 1", "ticket 1"])

    def test_what_is_unknown_or_another_users_is_refused_with_what_to_do_and_leaves_nothing(self):
        user, (owner, transaction) = self.user(), self.purchase()
        before = self.psql.value("select count(*) from headroom.billing_events")
        problem = self.link("revenuecat", transaction, user, status=1)
        self.assertIn(f"it belongs to the user {owner}, whom the store's own events name", problem)
        self.assertIn("TRANSFER", problem)
        unknown = self.link("revenuecat", "no", user, status=1)
        self.assertIn("neither as an original transaction nor, by its SHA-256, as a customer id", unknown)
        self.assertIn("a UUID is itself a user", self.link("revenuecat", owner, user, status=1))
        self.assertIn("no event of this source", self.link("revenuecart", transaction, user, status=1))
        self.assertIn("user", self.link("revenuecat", transaction, "ann", status=64))
        self.assertIn("a source is", self.link("RevenueCat", transaction, user, status=64))
        self.assertEqual(self.send(user, 409, source="revenuecat", name=transaction)["code"], "CONFLICT")
        self.assertEqual(self.send(user, 404, source="revenuecat", name="no")["code"], "NOTFOUND")
        self.assertEqual(self.send(user, 400, source="revenuecat")["code"], "BADARG")
        self.assertEqual(self.send("ann", 400, source="revenuecat", name=transaction)["code"], "BADARG")
        with self.assertRaisesRegex(SQLError, "no event of this source"):
            self.psql.run(f"select headroom.link_customer('revenuecart', '{transaction}', '{user}')")
        self.assertEqual(self.psql.value("select count(*) from headroom.billing_events"), before)
        self.assertEqual(self.audit(user), [])
