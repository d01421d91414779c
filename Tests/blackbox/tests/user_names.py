"""user-namespace: ids that are no UUIDs, such as Auth0's, stand for the UUID of version 5 of the id in the namespace."""

import json
import socket
import uuid
from urllib.parse import quote

from support import citus
from support.case import Case
from support.postgres import SQLError
from support.service import command, succeed
from support.stores import STRIPE_SECRET, compact, revenuecat, stripe_checkout, stripe_signature, stripe_subscription
from support.waiting import TIMEOUT_SECONDS
from support.webhooks import WEBHOOK_SETTINGS, post_event
from support.wire import Answer

START, LATER, END = "2026-11-05T12:00:00Z", "2026-11-06T12:00:00Z", "2036-12-05T12:00:00Z"
NAMESPACE = "0b1f2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d"
# Of Auth0, Clerk and Firebase; an e-mail address, a number, one with an equals sign, one beyond ASCII, the longest.
NAMES = [
    "auth0|507f1f77bcf86cd799439011", "user_2abCDeFGhijKLMnop", "Xk3bTz9QpYc1RwVnLm5oJd7EaHs2", "ann+test@example.com", "42",
    "MTIzNDU=", "ключ-é-名前", "x" * 255, "-", "...", "a:b/c?d#e%f&g",
    # Which decoders drop, put in place of other bytes, or take for the same.
    "\ufeffann", "ann\ufeff", "\ufffeann", "\ufffdann", "ann", "e\u0301", "\u00e9", "\u00a0ann", "a+b", "%41",
]
BAD_NAMES = [".", "..", "x" * 256, "é" * 128, "a\u007fb", "a\u0085b"]


def id_of(name):
    return str(uuid.uuid5(uuid.UUID(NAMESPACE), name))


def escaped(name):
    """The inside of a literal U&'…'."""
    return "".join(c if c.isalnum() and c.isascii() else f"\\+{ord(c):06x}" for c in name)


def words(*words):
    """A request as Redis clients send it, which may have spaces in its words."""
    encoded = [word.encode() for word in words]
    return b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded)


