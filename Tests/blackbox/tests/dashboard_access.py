"""The dashboard without a browser: who may look, what a form has to carry, and what an operator's action leaves behind."""

import json
import re
import socket
from urllib.parse import urlencode

from support.case import Case
from support.certificates import Authority
from support.pages import Visitor, hidden, words
from support.product import token
from support.service import command
from support.stores import revenuecat
from support.users import new_user
from support.waiting import PATIENCE, wait_until
from support.webhooks import TAKES_EVENTS, post_event

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
NAME = re.compile(r"[0-9a-f]{64}")


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
        cls.service = cls.serve(env=TAKES_EVENTS)
        wait_until(lambda: cls.service.http("GET", "/readyz").status == 200, "the lanes are connected")

    def signed_in(self, name="operator"):
        visitor = Visitor(self.service)
        answer = visitor.sign_in(self.tokens[name])
        self.assertEqual((answer.status, answer.headers["Location"]), (303, "/dashboard"), answer.text)
        return visitor

    def ask(self, request):
        with self.service.connect() as line:
            line.ask(f"AUTH {self.tokens['chat']}")
            return line.ask(request)

    def audit(self, user):
        return self.psql.run(
            f"select action, actor, reason, after ->> 'count', after ->> 'limit'"
            f" from headroom.audit_log where user_id = '{user}' order by id"
        )

    def act(self, visitor, user, action, **fields):
        """Sends the form, then its confirmation; what came of either."""
        path = f"/dashboard/users/{user}"
        asked = visitor.send(f"{path}/{action}", {"seal": visitor.seal(path), "reason": "ticket 4711", **fields})
        if asked.status != 200:
            return asked, asked
        return asked, visitor.send(f"{path}/{action}", {**hidden(asked), "confirmed": "yes"})


