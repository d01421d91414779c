"""docs/stripe.md and docs/app-store-and-revenuecat.md: their commands and programs as printed."""

import json
import os
import re
import shutil
import stat
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qsl

from support import processes, settings
from support.case import MID_MONTH, Case
from support.nightly import nightly
from support.printed import ROOT, blocks
from support.service import Service, environment
from support.stores import revenuecat
from support.waiting import TIMEOUT_SECONDS, wait_until
from support.webhooks import WEBHOOK_SETTINGS, post_event
from support.wire import Answer

STRIPE = "docs/stripe.md"
APP = "docs/app-store-and-revenuecat.md"
USER = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
NOT_RUN = {"install -d /etc/headroom\ncurl -o": "asks Apple"}
"""The beginnings of blocks that are not run."""
INPUT = "whsec_sample\n"
"""The input of a block that reads."""


def text_of(page):
    return Path(ROOT, page).read_text()


def printed(page, language, heading=None):
    return [block.text for block in blocks(page) if block.language == language and heading in (None, block.heading.strip("# "))]


def rows(page, header):
    """The cells of the table whose first cell is `header`."""
    lines = text_of(page).split(f"\n| {header} |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


class StripeAPI(HTTPServer):
    """Keeps the requests, and answers as Stripe does."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), StripeRequest)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.requests = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class StripeRequest(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        form = parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode(), strict_parsing=True)
        assert self.headers["Authorization"].startswith("Basic ")
        self.server.requests.append((self.path, form))
        body = b'{"url": "https://checkout.stripe.com/c/pay/cs_test"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class PageCase(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.directory = processes.directory()

    def shell(self, text, **variables):
        path = os.pathsep.join([os.path.dirname(settings.binary), os.environ["PATH"]])
        ran = subprocess.run(
            # The pages' directory is a system directory, and the service's user may not exist here.
            ["bash", "-euo", "pipefail", "-c", text.replace("/etc/headroom", self.directory).replace("-o headroom ", "")],
            input=INPUT, cwd=self.directory,
            capture_output=True, text=True, timeout=TIMEOUT_SECONDS,
            env=environment(PATH=path, DATABASE_URL=self.database_url, **variables),
        )  # fmt: skip
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        return ran.stdout


class StorePages(PageCase):
    FLAGS = None

    def test_the_commands_make_files_and_mappings_that_a_service_takes(self):
        headings = ("Set up the webhook", "The App Store", "RevenueCat", "Map the products")
        for block in [text for page in (STRIPE, APP) for heading in headings for text in printed(page, "sh", heading)]:
            if not block.startswith(tuple(NOT_RUN)):
                self.shell(block)
        names = sorted(os.listdir(self.directory))
        self.assertEqual(names, ["revenuecat-authorization", "stripe-signing-secret"])
        for name in names:
            self.assertEqual(stat.S_IMODE(os.stat(f"{self.directory}/{name}").st_mode), 0o600, name)
        mapped = self.psql.run("select source, plan, messages from headroom.store_products order by source, product")
        self.assertEqual(mapped, [
            ["appstore", "pro", None], ["appstore", None, "50"], ["appstore", "paid", None], ["appstore", "paid", None],
            ["revenuecat", "paid", None],
            ["stripe", "paid", None], ["stripe", "pro", None],
        ])  # fmt: skip
        given = dict(line.split("=", 1) for page in (STRIPE, APP) for text in printed(page, "ini") for line in text.splitlines())
        reference = text_of("docs/reference/README.md") + "".join(path.read_text() for path in Path(ROOT, "docs").glob("reference/*.md"))
        for name in {*given, *re.findall(r"HEADROOM_[A-Z_]+", text_of(STRIPE) + text_of(APP))} - {"HEADROOM_URL"}:
            self.assertIn(f"| `{name.removeprefix('HEADROOM_').lower().replace('_', '-')}` |", reference)
        files = {name: value.replace("/etc/headroom", self.directory) for name, value in given.items() if name.endswith("_FILE")}
        self.assertEqual(len(files), 2)
        self.assertEqual(Service(database_url=self.database_url, env=files).stop(), 0)

    def test_every_block_has_a_test(self):
        found = {page: {(block.heading.strip("# "), block.language) for block in blocks(page)} for page in (STRIPE, APP)}
        self.assertEqual(found[STRIPE], {
            ("Set up the webhook", "text"), ("Set up the webhook", "sh"), ("Set up the webhook", "ini"),
            ("Send the user to Checkout", "sh"), ("Change, cancel, pay", "sh"),
            ("Try it without Stripe", "ini"), ("Try it without Stripe", "python"), ("Try it without Stripe", "sh"),
        })  # fmt: skip
        self.assertEqual({language for _, language in found[APP]}, {"sh", "text", "ini", "swift", "json"})

    def test_the_requests_to_stripe_name_the_user_and_the_price(self):
        api = StripeAPI()
        blocks_of = [*printed(STRIPE, "sh", "Send the user to Checkout"), *printed(STRIPE, "sh", "Change, cancel, pay")]
        try:
            for block in blocks_of:
                self.shell(block.replace("https://api.stripe.com", api.url), STRIPE_KEY="sk_test_1")
        finally:
            api.shutdown()
            api.server_close()
        self.assertEqual([path for path, _ in api.requests], [
            *["/v1/checkout/sessions"] * 2, "/v1/billing_portal/sessions", *["/v1/subscriptions/sub_1QsampleQsample"] * 2,
        ])  # fmt: skip
        session, sale, portal, upgrade, cancellation = (dict(form) for _, form in api.requests)
        prices = re.findall(r"product map stripe (\w+)", text_of(STRIPE))
        self.assertEqual(session, {
            "mode": "subscription", "line_items[0][price]": prices[0], "line_items[0][quantity]": "1",
            "subscription_data[metadata][user_id]": USER, "client_reference_id": USER,
            "success_url": "https://chat.example.com/thanks", "cancel_url": "https://chat.example.com/plans",
        })  # fmt: skip
        self.assertEqual((sale["mode"], sale["line_items[0][price]"], sale["client_reference_id"]), ("payment", prices[2], USER))
        self.assertEqual(sale["metadata[headroom_product]"], prices[2])
        self.assertEqual(set(portal), {"customer", "return_url"})
        self.assertEqual((upgrade["items[0][price]"], cancellation), (prices[1], {"cancel_at_period_end": "true"}))


@nightly("`StorePages` runs the commands of the pages")
class StripeSample(PageCase):
    FLAGS = None

    def test_each_sample_event_does_what_the_table_says(self):
        Path(self.directory, "stripe-signing-secret").write_text(INPUT)
        secret = {"HEADROOM_STRIPE_SIGNING_SECRET_FILE": f"{self.directory}/stripe-signing-secret"}
        for line in printed(STRIPE, "sh", "Set up the webhook")[-1].splitlines():
            self.shell(line)
        sandbox = dict([printed(STRIPE, "ini", "Try it without Stripe")[0].strip().split("=")])
        service = self.serve(env={**secret, **sandbox})
        Path(self.directory, "stripe_event.py").write_text(printed(STRIPE, "python")[0])
        commands = printed(STRIPE, "sh", "Try it without Stripe")[0].splitlines()
        table = rows(STRIPE, "what happened")
        self.assertEqual(len(commands), len(table))
        counted = 0
        for command, (what, state, words) in zip(commands, table):
            # Of events of one second the order is not known.
            second = int(time.time())
            wait_until(lambda: int(time.time()) > second, "the next second")  # noqa: B023
            answered = json.loads(self.shell(command, HEADROOM_URL=service.address, **secret))
            self.assertEqual(answered["outcome"], "applied", command)
            answer = Answer(service.send_command(f"CONSUME {USER}"))
            self.assertEqual(f"`{answer['plan']}`, `{answer['state']}`", state, what)
            told = answer.get("notice") or answer.get("banner") or "–"
            self.assertRegex(told, "^" + re.escape(words).replace(r"\{date\}", r"\w+ \d+(, \d{4})?") + "$", what)
            self.assertEqual(answer.status, "BLOCKED" if answer["state"] in ("billing_retry", "expired") else "ALLOWED", what)
            counted += answer.status == "ALLOWED"
            self.assertEqual(answer.used, counted, what)


@nightly("`StorePages` runs the commands of the pages")
class AppPage(PageCase):
    CLOCK = MID_MONTH
    FLAGS = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.service = cls.serve(env=WEBHOOK_SETTINGS)
        cls.set_clock(MID_MONTH)

    def usage(self, user):
        return self.service.http("GET", f"/v1/usage/{user}")

    def shown(self, user):
        """What the compiled model shows for a user's usage."""
        program = Path(settings.binary).parent / "AppUsage"
        if not program.exists():
            self.skipTest("the build has no snippets")
        ran = subprocess.run([program], input=self.usage(user).body, capture_output=True, timeout=TIMEOUT_SECONDS)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return dict(line.split(": ", 1) for line in ran.stdout.decode().splitlines())

    def test_the_printed_answer_is_the_services(self):
        printed_answer = json.loads(printed(APP, "json")[0])
        self.send_command(f"SETPLAN {USER} paid")
        self.send_command(f"CONSUME {USER}")
        self.set_count(USER, 760)
        self.assertEqual(self.usage(USER).json, printed_answer)

    def test_the_model_is_the_compiled_one_and_the_rest_is_swift(self):
        compiled = text_of("Snippets/AppUsage.swift")
        found = printed(APP, "swift")
        self.assertEqual([text for text in found if text in compiled], [text for text in found if "Decodable" in text])
        if shutil.which("swiftc") is None:
            self.skipTest("swiftc is not installed")
        for number, text in enumerate(found):
            path = Path(self.directory, f"block{number}.swift")
            path.write_text(text)
            parsed = processes.completed(["swiftc", "-parse", path])
            self.assertEqual((parsed.returncode, parsed.stderr), (0, ""), text)

    def test_the_words_of_the_app_are_those_of_the_example(self):
        example = text_of("Examples/ChatBackend/Page/screenTexts.js")
        words = [row[1] for row in rows(APP, "when")]
        self.assertEqual(len(words), 6)
        for sentence in words:
            self.assertIn(f'"{sentence}"', example)
        for text in printed(APP, "swift"):
            for sentence in re.findall(r'"(I [^"]+)"', text):
                self.assertIn(sentence, words)

    def test_the_screens_of_each_state(self):
        for used, shown in {
            640: {"counter": "You have 160 conversations left this month", "row": "640 of 800 messages used", "fraction": "0.8"},
            5: {"row": "5 of 800 messages used", "accessible": "5 of 800 messages used this month", "label": "Premium"},
            800: {"gate": "We've had a lot of great conversations this month! Your next session refreshes on April 1.",
                  "dates": "Refreshes 2026-04-01T00:00:00Z"},
        }.items():  # fmt: skip
            user = self.subscriber("paid", used=used)
            answer = self.shown(user)
            for name, text in shown.items():
                self.assertEqual(answer[name], text)
            self.assertEqual(("counter" in answer, "gate" in answer), (used == 640, used == 800))
        trial = self.subscriber("trial", used=41)
        answer = self.shown(trial)
        self.assertEqual((answer["counter"], answer["label"], answer["accessible"]), (
            "59 of 100 trial messages remaining", "Trial — Day 1 of 3", "41 of 100 trial messages used"))  # fmt: skip
        unlimited = self.shown(self.subscriber("pro", used=1))
        self.assertEqual((unlimited["row"], "fraction" in unlimited), ("1 message used", False))

    def test_the_screens_of_a_cancellation_and_a_payment_problem(self):
        user = self.user()
        bought = {"purchased_at_ms": "2026-03-01T12:00:00Z", "expiration_at_ms": "2026-04-01T12:00:00Z", "entitlement_ids": ["premium"]}
        events = [("INITIAL_PURCHASE", "2026-03-01T12:00:00Z", {})]
        events += [("CANCELLATION", "2026-03-02T12:00:00Z", {"cancel_reason": "UNSUBSCRIBE"})]
        for kind, at, fields in events:
            post_event(self.service, revenuecat(kind, at, user, "77001", **bought, **fields))
        answer = self.shown(user)
        self.assertEqual(answer["notice"], "Your subscription is active until April 1. You can resubscribe anytime.")
        self.assertEqual(answer["state"], "Cancelled")
        self.assertIn("Access until 2026-04-01T12:00:00Z", answer["dates"])
        self.assertEqual(answer["manage"], "https://apps.apple.com/account/subscriptions")
        failed = revenuecat("BILLING_ISSUE", "2026-03-10T12:00:00Z", user, "77001", **bought,
                            grace_period_expiration_at_ms="2026-04-05T12:00:00Z")  # fmt: skip
        post_event(self.service, failed)
        answer = self.shown(user)
        self.assertIn("There's a hiccup with your payment.", answer["notice"])
        self.assertIn("steps", answer)
