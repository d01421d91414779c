"""The dashboard over HTTP, without a browser: access to its pages, the required fields of forms, and the effects of operators' actions."""

import json
import re
import socket
from urllib.parse import urlencode

from support.case import Case
from support.certificates import Authority
from support.pages import DashboardClient, hidden_fields, visible_text
from support.service import command
from support.stores import revenuecat
from support.tokens import token
from support.users import new_user
from support.waiting import TIMEOUT_SECONDS, wait_until
from support.webhooks import WEBHOOK_SETTINGS, post_event

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
NAME = re.compile(r"[0-9a-f]{64}")
ACTIONS = ("grant", "reset", "plan", "forget")


class AccessCase(Case):
    """A service that requires tokens."""

    FLAGS = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tokens = {}
        cls.ids = {}
        for name in ("chat", "dashboard", "operator"):
            cls.ids[name], cls.tokens[name] = token(cls, name, name)
        cls.service = cls.serve(env=WEBHOOK_SETTINGS)
        wait_until(lambda: cls.service.http("GET", "/readyz").status == 200, "the lanes are connected")

    def signed_in(self, name="operator"):
        client = DashboardClient(self.service)
        answer = client.sign_in(self.tokens[name])
        self.assertEqual((answer.status, answer.headers["Location"]), (303, "/dashboard"), answer.text)
        return client

    def send_command(self, request):
        with self.service.connect() as connection:
            connection.send_command(f"AUTH {self.tokens['chat']}")
            return connection.send_command(request)

    def audit(self, user):
        return self.psql.run(
            f"select action, actor, reason, after ->> 'count', after ->> 'limit'"
            f" from headroom.audit_log where user_id = '{user}' order by at, id"
        )

    def act(self, client, user, action, **fields):
        """Sends the form, then its confirmation; what came of either."""
        path = f"/dashboard/users/{user}"
        confirmation = client.send(f"{path}/{action}", {"csrf": client.csrf_token(path), "reason": "ticket 4711", **fields})
        if confirmation.status != 200:
            return confirmation, confirmation
        return confirmation, client.send(f"{path}/{action}", {**hidden_fields(confirmation), "confirmed": "yes"})