class SignIn(AccessCase):
    def test_without_a_session_every_page_leads_to_signing_in_and_back(self):
        user = new_user()
        for path in ["/dashboard?period=2026-03", f"/dashboard/users/{user}", "/dashboard/users"]:
            visitor = Visitor(self.service)
            answer = visitor.get(path)
            self.assertEqual(answer.status, 303)
            self.assertRegex(answer.headers["Location"], r"^/dashboard/sign-in\?to=%?")
            page = visitor.get(answer.headers["Location"])
            self.assertEqual((page.status, hidden(page)["to"]), (200, path))
            back = visitor.send("/dashboard/sign-in", {**hidden(page), "token": self.tokens["dashboard"]})
            self.assertEqual((back.status, back.headers["Location"]), (303, path))
            self.assertEqual(visitor.get(path).status, 200)

    def test_who_comes_from_another_site_can_go_on_with_the_session_that_the_browser_held_back(self):
        path = "/dashboard/sign-in?to=/dashboard/users"
        link = '<a href="/dashboard/users">Go on to the page.</a>'
        self.assertIn(link, Visitor(self.service).get(path, **{"Sec-Fetch-Site": "cross-site"}).text)
        self.assertNotIn(link, Visitor(self.service).get(path, **{"Sec-Fetch-Site": "none"}).text)

    def test_signing_in_never_leads_to_another_site(self):
        for to in ["https://evil.example/", "//evil.example", "/dashboard//evil.example", "/dashboardx", "/v1/usage", "/dashboard\\@evil",
                   "/dashboard/sign-out", "/dashboard?a\r\nSet-Cookie: x=y"]:  # fmt: skip
            visitor = Visitor(self.service)
            answer = visitor.sign_in(self.tokens["dashboard"], to=to)
            self.assertEqual((answer.status, answer.headers["Location"]), (303, "/dashboard"), to)

    def test_the_cookie_holds_no_token_and_is_for_the_dashboard_alone(self):
        visitor = Visitor(self.service)
        answer = visitor.sign_in(self.tokens["operator"])
        cookie = answer.headers["Set-Cookie"]
        self.assertRegex(cookie, r"^headroom_session=[0-9a-f]{64};")
        self.assertEqual(
            {part.strip() for part in cookie.split(";")[1:]}, {"HttpOnly", "SameSite=Strict", "Path=/dashboard", "Max-Age=28800"}
        )
        self.assertNotIn(self.tokens["operator"], cookie)
        again = Visitor(self.service)
        self.assertNotEqual(again.sign_in(self.tokens["operator"]).headers["Set-Cookie"], cookie)

    def test_with_tls_cookies_are_for_tls_alone(self):
        authority = Authority()
        certificate, key = authority.server()
        service = self.serve("--tls-certificate", certificate, "--tls-key", key)
        service.tls = authority.client_context()
        visitor = Visitor(service, host=f"localhost:{service.http_port}")
        answer = visitor.send(
            "/dashboard/sign-in", {"seal": visitor.seal(), "token": self.tokens["dashboard"]},
            Origin=f"https://localhost:{service.http_port}",
        )  # fmt: skip
        self.assertEqual(answer.status, 303)
        self.assertIn("Secure", [part.strip() for part in answer.headers["Set-Cookie"].split(";")])
        self.assertEqual(visitor.get().status, 200)

    def test_a_wrong_token_opens_nothing_and_is_not_repeated(self):
        for wrong in ["", "headroom_" + "A" * 43, self.tokens["operator"][:-1], self.tokens["operator"] + "x", "<script>alert(1)</script>"]:
            visitor = Visitor(self.service)
            answer = visitor.sign_in(wrong)
            self.assertEqual(answer.status, 401)
            self.assertIn("No live token is that", words(answer))
            self.assertNotIn("headroom_session", visitor.cookies)
            if wrong:
                self.assertNotIn(wrong, answer.text)

    def test_a_token_without_a_dashboard_scope_is_refused_with_the_reason(self):
        visitor = Visitor(self.service)
        answer = visitor.sign_in(self.tokens["chat"])
        self.assertEqual(answer.status, 403)
        self.assertIn("scope dashboard or operator", words(answer))
        self.assertNotIn("headroom_session", visitor.cookies)
        self.assertEqual(visitor.get().status, 303)

    def test_a_made_up_session_is_refused(self):
        for name in ["", "0" * 64, "A" * 64, "0" * 63, "'; drop table"]:
            answer = Visitor(self.service).get(Cookie=f"headroom_session={name}")
            self.assertEqual(answer.status, 303)

    def test_signing_out_ends_the_session_for_every_copy_of_the_cookie(self):
        visitor = self.signed_in()
        copy = dict(visitor.cookies)
        answer = visitor.send("/dashboard/sign-out", {"seal": visitor.seal("/dashboard")})
        self.assertEqual((answer.status, answer.headers["Location"]), (303, "/dashboard/sign-in"))
        self.assertNotIn("headroom_session", visitor.cookies)
        thief = Visitor(self.service)
        thief.cookies = copy
        self.assertEqual(thief.get().status, 303)

    def test_a_revoked_token_ends_its_sessions_and_its_live_numbers(self):
        number, text = token(self, "leaver", "operator")
        visitor = Visitor(self.service)
        wait_until(lambda: visitor.sign_in(text).status == 303, "the new token is known")
        self.assertEqual(visitor.get().status, 200)
        with Events(visitor) as events:
            self.assertEqual(events.next()[0], "figures")
            self.assertEqual(command("token", "revoke", str(number), database_url=self.database_url).returncode, 0)
            wait_until(lambda: visitor.get().status == 303, "the session ends with its token")
            kind, data = wait_until(lambda: (e := events.next())[0] == "end" and e, "the stream ends")
            self.assertIn("signed out", data["text"])
        self.assertEqual(visitor.get("/dashboard/live").status, 401)

    def test_a_bearer_token_may_look_as_well(self):
        answer = self.service.http("GET", "/dashboard", headers={"Authorization": f"Bearer {self.tokens['dashboard']}"})
        self.assertEqual(answer.status, 200)
        answer = self.service.http("GET", "/dashboard", headers={"Authorization": f"Bearer {self.tokens['chat']}"})
        self.assertEqual(answer.status, 403)
        answer = self.service.http("GET", "/dashboard", headers={"Authorization": "Bearer headroom_no"})
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (401, "text/html; charset=utf-8"))

    def test_nothing_of_a_session_or_token_is_logged(self):
        service = self.serve("--log-level", "trace")
        visitor = Visitor(service)
        visitor.sign_in(self.tokens["operator"])
        visitor.get(f"/dashboard/users/{new_user()}")
        user = new_user()
        self.act_on(visitor, user)
        log = service.log()
        for secret in [self.tokens["operator"], *visitor.cookies.values(), user, "ticket 4711"]:
            self.assertNotIn(secret, log)

    def act_on(self, visitor, user):
        _, done = self.act(visitor, user, "grant", messages="5")
        self.assertEqual(done.status, 303)


