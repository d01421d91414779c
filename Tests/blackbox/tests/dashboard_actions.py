"""The dashboard's forms that set a plan, forget a user and replay a store event, and its lists of users, over HTTP without a browser."""

import html
import re
import uuid
from urllib.parse import urlencode

from support.case import Case
from support.pages import DashboardClient, hidden_fields, visible_text
from support.stores import revenuecat
from support.users import new_user
from support.waiting import wait_until
from support.webhooks import post_event
from support.wire import Answer

from .dashboard_access import AccessCase

AUDIT = "select action, actor, reason from headroom.audit_log where "


class Plans(AccessCase):
    def test_a_plan_is_asked_once_more_set_and_on_record_with_the_token(self):
        user = new_user()
        self.send_command(f"CONSUME {user} 42")
        client = self.signed_in()
        confirmation, done = self.act(client, user, "plan", plan="paid", state="cancelled", expires="2099-12-24")
        question = "Set the plan to Premium (paid), state cancelled, until 24 December 2099, 00:00 UTC?"
        self.assertIn(question, visible_text(confirmation))
        self.assertIn("also those of stores", visible_text(confirmation))
        self.assertEqual(done.status, 303)
        usage = Answer(self.send_command(f"USAGE {user}"))
        self.assertEqual((usage["plan"], usage["state"], usage["expires"]), ("paid", "cancelled", "2099-12-24T00:00:00Z"))
        self.assertEqual([row[:3] for row in self.audit(user)], [["plan", "token:operator", "ticket 4711"]])
        page = visible_text(client.get(done.headers["Location"]))
        self.assertIn("The plan is set. It takes effect with the next message. The limit of this period is now 800.", page)
        self.assertIn("plan by token:operator : ticket 4711", page)

    def test_an_open_window_is_closed_and_the_period_stays(self):
        user = new_user()
        self.psql.run("update headroom.plans set window_messages = 5, window_seconds = 3600 where plan = 'trial'")
        self.addCleanup(self.psql.run, "update headroom.plans set window_messages = null, window_seconds = null where plan = 'trial'")
        client = self.signed_in()
        self.assertNotIn("Close the window", visible_text(client.get(f"/dashboard/users/{user}")))
        self.send_command(f"CONSUME {user} 5")
        self.assertIn("Close the window", visible_text(client.get(f"/dashboard/users/{user}")))
        confirmation, done = self.act(client, user, "window")
        self.assertIn("Close the window, with 5 messages, that is open now?", visible_text(confirmation))
        usage = Answer(self.send_command(f"CONSUME {user}"))
        self.assertEqual((usage.used, usage["window_used"]), (6, "1"))
        self.assertEqual([row[:3] for row in self.audit(user)], [["reset", "token:operator", "ticket 4711"]])
        self.assertIn("The window is closed.", visible_text(client.get(done.headers["Location"])))

    def test_nothing_is_set_before_it_is_confirmed(self):
        user = new_user()
        client = self.signed_in()
        path = f"/dashboard/users/{user}"
        fields = {"csrf": client.csrf_token(path), "plan": "pro", "state": "", "expires": "", "reason": "why"}
        answer = client.send(f"{path}/plan", fields)
        self.assertEqual((answer.status, "Yes, set the plan" in visible_text(answer)), (200, True))
        self.assertEqual(self.audit(user), [])

    def test_errors_are_shown_beside_bad_fields_and_nothing_changes(self):
        user = new_user()
        client = self.signed_in()
        path = f"/dashboard/users/{user}"
        for fields, message in [
            ({"plan": "gold"}, "Choose one of the plans."), ({}, "Choose one of the plans."),
            ({"plan": "paid", "state": "happy"}, "Choose one of the states."),
            ({"plan": "trial", "state": "cancelled"}, "This plan can only be: expired, revoked, trial."),
            ({"plan": "paid", "expires": "soon"}, "Enter a day, such as 2026-12-24"),
            ({"plan": "paid", "reason": ""}, "Enter a reason"),
        ]:  # fmt: skip
            answer = client.send(f"{path}/plan", {"csrf": client.csrf_token(path), "reason": "why", **fields})
            self.assertEqual(answer.status, 400, fields)
            self.assertIn(message, visible_text(answer))
            self.assertIn('aria-invalid="true"', answer.text)
        self.assertEqual(self.audit(user), [])

    def test_a_label_that_is_long_or_of_another_direction_or_markup_stays_text(self):
        labels = {"wide": "W" * 64, "arabic": "مميّز 2", "markup": "</option><script>alert(1)</script>"}
        for name, label in labels.items():
            self.psql.run(f"insert into headroom.plans (plan, label, cycle, allowance) values ('{name}', '{label}', 'monthly', 7)")
        client = self.signed_in()
        for name, label in labels.items():
            user = new_user()
            self.psql.run(f"select set_plan('{user}', '{name}')")
            path = f"/dashboard/users/{user}"
            page = wait_until(lambda: f'value="{name}" selected' in (p := client.get(path)).text and p, "the plan is in the list")
            self.assertIn(f"<bdi>{html.escape(label)}</bdi>", page.text)
            self.assertNotIn("<script>alert", page.text)