class SignIn(AccessCase):
    def test_without_a_session_every_page_leads_to_signing_in_and_back(self):
        user = new_user()
        for path in ["/dashboard?period=2026-03", f"/dashboard/users/{user}", "/dashboard/users"]:
            client = DashboardClient(self.service)
            answer = client.get(path)
            self.assertEqual(answer.status, 303)
            self.assertRegex(answer.headers["Location"], r"^/dashboard/sign-in\?to=%?")
            page = client.get(answer.headers["Location"])
            self.assertEqual((page.status, hidden_fields(page)["to"]), (200, path))
            back = client.send("/dashboard/sign-in", {**hidden_fields(page), "token": self.tokens["dashboard"]})
            self.assertEqual((back.status, back.headers["Location"]), (303, path))
            self.assertEqual(client.get(path).status, 200)

    def test_who_comes_from_another_site_can_go_on_with_the_session_that_the_browser_held_back(self):
        path = "/dashboard/sign-in?to=/dashboard/users"
        link = '<a href="/dashboard/users">Continue to the page.</a>'
        self.assertIn(link, DashboardClient(self.service).get(path, **{"Sec-Fetch-Site": "cross-site"}).text)
        self.assertNotIn(link, DashboardClient(self.service).get(path, **{"Sec-Fetch-Site": "none"}).text)

    def test_signing_in_never_leads_to_another_site(self):
        for to in ["https://evil.example/", "//evil.example", "/dashboard//evil.example", "/dashboardx", "/v1/usage", "/dashboard\\@evil",
                   "/dashboard/sign-out", "/dashboard?a\r\nSet-Cookie: x=y"]:  # fmt: skip
            client = DashboardClient(self.service)
            answer = client.sign_in(self.tokens["dashboard"], to=to)
            self.assertEqual((answer.status, answer.headers["Location"]), (303, "/dashboard"), to)

    def test_the_cookie_holds_no_token_and_is_for_the_dashboard_alone(self):
        client = DashboardClient(self.service)
        answer = client.sign_in(self.tokens["operator"])
        cookie = answer.headers["Set-Cookie"]
        self.assertRegex(cookie, r"^headroom_session=[0-9a-f]{64};")
        self.assertEqual(
            {part.strip() for part in cookie.split(";")[1:]}, {"HttpOnly", "SameSite=Strict", "Path=/dashboard", "Max-Age=28800"}
        )
        self.assertNotIn(self.tokens["operator"], cookie)
        again = DashboardClient(self.service)
        self.assertNotEqual(again.sign_in(self.tokens["operator"]).headers["Set-Cookie"], cookie)

    def test_with_tls_cookies_are_for_tls_alone(self):
        authority = Authority()
        certificate, key = authority.server()
        service = self.serve("--tls-certificate", certificate, "--tls-key", key)
        service.tls = authority.client_context()
        client = DashboardClient(service, host=f"localhost:{service.http_port}")
        answer = client.send(
            "/dashboard/sign-in", {"csrf": client.csrf_token(), "token": self.tokens["dashboard"]},
            Origin=f"https://localhost:{service.http_port}",
        )  # fmt: skip
        self.assertEqual(answer.status, 303)
        self.assertIn("Secure", [part.strip() for part in answer.headers["Set-Cookie"].split(";")])
        self.assertEqual(client.get().status, 200)

    def test_a_wrong_token_opens_nothing_and_is_not_repeated(self):
        for wrong in ["", "headroom_" + "A" * 43, self.tokens["operator"][:-1], self.tokens["operator"] + "x", "<script>alert(1)</script>"]:
            client = DashboardClient(self.service)
            answer = client.sign_in(wrong)
            self.assertEqual(answer.status, 401)
            self.assertIn("This token is not valid", visible_text(answer))
            self.assertNotIn("headroom_session", client.cookies)
            if wrong:
                self.assertNotIn(wrong, answer.text)

    def test_a_token_without_a_dashboard_scope_is_refused_with_the_reason(self):
        client = DashboardClient(self.service)
        answer = client.sign_in(self.tokens["chat"])
        self.assertEqual(answer.status, 403)
        self.assertIn("scope dashboard or operator", visible_text(answer))
        self.assertNotIn("headroom_session", client.cookies)
        self.assertEqual(client.get().status, 303)

    def test_a_made_up_session_is_refused(self):
        for name in ["", "0" * 64, "A" * 64, "0" * 63, "'; drop table"]:
            answer = DashboardClient(self.service).get(Cookie=f"headroom_session={name}")
            self.assertEqual(answer.status, 303)

    def test_signing_out_ends_the_session_for_every_copy_of_the_cookie(self):
        client = self.signed_in()
        copy = dict(client.cookies)
        answer = client.send("/dashboard/sign-out", {"csrf": client.csrf_token("/dashboard")})
        self.assertEqual((answer.status, answer.headers["Location"]), (303, "/dashboard/sign-in"))
        self.assertNotIn("headroom_session", client.cookies)
        thief = DashboardClient(self.service)
        thief.cookies = copy
        self.assertEqual(thief.get().status, 303)

    def test_a_revoked_token_ends_its_sessions_and_its_live_numbers(self):
        number, text = token(self, "leaver", "operator")
        client = DashboardClient(self.service)
        wait_until(lambda: client.sign_in(text).status == 303, "the new token is known")
        self.assertEqual(client.get().status, 200)
        with Events(client) as events:
            self.assertEqual(events.next()[0], "figures")
            self.assertEqual(command("token", "revoke", str(number), database_url=self.database_url).returncode, 0)
            wait_until(lambda: client.get().status == 303, "the session ends with its token")
            kind, data = wait_until(lambda: (e := events.next())[0] == "end" and e, "the stream ends")
            self.assertIn("signed out", data["text"])
        self.assertEqual(client.get("/dashboard/live").status, 401)

    def test_a_bearer_token_may_look_as_well(self):
        answer = self.service.http("GET", "/dashboard", headers={"Authorization": f"Bearer {self.tokens['dashboard']}"})
        self.assertEqual(answer.status, 200)
        answer = self.service.http("GET", "/dashboard", headers={"Authorization": f"Bearer {self.tokens['chat']}"})
        self.assertEqual(answer.status, 403)
        answer = self.service.http("GET", "/dashboard", headers={"Authorization": "Bearer headroom_no"})
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (401, "text/html; charset=utf-8"))

    def test_nothing_of_a_session_or_token_is_logged(self):
        service = self.serve("--log-level", "trace")
        client = DashboardClient(service)
        client.sign_in(self.tokens["operator"])
        client.get(f"/dashboard/users/{new_user()}")
        user = new_user()
        self.act_on(client, user)
        log = service.log()
        for secret in [self.tokens["operator"], *client.cookies.values(), user, "ticket 4711"]:
            self.assertNotIn(secret, log)

    def act_on(self, client, user):
        _, done = self.act(client, user, "grant", messages="5")
        self.assertEqual(done.status, 303)