class Forms(AccessCase):
    def test_a_form_needs_the_seal_of_its_own_browser(self):
        user = new_user()
        visitor, other = self.signed_in(), self.signed_in()
        path = f"/dashboard/users/{user}"
        form = {"messages": "50", "reason": "x", "confirmed": "yes", "key": "0" * 64}
        for seal in [None, "", "0" * 64, other.seal(path), visitor.seal(path)[:-1], Visitor(self.service).seal()]:
            fields = form if seal is None else {**form, "seal": seal}
            for action in ("grant", "reset"):
                answer = visitor.send(f"{path}/{action}", fields)
                self.assertEqual(answer.status, 403, seal)
                self.assertIn("was not sent by a page of this service", words(answer))
        self.assertEqual(visitor.send("/dashboard/sign-out", {"seal": "0" * 64}).status, 403)
        self.assertEqual(Visitor(self.service).send("/dashboard/sign-in", {"token": self.tokens["operator"]}).status, 403)
        self.assertEqual(self.audit(user), [])
        self.assertEqual(visitor.get().status, 200)

    def test_a_form_from_another_site_is_refused_whatever_it_carries(self):
        user = new_user()
        visitor = self.signed_in()
        path = f"/dashboard/users/{user}"
        fields = {"seal": visitor.seal(path), "messages": "50", "reason": "x", "confirmed": "yes", "key": "0" * 64}
        for headers in [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"},
                        {"Sec-Fetch-Site": None, "Origin": "https://evil.example"},
                        {"Sec-Fetch-Site": None, "Origin": f"http://127.0.0.1:{self.service.http_port + 1}"}]:  # fmt: skip
            answer = visitor.send(f"{path}/grant", fields, **headers)
            self.assertEqual(answer.status, 403, headers)
        self.assertEqual(self.audit(user), [])
        answer = visitor.send(f"{path}/grant", fields, **{"Sec-Fetch-Site": None, "Origin": "null"})
        self.assertEqual(answer.status, 303, "what an older browser sends from our pages")

    def test_other_bodies_are_no_forms(self):
        visitor = self.signed_in()
        path = f"/dashboard/users/{new_user()}"
        seal = visitor.seal(path)
        for status, body, headers in [
            (415, json.dumps({"seal": seal}), {"Content-Type": "application/json"}),
            (415, f"seal={seal}", {"Content-Type": "text/plain"}),
            (400, f"seal={seal}&messages", {}), (400, f"seal={seal}&seal={seal}", {}), (400, f"seal={seal}&reason=%ff", {}),
            (400, f"seal={seal}&reason=%4", {}), (400, "&".join(f"a{n}=b" for n in range(20)), {}),
            (413, "a=" + "b" * 2_000_000, {}),
        ]:  # fmt: skip
            headers = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin", **headers}
            answer = visitor.ask("POST", f"{path}/reset", body, headers)
            self.assertEqual(answer.status, status, body[:80])
        self.assertEqual(visitor.get(f"{path}/reset").headers["Location"], path)
        self.assertEqual(visitor.ask("GET", f"{path}/nothing/more").status, 404)

    def test_bad_fields_are_told_beside_them_and_change_nothing(self):
        user = new_user()
        visitor = self.signed_in()
        path = f"/dashboard/users/{user}"
        for fields, told in [
            ({"messages": "0"}, "from 1 to 1,000,000"), ({"messages": "1000001"}, "from 1 to 1,000,000"), ({"messages": "-5"}, "from 1"),
            ({"messages": "ten"}, "from 1"), ({"messages": "١٢"}, "from 1"), ({}, "from 1"),
            ({"messages": "5", "reason": " "}, "Say why"), ({"messages": "5", "reason": "x" * 1025}, "too long"),
            ({"messages": "5", "reason": "a\nb"}, "line breaks"), ({"messages": "5", "reason": "a\u202eb"}, "format characters"),
        ]:  # fmt: skip
            answer = visitor.send(f"{path}/grant", {"seal": visitor.seal(path), "reason": "why", **fields})
            self.assertEqual(answer.status, 400, fields)
            self.assertIn(told, words(answer))
            self.assertIn('aria-invalid="true"', answer.text)
        self.assertEqual(self.audit(user), [])

    def test_what_is_typed_stays_text(self):
        visitor = self.signed_in()
        path = f"/dashboard/users/{new_user()}"
        nasty = "\"><script>alert('1')</script>&amp; {{user}} {{{frame}}}"
        asked = visitor.send(f"{path}/grant", {"seal": visitor.seal(path), "messages": "5", "reason": nasty})
        self.assertEqual(hidden(asked)["reason"], nasty)
        self.assertNotIn("<script>", asked.text.replace('<script src="/dashboard/script.js" defer></script>', ""))
        done = visitor.send(f"{path}/grant", {**hidden(asked), "confirmed": "yes"})
        page = visitor.get(done.headers["Location"])
        self.assertIn(nasty, words(page))
        self.assertNotIn("alert('1')</script>", page.text)
        for path in ["/dashboard/users?" + urlencode({"user": nasty}), "/dashboard?" + urlencode({"period": nasty})]:
            self.assertNotIn("alert('1')</script>", visitor.get(path).text)

    def test_markup_with_scalars_beside_it_stays_text(self):
        page = self.signed_in().get("/dashboard/users?user=%D8%80%22%D8%80%3E%D8%80%3Cmeta%20http-equiv=refresh%22%CC%81")
        self.assertEqual(page.status, 400)
        self.assertNotIn("<meta http-equiv", page.text)
        self.assertIn('value="\u0600&quot;\u0600&gt;\u0600&lt;meta http-equiv=refresh&quot;\u0301"', page.text)

    def test_what_is_typed_again_is_cut_however_it_is_written(self):
        page = self.signed_in().get("/dashboard/users?user=a" + "%CC%81" * 500)
        self.assertIn('value="a' + "\u0301" * 63 + '"', page.text)


