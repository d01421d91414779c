"""Every sentence that a user can see, in every language and plural form: the line protocol and HTTP answer what the rows of
headroom.words say. Each sentence is that of a user who is in the state for it."""

import json
import uuid

from support import http
from support.case import MID_MONTH
from support.languages import lookup, plural_form
from support.wire import Answer

from .words import GENTLE, WordsCase

# Each plural form of each language, also of numbers that end alike and have different ones in Polish: 2 and 12, 1 and 21.
NUMBERS = (1, 2, 5, 12, 21, 22)
FIELDS = ("label", "state_label", "accessible", "steps", "notice", "banner")
PLANS = """
insert into headroom.plans
    (plan, label, cycle, allowance, trial_days, gentle_percent, prominent_percent, window_messages, window_seconds)
values
    ('month', 'Month', 'monthly', 1000, null, 0, 100, null, null), ('last', 'Last', 'monthly', 1000, null, 0, 0, null, null),
    ('week', 'Week', 'weekly', 1000, null, 0, 100, null, null), ('endless', 'Endless', 'weekly', null, null, 80, 95, null, null),
    ('pack', 'Pack', 'lifetime', 1000, null, 80, 95, null, null), ('gentle', 'Pack', 'lifetime', 1000, null, 0, 100, null, null),
    ('free_for_all', 'Open', 'lifetime', null, null, 80, 95, null, null), ('test', 'Test', 'trial', 1000, 22, 80, 95, null, null),
    ('hours', 'Hours', 'monthly', null, null, 0, 100, 1000, 10800), ('single', 'One', 'lifetime', 1, null, 80, 95, null, null),
    ('day', 'Day', 'daily', 1000, null, 0, 100, null, null), ('last_day', 'Last day', 'daily', 1000, null, 0, 0, null, null),
    ('endless_day', 'Endless day', 'daily', null, null, 80, 95, null, null), ('none', 'None', 'monthly', 0, null, 80, 95, null, null)
"""
# Seconds of a window, and the numbers of the words in its wait. Ascending: a plan with shorter windows would end open ones earlier.
WAITS = sorted(
    [(n * 60, {"minutes": n}) for n in NUMBERS] + [(n * 3_600, {"hours": n}) for n in NUMBERS if n < 24]
    + [(n * 86_400, {"days": n}) for n in NUMBERS] + [(7_800, {"hours": 2, "minutes": 10}), (90_061, {"days": 1, "hours": 1})],
    key=lambda wait: wait[0],
)  # fmt: skip

# The words of each test.
LEFT = (
    "gentle", "gentle_until", "gentle_wait", "gentle_lifetime", "prominent", "prominent_wait", "prominent_undated", "lifetime",
    "trial", "trial_last_day", "label_trial", "accessible_monthly", "accessible_monthly_unlimited", "accessible_until",
    "accessible_until_unlimited", "accessible_wait", "accessible_wait_unlimited", "accessible_trial",
    "accessible_lifetime", "accessible_lifetime_unlimited", "state_active", "state_free", "state_trial",
)  # fmt: skip
ENDED = (
    "blocked_monthly", "blocked_monthly_undated", "blocked_until", "blocked_wait", "blocked_undated", "blocked_lifetime",
    "blocked_no_messages", "blocked_trial", "blocked_trial_ended", "blocked_no_access", "blocked_never_subscribed",
    "blocked_ended", "blocked_refunded", "blocked_billing_retry", "cancelled", "cancelled_trial", "billing_issue", "billing_retry",
    "steps_billing_issue", "state_cancelled", "state_billing_issue", "state_expired", "state_refunded",
)  # fmt: skip
TIMES = (
    "date", "date_with_year", *(f"month_{month}" for month in range(1, 13)), "days", "hours", "minutes", "wait_joined", "window",
    "blocked_window",
)  # fmt: skip
PARTS = (
    "model_until", "model_wait", "model_undated", "blocked_model_until", "blocked_model_wait", "blocked_model_undated",
    "blocked_model_no_messages", "fallback", "blocked_member_until", "blocked_member_wait", "blocked_member_undated",
)  # fmt: skip
EXCEEDED = ("exceeds_until", "exceeds_wait", "exceeds_undated")
PAST = ("accessible_past", "accessible_past_unlimited")


