"""Traces of requests, sent to a collector."""

import re
import secrets
import subprocess
import time

from support import processes
from support.case import LONG_TIMEOUTS, Case
from support.collector import Collector
from support.printed import ROOT, blocks
from support.waiting import TIMEOUT_SECONDS, wait_until

NAMESPACE = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"


def traceparent(is_sampled=True):
    """The identifier of a new trace, and its header field."""
    trace = secrets.token_hex(16)
    return trace, {"traceparent": f"00-{trace}-00f067aa0ba902b7-0{int(is_sampled)}", "tracestate": "vendor=x"}


class WithCollector(Case):
    FLAGS = None

    def setUp(self):
        super().setUp()
        self.collector = Collector()
        self.addCleanup(self.collector.close)

    def serve_traced(self, *flags, **options):
        return self.serve("--tracing-url", self.collector.url, *flags, **options)

    def spans(self, service, outcome):
        """A value of the metric."""
        text = service.http("GET", "/metrics").text
        return int(re.search(rf'headroom_spans_total{{outcome="{outcome}"}} (\d+)', text)[1])


class Traces(WithCollector):
    def test_a_traced_request_shows_where_its_time_went(self):
        service = self.serve_traced()
        user = self.user()
        trace, fields = traceparent()
        self.assertEqual(service.http("POST", f"/v1/usage/{user}/consume", {}, headers=fields).status, 200)
        self.collector.wait_for("POST /v1/usage/{user}/consume")
        spans = {span.name: span for span in self.collector.of(trace)}
        # A new user is counted by the slow path.
        self.assertEqual(set(spans), {"POST /v1/usage/{user}/consume", "queue", "batch", "count", "perform"})
        request, batch = spans["POST /v1/usage/{user}/consume"], spans["batch"]
        self.assertEqual((request.parent, request.kind, request.state), ("00f067aa0ba902b7", "server", "vendor=x"))
        self.assertEqual(
            request.attributes,
            {"http.request.method": "POST", "http.route": "/v1/usage/{user}/consume", "http.response.status_code": 200},
        )
        self.assertEqual({spans[name].parent for name in ("queue", "batch")}, {request.id})
        self.assertEqual(batch.attributes, {"headroom.lane": batch.attributes["headroom.lane"], "headroom.batch.requests": 1})
        for name in ("count", "perform"):
            self.assertEqual((spans[name].parent, spans[name].kind), (batch.id, "client"))
            self.assertEqual(spans[name].attributes, {"db.system.name": "postgresql"})
        self.assertLessEqual(request.start, spans["queue"].start + 1_000_000)
        self.assertLessEqual(spans["queue"].end, batch.start + 1_000_000)
        self.assertLessEqual(batch.end, request.end + 1_000_000)
        self.assertLess(abs(request.start / 1e9 - time.time()), 3_600)
        self.assertEqual(request.resource["service.name"], "headroom")
        self.assertEqual(set(request.resource), {"service.name", "service.version", "service.instance.id", "host.name"})
        wait_until(lambda: self.spans(service, "exported") >= 5, lambda: "counted")

    def test_whoever_is_not_traced_by_the_caller_or_by_chance_is_not_traced(self):
        service = self.serve_traced("--tracing-sampled-percent", "0", "--tracing-slow-ms", "60000")
        user = self.user()
        untraced, fields = traceparent(is_sampled=False)
        service.http("POST", f"/v1/usage/{user}/consume", {}, headers=fields)
        service.http("POST", f"/v1/usage/{user}/consume", {})
        service.send_command(f"CONSUME {user}")
        trace, fields = traceparent()
        service.http("GET", f"/v1/usage/{user}", headers=fields)
        self.collector.wait_for("GET /v1/usage/{user}")
        self.assertEqual({span.trace for span in self.collector.spans}, {trace})
        self.assertEqual(self.collector.of(untraced), [])

    def test_a_share_of_the_others_is_traced(self):
        service = self.serve_traced()
        service.http("GET", "/metrics")
        service.http("GET", "/dashboard")
        service.http("POST", f"/v1/usage/{self.user()}/check", {})
        service.http("GET", "/v1/nowhere")
        (request,) = self.collector.wait_for("POST /v1/usage/{user}/check")
        self.assertEqual((request.parent, request.state), ("", ""))
        (unknown,) = self.collector.wait_for("GET")
        self.assertEqual(unknown.attributes["http.response.status_code"], 404)
        self.assertFalse(unknown.is_error)
        self.assertNotEqual(request.trace, unknown.trace)
        # Those before these are probes, scrapes and pages.
        self.assertEqual({span.name for span in self.collector.spans if span.kind == "server"}, {request.name, unknown.name})
        service.http("GET", "/metrics", headers=traceparent()[1])
        self.collector.wait_for("GET /metrics")

    def test_a_slow_request_of_the_line_protocol_is_traced(self):
        service = self.serve_traced("--tracing-slow-ms", "300", env=LONG_TIMEOUTS)
        user = self.user()
        service.send_command(f"CONSUME {user}")
        session = self.lock_rows(user)
        with service.connect() as connection:
            connection.send(f"CONSUME {user} 2\n")
            self.wait_until_blocked()
            # Slower than tracing-slow-ms says, by the clock of the trace itself.
            session.run("select pg_sleep(0.4)")
            session.close()
            self.assertIn("+ALLOWED", connection.read_line())
        wait_until(
            lambda: [span for span in self.collector.named("CONSUME") if span.seconds >= 0.4],
            lambda: f"a slow CONSUME; there are {self.collector.spans}",
        )
        slow = next(span for span in self.collector.named("CONSUME") if span.seconds >= 0.4)
        self.assertEqual((slow.kind, slow.parent, slow.is_error), ("server", "", False))
        below = {span.name: span for span in self.collector.of(slow.trace)}
        self.assertEqual(set(below), {"CONSUME", "queue", "batch", "count"})
        self.assertGreaterEqual(below["count"].seconds, 0.4)

    def test_a_slow_request_over_http_is_traced_too(self):
        service = self.serve_traced("--tracing-slow-ms", "1", "--tracing-sampled-percent", "0")
        # The first message of a user takes several round trips, so one of these takes a millisecond.
        for _ in range(200):
            service.http("POST", f"/v1/usage/{self.user()}/consume", {})
            if self.collector.named("CONSUME"):
                break
        self.assertEqual(self.collector.wait_for("CONSUME")[0].kind, "server")

    def test_a_request_that_failed_is_an_error(self):
        service = self.serve_traced("--request-timeout-ms", "300", "--tracing-slow-ms", "1")
        user = self.user()
        service.send_command(f"CONSUME {user}")
        session = self.lock_rows(user)
        self.assertRegex(service.send_command(f"CONSUME {user}"), "^-(UNAVAILABLE|UNKNOWN)")
        session.close()
        failed = wait_until(
            lambda: next((span for span in self.collector.named("CONSUME") if span.is_error), None),
            lambda: f"an error; there are {self.collector.spans}",
        )
        self.assertIn(failed.attributes["error.type"], ("UNAVAILABLE", "UNKNOWN"))

    def test_no_name_of_a_user_and_no_token_is_sent(self):
        service = self.serve_traced("--user-namespace", NAMESPACE, "--tracing-slow-ms", "1")
        name = "ada@example.com"
        headers = {"Authorization": "Bearer headroom_s3cret", **traceparent()[1]}
        service.http("POST", f"/v1/usage/{name}/consume", {}, headers=headers)
        service.http("GET", f"/v1/usage/{name}?language=de")
        self.collector.wait_for("GET /v1/usage/{user}")
        service.stop()
        for body in self.collector.bodies:
            self.assertNotRegex(body, r"ada|example\.com|s3cret|language")