class Actions(AccessCase):
    def test_a_grant_is_asked_once_more_done_once_and_on_record_with_the_token(self):
        user = new_user()
        self.ask(f"CONSUME {user} 100")
        self.assertIn("BLOCKED", self.ask(f"CHECK {user}"))
        visitor = self.signed_in()
        asked, done = self.act(visitor, user, "grant", messages="1,050")
        self.assertIn("Grant 1,050 messages", words(asked))
        self.assertIn("100 of 100 trial messages used", words(asked))
        self.assertEqual(done.status, 303)
        self.assertEqual(self.audit(user), [["grant", "token:operator", "ticket 4711", "100", "1150"]])
        self.assertIn("ALLOWED", self.ask(f"CONSUME {user}"))
        page = visitor.get(done.headers["Location"])
        self.assertIn("Granted. It counts from the next message on. The limit of this period is 1,150 now.", words(page))
        self.assertIn("grant by token:operator : ticket 4711", words(page))
        again = visitor.send(f"/dashboard/users/{user}/grant", {**hidden(asked), "confirmed": "yes"})
        self.assertIn("it counts once", words(visitor.get(again.headers["Location"])))
        self.assertEqual(len(self.audit(user)), 1)

    def test_a_reset_is_asked_once_more_and_on_record_with_its_reason(self):
        user = new_user()
        self.ask(f"CONSUME {user} 42")
        visitor = self.signed_in()
        asked, done = self.act(visitor, user, "reset")
        self.assertIn("Set the count of trial from 42 to 0?", words(asked))
        self.assertEqual(self.count(user), 0)
        self.assertEqual(self.audit(user), [["reset", "token:operator", "ticket 4711", "0", "100"]])
        self.assertIn("Reset. The count of this period was set to 0.", words(visitor.get(done.headers["Location"])))

    def test_nothing_is_done_before_it_is_confirmed(self):
        user = new_user()
        self.ask(f"CONSUME {user} 42")
        visitor = self.signed_in()
        path = f"/dashboard/users/{user}"
        for fields in [{}, {"confirmed": "no"}, {"confirmed": "yes"}, {"confirmed": "yes", "key": "x"}]:
            answer = visitor.send(f"{path}/reset", {"seal": visitor.seal(path), "reason": "why", **fields})
            self.assertEqual(answer.status, 200)
            self.assertIn("Yes, reset", words(answer))
        self.assertEqual(self.count(user), 42)
        self.assertEqual(self.audit(user), [])

    def test_a_grant_to_somebody_without_access_promises_nothing(self):
        user = new_user()
        self.psql.run(f"select set_plan('{user}', 'paid', 'revoked')")
        visitor = self.signed_in()
        self.assertIn("This user has no access. The subscription is revoked", words(visitor.get(f"/dashboard/users/{user}")))
        for action, title in [("grant", "Granted"), ("reset", "Reset")]:
            asked, done = self.act(visitor, user, action, messages="50")
            self.assertIn("This user has no access.", words(asked))
            self.assertNotIn("from the next message on", words(asked))
            page = visitor.get(done.headers["Location"])
            self.assertIn(f"{title}, but the user has no access.", words(page))
            self.assertNotIn("from the next message on", words(page))
        self.assertIn("BLOCKED", self.ask(f"CHECK {user}"))

    def test_a_visitor_who_may_only_look_gets_no_forms_and_cannot_send_them(self):
        user = new_user()
        self.ask(f"CONSUME {user} 42")
        visitor = self.signed_in("dashboard")
        path = f"/dashboard/users/{user}"
        self.assertNotIn("Reset usage", words(visitor.get(path)))
        for action in ("grant", "reset"):
            answer = visitor.send(
                f"{path}/{action}", {"seal": visitor.seal(path), "messages": "5", "reason": "x", "confirmed": "yes", "key": "0" * 64}
            )
            self.assertEqual(answer.status, 403)
            self.assertIn("needs a token with the scope operator", words(answer))
        self.assertEqual(self.audit(user), [])

    def test_a_link_to_a_result_works_only_for_its_visitor_and_user(self):
        user = new_user()
        visitor, other = self.signed_in(), self.signed_in()
        _, done = self.act(visitor, user, "grant", messages="5")
        self.assertIn("Granted.", words(visitor.get(done.headers["Location"])))
        self.assertNotIn("Granted.", words(other.get(done.headers["Location"])))
        self.assertNotIn("Granted.", words(visitor.get(done.headers["Location"].replace(user, new_user()))))
        self.assertNotIn("Granted.", words(visitor.get(f"/dashboard/users/{user}?result=grant.done.99.{'0' * 64}")))

    def test_a_grant_that_cannot_be_is_told_so(self):
        user = new_user()
        self.ask(f"CONSUME {user}")
        self.psql.run(f"update message_usage set \"limit\" = 2147483000 where user_id = '{user}'")
        visitor = self.signed_in()
        _, done = self.act(visitor, user, "grant", messages="1000000")
        self.assertIn("Nothing was changed. The limit would be more than", words(visitor.get(done.headers["Location"])))


