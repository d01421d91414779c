"""The commands for products, stored events and replays, beside a running service."""

import json
import uuid

from support.service import command
from support.stores import revenuecat
from support.webhooks import END, PURCHASE, Webhooks

REPORTER = "reported by revenuecat"


class StoreCommands(Webhooks):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.operator = "store_operator"
        cls.psql.run(f"create role {cls.operator} login")
        cls.psql.run(f"grant headroom_operator to {cls.operator}")
        cls.as_operator = cls.database_url.replace("user=postgres", f"user={cls.operator}")

    @classmethod
    def tearDownClass(cls):
        cls.psql.run(f"drop role {cls.operator}")
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        self.product = f"product.{uuid.uuid4()}"

    def run_command(self, *arguments, status=0, url=None):
        ran = command(*arguments, database_url=url or self.as_operator)
        self.assertEqual(ran.returncode, status, f"{arguments}\n{ran.stdout}{ran.stderr}")
        return ran

    def lines(self, *arguments, status=0):
        return [json.loads(line) for line in self.run_command(*arguments, "--json", status=status).stdout.splitlines()]

    def unmapped(self, **fields):
        """A user's event of a product without a mapping."""
        user = self.user()
        event = revenuecat(
            "INITIAL_PURCHASE", PURCHASE, user, self.transaction(),
            purchased_at_ms=PURCHASE, expiration_at_ms=END, product_id=self.product, **fields,
        )  # fmt: skip
        answer = self.deliver(event)
        self.assertEqual((answer["outcome"], "plan" in answer), ("failed", False))
        self.assertIn("headroom product map", answer["problem"])
        return user, event["event"]["id"]

    def test_an_event_of_an_unmapped_product_is_listed_and_applied_by_a_replay_after_mapping(self):
        user, number = self.unmapped()
        failed = [event for event in self.lines("events", "list", "--failed") if event["id"] == number]
        self.assertEqual(
            [(event["source"], event["type"], event["at"], event["outcome"], event["attempts"]) for event in failed],
            [("revenuecat", "INITIAL_PURCHASE", PURCHASE, "failed", 1)],
        )
        self.assertIn(self.product, failed[0]["problem"])
        replayed = self.run_command("events", "replay", "revenuecat", number, status=1)
        self.assertIn(f"revenuecat {number} failed: product '{self.product}'", replayed.stdout)
        self.assertIn("1 could not be applied", replayed.stderr)
        mapped = self.run_command("product", "map", "revenuecat", self.product, "--plan", "pro")
        self.assertEqual(
            mapped.stdout,
            f"revenuecat {self.product} is mapped to plan pro\n"
            "1 kept event failed for lack of this mapping; apply with headroom events replay --failed\n",
        )
        self.assertEqual(
            self.lines("events", "replay", "revenuecat", number),
            [{"source": "revenuecat", "id": number, "outcome": "applied", "problem": None}],
        )
        self.assert_answers(user, {"plan": "pro", "state": "active", "status": "ALLOWED"}, "after the replay")
        self.assertEqual(self.lines("events", "replay", "revenuecat", number)[0]["outcome"], "applied", "again")
        (event,) = self.lines("events", "list", "--user", user)
        self.assertEqual((event["outcome"], event["problem"], event["user"]), ("applied", None, user))
        seed_user_history = self.run_command("audit", user).stdout
        self.assertIn(f"INITIAL_PURCHASE {REPORTER}", seed_user_history)
        self.assertRegex(seed_user_history, rf"INITIAL_PURCHASE {REPORTER} .*plan pro")

    def test_an_entitlement_maps_products_without_a_mapping_of_their_own(self):
        user, number = self.unmapped(entitlement_ids=[self.product + ".access"])
        self.run_command("product", "map", "revenuecat", "--entitlement", self.product + ".access", "--plan", "pro")
        self.assertEqual(self.lines("events", "replay", "revenuecat", number)[0]["outcome"], "applied")
        self.assert_answers(user, {"plan": "pro", "state": "active", "status": "ALLOWED"}, "by the entitlement")
        self.assertIn(self.product + ".access", self.run_command("product", "list").stdout)
        self.run_command("product", "unmap", "revenuecat", "--entitlement", self.product + ".access")
        self.assertNotIn(self.product + ".access", self.run_command("product", "list").stdout)
        self.assert_answers(user, {"plan": "pro", "state": "active", "status": "ALLOWED"}, "what was applied stays")

    def test_events_show_has_the_effects_and_the_stored_payload(self):
        user, transaction = self.purchase()
        (listed,) = self.lines("events", "list", "--user", user)
        (shown,) = self.lines("events", "show", "revenuecat", listed["id"])
        self.assertEqual(
            (shown["type"], shown["outcome"], shown["user"], shown["resulting_entitlement"]["plan"], shown["identities"]),
            ("INITIAL_PURCHASE", "applied", user, "paid", [user]),
        )
        self.assertEqual([(effect["kind"], effect["transaction"]) for effect in shown["effects"]], [("purchased", transaction)])
        self.assertIn(transaction, json.dumps(shown["payload"]))
        self.assertNotIn("ann@example.com", json.dumps(shown), "nothing personal is kept")
        text = self.run_command("events", "show", "revenuecat", listed["id"]).stdout
        self.assertEqual(json.loads(text), shown)
        self.assertGreater(text.count("\n"), 20, "indented")
        self.assertIn("there is no such event", self.run_command("events", "show", "revenuecat", "no", status=1).stderr)

    def test_a_list_without_events_is_an_answer(self):
        for flags, text in (([], "no event of this user has arrived\n"), (["--failed"], "no event failed\n"), (["--json"], "")):
            with self.subTest(flags=flags):
                ran = self.run_command("events", "list", "--user", self.user(), *flags)
                self.assertEqual((ran.stdout, ran.stderr), (text, ""))

    def test_a_replay_of_everything_changes_nothing(self):
        user, _ = self.purchase()
        self.line.send_command(f"CONSUME {user} 7")

        def state():
            return self.psql.run(
                "select user_id, original_transaction_id, plan, started_at, expires_at from headroom.subscriptions"
                " union all select user_id, billing_period, message_count::text, null, null from message_usage order by 1, 2"
            )

        before = state()
        outcomes = {event["id"]: event["outcome"] for event in self.lines("events", "list")}
        for event in self.lines("events", "replay", "--all", status=1 if "failed" in outcomes.values() else 0):
            self.assertEqual(event["outcome"], outcomes[event["id"]], event)
        self.assertEqual(state(), before)

    def test_a_pruned_event_cannot_be_replayed(self):
        user, _ = self.purchase()
        (listed,) = self.lines("events", "list", "--user", user)
        self.psql.run(f"update headroom.billing_events set received_at = received_at - interval '401 days' where id = '{listed['id']}'")
        pruned = self.run_command("prune", url=self.database_url)
        self.assertRegex(pruned.stdout, r"deleted the payloads of [1-9]\d* billing events")
        replayed = self.run_command("events", "replay", "revenuecat", listed["id"], status=1)
        self.assertIn("its contents are no longer stored", replayed.stdout)

    def test_products_are_mapped_listed_and_unmapped(self):
        self.run_command("product", "map", "appstore", self.product, "--plan", "paid", "--intro-plan", "pro", "--messages", "50")
        (mapped,) = [row for row in self.lines("product", "list") if row["product"] == self.product]
        self.assertEqual(
            mapped,
            {
                "source": "appstore", "product": self.product, "entitlement": None, "plan": "paid", "trial_plan": "trial",
                "intro_plan": "pro", "messages": 50, "days": None,
            },
        )  # fmt: skip
        self.assertRegex(self.run_command("product", "list").stdout, rf"appstore +{self.product} +paid +trial +pro +50 +-\n")
        unmapped = self.run_command("product", "unmap", "appstore", self.product)
        self.assertEqual(unmapped.stdout, f"appstore {self.product} is no longer mapped\n")
        self.assertIn("is not mapped", self.run_command("product", "unmap", "appstore", self.product, status=1).stderr)
        record = self.psql.run(
            "select action, actor from headroom.audit_log where coalesce(before, after) ->> 'product' = "
            f"'{self.product}' order by id"
        )
        self.assertEqual(record, [["insert", self.operator], ["delete", self.operator]])

    def test_arguments_that_cannot_be_used_are_refused_and_change_nothing(self):
        for arguments in (
            ("product", "map", "Play Store", self.product, "--plan", "paid"),
            ("product", "map", "revenuecat", self.product),
            ("product", "map", "revenuecat", "", "--plan", "paid"),
            ("product", "map", "revenuecat", self.product, "--messages", "1000001"),
            ("product", "map", "revenuecat", self.product, "--messages", "5", "--trial-plan", "trial"),
            ("events", "list", "--limit", "0"),
            ("events", "list", "--user", "ann"),
            ("events", "replay"),
            ("events", "replay", "revenuecat"),
            ("events", "replay", "revenuecat", "x", "--all"),
            ("events", "replay", "--failed", "--all"),
        ):
            with self.subTest(arguments=arguments):
                self.run_command(*arguments, status=64)
        refused = self.run_command("product", "map", "revenuecat", self.product, "--plan", "gold", status=1)
        self.assertIn("there is no such plan", refused.stderr)
        self.assertIn("no such event", self.run_command("events", "replay", "revenuecat", "x", status=1).stderr)
        self.assertEqual([row for row in self.lines("product", "list") if row["product"] == self.product], [])

    def test_missing_rights_and_unreachable_databases_are_reported(self):
        self.psql.run("create role nobodys_friend login")
        try:
            url = self.database_url.replace("user=postgres", "user=nobodys_friend")
            for arguments in (("product", "list"), ("events", "list"), ("events", "replay", "--all")):
                self.assertIn("headroom_operator", self.run_command(*arguments, status=1, url=url).stderr)
        finally:
            self.psql.run("drop role nobodys_friend")
        empty = self.cluster.url(self.cluster.new_database())
        self.assertIn("headroom migrate", self.run_command("product", "list", status=1, url=empty).stderr)
        unreachable_url = "host=127.0.0.1 port=1 user=postgres dbname=none"
        self.assertIn("cannot be reached", self.run_command("events", "list", status=69, url=unreachable_url).stderr)