class Names(Case):
    FLAGS = ("--user-namespace", NAMESPACE)

    def usage(self, user):
        return Answer(self.send_command(f"USAGE {user}")).fields

    def in_sql(self, name):
        return self.psql.value(f"select headroom.user_id(U&'{escaped(name)}')")

    def test_a_name_is_the_uuid_of_version_5(self):
        for name in NAMES:
            answer = Answer(self.send_command(f"CONSUME {name} 3"))
            self.assertEqual((answer.status, answer.fields["user"], answer.fields["used"]), ("ALLOWED", id_of(name), "3"))
            self.assertEqual(self.usage(id_of(name).upper())["used"], "3")
            self.assertEqual(self.in_sql(name), id_of(name))

    def test_the_description_of_the_api_permits_names_in_requests(self):
        description = self.service.http("GET", "/v1/openapi.json").json
        schemas = description["components"]["schemas"]
        self.assertNotIn("$ref", schemas["User"])
        for name in NAMES:
            self.assertRegex(name, schemas["User"]["pattern"])
        for name in ("a b", "a\t", "\x85", "", ".", ".."):
            self.assertNotRegex(name, schemas["User"]["pattern"])
        self.assertEqual(schemas["UserID"]["format"], "uuid", "answers have UUIDs")
        for path, operations in description["paths"].items():
            for parameter in [parameter for each in operations.values() for parameter in each.get("parameters", ())]:
                if parameter["name"] == "user":
                    self.assertEqual(parameter["schema"], {"$ref": "#/components/schemas/User"}, path)

    def test_a_uuid_is_itself(self):
        user = self.user()
        self.assertEqual(Answer(self.send_command(f"CONSUME {user}")).fields["user"], user)
        self.assertEqual(self.in_sql(user.upper()), user)
        # In another form it is a name.
        self.assertEqual(self.usage(user.replace("-", ""))["user"], id_of(user.replace("-", "")))

    def test_dots_of_a_path_are_no_names(self):
        schema = self.service.http("GET", "/v1/openapi.json").json["components"]["schemas"]["User"]
        for name in (".", ".."):
            for request in (f"CONSUME {name}", f"SUBSCRIBE usage:{name}"):
                self.assertRegex(self.send_command(request), r"^-BADARG .* and not \. or \.\.")
            answer = self.service.http("GET", "/v1/usage/" + name.replace(".", "%2E"))
            self.assertEqual((answer.status, answer.json["code"]), (400, "BADARG"))
            self.assertNotRegex(name, schema["pattern"])
            with self.assertRaisesRegex(SQLError, "1 to 255 bytes"):
                self.in_sql(name)
        self.assertRegex("...", schema["pattern"])
        self.assertEqual(self.usage("...")["user"], id_of("..."))

    def test_every_verb_takes_names(self):
        name = "clerk|every-verb"
        for request, field in [
            (f"RESERVE {name} 5 key=a", "user"), (f"COMMIT {name} 2 key=a", "user"), (f"RELEASE {name} key=a", "user"),
            (f"CHECK {name} 2", "user"), (f"SETPLAN {name} paid", "user"), (f"GRANT {name} 5 key=g", "user"),
            (f"RESETUSAGE {name}", "user"), (f"USAGE {name}", "user"),
        ]:  # fmt: skip
            self.assertEqual(Answer(self.send_command(request)).fields[field], id_of(name), request)
        with self.service.connect() as line:
            line.send(f"HISTORY {name}\n")
            self.assertEqual(line.read_line(), "*2")
            for _ in range(2):
                self.assertIn(f" user={id_of(name)} ", line.read_line())
        self.assertEqual(self.send_command(f"FORGET {name}"), "+OK")
        self.assertEqual(self.psql.run(f"select from headroom.subscribers where user_id = '{id_of(name)}'"), [])

    def test_a_subscription_keeps_the_name_of_its_channel(self):
        name = "auth0|watched"
        with self.service.connect() as line:
            # The second one has an equals sign, and is no option.
            line.send("SUBSCRIBE usage:MTIz usage:MTIzNDU=\nUNSUBSCRIBE usage:MTIz usage:MTIzNDU=\n")
            lines = [line.read_line() for _ in range(4 * 6)]
            self.assertEqual(lines.count("usage:MTIzNDU="), 2, lines)
        with self.service.connect() as line:
            line.send(f"SUBSCRIBE usage:{name}\n")
            confirmation = [line.read_line() for _ in range(6)]
            self.assertIn(f"usage:{name}", confirmation)
            self.send_command(f"CONSUME {name}")
            message = [line.read_line() for _ in range(7)]
            self.assertIn(f"usage:{name}", message)
            self.assertIn(f"user={id_of(name)}", message[-1])

    def test_a_name_that_nobody_can_have_is_refused(self):
        for name in BAD_NAMES:
            for request in (f"CONSUME {name}", f"SUBSCRIBE usage:{name}"):
                rule = "a text of 1 to 255 bytes without spaces and control characters|the request has a control character"
                self.assertRegex(self.send_command(request), f"^-BADARG .*({rule})")
            path = quote(name, safe="").replace(".", "%2E")
            answer = self.service.http("GET", f"/v1/usage/{path}")
            self.assertEqual((answer.status, answer.json["code"]), (400, "BADARG"))
            with self.assertRaisesRegex(SQLError, "1 to 255 bytes"):
                self.in_sql(name)
        with self.service.connect() as line:
            for name in ("two words", " ", "", "tab\there", "line\nbreak"):
                line.send(words("CONSUME", name))
                self.assertRegex(line.read_line(), "^-BADARG ", name)
            # The user was forgotten.
            line.send("CONSUME key=message-1\n")
            self.assertRegex(line.read_line(), "^-BADARG ")

    def test_paths_of_http_take_names(self):
        for name in NAMES:
            path = quote(name, safe="")
            consumed = self.service.http("POST", f"/v1/usage/{path}/consume", json.dumps({"n": 2}))
            self.assertEqual((consumed.status, consumed.json["user"]), (200, id_of(name)), name)
            self.assertEqual(self.service.http("GET", f"/v1/usage/{path}").json["user"], id_of(name))
            self.assertEqual(self.service.http("GET", f"/v1/history/{path}").json["user"], id_of(name))
        # Neither is a text; a library may replace bytes that are none.
        for path in ("ann%00", "ann%FF", "%ED%A0%80", "ann%", "ann%4", "ann%zz"):
            refused = self.service.http("GET", f"/v1/usage/{path}")
            self.assertEqual((refused.status, refused.json["code"]), (400, "BADARG"), path)
        for path in (b"ann\xff", "\u00e9".encode()):
            self.assertEqual(self.raw_status(b"/v1/usage/" + path), 400, "it must be percent-encoded")
        planned = self.service.http("PUT", "/v1/users/auth0%7Cplanned/plan", json.dumps({"plan": "paid"}))
        self.assertEqual((planned.status, planned.json["user"]), (200, id_of("auth0|planned")))

    def raw_status(self, path):
        """The status for a path with these bytes, which clients would encode."""
        with socket.create_connection(("127.0.0.1", self.service.http_port), timeout=TIMEOUT_SECONDS) as connection:
            connection.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return int(connection.makefile("rb").readline().split()[1])

    def test_pages_of_the_dashboard_are_those_of_the_name(self):
        for name in ("\ufeffann", "ann\ufeff", "ann", "\ufffdann"):
            encoded = quote(name, safe="")
            found = self.service.http("GET", f"/dashboard/users?user={encoded}")
            self.assertEqual((found.status, found.headers["Location"]), (303, f"/dashboard/users/{id_of(name)}"), name)
            self.assertIn(id_of(name), self.service.http("GET", f"/dashboard/users/{encoded}").text, name)
        for path in ("users?user=ann%00", "event?source=a%00&id=b", "event?source=a&id=%ED%A0%80", "list?plan=a%00", "?period=%00"):
            page = self.service.http("GET", f"/dashboard/{path}")
            self.assertLess(page.status, 500, path)
        self.assertNotIn("level=error", self.service.log())

    def test_the_dashboard_finds_a_name(self):
        name = "auth0|dashboard"
        self.send_command(f"CONSUME {name}")
        found = self.service.http("GET", f"/dashboard/users?user={quote(name, safe='')}")
        self.assertEqual((found.status, found.headers["Location"]), (303, f"/dashboard/users/{id_of(name)}"))
        page = self.service.http("GET", f"/dashboard/users/{quote(name, safe='')}")
        self.assertEqual(page.status, 200)
        self.assertIn(id_of(name), page.text)
        # The form cuts no name off, which would be another user's.
        form = self.service.http("GET", "/dashboard/users").text
        self.assertIn(' maxlength="256"', form)
        self.assertNotIn("hexadecimal", form)
        long = self.service.http("GET", "/dashboard/users?user=" + "x" * 300)
        self.assertIn('value="' + "x" * 256 + '"', long.text)
        refused = self.service.http("GET", "/dashboard/users?user=two%20words")
        self.assertEqual(refused.status, 400)
        self.assertIn("1 to 255 bytes", refused.text)

    def test_commands_take_names(self):
        name = "auth0|operator"
        for arguments in (("plan", "set", name, "paid"), ("user", name)):
            shown = succeed(*arguments, "--target", f"127.0.0.1:{self.service.port}")
            self.assertIn(id_of(name), shown.stdout)
        for arguments in (("audit", name), ("events", "list", "--user", name)):
            succeed(*arguments, database_url=self.database_url)
        self.assertIn("plan", command("audit", name, database_url=self.database_url).stdout)

    def test_functions_take_names(self):
        name = "auth0|psql"
        self.psql.run(f"select set_plan(headroom.user_id('{name}'), 'paid')")
        self.assertEqual(self.usage(name)["plan"], "paid")
        self.psql.run(f"select * from increment_and_check_usage(headroom.user_id('{name}'), 4)")
        self.assertEqual(self.usage(name)["used"], "4")

    def test_signed_in_people_count_for_themselves(self):
        # The subject of a token of Clerk or Auth0, as PostgREST passes it on.
        name = "user_2postgrest"
        claims = json.dumps({"sub": name})
        count = f"""
            begin; set local role headroom_user; set local request.jwt.claims = '{claims}';
            select used from increment_and_check_usage('%s'); commit;
            """
        self.psql.run(count % id_of(name))
        self.assertEqual(self.usage(name)["used"], "1")
        own = "begin; set local role headroom_user; set local request.jwt.claims = '%s'; select user_id from message_usage; commit"
        if citus.is_asked_for():
            # Else the workers do not get the claims.
            self.psql.run("set citus.propagate_set_commands = 'local'")
        self.assertEqual(self.psql.run(own % claims), [[id_of(name)]], "and read their own rows")
        self.assertEqual(self.psql.run(own % json.dumps({"sub": "two words"})), [])
        with self.assertRaisesRegex(SQLError, "own user only"):
            self.psql.run(count % id_of("user_2other"))
        self.psql.run("rollback")
        self.assertEqual(self.usage("user_2other")["used"], "0")