class ModelsAndMembers(AccessCase):
    def test_each_is_shown_found_and_reset_alone(self):
        self.psql.run("insert into headroom.plans (plan, label, cycle, allowance) values ('crew', 'Crew', 'monthly', 2000)")
        self.psql.run(
            "insert into headroom.plan_limits (plan, kind, name, label, allowance, window_messages, window_seconds, weight, fallback)"
            " values ('crew', 'model', 'large-*', 'Large', 10, 11, 3600, 2, 'small'),"
            " ('crew', 'model', 'small-*', 'Small', null, null, null, 1, null),"
            " ('crew', 'member', '*', null, 100, null, null, 1, null)"
        )
        user, member, other = new_user(), new_user(), new_user()
        self.psql.run(f"select set_plan('{user}', 'crew')")
        for who, n in ((member, 3), (other, 7)):
            self.assertIn("+ALLOWED ", self.send_command(f"CONSUME {user} {n} model=large-1 member={who}"))
        client = self.signed_in()
        page = visible_text(client.get(f"/dashboard/users/{user}"))
        for text in ("Large large-* blocked", "10 of 10 messages in this period", "A message takes 2 of the user’s messages.",
                     "When it is used up, small is offered.", "14 of 100 messages in this period"):  # fmt: skip
            self.assertIn(text, page)
        self.assertLess(page.index(other), page.index(member), "the fuller one comes first")
        found = client.get(f"/dashboard/users/{user}?part={member.upper()}")
        self.assertIn("6 of 100 messages in this period", visible_text(found))
        self.assertNotIn(other, visible_text(found))
        self.assertIn(f'<option value="member:{member}" selected>', found.text)
        self.assertIn("What the product shows this user Counter: hidden", page)
        for name, texts in (("large-1", "For the model Large. Counter: blocked Crew You've used your Large messages"),
                            (other, "For this member. Counter: hidden Crew No banner")):  # fmt: skip
            self.assertIn(f"What the product shows this user {texts}", visible_text(client.get(f"/dashboard/users/{user}?part={name}")))
        missing = visible_text(client.get(f"/dashboard/users/{user}?part={new_user()}"))
        self.assertIn("No model or member of this name has messages in this period.", missing)
        for name in ("Large", "large-*", "large-1"):
            self.assertIn('<option value="model:large-*" selected>', client.get(f"/dashboard/users/{user}?part={name}").text, name)
        confirmation, done = self.act(client, user, "window", part="model:large-*")
        self.assertIn("Close the window of the model Large, with 10 messages, that is open now?", visible_text(confirmation))
        page = visible_text(client.get(done.headers["Location"]))
        self.assertIn("The window of this model or member is closed. Its count of the period stays.", page)
        self.assertIn("0 of 11 messages in the window of 1 h, which opens with a message", page)
        self.assertIn("10 of 10 messages in this period", page)
        confirmation, done = self.act(client, user, "reset", part="model:large-*")
        self.assertRegex(visible_text(confirmation), r"Set the count of the model Large in \w+ \d+ from 10 to 0\?")
        page = visible_text(client.get(done.headers["Location"]))
        self.assertIn("Reset. The count of this model or member was set to 0, and its window is closed.", page)
        usage = Answer(self.send_command(f"USAGE {user} model=large-1 member={member}"))
        self.assertEqual((usage.used, usage["model_used"], usage["member_used"]), (20, "0", "6"))
        self.assertIn("+HELD ", self.send_command(f"RESERVE {user} 2 key=k model=large-1"))
        self.assertIn("+ALLOWED ", self.send_command(f"CONSUME {user} model=small-1"))
        page = visible_text(client.get(f"/dashboard/users/{user}"))
        self.assertIn("0 of 11 messages in the window of 1 h, 2 held, resets", page)
        self.assertIn("1 message in this period, without a limit", page)
        self.act(client, user, "reset", part=f"member:{member}")
        usage = Answer(self.send_command(f"USAGE {user} member={member}"))
        self.assertEqual((usage.used, usage["member_used"]), (21, "0"))
        self.assertEqual([row[:3] for row in self.audit(user)][1:], 3 * [["reset", "token:operator", "ticket 4711"]])
        self.assertEqual(self.act(client, user, "reset", part="model:a b")[0].status, 400)