def of_month(used, limit=1000):
    return "accessible_monthly", {"used": used, "limit": limit}


def of_all(used, limit=1000):
    return "accessible_lifetime", {"used": used, "limit": limit}


def of_trial(used):
    return "accessible_trial", {"used": used, "limit": 1000}


# From MID_MONTH on.
MIDNIGHT = {"wait": {"hours": 14, "minutes": 30}}


def of_day(used):
    return "accessible_wait", {"used": used, "limit": 1000, **MIDNIGHT}


def until(used, *date):
    return "accessible_until", {"used": used, "limit": 1000, "date": date}


class Rows:
    """Writes sentences from the rows, and remembers which of their forms it has used."""

    def __init__(self, psql):
        words = json.loads(psql.value("select jsonb_agg(words) from headroom.words"))
        self.rows = {(row["lang"], row["word"]): {form: row[form] for form in ("one", "few", "many", "other")} for row in words}
        self.numbers = json.loads(psql.value("select json_object_agg(word, number) from headroom.word_blanks"))
        self.used = set()

    def language_of(self, language, word):
        """The language, or the one to which the word falls back."""
        return next(tag for tag in lookup(language) if (tag, word) in self.rows)

    def template(self, language, word, number=None):
        language = self.language_of(language, word)
        forms = self.rows[language, word]
        form = plural_form(language, number) if self.numbers[word] else "other"
        form = form if forms[form] else "other"
        self.used.add((language, word, form))
        return forms[form]

    def text(self, language, word, **values):
        if "date" in values:
            month, day, *year = values["date"]
            date = self.template(language, "date", day).replace("{month}", self.template(language, f"month_{month}"))
            values["date"] = date.replace("{day}", str(day))
            if year:
                dated = self.template(language, "date_with_year").replace("{date}", values["date"])
                values["date"] = dated.replace("{year}", str(year[0]))
        if "wait" in values:
            parts = [self.template(language, unit, n).replace("{n}", str(n)) for unit, n in values["wait"].items()]
            if len(parts) == 2:
                joined = self.template(language, "wait_joined")
                parts = [joined.replace("{larger}", parts[0]).replace("{smaller}", parts[1])]
            values["wait"] = parts[0]
        text = self.template(language, word, values.get(self.numbers[word]))
        for name, value in values.items():
            text = text.replace("{" + name + "}", str(value))
        return text

    def unused(self, language, word):
        """The forms of a row that no sentence had so far."""
        language = self.language_of(language, word)
        forms = {form for form, text in self.rows[language, word].items() if text}
        # A whole number has one of the three others.
        if len(forms) == 4:
            forms.remove("other")
        return {form for form in forms if (language, word, form) not in self.used}


