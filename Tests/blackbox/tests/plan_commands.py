"""`headroom plan`: changes of a user from the command line."""

import json

from support.case import MID_MONTH
from support.service import command
from support.tokens import TokenCase


class PlanCommands(TokenCase):
    CLOCK = MID_MONTH

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.operator = cls.token("ann", "operator")[1]
        cls.reader = cls.token("reader", "dashboard")[1]

    def plan(self, *arguments, token=None, status=0):
        ran = command("plan", *arguments, "--target", f"127.0.0.1:{self.service.port}", env={"HEADROOM_TOKEN": token or self.operator})
        self.assertEqual(ran.returncode, status, ran.stderr)
        return ran

    def usage(self, *arguments):
        return json.loads(self.plan(*arguments, "--json").stdout)["usage"]

    def test_each_change_is_applied_and_shown(self):
        user = self.user()
        usage = self.usage("set", user, "paid", "--state", "cancelled", "--expires", "2026-04-02", "--anchor", "3")
        self.assertEqual((usage["plan"], usage["state"], usage["expires"]), ("paid", "cancelled", "2026-04-02T00:00:00Z"))
        self.assertEqual(usage["resets"], "2026-04-03T00:00:00Z")
        self.set_count(user, 700)
        for _ in range(2):
            usage = self.usage("grant", user, "50", "--key", "ticket 4711", "--reason", 'a "lost" day')
            self.assertEqual((usage["limit"], usage["remaining"]), (850, 150), "once for each key")
        self.assertEqual(self.usage("reset", user)["used"], 0)
        shown = self.plan("reset", user, "2026-03").stdout
        self.assertRegex(shown, rf"\Auser +{user}\nplan +Premium \(paid\), cancelled")
        trail = self.psql.run(
            f"select action, reason from audit_trail where user_id = '{user}' and actor = 'token:ann' order by at, id limit 3"
        )
        self.assertEqual(trail, [["plan", None], ["grant", 'a "lost" day'], ["reset", None]])
        self.assertEqual(self.plan("forget", user).stdout, f"{user} is forgotten\n")
        self.assertEqual(self.psql.run(f"select from message_usage where user_id = '{user}'"), [])

    def test_what_the_service_refuses_is_explained_and_changes_nothing(self):
        user = self.user()
        for arguments, status, words in (
            (("set", user, "gold"), 1, "NOTFOUND"), (("set", user, "paid", "--expires", "soon"), 64, "expires"),
            (("set", "ann", "paid"), 64, "user"), (("grant", user, "0", "--key", "a"), 64, "1000000"), (("grant", user, "5"), 64, "--key"),
            (("reset", user, "2020-01"), 1, "NOTFOUND"),
        ):  # fmt: skip
            with self.subTest(arguments=arguments):
                ran = self.plan(*arguments, status=status)
                self.assertEqual(ran.stdout, "")
                self.assertIn(words, ran.stderr)
        refused = self.plan("reset", user, token=self.reader, status=1)
        self.assertIn("FORBIDDEN", refused.stderr)
        self.assertEqual(self.psql.run(f"select from audit_trail where user_id = '{user}'"), [])