class Forms(AccessCase):
    def test_a_form_needs_the_csrf_token_of_its_own_browser(self):
        user = new_user()
        client, other = self.signed_in(), self.signed_in()
        path = f"/dashboard/users/{user}"
        form = {"messages": "50", "plan": "pro", "word": "forget", "reason": "x", "confirmed": "yes", "key": "0" * 64}
        for csrf in [None, "", "0" * 64, other.csrf_token(path), client.csrf_token(path)[:-1], DashboardClient(self.service).csrf_token()]:
            fields = form if csrf is None else {**form, "csrf": csrf}
            for action in ACTIONS:
                answer = client.send(f"{path}/{action}", fields)
                self.assertEqual(answer.status, 403, csrf)
                self.assertIn("was not sent by a page of this service", visible_text(answer))
        self.assertEqual(client.send("/dashboard/sign-out", {"csrf": "0" * 64}).status, 403)
        self.assertEqual(DashboardClient(self.service).send("/dashboard/sign-in", {"token": self.tokens["operator"]}).status, 403)
        self.assertEqual(self.audit(user), [])
        self.assertEqual(client.get().status, 200)

    def test_a_form_from_another_site_is_refused_whatever_it_carries(self):
        user = new_user()
        client = self.signed_in()
        path = f"/dashboard/users/{user}"
        fields = {"csrf": client.csrf_token(path), "messages": "50", "reason": "x", "confirmed": "yes", "key": "0" * 64}
        for headers in [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"},
                        {"Sec-Fetch-Site": None, "Origin": "https://evil.example"},
                        {"Sec-Fetch-Site": None, "Origin": f"http://127.0.0.1:{self.service.http_port + 1}"}]:  # fmt: skip
            answer = client.send(f"{path}/grant", fields, **headers)
            self.assertEqual(answer.status, 403, headers)
        self.assertEqual(self.audit(user), [])
        answer = client.send(f"{path}/grant", fields, **{"Sec-Fetch-Site": None, "Origin": "null"})
        self.assertEqual(answer.status, 303, "what an older browser sends from our pages")

    def test_other_bodies_are_no_forms(self):
        client = self.signed_in()
        path = f"/dashboard/users/{new_user()}"
        csrf = client.csrf_token(path)
        for status, body, headers in [
            (415, json.dumps({"csrf": csrf}), {"Content-Type": "application/json"}),
            (415, f"csrf={csrf}", {"Content-Type": "text/plain"}),
            (400, f"csrf={csrf}&messages", {}), (400, f"csrf={csrf}&csrf={csrf}", {}), (400, f"csrf={csrf}&reason=%ff", {}),
            (400, f"csrf={csrf}&reason=%4", {}), (400, "&".join(f"a{n}=b" for n in range(20)), {}),
            (413, "a=" + "b" * 2_000_000, {}),
        ]:  # fmt: skip
            headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin", **headers}
            answer = client.request("POST", f"{path}/reset", body, headers)
            self.assertEqual(answer.status, status, body[:80])
        self.assertEqual(client.get(f"{path}/reset").headers["Location"], path)
        self.assertEqual(client.request("GET", f"{path}/nothing/more").status, 404)

    def test_errors_are_shown_beside_bad_fields_and_nothing_changes(self):
        user = new_user()
        client = self.signed_in()
        path = f"/dashboard/users/{user}"
        for fields, message in [
            ({"messages": "0"}, "from 1 to 1,000,000"), ({"messages": "1000001"}, "from 1 to 1,000,000"), ({"messages": "-5"}, "from 1"),
            ({"messages": "ten"}, "from 1"), ({"messages": "١٢"}, "from 1"), ({}, "from 1"),
            ({"messages": "5", "reason": " "}, "Enter a reason"), ({"messages": "5", "reason": "x" * 1025}, "Too long"),
            ({"messages": "5", "reason": "a\nb"}, "line breaks"), ({"messages": "5", "reason": "a\u202eb"}, "formatting characters"),
        ]:  # fmt: skip
            answer = client.send(f"{path}/grant", {"csrf": client.csrf_token(path), "reason": "why", **fields})
            self.assertEqual(answer.status, 400, fields)
            self.assertIn(message, visible_text(answer))
            self.assertIn('aria-invalid="true"', answer.text)
        self.assertEqual(self.audit(user), [])

    def test_what_is_typed_stays_text(self):
        client = self.signed_in()
        path = f"/dashboard/users/{new_user()}"
        nasty = "\"><script>alert('1')</script>&amp; {{user}} {{{frame}}}"
        confirmation = client.send(f"{path}/grant", {"csrf": client.csrf_token(path), "messages": "5", "reason": nasty})
        self.assertEqual(hidden_fields(confirmation)["reason"], nasty)
        self.assertNotIn("<script>", confirmation.text.replace('<script src="/dashboard/script.js" defer></script>', ""))
        done = client.send(f"{path}/grant", {**hidden_fields(confirmation), "confirmed": "yes"})
        page = client.get(done.headers["Location"])
        self.assertIn(nasty, visible_text(page))
        self.assertNotIn("alert('1')</script>", page.text)
        for path in ["/dashboard/users?" + urlencode({"user": nasty}), "/dashboard?" + urlencode({"period": nasty})]:
            self.assertNotIn("alert('1')</script>", client.get(path).text)


