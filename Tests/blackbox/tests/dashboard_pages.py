"""The dashboard's pages in Chromium, at a desktop's and a phone's width, in light and dark, with and without JavaScript."""

import re
import unittest

from support import browser, citus
from support.browser import Browser, looks
from support.case import Case
from support.product import ADA, seed
from support.service import command
from support.stores import revenuecat
from support.tokens import token
from support.users import new_user
from support.waiting import wait_until
from support.webhooks import WEBHOOK_SETTINGS, post_event
from support.wire import Answer


def number(text):
    return int(re.sub(r"[^0-9]", "", text))


@unittest.skipIf(browser.missing(), f"not installed: {browser.missing()}")
class PagesCase(Case):
    """A service with a year of a product's usage, and a browser that is signed in as an operator."""

    FLAGS = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.service = cls.serve(env=WEBHOOK_SETTINGS)
        seed(cls)
        cls.number, cls.token = token(cls, "ann", "operator", "chat")
        wait_until(lambda: cls.service.send_command("CHECK " + ADA).startswith("-NOAUTH"), "a token is required")
        cls.browser = Browser(cls.service)
        cls.browser.sign_in(cls.token)
        wait_until(lambda: cls.browser.text("h1") == "Overview", "the overview")

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        super().tearDownClass()

    def tearDown(self):
        self.assertEqual(self.complaints(), [], "the browser's console")

    def complaints(self):
        """Entries of the browser's console, but for 503: a busy service answers so, and the page asks again."""
        return [line for line in self.browser.complaints() if "status of 503" not in line]

    def setUp(self):
        super().setUp()
        self.browser.set_appearance("desktop", "light")
        self.browser.complaints()

    def send_command(self, *requests):
        with self.service.connect() as connection:
            connection.send_command(f"AUTH {self.token}")
            return [connection.send_command(request) for request in requests][-1]