class Forgetting(AccessCase):
    def forget(self, client, user, word):
        path = f"/dashboard/users/{user}"
        fields = {"csrf": client.csrf_token(path), "reason": "ticket 4711"}
        confirmation = client.send(f"{path}/forget", fields)
        self.assertEqual(confirmation.status, 200)
        return confirmation, client.send(f"{path}/forget", {**hidden_fields(confirmation), "confirmed": "yes", "word": word})

    def test_a_user_is_forgotten_once_the_word_is_typed_and_a_spent_trial_stays_spent(self):
        user = new_user()
        self.send_command(f"CONSUME {user} 100")
        client = self.signed_in()
        for word in ["", "yes", "forge"]:
            confirmation, answer = self.forget(client, user, word)
            self.assertEqual(answer.status, 400)
            self.assertIn("Type the word forget to confirm.", visible_text(answer))
            self.assertIn('aria-invalid="true"', answer.text)
        text = visible_text(confirmation)
        self.assertIn("This cannot be undone.", text)
        self.assertIn("Deleted: usage of all billing periods", text)
        self.assertIn("It stays spent if the user returns.", text)
        self.assertEqual(self.count(user), 100)
        _, done = self.forget(client, user, " Forget ")
        self.assertEqual(done.status, 303)
        for table in ("message_usage", "headroom.subscribers", "headroom.audit_log"):
            self.assertEqual(self.psql.number(f"select count(*) from {table} where user_id = '{user}'"), 0, table)
        page = visible_text(client.get(done.headers["Location"]))
        self.assertIn("Forgotten. All data of this user is deleted. A trial that was started stays spent.", page)
        self.assertIn("BLOCKED", self.send_command(f"CONSUME {user}"))
        row = self.psql.run(AUDIT + "action = 'forget' order by id desc limit 1")
        self.assertEqual(row, [["forget", "token:operator", "ticket 4711"]])