class Actions(AccessCase):
    def test_a_grant_is_asked_once_more_done_once_and_on_record_with_the_token(self):
        user = new_user()
        self.send_command(f"CONSUME {user} 100")
        self.assertIn("BLOCKED", self.send_command(f"CHECK {user}"))
        client = self.signed_in()
        confirmation, done = self.act(client, user, "grant", messages="1,050")
        self.assertIn("Grant 1,050 messages", visible_text(confirmation))
        self.assertIn("100 of 100 trial messages used", visible_text(confirmation))
        self.assertEqual(done.status, 303)
        self.assertEqual(self.audit(user), [["grant", "token:operator", "ticket 4711", "100", "1150"]])
        self.assertIn("ALLOWED", self.send_command(f"CONSUME {user}"))
        page = client.get(done.headers["Location"])
        self.assertIn("Granted. It takes effect with the next message. The limit of this period is now 1,150.", visible_text(page))
        self.assertIn("grant by token:operator : ticket 4711", visible_text(page))
        again = client.send(f"/dashboard/users/{user}/grant", {**hidden_fields(confirmation), "confirmed": "yes"})
        self.assertIn("it counts once", visible_text(client.get(again.headers["Location"])))
        self.assertEqual(len(self.audit(user)), 1)

    def test_a_reset_is_asked_once_more_and_on_record_with_its_reason(self):
        user = new_user()
        self.send_command(f"CONSUME {user} 42")
        client = self.signed_in()
        confirmation, done = self.act(client, user, "reset")
        self.assertIn("Set the count of trial from 42 to 0?", visible_text(confirmation))
        self.assertEqual(self.count(user), 0)
        self.assertEqual(self.audit(user), [["reset", "token:operator", "ticket 4711", "0", "100"]])
        self.assertIn("Reset. The count of this period was set to 0.", visible_text(client.get(done.headers["Location"])))

    def test_nothing_is_done_before_it_is_confirmed(self):
        user = new_user()
        self.send_command(f"CONSUME {user} 42")
        client = self.signed_in()
        path = f"/dashboard/users/{user}"
        for fields in [{}, {"confirmed": "no"}, {"confirmed": "yes"}, {"confirmed": "yes", "key": "x"}]:
            answer = client.send(f"{path}/reset", {"csrf": client.csrf_token(path), "reason": "why", **fields})
            self.assertEqual(answer.status, 200)
            self.assertIn("Yes, reset", visible_text(answer))
        self.assertEqual(self.count(user), 42)
        self.assertEqual(self.audit(user), [])

    def test_a_grant_to_somebody_without_access_promises_nothing(self):
        user = new_user()
        self.psql.run(f"select set_plan('{user}', 'paid', 'revoked')")
        client = self.signed_in()
        self.assertIn("This user has no access. The subscription is revoked", visible_text(client.get(f"/dashboard/users/{user}")))
        for action, title in [("grant", "Granted"), ("reset", "Reset")]:
            confirmation, done = self.act(client, user, action, messages="50")
            self.assertIn("This user has no access.", visible_text(confirmation))
            self.assertNotIn("with the next message", visible_text(confirmation))
            page = client.get(done.headers["Location"])
            self.assertIn(f"{title}, but the user has no access.", visible_text(page))
            self.assertNotIn("with the next message", visible_text(page))
        self.assertIn("BLOCKED", self.send_command(f"CHECK {user}"))

    def test_a_visitor_who_may_only_look_gets_no_forms_and_cannot_send_them(self):
        user = new_user()
        self.send_command(f"CONSUME {user} 42")
        client = self.signed_in("dashboard")
        path = f"/dashboard/users/{user}"
        self.assertNotIn("Reset usage", visible_text(client.get(path)))
        form = {"csrf": client.csrf_token(path), "messages": "5", "plan": "pro", "word": "forget", "reason": "x", "confirmed": "yes"}
        for action in ACTIONS:
            answer = client.send(f"{path}/{action}", {**form, "key": "0" * 64})
            self.assertEqual(answer.status, 403)
            self.assertIn("needs a token with the scope operator", visible_text(answer))
        self.assertEqual(self.audit(user), [])
        self.assertEqual(self.count(user), 42)

    def test_a_grant_that_cannot_be_made_shows_the_reason(self):
        user = new_user()
        self.send_command(f"CONSUME {user}")
        self.psql.run(f"update message_usage set \"limit\" = 2147483000 where user_id = '{user}'")
        client = self.signed_in()
        _, done = self.act(client, user, "grant", messages="1000000")
        self.assertIn("Nothing was changed. The limit would be more than", visible_text(client.get(done.headers["Location"])))