class EverySentence(WordsCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql.run(PLANS)
        cls.labels = json.loads(cls.psql.value("select json_object_agg(plan, label) from headroom.plans"))

    def setUp(self):
        super().setUp()
        self.rows = Rows(self.psql)
        # By user: the word of each field, with values if it has blanks, and the period that is asked for.
        self.expected, self.periods = {}, {}

    def expect(self, user, label, state="active", period=None, **sentences):
        """Expects these sentences. A label that is a text is no word."""
        self.expected[user] = {"label": label, "state_label": "state_" + state, **sentences}
        self.periods[user] = period

    def put(self, plan, used, before="", after="", **sentences):
        """Expects the sentences of a user whose plan had the options `before` the messages, and those of `after` since then."""
        user = self.subscriber(plan, before, used=used)
        if after:
            self.assertIn("+OK ", self.send_command(f"SETPLAN {user} {plan} {after}"))
        self.expect(user, **{"label": self.labels[plan], **sentences})
        return user

    def texts(self, user, language):
        def text(name, sentence):
            if sentence is None or (name == "label" and isinstance(sentence, str)):
                return sentence
            word, values = (sentence, {}) if isinstance(sentence, str) else sentence
            return self.rows.text(language, word, **values)

        return {name: text(name, self.expected[user].get(name)) for name in FIELDS}

    def from_line(self, language):
        with self.service.connect() as connection:
            for user, period in self.periods.items():
                connection.send(" ".join(["USAGE", user, *([period] if period else []), f"lang={language}"]) + "\r\n")
            return {user: Answer(connection.read_line()).fields for user in self.periods}

    def from_http(self, language):
        periods = {user: f"&period={period}" if period else "" for user, period in self.periods.items()}
        return {user: self.get(f"/v1/usage/{user}?lang={language}{period}").json for user, period in periods.items()}

    def assert_answers(self, words):
        """Every port answers what is expected of each user in each language. Of these words, every plural form was expected."""
        for language in GENTLE:
            expected = {user: self.texts(user, language) for user in self.expected}
            for answers in (self.from_line(language), self.from_http(language)):
                self.assertEqual(answers.keys(), self.expected.keys())
                for user, answer in answers.items():
                    found = {name: answer.get(name) for name in FIELDS}
                    self.assertEqual(found, expected[user], f"{language}: {self.expected[user]}")
            for word in words:
                self.assertEqual(self.rows.unused(language, word), set(), f"{language}: {word}")

    def test_about_messages_that_are_left(self):
        for n in NUMBERS:
            rest = 1000 - n
            few_left = {"remaining": n, "limit": 1000, "used": rest}
            few_used = {"remaining": rest, "limit": 1000, "used": n}
            self.put("month", rest, banner=("gentle", few_left), accessible=of_month(rest))
            for plan, options, date in (("month", "anchor=20", (3, 20)), ("week", "", (3, 16))):
                banner = ("gentle_until", {**few_left, "date": date})
                self.put(plan, rest, options, banner=banner, accessible=until(rest, *date))
            self.put("gentle", rest, state="free", banner=("gentle_lifetime", few_left), accessible=of_all(rest))
            self.put("last", rest, banner=("prominent", {**few_left, "date": (4, 1)}), accessible=of_month(rest))
            self.put("pack", rest, state="free", banner=("prominent_undated", few_left), accessible=of_all(rest))
            self.put("pack", n, state="free", banner=("lifetime", few_used), accessible=of_all(n))
            trial = {"state": "trial", "label": ("label_trial", {"label": "Test", "day": 1, "days": 22})}
            self.put("test", rest, banner=("trial", few_left), accessible=of_trial(rest), **trial)
            self.put("test", n, banner=("trial", few_used), accessible=of_trial(n), **trial)
            last = {"state": "trial", "label": ("label_trial", {"label": "Test", "day": 22, "days": 22})}
            banner = ("trial_last_day", {**few_left, "date": (3, 16)})
            self.put("test", rest, after="started=2026-02-22T09:30:00Z", banner=banner, accessible=of_trial(rest), **last)
            for plan, word in (("day", "gentle_wait"), ("last_day", "prominent_wait")):
                self.put(plan, rest, banner=(word, {**few_left, **MIDNIGHT}), accessible=of_day(rest))
            self.put("endless_day", n, accessible=("accessible_wait_unlimited", {"used": n, **MIDNIGHT}))
            self.put("paid", n, accessible=of_month(n, 800))
            self.put("pro", n, accessible=("accessible_monthly_unlimited", {"used": n}))
            self.put("week", n, banner=("gentle_until", {**few_used, "date": (3, 16)}), accessible=until(n, 3, 16))
            self.put("endless", n, accessible=("accessible_until_unlimited", {"used": n, "date": (3, 16)}))
            self.put("free_for_all", n, state="free", accessible=("accessible_lifetime_unlimited", {"used": n}))
        self.assert_answers(LEFT)

    def test_about_the_end_of_messages_and_of_subscriptions(self):
        ends = "state=cancelled expires=2026-03-15T20:00:00Z"
        cancelled = {"state": "cancelled", "notice": ("cancelled", {"date": (3, 15)})}
        self.put("paid", 800, banner=("blocked_monthly", {"date": (4, 1)}), accessible=of_month(800, 800))
        self.put("paid", 800, after=ends, banner="blocked_monthly_undated", accessible=of_month(800, 800), **cancelled)
        self.put("week", 1000, banner=("blocked_until", {"date": (3, 16)}), accessible=until(1000, 3, 16))
        self.put("week", 1000, after=ends, banner="blocked_undated", accessible=until(1000, 3, 16), **cancelled)
        for used, started, day, banner in ((1000, MID_MONTH, 1, "blocked_trial"), (7, "2026-02-01T00:00:00Z", 22, "blocked_trial_ended")):
            label = ("label_trial", {"label": "Test", "day": day, "days": 22})
            self.put("test", used, after=f"started={started}", state="trial", label=label, banner=banner, accessible=of_trial(used))
        self.put("day", 1000, banner=("blocked_wait", MIDNIGHT), accessible=of_day(1000))
        for plan, limit in (("pack", 1000), ("single", 1)):
            self.put(plan, limit, state="free", banner=("blocked_lifetime", {"limit": limit}), accessible=of_all(limit, limit))
        self.put("none", None, banner="blocked_no_messages", accessible=of_month(0, 0))
        ended = ("blocked_ended", {"label": "Premium", "date": (3, 15)})
        for state, word, banner in (("expired", "expired", ended), ("revoked", "refunded", "blocked_refunded")):
            self.put("paid", 9, after=f"state={state}", state=word, banner=banner, accessible=of_month(9, 800))
        self.put(
            "paid", 9, after="state=billing_retry", state="billing_issue", banner="blocked_billing_retry",
            notice="billing_retry", steps="steps_billing_issue", accessible=of_month(9, 800),
        )  # fmt: skip
        self.put(
            "paid", 9, after="state=grace_period grace_until=2026-03-25T00:00:00Z", state="billing_issue",
            notice=("billing_issue", {"date": (3, 25)}), steps="steps_billing_issue", accessible=of_month(9, 800),
        )  # fmt: skip
        user = self.subscriber("free")
        self.expect(user, "Free", "free", banner="blocked_never_subscribed", accessible=of_all(0, 0))
        user = self.subscriber("paid")
        self.assertIn("+OK ", self.send_command(f"SETPLAN {user} free"))
        self.expect(user, "Free", "free", banner="blocked_no_access", accessible=of_all(0, 0))
        self.add_cancelled_trial()
        self.assert_answers(ENDED)

    def add_cancelled_trial(self):
        """Only a store's trial can be cancelled."""
        user, transaction = self.user(), str(uuid.uuid4())
        bought = {"at": "2026-03-15T08:00:00Z", "kind": "purchased", "user": user, "plan": "trial", "expires": "2026-03-18T08:00:00Z"}
        for event in (bought, {"at": "2026-03-15T09:00:00Z", "kind": "cancelled"}):
            event = {"source": "chargebee", "id": str(uuid.uuid4()), "transaction": transaction, **event}
            answer = self.service.http("POST", "/v1/billing-events", json.dumps(event))
            self.assertEqual(answer.json["outcome"], "applied", answer.text)
        self.expect(
            user, ("label_trial", {"label": "Trial", "day": 1, "days": 3}), "trial", notice=("cancelled_trial", {"date": (3, 18)}),
            banner=("trial", {"remaining": 100, "limit": 100}), accessible=("accessible_trial", {"used": 0, "limit": 100}),
        )  # fmt: skip

    def test_with_every_month_and_every_wait(self):
        for number in range(12):
            month, day = (number + 3) % 12 + 1, NUMBERS[number % len(NUMBERS)]
            options = f"state=cancelled expires={2026 + (month < 4)}-{month:02}-{day:02}T12:00:00Z"
            notice = ("cancelled", {"date": (month, day, 2027) if month < 4 else (month, day)})
            self.put("paid", 9, after=options, state="cancelled", notice=notice, accessible=of_month(9, 800))
        for seconds, wait in WAITS:
            self.psql.run(f"update headroom.plans set window_seconds = {seconds} where plan = 'hours'")
            self.add_window(1000, ("blocked_window", {"wait": wait}))
        for n in NUMBERS:
            self.add_window(1000 - n, ("window", {"remaining": n, "wait": WAITS[-1][1]}))
        self.assert_answers(TIMES)

    def add_window(self, messages, banner):
        user = self.subscriber("hours")
        self.assertIn("+ALLOWED ", self.send_command(f"CONSUME {user} {messages}"))
        self.expect(user, "Hours", banner=banner, accessible=("accessible_monthly_unlimited", {"used": messages}))

    def test_about_more_messages_than_are_left(self):
        users = {}
        for n in NUMBERS:
            left = {"requested": 30, "remaining": n, "limit": 1000, "used": 1000 - n}
            for plan, word, values in (
                ("month", "exceeds_until", {"date": (4, 1)}), ("day", "exceeds_wait", MIDNIGHT), ("pack", "exceeds_undated", {}),
            ):  # fmt: skip
                users[self.subscriber(plan, used=1000 - n)] = (word, {**left, **values})
        for language in GENTLE:
            for user, (word, values) in users.items():
                text = self.rows.text(language, word, **values)
                self.assertEqual(self.banner(f"CHECK {user} 30 lang={language}"), text)
                answer = self.service.http("POST", f"/v1/usage/{user}/check", json.dumps({"n": 30, "lang": language}))
                self.assertEqual((answer.json["allowed"], answer.json["banner"]), (False, text))
            for word in EXCEEDED:
                self.assertEqual(self.rows.unused(language, word), set(), f"{language}: {word}")

    def test_about_models_and_members(self):
        self.psql.run(
            "insert into headroom.plan_limits (plan, kind, name, label, allowance, window_messages, window_seconds, fallback)"
            " select plan, limits.* from headroom.plans cross join (values ('model', 'large', 'Large', 100, null, null, null),"
            " ('model', 'hourly', 'Hourly', null, 100, 10800, null), ('model', 'never', 'Never', 0, null, null, null),"
            " ('model', 'huge', 'Huge', 100, null, null, 'small'), ('member', '*', null, 100, null, null, null)) as limits"
            " where plan in ('month', 'day', 'gentle')"
        )
        self.addCleanup(self.psql.run, "delete from headroom.plan_limits")
        expected = {}

        def expect(plan, part, used, word, **values):
            user = self.subscriber(plan)
            if used:
                self.assertIn("+ALLOWED ", self.send_command(f"CONSUME {user} {used} {part}"))
            expected[user] = (part, word, {"remaining": 100 - used, "limit": 100, "used": used, **values})

        date, wait = {"date": (4, 1)}, {"wait": {"hours": 3}}
        for n in NUMBERS:
            expect("month", "model=large", 100 - n, "model_until", label="Large", **date)
            expect("month", "model=hourly", 100 - n, "model_wait", label="Hourly", **wait)
            expect("gentle", "model=large", 100 - n, "model_undated", label="Large")
        expect("month", "model=large", 100, "blocked_model_until", label="Large", **date)
        expect("month", "model=hourly", 100, "blocked_model_wait", label="Hourly", **wait)
        expect("gentle", "model=large", 100, "blocked_model_undated", label="Large")
        expect("month", "model=never", 0, "blocked_model_no_messages", label="Never")
        expect("month", "model=huge", 100, "fallback", label="Huge", **date)
        member = f"member={uuid.uuid4()}"
        expect("month", member, 100, "blocked_member_until", **date)
        expect("day", member, 100, "blocked_member_wait", **MIDNIGHT)
        expect("gentle", member, 100, "blocked_member_undated")
        for language in GENTLE:
            for user, (part, word, values) in expected.items():
                if word == "fallback":
                    refusal = self.rows.text(language, "blocked_model_until", **values)
                    values = {"banner": refusal, "fallback": "small"}
                text = self.rows.text(language, word, **values)
                self.assertEqual(self.banner(f"CHECK {user} {part} lang={language}"), text)
                name, value = part.split("=")
                body = json.dumps({name: value, "lang": language})
                self.assertEqual(self.service.http("POST", f"/v1/usage/{user}/check", body).json["banner"], text)
            for word in PARTS:
                self.assertEqual(self.rows.unused(language, word), set(), f"{language}: {word}")

    def test_about_a_period_that_is_over(self):
        self.set_clock("2026-02-10T09:30:00Z")
        for n in NUMBERS:
            past = {"used": n, "limit": 800, "period": "2026-02"}
            self.put("paid", n, period="2026-02", accessible=("accessible_past", past))
            self.put("pro", n, period="2026-02", accessible=("accessible_past_unlimited", past))
        self.set_clock(MID_MONTH)
        self.assert_answers(PAST)

    def test_with_the_word_for_no_limit(self):
        self.addCleanup(self.restore)
        self.psql.run(
            "update headroom.words set one = null, few = null, many = null, other = '{used}/{limit}/{remaining}'"
            " where word = 'accessible_monthly_unlimited'"
        )
        self.rows = Rows(self.psql)
        unlimited = {language: self.rows.template(language, "unlimited") for language in GENTLE}
        user = self.put("pro", 3, accessible=None)
        for language, word in unlimited.items():
            for answers in (self.from_line(language), self.from_http(language)):
                self.assertEqual(answers[user]["accessible"], f"3/{word}/{word}")

    def test_are_all_that_there_are(self):
        # The state needs a grace period without an end, which no subscription has: without a date it is 16 days.
        unseen = {"billing_issue_undated"}
        seen = {*LEFT, *ENDED, *TIMES, *EXCEEDED, *PARTS, *PAST, "unlimited", "unreadable", "uncounted"}
        self.assertEqual(seen, self.rows.numbers.keys() - unseen)


class WithoutDatabase(WordsCase):
    FLAGS = ("--request-timeout-ms", "1000")
    OWN_CLUSTER = True

    def test_usage_that_cannot_be_read_and_messages_that_are_let_through_are_said_in_every_language(self):
        allowing = self.serve(*self.FLAGS, "--when-unavailable", "allow")
        user, rows = self.subscriber(used=640), Rows(self.psql)
        allowing.send_command(f"CHECK {user}")
        self.cluster.stop_immediately()
        for language in GENTLE:
            for service in (self.service, allowing):
                text = rows.text(language, "unreadable")
                self.assertTrue(service.send_command(f"USAGE {user} lang={language}").endswith(text))
                answer = http.request(service.http_port, "GET", f"/v1/usage/{user}?lang={language}")
                self.assertEqual((answer.status, answer.json["detail"]), (503, text))
                self.assertEqual(answer.headers["Content-Language"], language)
            text = rows.text(language, "uncounted")
            self.assertEqual(Answer(allowing.send_command(f"CONSUME {user} lang={language}"))["banner"], text)
            answer = http.request(allowing.http_port, "POST", f"/v1/usage/{user}/consume", {"lang": language})
            self.assertEqual((answer.json["banner"], answer.headers["Content-Language"]), (text, language))