class Answers(AccessCase):
    def test_every_answer_tells_the_browser_what_it_may(self):
        visitor = self.signed_in()
        user = new_user()
        for path in ["/dashboard", "/dashboard/users", f"/dashboard/users/{user}", "/dashboard/users?user=x", "/dashboard/nowhere",
                     "/dashboard/style.css", "/dashboard/script.js", "/dashboard/icon.svg", "/dashboard/users/not-a-user"]:  # fmt: skip
            answer = visitor.get(path)
            said = {name.lower(): value for name, value in answer.headers.items()}
            self.assertEqual(said["content-security-policy"], POLICY, path)
            self.assertEqual(said["x-content-type-options"], "nosniff")
            self.assertEqual(said["referrer-policy"], "no-referrer")
            self.assertIn("camera=()", said["permissions-policy"])
            self.assertEqual(said["cache-control"], "no-cache" if "." in path else "no-store")
        for path in ["/dashboard", "/dashboard/sign-in"]:
            self.assertEqual(Visitor(self.service).get(path).headers["Content-Security-Policy"], POLICY)

    def test_pages_hold_no_style_script_or_address_of_elsewhere(self):
        visitor = self.signed_in()
        for path in ["/dashboard", f"/dashboard/users/{new_user()}", "/dashboard/users"]:
            text = visitor.get(path).text
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
        text = words(self.signed_in().get(f"/dashboard/users/{user}"))
        self.assertIn("5 January 2026, 10:00 UTC INITIAL_PURCHASE applied revenuecat", text)
        self.assertIn(f"6 January 2026, 10:00 UTC INITIAL_PURCHASE failed revenuecat {problem}", text)
        self.assertEqual(text.count("UTC INITIAL_PURCHASE"), 2, "each event is listed once")
        visitor = self.signed_in()
        overview = wait_until(lambda: problem in (text := words(visitor.get())) and text, "the overview lists what failed")
        self.assertRegex(overview, r"[1-9] store events? failed\. The users concerned")
        self.assertIn(f"INITIAL_PURCHASE revenuecat {problem} {user}", overview)

    def test_what_is_not_there_is_a_page_that_says_so(self):
        visitor = self.signed_in()
        for path in ["/nowhere", "/a/b/c/d", "?period=xx", "?period=2026-13", "?period=paid"]:
            path = "/dashboard" + path
            answer = visitor.get(path)
            self.assertEqual((answer.status, answer.headers["Content-Type"]), (404, "text/html; charset=utf-8"), path)
            self.assertIn("Go to the overview", words(answer))
            self.assertIn('aria-label="Pages"', answer.text)
        for path in ["/dashboard?period=trial", "/dashboard?period=free", "/dashboard?period=1999-12", "/dashboard?period="]:
            self.assertEqual(visitor.get(path).status, 200, path)
        answer = visitor.get("/dashboard/users/7f1c0a52")
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (404, "text/html; charset=utf-8"))
        self.assertIn("Find a user", words(answer))
        self.assertIn('value="7f1c0a52"', answer.text)
        self.assertIn('aria-label="Pages"', answer.text)
        answer = visitor.get("/dashboard/users?user=%207F1C0A52-3A51-4A7E-9D55-0B6A3F1F7C11%20")
        self.assertEqual((answer.status, answer.headers["Location"]), (303, "/dashboard/users/7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"))

    def test_live_numbers_come_each_second_and_outlive_the_idle_timeout(self):
        service = self.serve("--http-idle-timeout-ms", "2000")
        visitor = Visitor(service)
        visitor.sign_in(self.tokens["dashboard"])
        with Events(visitor) as events:
            for _ in range(4):
                kind, data = events.next()
                self.assertEqual(kind, "figures")
                self.assertEqual(set(data), {"rate", "p99", "queue", "database", "state", "number", "sentence"})
                self.assertEqual(data["database"], "up")
            service.signal(15)
            kind, data = wait_until(lambda: (e := events.next())[0] == "end" and e, "the stream is told")
            self.assertIn("shutting down", data["text"])
        self.assertEqual(service.wait(), 0)

    def test_streams_are_bounded_and_given_back(self):
        visitor = self.signed_in()
        for _ in range(65):
            self.assertEqual(visitor.ask("HEAD", "/dashboard/live").status, 200)
        streams = [Events(visitor) for _ in range(64)]
        for stream in streams:
            self.assertEqual(stream.next()[0], "figures")
        self.assertEqual(visitor.get("/dashboard/live").status, 503)
        for stream in streams:
            stream.close()

        def is_open():
            try:
                with Events(visitor) as stream:
                    return stream.next()[0] == "figures"
            except AssertionError:
                return False

        wait_until(is_open, "there is room again")