class Stores(Case):
    FLAGS = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.service = cls.serve("--user-namespace", NAMESPACE, env={**WEBHOOK_SETTINGS, "HEADROOM_STRIPE_SIGNING_SECRET": STRIPE_SECRET})
        for source in ("revenuecat", "stripe"):
            cls.psql.run(f"select headroom.map_product('{source}', 'premium', 'paid')")

    def state(self, name):
        fields = Answer(self.send_command(f"USAGE {name}")).fields
        return fields["user"], fields["plan"]

    def post_to_stripe(self, event):
        body = compact(event)
        answer = self.service.http("POST", "/webhooks/stripe", body, {"Stripe-Signature": stripe_signature(body)})
        self.assertEqual(answer.status, 200, answer.text)
        return answer.json

    def post_directly(self, **event):
        event = {"source": "chargebee", "id": str(uuid.uuid4()), "at": START, **event}
        answer = self.service.http("POST", "/v1/billing-events", json.dumps(event))
        return answer.status, answer.json

    def payloads(self):
        return self.psql.value("select string_agg(payload::text, ' ') from headroom.billing_events")

    def test_revenuecats_customers(self):
        name, anonymous = "auth0|revenuecat", "$RCAnonymousID:0123456789abcdef"
        applied = post_event(
            self.service,
            revenuecat("INITIAL_PURCHASE", START, name, "r1", aliases=[anonymous, name], expiration_at_ms=END),
        )
        self.assertEqual((applied["outcome"], applied["user"]), ("applied", id_of(name)))
        self.assertEqual(self.state(name), (id_of(name), "paid"))
        # The alias that RevenueCat made is known from that event; it is no name.
        later = post_event(self.service, revenuecat("CANCELLATION", START, anonymous, "r1", expiration_at_ms=END))
        self.assertEqual(later["user"], id_of(name))
        alone = post_event(self.service, revenuecat("INITIAL_PURCHASE", START, anonymous + "ff", "r2", expiration_at_ms=END))
        self.assertNotIn("user", {key for key, value in alone.items() if value is not None})
        self.assertNotIn(name, self.payloads())

    def test_revenuecats_transfers(self):
        old, new = "user_2old", "user_2new"
        post_event(self.service, revenuecat("INITIAL_PURCHASE", START, old, "t1", expiration_at_ms=END))
        post_event(
            self.service,
            revenuecat(
                "TRANSFER", LATER, ..., ..., original_app_user_id=..., transferred_from=[old], transferred_to=[new],
                product_id=..., period_type=...,
            ),
        )  # fmt: skip
        self.assertEqual((self.state(old)[1], self.state(new)[1]), ("trial", "paid"))

    def test_stripes_customers(self):
        checked_out, subscribed = "auth0|checkout", "auth0|metadata"
        self.post_to_stripe(stripe_checkout(START, checked_out, "s1"))
        period = (START, END)
        created = self.post_to_stripe(stripe_subscription("created", "active", START, None, "s1", period))
        self.assertEqual(created["user"], id_of(checked_out))
        created = self.post_to_stripe(stripe_subscription("created", "active", START, subscribed, "s2", period))
        self.assertEqual(created["user"], id_of(subscribed))
        self.assertEqual([self.state(name)[1] for name in (checked_out, subscribed)], ["paid", "paid"])
        for name in (checked_out, subscribed):
            self.assertNotIn(name, self.payloads())

    def test_events_in_our_own_words(self):
        old, new = "ann@example.com", "ben@example.com"
        status, bought = self.post_directly(kind="purchased", user=old, transaction="d1", plan="paid", expires=END)
        self.assertEqual((status, bought["user"]), (200, id_of(old)), bought)
        status, moved = self.post_directly(kind="transferred", at=LATER, **{"from": [old], "to": [new]})
        self.assertEqual(status, 200, moved)
        self.assertEqual((self.state(old)[1], self.state(new)[1]), ("trial", "paid"))
        self.assertNotIn("example.com", self.payloads())
        status, refused = self.post_directly(kind="revoked", user="two words", transaction="d2")
        self.assertEqual((status, refused["code"]), (400, "BADREQUEST"))
        self.assertIn("1 to 255 bytes", refused["detail"])
        # A stored event has the UUIDs, so that it can be replayed without the namespace.
        succeed("events", "replay", "chargebee", bought_id(self.psql, id_of(old)), database_url=self.database_url)


