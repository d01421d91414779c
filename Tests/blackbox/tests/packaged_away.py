"""What the clients in clients/ do while the service is away."""

from support import processes
from support.case import called_by
from support.client_case import LET_THROUGH, LIMIT, NOBODY, NOT_NOW, SILENT, ClientCase
from support.faulty_port import LOST
from support.waiting import wait_until


class ServiceAway(ClientCase):
    SHARED = True

    def away(self, check, **options):
        """With a port where nobody listens."""
        for driver in self.drivers:
            with self.subTest(client=driver.name):
                client = driver.connect(self.url(driver, processes.free_port()), **{**NOBODY, **options})
                check(client)
                client.close()

    def refusal(self, call, *arguments, **options):
        """The error of a call. On a busy machine the last attempt may be over before its connection is refused: then the outcome is
        unknown, and the call is made again."""
        for _ in range(10):
            error = self.failure(call, *arguments, **options)
            if error.name != "Unknown":
                break
        return error

    @called_by("away")
    def test_without_a_service_calls_raise(self, client):
        keyed = [(method, {"key": "a"}) for method in ("reserve", "commit", "release")]
        for method, options in [("consume", {}), ("check", {}), ("usage", {}), *keyed]:
            error = self.refusal(client.call, method, self.user(), **options)
            self.assertEqual((error.name, error.code), ("Unavailable", "UNREACHABLE"), "nothing can have been counted")
        self.assertEqual(self.refusal(client.hold, self.user()).name, "Unavailable")

    @called_by("away", when_away="allow")
    def test_a_message_is_let_through(self, client):
        user = self.user()
        for answer in (client.call("consume", user), client.call("check", user), client.call("reserve", user, key="a")):
            self.assertEqual((answer["status"], answer["allowed"], answer["degraded"]), ("allowed", True, True))
            self.assertEqual((answer["user"], answer["banner"]), (user, LET_THROUGH))
        for raises in (False, True):
            hold = client.hold(user, raises=raises)
            self.assertEqual((hold["answer"]["degraded"], hold["outcome"], hold["raised"]), (True, None, raises))
        self.assertEqual(self.failure(client.call, "usage", user).name, "Unavailable")

    @called_by("away", when_away="refuse")
    def test_a_message_is_refused_kindly(self, client):
        answer = client.call("consume", self.user())
        self.assertEqual((answer["status"], answer["degraded"], answer["banner"]), ("blocked", True, NOT_NOW))
        refusal = self.failure(client.hold, self.user())
        self.assertEqual((refusal.name, refusal.answer["banner"]), ("Blocked", NOT_NOW))

    def test_a_callback_decides_with_the_error(self):
        def check(client):
            user = self.user()
            answer = client.call("consume", user)
            self.assertEqual((answer["banner"], answer["degraded"]), (f"own words for {user}", True))

        self.away(check, when_away="own words")

        def check_unknown(client):
            self.line.is_silent = True
            self.assertEqual(client.call("consume", self.user())["status"], "blocked", "it may be counted")

        self.each(check_unknown, when_away="the code", **SILENT)

    @called_by("each", when_away="allow")
    def test_a_refusal_by_the_service_is_no_matter_of_the_callback(self, client):
        self.assertEqual(client.call("consume", self.subscriber(used=800))["banner"], LIMIT)
        self.assertEqual(self.failure(client.call, "consume", "nobody").name, "BadArgument")

    @called_by("each", **SILENT)
    def test_a_service_that_never_answers_is_given_up_and_the_key_is_in_the_error(self, client):
        self.line.is_silent = True
        for options in ({}, {"key": "message-1"}):
            error = self.failure(client.call, "consume", self.user(), **options)
            self.assertEqual((error.name, error.code), ("Unknown", "UNKNOWN"))
            self.assertEqual(error.key, options.get("key") or error.key)
            self.assertTrue(error.key)
        self.assertEqual(self.failure(client.call, "check", self.user()).name, "Unavailable", "it only reads")
        self.assertGreater(len(self.line.verbs), 3, "several attempts")

    @called_by("each", **SILENT)
    def test_a_hold_of_an_unknown_outcome_is_given_back_when_the_service_answers_again(self, client):
        user = self.subscriber(used=10)
        self.line.faults = [("RESERVE", LOST)] * 1_000
        self.assertEqual(self.failure(client.hold, user).name, "Unknown")
        self.line.faults = []
        wait_until(lambda: self.held(user) == 0, "it is given back")
        self.assertIn("RELEASE", self.line.verbs)
