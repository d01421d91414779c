"""http-origins: pages of other sites that may call the API from a browser (CORS)."""

import json

from support.case import Case
from support.tokens import token
from support.waiting import wait_until

APP, OTHER = "https://app.example.com", "https://other.example.com"


class CrossOrigin(Case):
    FLAGS = ("--http-origins", f"{APP},http://localhost:3000")

    def preflight(self, path, method="POST", origin=APP):
        asked = {"Origin": origin, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": "content-type"}
        return self.service.http("OPTIONS", path, headers=asked)

    def consume(self, user, **headers):
        headers = {"Content-Type": "application/json", "Sec-Fetch-Site": "cross-site", **headers}
        return self.service.http("POST", f"/v1/usage/{user}/consume", json.dumps({"n": 2}), headers)

    def test_a_browser_asks_before_it_sends(self):
        user = self.user()
        for origin in (APP, "http://localhost:3000"):
            for path, methods in (
                (f"/v1/usage/{user}/consume", "POST"), (f"/v1/users/{user}/plan", "PUT"), (f"/v1/users/{user}", "DELETE"),
                (f"/v1/usage/{user}", "GET, HEAD"),
            ):  # fmt: skip
                answer = self.preflight(path, methods.split(",")[0], origin)
                self.assertEqual((answer.status, answer.body), (204, b""))
                self.assertEqual(answer.headers["Access-Control-Allow-Origin"], origin)
                self.assertEqual(answer.headers["Access-Control-Allow-Methods"], methods)
                self.assertEqual(
                    answer.headers["Access-Control-Allow-Headers"],
                    "Authorization, Content-Type, Idempotency-Key, traceparent, tracestate",
                )
                self.assertEqual((answer.headers["Access-Control-Max-Age"], answer.headers["Vary"]), ("7200", "Origin"))
                self.assertIsNone(answer.headers["Access-Control-Allow-Credentials"])
        self.assertEqual(self.count(user), 0)

    def test_a_page_of_an_allowed_origin_counts_and_reads(self):
        user = self.user()
        counted = self.consume(user, Origin=APP)
        self.assertEqual((counted.status, counted.json["used"]), (200, 2))
        read = self.service.http("GET", f"/v1/usage/{user}", headers={"Origin": APP})
        refused = self.service.http("GET", "/v1/usage/nobody", headers={"Origin": APP})
        self.assertEqual((read.status, refused.status), (200, 400))
        for answer, vary in ((counted, "Accept-Language, Origin"), (read, "Accept-Language, Origin"), (refused, "Origin")):
            self.assertEqual((answer.headers["Access-Control-Allow-Origin"], answer.headers["Vary"]), (APP, vary))
            self.assertIn("RateLimit", answer.headers["Access-Control-Expose-Headers"])

    def test_a_page_of_another_origin_does_neither(self):
        user = self.user()
        for origin in (OTHER, "null", APP + ".example", APP.upper(), APP + ":444"):
            answers = [
                self.preflight(f"/v1/usage/{user}/consume", origin=origin), self.consume(user, Origin=origin),
                self.service.http("GET", f"/v1/usage/{user}", headers={"Origin": origin}),
            ]  # fmt: skip
            self.assertEqual([answer.status for answer in answers], [405, 403, 200], origin)
            for answer in answers:
                self.assertIsNone(answer.headers["Access-Control-Allow-Origin"])
                self.assertEqual(answer.headers["Vary"].split(", ")[-1], "Origin")
        self.assertEqual(self.count(user), 0)

    def test_only_the_api_is_open_to_other_pages(self):
        for path in ("/dashboard", "/metrics", "/healthz", "/webhooks/stripe"):
            answer = self.service.http("GET", path, headers={"Origin": APP})
            self.assertIsNone(answer.headers["Access-Control-Allow-Origin"], path)
            self.assertIsNone(self.preflight(path).headers["Access-Control-Allow-Origin"], path)
        self.assertEqual(self.preflight("/v1/nothing").status, 404)

    def test_without_the_question_options_is_no_method(self):
        answer = self.service.http("OPTIONS", f"/v1/usage/{self.user()}", headers={"Origin": APP})
        self.assertEqual((answer.status, answer.headers["Allow"]), (405, "GET, HEAD"))


class WithTokens(Case):
    FLAGS = ("--http-origins", APP)

    def test_a_page_needs_a_token_like_everybody(self):
        _, text = token(self, "page", "dashboard")
        user, path = self.user(), "/v1/report"
        wait_until(lambda: self.service.http("GET", path).status == 401, "the service has read the token")
        # A browser asks without the token.
        asked = {"Origin": APP, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
        self.assertEqual(self.service.http("OPTIONS", path, headers=asked).status, 204)
        without = self.service.http("GET", path, headers={"Origin": APP})
        self.assertEqual((without.status, without.headers["Access-Control-Allow-Origin"]), (401, APP))
        allowed = self.service.http("GET", path, headers={"Origin": APP, "Authorization": f"Bearer {text}"})
        self.assertEqual(allowed.status, 200)
        forbidden = self.service.http("POST", f"/v1/usage/{user}/consume", headers={"Origin": APP, "Authorization": f"Bearer {text}"})
        self.assertEqual(forbidden.status, 403)


class WithoutTheSetting(Case):
    SHARED = True
    FLAGS = ()

    def test_no_page_of_another_site_may(self):
        asked = {"Origin": APP, "Access-Control-Request-Method": "POST"}
        for answer in (
            self.service.http("OPTIONS", f"/v1/usage/{self.user()}/consume", headers=asked),
            self.service.http("GET", f"/v1/usage/{self.user()}", headers={"Origin": APP}),
        ):
            self.assertIsNone(answer.headers["Access-Control-Allow-Origin"])
            self.assertNotIn("Origin", answer.headers["Vary"] or "")