class Collectors(WithCollector):
    def test_the_fields_that_are_set_are_sent(self):
        service = self.serve_traced(env={"HEADROOM_TRACING_HEADERS": "Authorization=Bearer c0llector, x-team=blue"})
        service.http("GET", "/v1/nowhere")
        self.collector.wait_for("GET")
        headers = self.collector.headers[0]
        self.assertEqual((headers["authorization"], headers["x-team"]), ("Bearer c0llector", "blue"))
        self.assertEqual(headers["content-type"], "application/json")
        self.assertRegex(headers["user-agent"], r"^Headroom/\d")
        service.stop()
        self.assertNotIn("c0llector", service.log())

    def assert_sent_at_the_end(self, spans, status=200):
        """A service that ends sends what it has, but on a busy machine a second may be too short for that: once it must succeed."""
        sent = []
        for _ in range(5):
            del self.collector.spans[:], self.collector.bodies[:]
            self.collector.status = status
            service = self.serve_traced()
            for _ in range(spans):
                service.http("GET", "/v1/nowhere")
            if status != 200:
                wait_until(lambda: self.collector.bodies, service.log)
                self.collector.status = 200
            service.stop()
            sent.append(len(self.collector.named("GET")))
            if sent[-1] == spans:
                return
        self.fail(f"{spans} spans; sent were {sent}")

    def test_the_last_spans_are_sent_at_the_end(self):
        self.assert_sent_at_the_end(600)

    def test_spans_that_wait_for_the_next_attempt_are_sent_at_the_end(self):
        self.assert_sent_at_the_end(1, status=503)

    def test_a_collector_that_is_away_holds_nothing_up_and_gets_what_waited(self):
        self.collector.status = 503
        service = self.serve_traced()
        user = self.user()
        service.http("POST", f"/v1/usage/{user}/consume", {})
        wait_until(lambda: "traces are not delivered" in service.log(), lambda: service.log())
        self.assertEqual(service.http("POST", f"/v1/usage/{user}/consume", {}).status, 200)
        self.assertIn("+ALLOWED", service.send_command(f"CONSUME {user}"))
        self.collector.status = 200
        self.collector.wait_for("POST /v1/usage/{user}/consume", 2)
        wait_until(lambda: "traces are delivered again" in service.log(), lambda: service.log())
        self.assertEqual(service.log().count("traces are not delivered"), 1)
        self.assertEqual(self.spans(service, "failed"), 0)

    def test_what_a_collector_refuses_is_counted_and_not_sent_again(self):
        self.collector.status = 400
        service = self.serve_traced("--tracing-slow-ms", "0")
        service.http("GET", "/v1/nowhere")
        wait_until(lambda: self.spans(service, "failed") >= 1, lambda: service.log())
        self.assertIn('problem="HTTP 400"', service.log())
        self.collector.status = 200
        service.http("GET", "/v1/nowhere")
        self.collector.wait_for("GET")

    def test_a_port_where_nothing_listens_is_named_in_the_log(self):
        self.collector.close()
        service = self.serve_traced()
        service.http("GET", "/v1/nowhere")
        wait_until(lambda: "nothing listens there" in service.log(), lambda: service.log())
        service.stop()

    def test_without_the_setting_there_is_no_metric(self):
        service = self.serve()
        self.assertNotIn("headroom_spans_total", service.http("GET", "/metrics").text)