class Pages(PagesCase):
    def test_every_page_has_no_violation_of_axe_and_no_sideways_scrolling(self):
        stranger, account = new_user(), self.account()
        pages = {
            "overview": ("/dashboard", "Overview"),
            "user": (f"/dashboard/users/{ADA}", f"User {ADA}"),
            "find": ("/dashboard/users", "Find a user"),
            "mistake": ("/dashboard/users?user=ada", "Find a user"),
            "stranger": (f"/dashboard/users/{stranger}", f"User {stranger}"),
            "trial": ("/dashboard?period=trial", "Overview"),
            "empty": ("/dashboard?period=1999-12", "Overview"),
            "missing": ("/dashboard/nowhere", "Page not found"),
            "revoked": (f"/dashboard/users/{self.put('revoked')}", None),
            "grace": (f"/dashboard/users/{self.put('grace_period')}", None),
            "account": (f"/dashboard/users/{account}", None),
            "member": (f"/dashboard/users/{account}?part={ADA}", None),
            "cut-off": ("/dashboard/users/7f1c0a52", "Find a user"),
            "list": ("/dashboard/list?tier=gentle", "Users"),
            "plan-list": ("/dashboard/list?plan=pro&period=" + self.month(), "Users"),
            "words": ("/dashboard/words", "Words"),
            "words-ja": ("/dashboard/words?lang=ja", "Words"),
            "event": (f"/dashboard/event?source=revenuecat&id={self.failed_event()}", "Store event"),
        }
        for page, (name, (path, heading)) in enumerate(pages.items()):
            for width, scheme in looks(page):
                with self.subTest(page=name, width=width, scheme=scheme):
                    self.browser.set_appearance(width, scheme)
                    self.browser.open(path)
                    self.assert_page_is_fine(name, heading)
        # A page that is not there is an error to the console, too.
        self.assertEqual([line for line in self.complaints() if "status of 40" not in line], [])

    def month(self):
        return self.psql.value("select to_char(headroom.now() at time zone 'UTC', 'YYYY-MM')")

    def failed_event(self):
        event = revenuecat("RENEWAL", "2026-01-05T10:00:00Z", ADA, "2000000123456789", product_id="gold_monthly")
        self.assertEqual(post_event(self.service, event)["outcome"], "failed")
        return event["event"]["id"]

    def put(self, state):
        """A user of the paid plan in this state, with a few messages used."""
        user = new_user()
        ends = self.psql.value("select headroom.instant_text(headroom.now() + interval '20 days')")
        self.send_command(f"SETPLAN {user} paid", f"CONSUME {user} 12", f"SETPLAN {user} paid state={state} expires={ends}")
        return user

    def account(self):
        """An account whose plan limits models and members, with some of each, and a name and a label as long as may be."""
        self.psql.run("insert into headroom.plans (plan, label, cycle, allowance) values ('crew', 'Crew', 'monthly', 2000)")
        self.psql.run(
            "insert into headroom.plan_limits (plan, kind, name, label, allowance, window_messages, window_seconds, weight, fallback)"
            " values ('crew', 'model', 'large', 'Large', 10, 9, 10800, 2, 'small'), ('crew', 'model', repeat('m', 63) || '*',"
            " repeat('W', 64), 500, null, null, 1, null), ('crew', 'member', '*', null, 100, null, null, 1, null)"
        )
        user = new_user()
        self.send_command(
            f"SETPLAN {user} crew", f"CONSUME {user} 9 model=large member={ADA}", f"RESERVE {user} 2 key=m member={new_user()}",
            *[f"CONSUME {user} {n} member={new_user()}" for n in range(1, 25)],
        )  # fmt: skip
        return user

    def texts(self, selector):
        """Of all of these, at one go: the overview replaces its parts as figures come."""
        return self.browser.run("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText.trim())", selector)

    def test_pages_that_follow_a_form_are_fine_as_well(self):
        for width, scheme in looks():
            with self.subTest(width=width, scheme=scheme):
                self.browser.set_appearance(width, scheme)
                self.browser.open(f"/dashboard/users/{ADA}")
                self.browser.fill("#grant-messages", "5")
                self.browser.fill("#grant-reason", "ticket 4712")
                self.browser.find("form[action$=grant] button").click()
                self.assert_page_is_fine("confirm", "Grant messages")
                grant = self.browser.run("return getComputedStyle(document.querySelector('main button')).backgroundColor")
                self.browser.find("main .primary").click()
                wait_until(lambda: self.browser.all(".notice"), "what became of it")
                self.assertIn("Granted.", self.browser.text(".notice"))
                self.assert_page_is_fine("granted", f"User {ADA}")
                self.browser.open(f"/dashboard/users/{ADA}")
                self.browser.fill("#grant-messages", "none")
                self.browser.fill("#grant-reason", "ticket 4712")
                self.browser.find("form[action$=grant] button").click()
                wait_until(lambda: self.browser.run("return document.activeElement.id") == "grant-messages", "the mistake")
                self.assert_page_is_fine("draft", f"User {ADA}")
                self.browser.open(f"/dashboard/users/{ADA}")
                self.browser.fill("#reset-reason", "ticket 4712")
                self.browser.find("form[action$=reset] button").click()
                self.assert_page_is_fine("confirm-reset", "Reset usage")
                reset = self.browser.run("return getComputedStyle(document.querySelector('main button')).backgroundColor")
                self.assertNotEqual(reset, grant)
                self.browser.open(f"/dashboard/users/{ADA}")
                self.browser.fill("#plan-expires", "tomorrow")
                self.browser.fill("#plan-reason", "ticket 4712")
                self.browser.find("form[action$=plan] button").click()
                wait_until(lambda: self.browser.run("return document.activeElement.id") == "plan-expires", "the mistake")
                self.assert_page_is_fine("draft-plan", f"User {ADA}")
                self.browser.fill("#plan-expires", "2099-12-24")
                self.browser.find("form[action$=plan] button").click()
                self.assert_page_is_fine("confirm-plan", "Set the plan")
                self.browser.open(f"/dashboard/users/{ADA}")
                self.browser.fill("#forget-reason", "ticket 4712")
                self.browser.find("form[action$=forget] button").click()
                self.assert_page_is_fine("confirm-forget", "Forget the user")
        self.browser.complaints()

    def test_signing_in_is_fine_with_and_without_a_mistake(self):
        other = Browser(self.service)
        self.addCleanup(other.close)
        for width, scheme in looks(1):
            with self.subTest(width=width, scheme=scheme):
                other.set_appearance(width, scheme)
                other.open("/dashboard")
                self.assert_page_is_fine("sign-in", "Sign in", other)
                other.sign_in("headroom_wrong")
                wait_until(lambda: "This token is not valid" in other.text(), "the mistake")
                self.assert_page_is_fine("wrong", "Sign in", other)

    def assert_page_is_fine(self, name, heading, shown=None):
        shown = shown or self.browser
        wait_until(lambda: shown.text("h1").startswith(heading or "User "), f"the page {heading}")
        if shown.all("#live"):
            wait_until(lambda: "Live" in shown.text("#live-state"), "the live numbers have begun")
        shown.picture(name)
        self.assertEqual(shown.overflow(), 0)
        self.assertEqual(shown.axe(), [])
        levels = shown.run("return [...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
        self.assertEqual(levels[0], 1)
        self.assertTrue(all(after - before <= 1 for before, after in zip(levels, levels[1:])), levels)
        self.assertEqual(levels.count(1), 1)

    def figures_agree(self, period):
        """Messages, users and who is blocked. A figure is shown for some seconds before it is read anew, and other tests count. A part
        of the page whose figures could not be read in time is empty."""
        wanted = self.psql.run(f"select messages, users, blocked from billing_period_report where billing_period = '{period}'")[0]
        figures = [number(text) for text in self.texts("[data-part=summary] dd:not(.more)")]
        is_complete = all(self.texts(f"[data-part={part}] tbody tr") for part in ("top", "plans"))
        if is_complete and figures == [int(figure) for figure in wanted]:
            return True
        self.browser.driver.refresh()
        return False

    def test_the_numbers_are_those_of_the_database(self):
        for period in (None, "trial"):
            label = period or "open"
            self.browser.open("/dashboard" + (f"?period={period}" if period else ""))
            wait_until(lambda: self.figures_agree(label), "the page has the newest figures")
            row = self.psql.run(
                "select users, messages, silent, gentle, prominent, blocked from billing_period_report"
                f" where billing_period = '{label}'"
            )[0]
            figures = [number(text) for text in self.texts("[data-part=summary] dd:not(.more)")]
            self.assertEqual(figures, [int(row[1]), int(row[0]), int(row[5])])
            tiers = [number(text) for text in self.texts(".tiers tbody td:nth-child(2)")]
            self.assertEqual(tiers, [int(count) for count in row[2:]])
            top = self.psql.run(
                f"select user_id, used, tier from monthly_usage where {'billing_period = ' + repr(label) if period else 'is_open'}"
                " order by used desc, user_id limit 10"
            )
            shown = zip(*[self.texts("[data-part=top] tbody " + cell) for cell in ("a", "td:nth-child(3)", ".tier")])
            self.assertEqual([[user, str(number(used)), tier] for user, used, tier in shown], top)
            plans = self.psql.run(
                f"select plan, count(*), sum(used) from monthly_usage where {'billing_period = ' + repr(label) if period else 'is_open'}"
                " group by plan"
            )
            shown = zip(*[self.texts("[data-part=plans] tbody " + cell) for cell in ("th .muted", "td:nth-child(2)", "td:nth-child(3)")])
            shown_plans = [[plan, str(number(users)), str(number(used))] for plan, users, used in shown if users != "0"]
            self.assertEqual(sorted(shown_plans), sorted(plans))

    def test_the_charts_and_their_tables_are_those_of_the_database(self):
        self.browser.open("/dashboard")
        wait_until(lambda: self.figures_agree("open"), "the page has the newest figures")

        def rows(part):
            self.browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
            return self.browser.run(
                "return [...document.querySelectorAll(`[data-part=${arguments[0]}] tbody tr`)]"
                ".map(row => [...row.cells].map(cell => cell.innerText.trim()))", part,
            )  # fmt: skip

        wanted = self.psql.run(
            "select trim(to_char(day, 'FMDD FMMonth YYYY')), messages, blocked from headroom.daily_activity order by day desc limit 30"
        )
        shown = [[name.replace(" so far", ""), str(number(messages)), str(number(blocked))] for name, messages, blocked in rows("days")]
        # Today's go on: the service adds its own every ten seconds.
        self.assertEqual(shown[1:], wanted[1:])
        wanted = self.psql.run(
            "select trim(to_char(to_date(billing_period, 'YYYY-MM'), 'FMMonth YYYY')), messages, users from billing_period_report"
            " where billing_period ~ '^2' order by billing_period desc limit 12"
        )
        shown = [[name.replace(" so far", ""), str(number(messages)), str(number(users))] for name, messages, users in rows("history")]
        self.assertEqual(shown, wanted)
        # Heights are to each other as the numbers are.
        heights = self.browser.run(
            "return [...document.querySelectorAll('svg[aria-labelledby^=history] .value')].map(rect => +rect.getAttribute('height'))"
        )
        scale = heights[-1] / int(wanted[0][1])
        for height, row in zip(reversed(heights), wanted):
            self.assertAlmostEqual(height, scale * int(row[1]), delta=0.2)
        titles = self.browser.run(
            "return [...document.querySelectorAll('svg[role=img]')].every(s => s.querySelector('title,desc') || s.ariaLabel)"
        )
        self.assertTrue(titles)

    def test_a_users_page_is_what_the_database_knows(self):
        user = new_user()
        self.send_command(f"SETPLAN {user} paid state=cancelled", f"CONSUME {user} 770", f"RESERVE {user} 5 key=r")
        # Workers get only what is set in a transaction.
        propagate = "set citus.propagate_set_commands = 'local'; " if citus.is_asked_for() else ""
        self.psql.run(
            f"{propagate}begin; set local headroom.reason = 'as asked <b>for</b>';"
            f" update message_usage set \"limit\" = 790 where user_id = '{user}'; commit"
        )
        self.browser.open("/dashboard/users")
        self.browser.fill("#user", f" {user.upper()} ")
        self.browser.find("main button").click()
        wait_until(lambda: self.browser.path == f"/dashboard/users/{user}", "the user's page")
        text = self.browser.text()
        answer = Answer(self.send_command(f"USAGE {user}"))
        self.assertIn("770 of 790 messages prominent", text.replace("\n", " "))
        for fact in [f"Remaining\n{answer['remaining']}", "State\nCancelled cancelled", "Plan\nPremium paid", "Held\n5",
                     answer["banner"], answer["notice"]]:
            self.assertIn(fact, text)
        self.assertIn("limit 800 → 790", text)
        self.assertIn("as asked <b>for</b>", text)
        self.assertEqual(self.browser.all("main b"), [])
        story = self.psql.number(f"select count(*) from audit_trail where user_id = '{user}'")
        self.assertEqual(len(self.browser.all("ol.entries > li")), story)
        events = self.psql.number(f"select count(*) from headroom.billing_events where user_id = '{ADA}'")
        self.browser.open(f"/dashboard/users/{ADA}")
        self.assertEqual(len(self.browser.all("ol.entries")[0].find_elements("css selector", "li")), events)

    def test_live_numbers_move(self):
        self.browser.open("/dashboard")
        wait_until(lambda: "Live" in self.browser.text("#live-state"), "the stream is open")

        def busy():
            self.send_command(*[f"CONSUME {new_user()}" for _ in range(50)])
            return float(self.browser.text("#live-rate").replace(",", "")) > 0 and "ms" in self.browser.text("#live-p99")

        wait_until(busy, "the rate and the latency show")
        wait_until(lambda: len((self.browser.find("#live-line").get_attribute("points") or "").split()) >= 3, "the line grows")
        self.browser.picture("live")
        self.assertEqual(self.browser.axe(), [])
        self.browser.find("#live-pause").click()
        self.assertEqual(self.browser.text("#live-state"), "Paused.")
        paused = self.browser.find("#live-line").get_attribute("points")
        self.send_command(*[f"CONSUME {new_user()}" for _ in range(50)])
        self.assertEqual(self.browser.find("#live-line").get_attribute("points"), paused)
        self.browser.find("#live-pause").click()
        wait_until(lambda: "Live" in self.browser.text("#live-state"), "it goes on")

    def test_the_overview_follows_its_figures_and_leaves_what_somebody_uses(self):
        self.browser.open("/dashboard?period=trial")
        wait_until(lambda: "Live" in self.browser.text("#live-state"), "the scripts run")
        # A page is not kept waiting for figures; they come a little later.
        wait_until(lambda: self.texts("[data-part=summary] dd:not(.more)"), "the figures are counted")
        self.browser.run("document.querySelector('[data-part=history] details').open = true; window.isSame = true")
        # The page says it anew with each figure.
        soon = "document.querySelector('[data-refresh]').dataset.refresh = '0.2';"
        self.browser.run(soon)
        before = number(self.texts("[data-part=summary] dd:not(.more)")[0])
        users = [new_user() for _ in range(3)]
        self.send_command(*[f"CONSUME {user} 7" for user in users])
        wait_until(lambda: number(self.texts("[data-part=summary] dd:not(.more)")[0]) >= before + 21, "the page has the new messages")
        self.assertTrue(self.browser.run("return window.isSame"), "it is the same page")
        self.assertTrue(self.browser.run("return document.querySelector('[data-part=history] details').open"))
        # A viewer selects the heading of the figures, to copy it.
        self.browser.run(
            f"{soon} getSelection().selectAllChildren(document.getElementById('summary-heading'));"
            "const fetched = window.fetch; window.pages = [];"
            "window.fetch = async (...all) => {"
            "  const answer = await fetched(...all); window.pages.push(await answer.clone().text()); return answer;"
            "}"
        )
        kept = self.texts("[data-part=summary] dd:not(.more)")
        self.send_command(*[f"CONSUME {user} 7" for user in users])

        def newer():
            figures = [re.search(r"<dt>Messages</dt><dd>([\d,]+)</dd>", page) for page in self.browser.run("return window.pages")]
            return [figure for figure in figures if figure and number(figure[1]) >= number(kept[0]) + 21]

        # A page is fetched once the one before has been put in.
        wait_until(lambda: len(newer()) >= 2, "the service has newer figures")
        self.assertEqual(self.texts("[data-part=summary] dd:not(.more)"), kept)
        self.browser.run(f"{soon} getSelection().removeAllRanges()")
        wait_until(lambda: number(self.texts("[data-part=summary] dd:not(.more)")[0]) >= number(kept[0]) + 21, "they are put in")

    def test_a_number_stays_in_one_line_on_a_phone(self):
        self.browser.set_appearance("phone", "light")
        self.browser.open("/dashboard")
        wait_until(lambda: self.texts("[data-part=summary] dd") and self.texts("[data-part=plans] dd"), "the figures are counted")
        lines = self.browser.run(
            "return [...document.querySelectorAll('.figures dd:not(.more)')].filter(dd => !dd.querySelector('.state')).map(dd => {"
            "  dd.textContent = '12,345,678';"
            "  const range = document.createRange(); range.selectNodeContents(dd);"
            "  return [range.getClientRects().length, range.getBoundingClientRect().width <= dd.clientWidth + 0.5];"
            "})"
        )
        self.assertGreater(len(lines), 5)
        self.assertEqual([line for line in lines if line != [1, True]], [])
        self.assertEqual(self.browser.overflow(), 0)

    def test_ids_that_begin_alike_differ_on_a_phone(self):
        self.browser.set_appearance("phone", "light")
        users = [f"5eed0000-0000-4000-8000-{number:012d}" for number in range(1, 4)]
        for user in users:
            self.psql.run(f"select set_plan('{user}', 'pro')")
            self.send_command(f"CONSUME {user} 100000")
        # Whether a letter is inside the boxes that its ancestors show of it.
        visible = (
            "return [...document.querySelectorAll(arguments[0])].map(link => {"
            "  const box = link.closest('th').getBoundingClientRect(), node = link.firstChild, shown = [];"
            "  for (let index = 0; index < node.length; index++) {"
            "    const range = document.createRange(); range.setStart(node, index); range.setEnd(node, index + 1);"
            "    const letter = range.getBoundingClientRect();"
            "    const isShown = letter.right <= box.right + 0.5 && letter.left >= box.left && letter.right <= innerWidth;"
            "    if (isShown) shown.push(node.data[index]);"
            "  } return shown.join('');"
            "})"
        )
        for path, part in [("/dashboard", "top"), ("/dashboard/list?plan=pro", "list")]:

            def shown():
                self.browser.open(path)
                return set(users) <= set(self.texts(f"[data-part={part}] tbody a"))

            wait_until(shown, "the users are listed")
            self.assertLessEqual(set(users), set(self.browser.run(visible, f"[data-part={part}] tbody a")), path)
            self.assertEqual(self.browser.overflow(), 0)

    def test_a_plan_with_a_long_label_fits_a_phone(self):
        self.psql.run(f"insert into headroom.plans (plan, label, cycle, allowance) values ('wide', '{'W' * 64}', 'monthly', 7)")
        user = new_user()
        self.send_command(f"SETPLAN {user} wide", f"CONSUME {user} 7")
        self.browser.set_appearance("phone", "light")

        def listed():
            self.browser.open("/dashboard")
            return "W" * 64 in self.browser.text("[data-part=plans]")

        wait_until(listed, "the overview has the plan")
        self.browser.picture("wide")
        self.assertEqual(self.browser.overflow(), 0)
        for path in (f"/dashboard/users/{user}", "/dashboard/list?plan=wide"):
            self.browser.open(path)
            self.browser.picture("wide-" + path.split("/")[2].split("?")[0])
            self.assertEqual(self.browser.overflow(), 0, path)

    def test_the_limits_of_plans_and_their_buttons_suit_a_phone(self):
        self.psql.run("insert into headroom.plans (plan, label, cycle, allowance) values ('limited', 'Limited', 'monthly', 700)")
        self.psql.run(
            "insert into headroom.plan_limits (plan, kind, name, label, allowance, weight) values"
            " ('limited', 'model', 'deep', 'Deep Thinking of the longest kind', 100, 5)"
        )
        user = new_user()
        self.send_command(f"SETPLAN {user} limited", f"CONSUME {user} model=deep")
        self.browser.set_appearance("phone", "light")

        def listed():
            self.browser.open("/dashboard")
            return "Deep Thinking" in self.browser.text("[data-part=plans]")

        wait_until(listed, "the overview has the limit")
        outside = (
            "return [...document.querySelectorAll('.plans th, .plans td')].filter(cell => cell.scrollWidth > cell.clientWidth"
            " || cell.getBoundingClientRect().right > innerWidth).map(cell => cell.innerText)"
        )
        self.assertEqual(self.browser.run(outside), [])
        touch = lambda enabled: self.browser.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": enabled})
        touch(True)
        self.addCleanup(touch, False)
        self.browser.open(f"/dashboard/users/{user}")
        heights = "return [...document.querySelectorAll('main button, main .button')].map(e => [e.innerText, e.offsetHeight])"
        buttons = self.browser.run(heights)
        self.assertGreater(len(buttons), 5)
        self.assertEqual([button for button in buttons if button[1] < 44], [], "too small for a finger")

    def test_a_list_follows_the_links_of_the_overview(self):
        self.browser.open("/dashboard")
        wait_until(lambda: self.browser.all(".tiers tbody a"), "the figures are counted")
        # A refresh may replace the link at any time.
        self.browser.run("document.querySelector('.tiers tbody tr:last-child a').click()")
        wait_until(lambda: self.browser.text("h1") == "Users", "the list")
        self.assertIn("in the tier blocked", self.browser.text("#list-heading"))
        wait_until(lambda: self.texts("[data-part=list] tbody a"), "it is read without a reload")
        tiers = set(self.texts("[data-part=list] tbody .tier"))
        self.assertEqual(tiers, {"blocked"})

    def test_the_keyboard_is_enough(self):
        from selenium.webdriver.common.keys import Keys

        user = new_user()
        self.send_command(f"CONSUME {user} 30")
        at = lambda: self.browser.run("const e = document.activeElement; return e.id || e.textContent.trim().slice(0, 40) || e.tagName")

        def tab_to(name, most=40):
            for _ in range(most):
                self.browser.press(Keys.TAB)
                if at() == name:
                    outline = self.browser.run("return getComputedStyle(document.activeElement).outlineStyle")
                    self.assertNotEqual(outline, "none", f"{name} does not show that it has the focus")
                    return
            self.fail(f"TAB does not come to {name}, but to {at()}")

        self.browser.open("/dashboard")
        tab_to("Skip to the content", 1)
        self.browser.press(Keys.ENTER)
        self.assertEqual(at(), "main")
        self.browser.open("/dashboard")
        tab_to("Find a user")
        self.browser.press(Keys.ENTER)
        tab_to("user")
        self.browser.press(user, Keys.ENTER)
        wait_until(lambda: self.browser.path == f"/dashboard/users/{user}", "the user's page")
        tab_to("reset-reason")
        self.browser.press("asked by keyboard", Keys.ENTER)
        wait_until(lambda: self.browser.text("h1") == "Reset usage", "the question")
        tab_to("Yes, reset")
        self.browser.press(Keys.SPACE)
        wait_until(lambda: self.browser.all(".notice"), "the result")
        self.assertIn("Reset.", self.browser.text(".notice"))
        self.assertEqual(self.count(user), 0)
        row = self.psql.run(f"select actor, reason from headroom.audit_log where user_id = '{user}' and action = 'reset'")
        self.assertEqual(row, [["token:ann", "asked by keyboard"]])

    def test_everything_works_without_scripts(self):
        user = new_user()
        self.send_command(f"CONSUME {user} 30")
        plain = Browser(self.service, has_scripts=False)
        self.addCleanup(plain.close)
        plain.sign_in(self.token)
        wait_until(lambda: plain.text("h1") == "Overview", "the overview")
        self.assertIn("reload it for newer numbers", plain.text("#live-state"))
        self.assertFalse(plain.find("#live-pause").is_displayed())
        self.assertFalse(plain.find("#live-chart").is_displayed())
        from selenium.webdriver.support.ui import Select

        Select(plain.find("#period")).select_by_value("trial")
        plain.find(".title button").click()
        wait_until(lambda: plain.path == "/dashboard?period=trial", "the period")
        self.assertEqual(plain.text("#summary-heading"), "trial")
        plain.find("details summary").click()
        self.assertTrue(plain.find("details table").is_displayed())
        plain.open(f"/dashboard/users/{user}")
        plain.fill("#grant-messages", "70")
        plain.fill("#grant-reason", "no scripts")
        plain.find("form[action$=grant] button").click()
        wait_until(lambda: "Grant 70 messages for trial?" in plain.text(), "the question")
        plain.find("main .primary").click()
        wait_until(lambda: plain.all(".notice"), "what became of it")
        self.assertIn("The limit of this period is now 170.", plain.text(".notice"))
        plain.find(".sign-out button").click()
        wait_until(lambda: plain.text("h1") == "Sign in", "the end")
        plain.open("/dashboard")
        self.assertEqual(plain.text("h1"), "Sign in")

    def test_a_revoked_token_ends_what_is_open(self):
        ended, text = token(self, "leaver", "dashboard")
        other = Browser(self.service)
        self.addCleanup(other.close)

        def signs_in():
            other.sign_in(text)
            return other.text("h1") == "Overview"

        wait_until(signs_in, "the token is known")
        wait_until(lambda: "Live" in other.text("#live-state"), "the stream is open")
        self.assertEqual(command("token", "revoke", str(ended), database_url=self.database_url).returncode, 0)
        wait_until(lambda: "signed out" in other.text("#live-state"), "the page says so")
        other.open("/dashboard/users")
        self.assertEqual(other.text("h1"), "Sign in")


@unittest.skipIf(browser.missing(), f"not installed: {browser.missing()}")
class FirstSteps(Case):
    """A service that has counted nothing yet, and then a little."""

    def test_a_new_installation_and_one_with_a_failed_event_are_fine_in_every_look(self):
        shown = Browser(self.service)
        self.addCleanup(shown.close)
        self.assert_is_fine(shown, "first-steps", "Getting started")
        user = self.user()
        self.send_command(f"CONSUME {user} 3")
        self.psql.run(
            "insert into headroom.billing_events (source, id, type, happened_at, received_at, identities,"
            " user_id, outcome, problem, attempts)"
            f" values ('revenuecat', 'one', 'RENEWAL', now(), now(), '{{}}', '{user}', 'failed', 'the product gold is not mapped', 1)"
        )
        self.assert_is_fine(shown, "failed-event", "1 store event failed.")
        self.assertIn("the product gold is not mapped", shown.text("[data-part=failed-events]"))
        # Figures are read independently: the first message may be shown later than the event.
        wait_until(
            lambda: not shown.run("return document.querySelector('[data-part=first-steps]').checkVisibility()"),
            "the first steps are gone",
        )
        self.assertEqual(shown.complaints(), [])

    def assert_is_fine(self, shown, name, text):
        for width, scheme in looks():
            with self.subTest(page=name, width=width, scheme=scheme):
                shown.set_appearance(width, scheme)
                shown.open("/dashboard")
                # It is read again by itself.
                wait_until(lambda: text in shown.text(), f"the page says {text}")
                shown.picture(name)
                self.assertEqual(shown.overflow(), 0)
                self.assertEqual(shown.axe(), [])