class Answers(AccessCase):
    def test_every_answer_tells_the_browser_what_it_may(self):
        client = self.signed_in()
        user = new_user()
        for path in ["/dashboard", "/dashboard/users", f"/dashboard/users/{user}", "/dashboard/users?user=x", "/dashboard/nowhere",
                     "/dashboard/style.css", "/dashboard/script.js", "/dashboard/icon.svg", "/dashboard/users/not-a-user"]:  # fmt: skip
            answer = client.get(path)
            said = {name.lower(): value for name, value in answer.headers.items()}
            self.assertEqual(said["content-security-policy"], POLICY, path)
            self.assertEqual(said["x-content-type-options"], "nosniff")
            self.assertEqual(said["referrer-policy"], "no-referrer")
            self.assertIn("camera=()", said["permissions-policy"])
            self.assertEqual(said["cache-control"], "no-cache" if "." in path else "no-store")
        for path in ["/dashboard", "/dashboard/sign-in"]:
            self.assertEqual(DashboardClient(self.service).get(path).headers["Content-Security-Policy"], POLICY)

    def test_pages_hold_no_style_script_or_address_of_elsewhere(self):
        client = self.signed_in()
        for path in ["/dashboard", f"/dashboard/users/{new_user()}", "/dashboard/users"]:
            text = client.get(path).text
            self.assertNotRegex(text, r"<style|\sstyle=|\son[a-z]+=|javascript:|https?://")
            self.assertEqual(re.findall(r"<script[^>]*>", text), ['<script src="/dashboard/script.js" defer>'])
            self.assertTrue(text.startswith("<!DOCTYPE html>"))

    def test_files_are_sent_again_only_when_they_changed_and_need_no_token(self):
        for path, kind in [("style.css", "text/css"), ("script.js", "text/javascript"), ("icon.svg", "image/svg+xml")]:
            first = self.service.http("GET", f"/dashboard/{path}")
            self.assertEqual((first.status, first.headers["Content-Type"].split(";")[0]), (200, kind))
            tag = first.headers["ETag"]
            again = self.service.http("GET", f"/dashboard/{path}", headers={"If-None-Match": tag})
            self.assertEqual((again.status, again.body, again.headers["ETag"]), (304, b"", tag))
            self.assertEqual(self.service.http("GET", f"/dashboard/{path}", headers={"If-None-Match": '"other"'}).status, 200)

    def test_a_stores_events_are_shown_with_what_became_of_them(self):
        user = new_user()
        self.psql.run("insert into headroom.store_products (source, product, plan) values ('revenuecat', 'monthly', 'paid')")

        def tell(day, product):
            at = f"2026-01-0{day}T10:00:00Z"
            event = revenuecat("INITIAL_PURCHASE", at, user, "T" + user, id=f"{user}-{day}", product_id=product)
            return post_event(self.service, event)["outcome"]

        self.assertEqual([tell(5, "monthly"), tell(6, "nothing we know")], ["applied", "failed"])
        problem = self.psql.value(f"select problem from headroom.billing_events where id = '{user}-6'")
        text = visible_text(self.signed_in().get(f"/dashboard/users/{user}"))
        self.assertIn("5 January 2026, 10:00 UTC INITIAL_PURCHASE applied revenuecat", text)
        self.assertIn(f"6 January 2026, 10:00 UTC INITIAL_PURCHASE failed revenuecat {problem}", text)
        self.assertEqual(text.count("UTC INITIAL_PURCHASE"), 2, "each event is listed once")
        client = self.signed_in()
        overview = wait_until(lambda: problem in (text := visible_text(client.get())) and text, "the overview lists what failed")
        self.assertRegex(overview, r"(1 store event failed\. Its user|[2-9] store events failed\. Their users) may")
        self.assertIn(f"INITIAL_PURCHASE revenuecat {problem} {user}", overview)

    def test_an_unknown_address_gets_a_page_with_a_way_back(self):
        client = self.signed_in()
        for path in ["/nowhere", "/a/b/c/d", "?period=xx", "?period=2026-13", "?period=paid"]:
            path = "/dashboard" + path
            answer = client.get(path)
            self.assertEqual((answer.status, answer.headers["Content-Type"]), (404, "text/html; charset=utf-8"), path)
            self.assertIn("Go to the overview", visible_text(answer))
            self.assertIn('aria-label="Pages"', answer.text)
        for path in ["/dashboard?period=trial", "/dashboard?period=free", "/dashboard?period=1999-12", "/dashboard?period="]:
            self.assertEqual(client.get(path).status, 200, path)
        answer = client.get("/dashboard/users/7f1c0a52")
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (404, "text/html; charset=utf-8"))
        self.assertIn("Find a user", visible_text(answer))
        self.assertIn('value="7f1c0a52"', answer.text)
        self.assertIn('aria-label="Pages"', answer.text)
        answer = client.get("/dashboard/users?user=%207F1C0A52-3A51-4A7E-9D55-0B6A3F1F7C11%20")
        self.assertEqual((answer.status, answer.headers["Location"]), (303, "/dashboard/users/7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"))

    def test_live_numbers_come_each_second_and_outlive_the_idle_timeout(self):
        service = self.serve("--http-idle-timeout-ms", "2000")
        client = DashboardClient(service)
        client.sign_in(self.tokens["dashboard"])
        with Events(client) as events:
            for _ in range(4):
                kind, data = events.next()
                self.assertEqual(kind, "figures")
                self.assertEqual(set(data), {"rate", "p99", "queue", "database", "state", "number", "sentence"})
                self.assertEqual(data["database"], "up")
            service.signal(15)
            kind, data = wait_until(lambda: (e := events.next())[0] == "end" and e, "the stream reports its end")
            self.assertIn("shutting down", data["text"])
        self.assertEqual(service.wait(), 0)

    def test_streams_are_bounded_and_given_back(self):
        client = self.signed_in()
        for _ in range(65):
            self.assertEqual(client.request("HEAD", "/dashboard/live").status, 200)
        streams = [Events(client) for _ in range(64)]
        for stream in streams:
            self.assertEqual(stream.next()[0], "figures")
        self.assertEqual(client.get("/dashboard/live").status, 503)
        for stream in streams:
            stream.close()

        def is_open():
            try:
                with Events(client) as stream:
                    return stream.next()[0] == "figures"
            except AssertionError:
                return False

        wait_until(is_open, "there is room again")