def bought_id(psql, user):
    return psql.value(f"select id from headroom.billing_events where source = 'chargebee' and payload ->> 'user' = '{user}' limit 1")


class WithoutTheSetting(Case):
    FLAGS = ()

    def test_a_name_is_refused_and_the_error_names_the_setting(self):
        for request in ("CONSUME auth0|ann", "USAGE 42", "SUBSCRIBE usage:auth0|ann", "SETPLAN ann paid", "CONSUME a=b"):
            reply = self.send_command(request)
            self.assertRegex(reply, "^-BADARG ", request)
            if "=" not in request:
                self.assertIn("user-namespace", reply)
        answer = self.service.http("POST", "/v1/usage/auth0%7Cann/consume")
        self.assertEqual((answer.status, answer.json["code"]), (400, "BADARG"))
        self.assertIn("user-namespace", answer.json["detail"])
        event = {"source": "x", "id": "1", "at": START, "kind": "revoked", "user": "ann", "transaction": "1"}
        refused = self.service.http("POST", "/v1/billing-events", json.dumps(event))
        self.assertEqual(refused.status, 400)
        self.assertIn("user-namespace", refused.json["detail"])
        with self.assertRaisesRegex(SQLError, "a user must be a UUID"):
            self.psql.value("select headroom.user_id('auth0|ann')")
        shown = command("user", "auth0|ann", "--target", f"127.0.0.1:{self.service.port}")
        self.assertNotEqual(shown.returncode, 0)
        self.assertIn("user-namespace", shown.stderr)


class Namespaces(Case):
    FLAGS = None

    def test_a_database_has_one_namespace(self):
        first = self.serve("--user-namespace", NAMESPACE.upper())
        second = self.serve("--user-namespace", NAMESPACE)
        for service in (first, second):
            self.assertEqual(Answer(service.send_command("USAGE ann")).fields["user"], id_of("ann"))
        other = self.serve("--user-namespace", str(uuid.uuid4()), wait=False)
        self.assertNotEqual(other.process.wait(60), 0)
        self.assertIn(f"are named in the namespace {NAMESPACE}", other.log())
        # An instance without the setting refuses names, and serves UUIDs.
        without = self.serve()
        self.assertIn("users of this database have names; this instance refuses them", without.log())
        self.assertRegex(without.send_command("USAGE ann"), "^-BADARG .*user-namespace")
        self.assertEqual(Answer(without.send_command(f"USAGE {id_of('ann')}")).fields["user"], id_of("ann"))

    def test_a_namespace_is_a_uuid(self):
        refused = command("serve", "--user-namespace", "auth0", database_url=self.database_url)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("user-namespace (HEADROOM_USER_NAMESPACE) must be a UUID", refused.stderr)