class Replays(AccessCase):
    def failed(self):
        """A user, and the id and product of an event that failed because its product is not mapped."""
        user, product = new_user(), f"product {uuid.uuid4()}"
        self.send_command(f"CONSUME {user}")
        event = revenuecat(
            "INITIAL_PURCHASE", "2026-01-05T10:00:00Z", user, "T" + user, id=f"{user} & <more>", product_id=product,
            expiration_at_ms="2099-01-05T10:00:00Z",
        )  # fmt: skip
        self.assertEqual(post_event(self.service, event)["outcome"], "failed")
        return user, event["event"]["id"], product

    def link(self, page, event):
        """The link that replays an event, on this page."""
        wanted = "/dashboard/event?" + urlencode({"source": "revenuecat", "id": event}).replace("+", "%20")
        return wanted if wanted in [html.unescape(link) for link in re.findall(r'href="([^"]*)"', page.text)] else None

    def test_a_failed_event_is_replayed_from_either_list_and_on_record_with_the_token(self):
        user, event, product = self.failed()
        client = self.signed_in()
        link = self.link(client.get(f"/dashboard/users/{user}"), event)
        self.assertTrue(link, "the user's page")
        self.assertTrue(wait_until(lambda: self.link(client.get(), event), "the overview's list"))
        page = client.get(link)
        self.assertIn(f"product '{product}'", visible_text(page))
        self.assertEqual(hidden_fields(page)["id"], event)
        still = client.send("/dashboard/event/replay", {**hidden_fields(page), "reason": "a first try"})
        self.assertEqual(still.status, 303)
        self.assertIn("It still fails. Nothing was changed.", visible_text(client.get(still.headers["Location"])))
        self.psql.run(f"select headroom.map_product('revenuecat', '{product}', 'pro')")
        done = client.send("/dashboard/event/replay", {**hidden_fields(page), "reason": "mapped, ticket 4711"})
        page = client.get(done.headers["Location"])
        self.assertIn("Applied.", visible_text(page))
        self.assertEqual(Answer(self.send_command(f"USAGE {user}"))["plan"], "pro")
        trail = self.psql.run(AUDIT + f"user_id = '{user}' and actor = 'token:operator'")
        reason = "INITIAL_PURCHASE reported by revenuecat; replayed: mapped, ticket 4711"
        self.assertEqual(trail, [["store_event", "token:operator", reason]])
        self.assertFalse(self.link(client.get(f"/dashboard/users/{user}"), event), "it has been applied")
        # Sent once more, it changes nothing.
        again = client.send("/dashboard/event/replay", {**hidden_fields(page), "reason": "twice"})
        self.assertEqual(again.status, 303)
        self.assertEqual(Answer(self.send_command(f"USAGE {user}"))["plan"], "pro")

    def test_a_stores_own_event_names_no_operator(self):
        user, _, product = self.failed()
        self.psql.run(f"select headroom.map_product('revenuecat', '{product}', 'paid')")
        event = revenuecat("RENEWAL", "2026-02-05T10:00:00Z", user, "T" + user, product_id=product, expiration_at_ms="2099-01-05T10:00:00Z")
        self.assertEqual(post_event(self.service, event)["outcome"], "applied")
        reasons = self.psql.run(f"select distinct reason from headroom.audit_log where user_id = '{user}' and action = 'store_event'")
        self.assertIn(["RENEWAL reported by revenuecat"], reasons)
        self.assertFalse([reason for (reason,) in reasons if "replayed" in reason])

    def test_a_replay_needs_a_reason_a_csrf_token_and_the_scope_operator(self):
        user, event, product = self.failed()
        self.psql.run(f"select headroom.map_product('revenuecat', '{product}', 'pro')")
        client, viewer = self.signed_in(), self.signed_in("dashboard")
        link = self.link(client.get(f"/dashboard/users/{user}"), event)
        self.assertIsNone(self.link(viewer.get(f"/dashboard/users/{user}"), event))
        self.assertNotIn("Replay this event", visible_text(viewer.get(link)))
        fields = {**hidden_fields(client.get(link)), "reason": "why"}
        path = "/dashboard/event/replay"
        self.assertEqual(client.send(path, {**fields, "csrf": "0" * 64}).status, 403)
        self.assertEqual(client.send(path, fields, **{"Sec-Fetch-Site": "cross-site"}).status, 403)
        self.assertEqual(viewer.send(path, {**fields, "csrf": viewer.csrf_token(link)}).status, 403)
        for reason in ["", "a\nb"]:
            answer = client.send(path, {**fields, "reason": reason})
            self.assertEqual((answer.status, 'aria-invalid="true"' in answer.text), (400, True))
        outcome = self.psql.value(f"select outcome from headroom.billing_events where user_id = '{user}'")
        self.assertEqual(outcome, "failed")

    def test_an_event_that_does_not_exist_has_no_page(self):
        client = self.signed_in()
        for query in ["", "?source=revenuecat", "?source=revenuecat&id=none", "?id=none"]:
            self.assertEqual(client.get("/dashboard/event" + query).status, 404, query)
        path = f"/dashboard/users/{new_user()}"
        fields = {"csrf": client.csrf_token(path), "source": "revenuecat", "id": "none", "reason": "why"}
        answer = client.send("/dashboard/event/replay", fields)
        self.assertEqual(client.get(answer.headers["Location"]).status, 404)