class Open(Case):
    """No token was ever made: whoever reaches the port may look and change, as on the line protocol."""

    SHARED = True

    def test_there_is_nothing_to_sign_in_to(self):
        visitor = Visitor(self.service)
        page = visitor.get()
        self.assertEqual(page.status, 200)
        self.assertNotIn("Sign out", words(page))
        self.assertEqual(visitor.get("/dashboard/sign-in").headers["Location"], "/dashboard")

    def test_the_address_alone_leads_to_the_dashboard(self):
        answer = Visitor(self.service).get("/")
        self.assertEqual((answer.status, answer.headers["Location"]), (303, "/dashboard"))
        self.assertEqual(self.service.http("HEAD", "/").status, 303)

    def test_what_is_not_there_keeps_the_navigation(self):
        visitor = Visitor(self.service)
        for path in ["/dashboard/nowhere", "/dashboard/users/7f1c0a52", "/dashboard?period=xx"]:
            answer = visitor.get(path)
            self.assertEqual(answer.status, 404, path)
            self.assertIn('aria-label="Pages"', answer.text, path)

    def test_forms_need_their_seal_all_the_same_and_actions_are_on_record(self):
        user = new_user()
        self.ask(f"CONSUME {user} 42")
        visitor = Visitor(self.service)
        path = f"/dashboard/users/{user}"
        fields = {"reason": "why", "confirmed": "yes", "key": "0" * 64}
        self.assertEqual(visitor.send(f"{path}/reset", fields).status, 403)
        foreign_seal = Visitor(self.service).seal("/dashboard/users/" + user)
        self.assertEqual(visitor.send(f"{path}/reset", {**fields, "seal": foreign_seal}).status, 403)
        self.assertEqual(self.count(user), 42)
        self.assertEqual(visitor.send(f"{path}/reset", {**fields, "seal": visitor.seal(path)}).status, 303)
        self.assertEqual(self.count(user), 0)
        row = self.psql.run(f"select action, actor, reason from headroom.audit_log where user_id = '{user}'")
        self.assertEqual(row, [["reset", "dashboard", "why"]])

    def test_another_sites_name_for_this_machine_is_refused(self):
        port = self.service.http_port
        for host in [f"evil.example:{port}", "evil.example", f"127.0.0.1.evil.example:{port}", f"localhost.evil.example:{port}"]:
            for path in ["/dashboard", "/dashboard/users", "/dashboard/live"]:
                answer = Visitor(self.service, host=host).get(path)
                self.assertEqual(answer.status, 421, host)
                self.assertIn("headroom token create", words(answer))
        for host in [f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", "10.1.2.3", f"headroom.localhost:{port}", "headroom"]:
            self.assertEqual(Visitor(self.service, host=host).get().status, 200, host)

    def test_a_period_without_usage_says_so(self):
        text = words(Visitor(self.service).get("/dashboard?period=2031-01"))
        self.assertIn("Nobody has used anything in this period.", text)


class New(Case):
    """Nobody has sent a message yet."""

    def test_the_overview_says_what_to_do_until_there_is_something_to_show(self):
        visitor = Visitor(self.service)
        page = wait_until(lambda: "What to do first" in words(p := visitor.get()) and p, "the first steps")
        self.assertIn("headroom token create backend --scope chat", words(page))
        self.assertNotIn('class="columns"', page.text)
        self.assertIn("Premium paid", words(page))
        self.ask(f"CONSUME {self.user()} 3")
        page = wait_until(lambda: "Messages 3" in words(p := visitor.get()) and p, "the message shows")
        self.assertNotIn("What to do first", words(page))
        # A trial is in no month.
        self.assertNotIn('class="columns"', page.text)
        self.ask(f"CONSUME {self.subscriber('paid')} 3")
        wait_until(lambda: 'class="columns"' in visitor.get().text, "the month has a column")


class Away(Case):
    """The database goes away under an open dashboard."""

    OWN_CLUSTER = True
    # Requests that come first wait for so long.
    FLAGS = ("--request-timeout-ms", "8000")

    def test_pages_say_so_with_what_is_still_known_and_recover(self):
        user = new_user()
        self.ask(f"CONSUME {user} 81")
        visitor = Visitor(self.service)
        self.assertEqual(visitor.get("/dashboard?period=trial").status, 200)
        self.cluster.stop_immediately()
        away = wait_until(lambda: (a := visitor.get("/dashboard?period=trial")).status == 503 and a, "the page says so")
        self.assertIn("The database is away.", words(away))
        self.assertIn("Messages 81", words(away))
        self.assertRegex(words(away), r"Counted (just now|\d+ (s|min) ago)")
        self.assertEqual(away.headers["Retry-After"], "5")
        page = visitor.get(f"/dashboard/users/{user}")
        self.assertEqual(page.status, 503)
        self.assertIn("The database is away.", words(page))
        fresh = words(visitor.get("/dashboard?period=free"))
        self.assertIn("The database cannot be reached at the moment.", fresh)
        with Events(visitor) as events:
            self.assertEqual(events.next()[1]["database"], "down")
            self.cluster.start()
            wait_until(lambda: events.next()[1]["database"] == "up", "the numbers say that it is back")
        wait_until(lambda: visitor.get("/dashboard?period=trial").status == 200, "the page is whole again")


class Events:
    """A stream of server-sent events, as a browser opens it."""

    def __init__(self, visitor):
        self.socket = socket.create_connection(("127.0.0.1", visitor.service.http_port), timeout=PATIENCE)
        cookies = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
        self.socket.sendall(f"GET /dashboard/live HTTP/1.1\r\nHost: {visitor.host}\r\nCookie: {cookies}\r\n\r\n".encode())
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