class WithoutTokens(Case):
    """No token was ever created: every client of the port may read and change, as on the line protocol."""

    SHARED = True

    def test_there_is_nothing_to_sign_in_to(self):
        client = DashboardClient(self.service)
        page = client.get()
        self.assertEqual(page.status, 200)
        self.assertNotIn("Sign out", visible_text(page))
        self.assertEqual(client.get("/dashboard/sign-in").headers["Location"], "/dashboard")

    def test_the_address_alone_leads_to_the_dashboard(self):
        answer = DashboardClient(self.service).get("/")
        self.assertEqual((answer.status, answer.headers["Location"]), (303, "/dashboard"))
        self.assertEqual(self.service.http("HEAD", "/").status, 303)

    def test_forms_need_their_csrf_token_all_the_same_and_actions_are_on_record(self):
        user = new_user()
        self.send_command(f"CONSUME {user} 42")
        client = DashboardClient(self.service)
        path = f"/dashboard/users/{user}"
        fields = {"reason": "why", "confirmed": "yes", "key": "0" * 64}
        self.assertEqual(client.send(f"{path}/reset", fields).status, 403)
        foreign_token = DashboardClient(self.service).csrf_token("/dashboard/users/" + user)
        self.assertEqual(client.send(f"{path}/reset", {**fields, "csrf": foreign_token}).status, 403)
        self.assertEqual(self.count(user), 42)
        self.assertEqual(client.send(f"{path}/reset", {**fields, "csrf": client.csrf_token(path)}).status, 303)
        self.assertEqual(self.count(user), 0)
        row = self.psql.run(f"select action, actor, reason from headroom.audit_log where user_id = '{user}'")
        self.assertEqual(row, [["reset", "dashboard", "why"]])

    def test_another_sites_name_for_this_machine_is_refused(self):
        port = self.service.http_port
        for host in [f"evil.example:{port}", "evil.example", f"127.0.0.1.evil.example:{port}", f"localhost.evil.example:{port}"]:
            for path in ["/dashboard", "/dashboard/users", "/dashboard/live"]:
                answer = DashboardClient(self.service, host=host).get(path)
                self.assertEqual(answer.status, 421, host)
                self.assertIn("headroom token create", visible_text(answer))
        for host in [f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", "10.1.2.3", f"headroom.localhost:{port}", "headroom"]:
            self.assertEqual(DashboardClient(self.service, host=host).get().status, 200, host)

    def test_a_period_without_usage_says_so(self):
        text = visible_text(DashboardClient(self.service).get("/dashboard?period=2031-01"))
        self.assertIn("No usage in this period.", text)


class WithoutMessages(Case):
    """The service has counted no messages yet."""

    def test_the_overview_says_what_to_do_until_there_is_something_to_show(self):
        client = DashboardClient(self.service)
        page = wait_until(lambda: "Getting started" in visible_text(p := client.get()) and p, "the first steps")
        self.assertIn("headroom token create backend --scope chat", visible_text(page))
        self.assertNotIn('class="columns"', page.text)
        self.assertIn("Premium paid", visible_text(page))
        self.send_command(f"CONSUME {self.user()} 3")
        page = wait_until(lambda: "Messages 3" in visible_text(p := client.get()) and p, "the message shows")
        self.assertNotIn("Getting started", visible_text(page))
        # A trial is in no month.
        self.assertNotIn('class="columns"', page.text)
        self.send_command(f"CONSUME {self.subscriber('paid')} 3")
        wait_until(lambda: 'class="columns"' in client.get().text, "the month has a column")


class DatabaseUnreachable(Case):
    """The database becomes unreachable while a dashboard is open."""

    OWN_CLUSTER = True
    # The first requests wait for this long.
    FLAGS = ("--request-timeout-ms", "8000")

    def test_pages_say_so_with_what_is_still_known_and_recover(self):
        user = new_user()
        self.send_command(f"CONSUME {user} 81")
        client = DashboardClient(self.service)
        self.assertEqual(client.get("/dashboard?period=trial").status, 200)
        self.cluster.stop_immediately()
        away = wait_until(lambda: (a := client.get("/dashboard?period=trial")).status == 503 and a, "the page says so")
        self.assertIn("Database unavailable.", visible_text(away))
        self.assertIn("Messages 81", visible_text(away))
        self.assertRegex(visible_text(away), r"Updated (just now|\d+ (s|min) ago)")
        self.assertEqual(away.headers["Retry-After"], "5")
        page = client.get(f"/dashboard/users/{user}")
        self.assertEqual(page.status, 503)
        self.assertIn("Database unavailable.", visible_text(page))
        fresh = visible_text(client.get("/dashboard?period=free"))
        self.assertIn("The database cannot be reached at the moment.", fresh)
        with Events(client) as events:
            self.assertEqual(events.next()[1]["database"], "down")
            self.cluster.start()
            wait_until(lambda: events.next()[1]["database"] == "up", "the numbers say that it is back")
        wait_until(lambda: client.get("/dashboard?period=trial").status == 200, "the page is whole again")


class Events:
    """A stream of server-sent events, as a browser opens it."""

    def __init__(self, client):
        self.socket = socket.create_connection(("127.0.0.1", client.service.http_port), timeout=TIMEOUT_SECONDS)
        cookies = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        self.socket.sendall(f"GET /dashboard/live HTTP/1.1\r\nHost: {client.host}\r\nCookie: {cookies}\r\n\r\n".encode())
        self.file = self.socket.makefile("rb")
        self.status = self.file.readline().decode()
        assert " 200 " in self.status, self.status
        while (line := self.file.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-type"):
                assert b"text/event-stream" in line, line

    def next(self):
        """An event's name and data."""
        kind = None
        while True:
            line = self.file.readline().decode()
            if not line:
                raise AssertionError("the stream ended without saying why")
            line = line.rstrip("\r\n")
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                return kind, json.loads(line[6:])

    def close(self):
        self.file.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