class Lists(AccessCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run("insert into headroom.plans (plan, label, cycle, allowance) values ('team', 'Team', 'monthly', 100)")
        cls.users = [new_user() for _ in range(62)]
        for number, user in enumerate(cls.users):
            cls.psql.run(f"select set_plan('{user}', 'team')")
            with cls.service.connect() as connection:
                connection.send_command(f"AUTH {cls.tokens['chat']}")
                connection.send_command(f"CONSUME {user} {[100, 85, 3][min(2, number // 51)] - number % 3}")

    def rows(self, page):
        return re.findall(r'<a class="id" href="/dashboard/users/([0-9a-f-]{36})">', page.text)

    def wanted(self, where):
        rows = self.psql.run(f"select user_id from monthly_usage where is_open and {where} order by used desc, user_id")
        return [user for (user,) in rows]

    def listed(self, client, query):
        return wait_until(lambda: "Updated" in (page := client.get("/dashboard/list?" + query)).text and page, "the list is read")

    def test_a_tier_and_a_plan_are_listed_most_used_first_a_page_at_a_time(self):
        client = self.signed_in("dashboard")
        wanted = self.wanted("plan = 'team'")
        self.assertEqual(len(wanted), 62)
        first = self.listed(client, "plan=team")
        self.assertEqual(self.rows(first), wanted[:50])
        self.assertIn("1 to 50 of 62 users", visible_text(first))
        link = re.search(r'href="([^"]*)">Next page', first.text)[1]
        second = client.get(html.unescape(link))
        self.assertEqual(self.rows(second), wanted[50:])
        for tier in ("silent", "gentle", "prominent", "blocked"):
            listed = self.listed(client, f"plan=team&tier={tier}")
            self.assertEqual(self.rows(listed), self.wanted(f"plan = 'team' and tier = '{tier}'")[:50], tier)

    def test_the_overviews_counts_lead_to_the_lists(self):
        client = self.signed_in("dashboard")
        overview = wait_until(lambda: "/dashboard/list?" in (page := client.get()).text and page, "the figures are counted")
        links = {html.unescape(link) for link in re.findall(r'href="(/dashboard/list[^"]*)"', overview.text)}
        self.assertIn("/dashboard/list?period=open&tier=blocked", links)
        self.assertIn("/dashboard/list?period=open&plan=team", links)
        for link in links:
            page = self.listed(client, link.split("?")[1])
            self.assertGreater(len(self.rows(page)), 0, link)

    def test_a_list_that_does_not_exist_is_not_read(self):
        client = self.signed_in("dashboard")
        self.listed(client, "")
        for query in ["tier=loud", "plan=gold", "plan=Gold!", "period=xx", "period=gold", "page=0", "page=21", "page=x", "page=-1"]:
            self.assertEqual(client.get("/dashboard/list?" + query).status, 404, query)
        self.listed(client, "plan=team")
        answer = client.get("/dashboard/list?plan=team&page=3")
        self.assertEqual((answer.status, answer.headers["Location"]), (303, "/dashboard/list?period=open&plan=team"))
        self.assertEqual(DashboardClient(self.service).get("/dashboard/list").status, 303)


class Unreachable(Case):
    """The database becomes unreachable while a dashboard is open."""

    OWN_CLUSTER = True

    def test_no_page_says_that_there_are_no_messages(self):
        user = new_user()
        client = DashboardClient(self.service)
        wait_until(lambda: "Getting started" in visible_text(client.get()), "the first steps")
        self.assertIn("No messages yet.", visible_text(client.get(f"/dashboard/users/{user}")))
        wait_until(lambda: "No such user." in visible_text(client.get("/dashboard/list")), "the list is read")
        self.cluster.stop_immediately()
        overview = wait_until(lambda: (a := client.get()).status == 503 and a, "the page says so")
        self.assertNotIn("No messages yet.", visible_text(overview))
        self.assertRegex(visible_text(overview), r"No messages in the last 30 days\. .*That was (just now|\d+ (s|min) ago)\.")
        page = client.get(f"/dashboard/users/{user}")
        self.assertEqual(page.status, 503)
        self.assertNotIn("No messages yet.", visible_text(page))
        listed = client.get("/dashboard/list")
        self.assertEqual(listed.status, 503)
        self.assertIn("The database cannot be reached at the moment.", visible_text(listed))