class Page(WithCollector):
    """The settings and the command of docs/tracing.md, as printed, but for addresses."""

    def printed(self, language):
        return [block.text for block in blocks("docs/tracing.md") if block.language == language]

    def test_the_page_shows_how_to_follow_a_message(self):
        local, remote = self.printed("ini")
        file = processes.directory() + "/tracing-headers"
        with open(file, "w") as written:
            written.write("Authorization=Bearer c0llector\n")
        text = (local + remote.splitlines()[1]).replace("/etc/headroom/tracing-headers", file)
        text = text.replace("127.0.0.1:4318", f"127.0.0.1:{self.collector.port}")
        service = self.serve(env=dict(line.split("=", 1) for line in text.splitlines()))
        (curl,) = self.printed("sh")
        command = curl.replace("127.0.0.1:6748", f"127.0.0.1:{service.http_port}")
        subprocess.run(["bash", "-c", command], check=True, capture_output=True, timeout=TIMEOUT_SECONDS)
        self.collector.wait_for("POST /v1/usage/{user}/consume")
        names = {span.name for span in self.collector.of("4bf92f3577b34da6a3ce929d0e0e4736")}
        # A new user's first message needs two of the statements that the page names.
        self.assertEqual(names, {"POST /v1/usage/{user}/consume", "queue", "batch", "count", "perform"})
        self.assertEqual(self.collector.headers[0]["authorization"], "Bearer c0llector")

    def test_the_page_names_each_attribute_and_each_span(self):
        with open(ROOT + "/docs/tracing.md") as page:
            text = page.read()
        service = self.serve_traced("--tracing-slow-ms", "0")
        user = self.user()
        service.send_command(f"SETPLAN {user} paid")
        for _ in range(2):
            service.http("POST", f"/v1/usage/{user}/consume", {"n": 800})
        self.collector.wait_for("batch", 2)
        for span in self.collector.spans:
            for name in [*span.attributes, *span.resource]:
                self.assertIn(f"`{name}`", text)
            self.assertIn(f"`{span.name}`", text)
