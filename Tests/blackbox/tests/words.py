"""Sentences are rows of headroom.words, which operators edit while the service runs."""

import json
import urllib.parse

from support import http
from support.case import MID_MONTH, Case
from support.languages import WORDS, shipped
from support.pages import DashboardClient, visible_text
from support.postgres import SQLError
from support.waiting import wait_until
from support.wire import Answer

GENTLE = {language: shipped(language, "gentle", 160).replace("{remaining}", "160") for language in WORDS}


class WordsCase(Case):
    CLOCK = MID_MONTH

    def banner(self, request):
        return Answer(self.send_command(request))["banner"]

    def get(self, path, **headers):
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        return http.request(self.service.http_port, "GET", path, headers=fields)

    def restore(self):
        self.psql.run("delete from headroom.words where lang <> 'en'")
        for language in GENTLE:
            self.psql.run(f"select headroom.restore_words('{language}')")

    def refusal(self, statement):
        with self.assertRaises(SQLError) as caught:
            self.psql.run(statement)
        return str(caught.exception)


class EditedWords(WordsCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.restore)

    def test_an_edit_is_in_the_next_answer_of_every_instance_and_port(self):
        second = self.serve()
        # Each user belongs to a lane, and every lane of both instances must notice.
        users = [self.subscriber(used=640) for _ in range(6)]
        for number in range(5):
            text = f"Edit {number}: {{remaining}} to go"
            self.psql.run(f"update headroom.words set other = '{text}' where lang = 'en' and word = 'gentle'")
            expected = f"Edit {number}: 160 to go"
            for user in users:
                self.assertEqual(Answer(second.send_command(f"CHECK {user}"))["banner"], expected)
                self.assertEqual(self.banner(f"USAGE {user}"), expected)
                self.assertEqual(self.get(f"/v1/usage/{user}").json["banner"], expected)

    def test_counted_messages_have_the_edit_as_well(self):
        user = self.subscriber(used=640)
        for number, options in enumerate(("", "", "3", f"key={user}", "", "lang=en")):
            self.psql.run(f"update headroom.words set other = '{number}: {{limit}}' where lang = 'en' and word = 'gentle'")
            self.assertEqual(self.banner(f"CONSUME {user} {options}"), f"{number}: 800")
        # A first message, whose row has another statement.
        other = self.subscriber("trial")
        self.psql.run("update headroom.words set other = 'Try {remaining}' where lang = 'en' and word = 'trial'")
        self.assertEqual(self.banner(f"CONSUME {other}"), "Try 99")

    def test_one_is_used_for_exactly_one_and_may_be_null(self):
        user = self.subscriber(used=799)
        self.assertEqual(self.banner(f"CHECK {user}"), "Almost there — 1 message left until April 1")
        self.psql.run("update headroom.words set one = null where lang = 'en' and word = 'prominent'")
        self.assertEqual(self.banner(f"CHECK {user}"), "Almost there — 1 messages left until April 1")

    def test_dates_and_months_are_words(self):
        user = self.subscriber(used=799)
        self.psql.run("update headroom.words set other = 'the {day}th of {month}' where lang = 'en' and word = 'date'")
        self.psql.run("update headroom.words set other = 'Spring' where lang = 'en' and word = 'month_4'")
        expected = "Almost there — 1 message left until the 1th of Spring"
        self.assertEqual(self.banner(f"CHECK {user}"), expected)

    def test_a_language_of_the_operator_falls_back_word_by_word(self):
        user = self.subscriber(used=640)
        self.psql.run("insert into headroom.words values ('pt-br', 'gentle', null, 'Oi! Ainda {remaining}')")
        self.assertEqual(self.psql.value("select lang from headroom.words where other like 'Oi!%'"), "pt-BR")
        for lang in ("pt-BR", "PT-br", "pt-BR-x-app"):
            self.assertEqual(self.banner(f"CHECK {user} lang={lang}"), "Oi! Ainda 160")
        # The other words are those of pt.
        self.set_count(user, 799)
        expected = "Está quase acabando: resta 1 mensagem até 1º de abril"
        self.assertEqual(self.banner(f"CHECK {user} lang=pt-BR"), expected)

    def test_deleted_words_fall_back_to_english_and_are_restored(self):
        user = self.subscriber(used=640)
        self.psql.run("delete from headroom.words where lang = 'de'")
        self.assertEqual(self.banner(f"CHECK {user} lang=de"), GENTLE["en"])
        self.assertEqual(self.psql.number("select headroom.restore_words('de')"), 86)
        self.assertEqual(self.banner(f"CHECK {user} lang=de"), GENTLE["de"])
        self.assertEqual(self.psql.number("select headroom.restore_words('de')"), 0)
        self.assertIn("Shipped are de, en, es, fr, ja, pl, pt", self.refusal("select headroom.restore_words('xx')"))

    def test_words_of_english_cannot_go(self):
        for statement in (
            "delete from headroom.words where lang = 'en' and word = 'gentle'",
            "truncate headroom.words",
            "delete from headroom.words",
        ):
            self.assertIn("cannot be deleted", self.refusal(statement))
        self.assertIn("cannot be renamed", self.refusal("update headroom.words set lang = 'xx' where lang = 'en'"))
        self.psql.run("update headroom.words set other = 'Gone' where lang = 'en' and word = 'gentle'")
        self.psql.run("select headroom.restore_words('en')")
        self.assertEqual(self.banner(f"CHECK {self.subscriber(used=640)}"), GENTLE["en"])

    def test_a_template_that_would_spoil_answers_is_refused_with_what_is_right(self):
        def refusal(word, other, one="null", lang="de"):
            return self.refusal(
                f"insert into headroom.words (lang, word, one, other) values ('{lang}', '{word}', {one}, {other})"
                " on conflict (lang, word) do update set one = excluded.one, other = excluded.other"
            )

        known = "it has {remaining}, {limit}, {used}"
        self.assertIn("the blank {foo} is unknown in gentle; " + known, refusal("gentle", "'{foo}'"))
        self.assertIn("the blank {date} is unknown in gentle; " + known, refusal("gentle", "'ok'", one="'{date}'"))
        self.assertIn("unknown in unreadable; it has no blanks", refusal("unreadable", "'{used}'"))
        self.assertIn("the blank {} is unknown", refusal("gentle", "'{}'"))
        for broken in ("'{remaining'", "'remaining}'", "'{{remaining}'", "'{remaining}}'"):
            self.assertIn("a brace without its pair", refusal("gentle", broken))
        self.assertIn("control character", refusal("gentle", "e'a\\nb'"))
        self.assertIn("control character", refusal("gentle", "e'a\\u2028b'"))
        self.assertIn("has 501 characters", refusal("gentle", "repeat('a', 501)"))
        self.assertIn("is missing", refusal("gentle", "''"))
        self.assertIn("is missing", refusal("gentle", "null"))
        self.assertIn("is empty", refusal("gentle", "'a'", one="''"))
        self.assertIn("there is no word 'nonsense'", refusal("nonsense", "'a'"))
        for lang in ("", "d", "de_DE", "de-", "deutschland", "x" * 36, "de-123456789"):
            self.assertIn("is not a language tag", refusal("gentle", "'a'", lang=lang))

    def test_edits_are_in_the_audit_log(self):
        self.psql.run("update headroom.words set other = 'Hm' where lang = 'de' and word = 'trial'")
        row = json.loads(self.psql.value(
            "select to_json(log) from headroom.audit_log as log where after ->> 'word' = 'trial' order by id desc limit 1"
        ))  # fmt: skip
        self.assertEqual(row["after"], {"lang": "de", "word": "trial", "other": "Hm"})
        self.assertEqual(row["before"]["other"], "Noch {remaining} von {limit} Probenachrichten")

    def test_words_that_cannot_be_read_stay_as_they_were_until_they_can(self):
        user = self.subscriber(used=640)
        self.assertEqual(self.banner(f"CHECK {user}"), GENTLE["en"])
        self.psql.run("revoke select on headroom.words from headroom_service")
        try:
            self.psql.run("update headroom.words set other = 'Later' where lang = 'en' and word = 'gentle'")
            for _ in range(3):
                self.assertEqual(self.banner(f"CONSUME {user}"), GENTLE["en"].replace("160", str(800 - self.count(user))))
        finally:
            self.psql.run("grant select on headroom.words to headroom_service")
        wait_until(lambda: self.banner(f"CHECK {user}") == "Later", "the words are read again")

    def test_quotes_and_backslashes_arrive_as_they_are(self):
        user = self.subscriber(used=640)
        self.psql.run(r"""update headroom.words set other = 'Say "hi" \ {remaining}' where lang = 'de' and word = 'gentle'""")
        self.assertEqual(self.banner(f"CHECK {user} lang=de"), r'Say "hi" \ 160')


class Languages(WordsCase):
    SHARED = True

    def test_every_language_is_answered_in_tcp_and_http_alike(self):
        user = self.subscriber(used=640)
        for lang, expected in GENTLE.items():
            for request in (f"CHECK {user} lang={lang}", f"USAGE {user} LANG={lang.upper()}"):
                self.assertEqual(self.banner(request), expected)
            for answer in (
                self.get(f"/v1/usage/{user}?lang={lang}"),
                self.get(f"/v1/usage/{user}", Accept_Language=f"xx, {lang};q=0.5"),
            ):
                self.assertEqual(answer.json["banner"], expected)
                self.assertEqual(answer.headers["Content-Language"], lang)
                self.assertEqual(answer.headers["Vary"], "Accept-Language")

    def test_every_verb_with_sentences_takes_a_language(self):
        user = self.subscriber(used=640)
        for request in (
            f"CONSUME {user} lang=de", f"RESERVE {user} key=a lang=de", f"COMMIT {user} key=a lang=de",
            f"RELEASE {user} lang=de key=a", f"CHECK {user} 2 lang=de-AT", f"USAGE {user} lang=de",
            f"USAGE {user} 2026-03 lang=de", f"CONSUME {user} 3 key=b lang=de",
        ):  # fmt: skip
            with self.subTest(request=request):
                self.assertIn("Du hast diesen Monat noch ", self.banner(request))
        usage = Answer(self.send_command(f"USAGE {user} lang=fr"))
        self.assertEqual(usage["state_label"], "Actif")
        self.assertIn("messages utilisés ce mois-ci", usage["accessible"])
        trial = self.user()
        self.send_command(f"CONSUME {trial}")
        self.assertEqual(Answer(self.send_command(f"USAGE {trial} lang=ja"))["label"], "Trial（3日中1日目）")

    def test_replies_keep_their_languages_in_a_pipeline(self):
        user = self.subscriber(used=640)
        languages = [*GENTLE, "en"] * 5
        with self.service.connect() as connection:
            connection.send("".join(f"CHECK {user} lang={lang}\r\n" for lang in languages))
            for lang in languages:
                self.assertEqual(Answer(connection.read_line())["banner"], GENTLE[lang])

    def test_a_malformed_language_is_refused_and_an_unknown_one_falls_back(self):
        user = self.subscriber(used=640)
        for lang in ("", "d", "de_DE", "de-", "1", "a" * 9, "de-" + "a-" * 20 + "b"):
            reply = self.send_command(f"CHECK {user} lang={lang}")
            self.assertTrue(reply.startswith("-BADARG lang= must be a language tag such as en or pt-BR"), reply)
            self.assertEqual(self.get(f"/v1/usage/{user}?lang={lang}").status, 400)
        for lang in ("xx", "tlh-Latn", "de" + "-abcdefgh" * 3 + "-abcde"):
            banner = self.banner(f"CHECK {user} lang={lang}")
            self.assertEqual(banner, GENTLE["de" if lang.startswith("de") else "en"])
        self.assertTrue(self.send_command(f"CHECK {user} lang=de lang=fr").startswith("-BADARG"))
        # Operators' verbs answer in the language of the setting.
        self.assertTrue(self.send_command(f"RESETUSAGE {user} lang=de").startswith("-BADARG"))

    def test_plural_forms_follow_the_number(self):
        user = self.subscriber(used=640)
        for remaining, expected in ((1, "1 wiadomość"), (2, "2 wiadomości"), (22, "22 wiadomości")):
            self.set_count(user, 800 - remaining)
            self.assertIn(expected, self.banner(f"CHECK {user} lang=pl"))
        for used, expected in ((797, "3 mensajes"), (799, "1 mensaje ")):
            self.set_count(user, used)
            self.assertIn(expected, self.banner(f"CHECK {user} lang=es"))

    def test_counting_over_http_takes_the_language_of_the_header_or_of_the_body(self):
        user = self.subscriber(used=640)
        path = f"/v1/usage/{user}/consume"

        def consume(body, **headers):
            fields = {name.replace("_", "-"): value for name, value in headers.items()}
            return http.request(self.service.http_port, "POST", path, body, fields)

        accepted = consume({}, Accept_Language="de-CH, fr;q=0.9")
        self.assertEqual((accepted.headers["Content-Language"], accepted.headers["Vary"]), ("de", "Accept-Language"))
        self.assertIn("Nachrichten", accepted.json["banner"])
        named = consume({"lang": "fr"}, Accept_Language="de")
        self.assertEqual(named.headers["Content-Language"], "fr")
        self.assertIn("messages ce mois-ci", named.json["banner"])
        self.assertEqual(consume({"lang": "nonsense-"}).status, 400)
        self.assertEqual(consume({"lang": 7}).status, 400)

    def test_the_best_available_language_is_chosen(self):
        user = self.subscriber(used=640)
        for field, expected in {
            "fr;q=0.2, de;q=0.8": "de", "xx, yy;q=0.9": "en", "*": "en", "ja;q=0, pl;q=0.1": "pl", "*, de;q=0.5": "en",
            "xx, *;q=0.1": "en", "es-419,es;q=0.9,en;q=0.8": "es", "pt-BR": "pt", "garbage;;, de;q=2, fr;q=x, ja": "ja",
            "": "en", ",,,": "en", "de;q=0.5,fr;q=0.5": "de",
        }.items():  # fmt: skip
            answer = self.get(f"/v1/usage/{user}", Accept_Language=field)
            self.assertEqual((answer.status, answer.headers["Content-Language"]), (200, expected), field)

    def test_dates_are_those_of_the_time_zone_that_the_request_names(self):
        user = self.subscriber(used=799)
        path = f"/v1/usage/{user}"
        for zone, date in {"America/New_York": "March 31", "Europe/Berlin": "April 1", "UTC": "April 1", "Etc/GMT+12": "March 31"}.items():
            expected = f"Almost there — 1 message left until {date}"
            for request in (f"CHECK {user} tz={zone}", f"RESERVE {user} key={zone} TZ={zone}", f"RELEASE {user} key={zone} tz={zone}"):
                answer = Answer(self.send_command(request))
                if not request.startswith("RESERVE"):
                    self.assertEqual(answer["banner"], expected)
                self.assertEqual(answer["resets"], "2026-04-01T00:00:00Z", "instants in fields are in UTC")
            over_http = self.get(path + "?" + urllib.parse.urlencode({"tz": zone}))
            self.assertEqual((over_http.json["banner"], over_http.json["resets"]), (expected, "2026-04-01T00:00:00Z"))
            checked = self.service.http("POST", path + "/check", json.dumps({"tz": zone, "lang": "en"}))
            self.assertEqual(checked.json["banner"], expected)
        german = Answer(self.send_command(f"USAGE {user} lang=de tz=America/New_York"))
        self.assertTrue(german["banner"].endswith("bis zum 31. März"), german["banner"])
        self.assertIn("bis zum 31. März", german["accessible"])
        self.set_count(user, 640)
        self.assertEqual(self.banner(f"CHECK {user} tz=America/New_York"), "You have 160 conversations left until March 31")

    def test_replies_keep_their_time_zones_in_a_pipeline(self):
        user = self.subscriber(used=799)
        zones = [("America/New_York", "March 31"), ("Asia/Tokyo", "April 1"), ("Pacific/Pago_Pago", "March 31")] * 5
        with self.service.connect() as connection:
            connection.send("".join(f"CHECK {user} tz={zone}\r\n" for zone, _ in zones))
            for _, date in zones:
                self.assertTrue(Answer(connection.read_line())["banner"].endswith(date))

    def test_a_name_that_is_no_time_zone_is_refused(self):
        user = self.subscriber(used=640)
        for zone in ("", "europe/berlin", "Mars/Olympus", "../Europe/Berlin", "Europe/../UTC", "GMT+3", "IST", "UTC/", "A" * 900):
            reply = self.send_command(f"CHECK {user} tz={zone}")
            self.assertIn("-BADARG tz= must be the name of a time zone in IANA's spelling, such as Europe/Berlin", reply)
            query = urllib.parse.urlencode({"tz": zone})
            self.assertEqual(self.get(f"/v1/usage/{user}?{query}").status, 400)
            refused = self.service.http("POST", f"/v1/usage/{user}/check", json.dumps({"tz": zone}))
            self.assertEqual((refused.status, refused.json["code"]), (400, "BADARG"))
        self.assertTrue(self.send_command(f"CHECK {user} tz=UTC tz=UTC").startswith("-BADARG"))
        self.assertTrue(self.send_command(f"RESETUSAGE {user} tz=UTC").startswith("-BADARG"))

    def test_entity_tags_differ_by_language(self):
        user = self.subscriber(used=0)
        tags = {self.get(f"/v1/usage/{user}", Accept_Language=lang).headers["ETag"] for lang in ("de", "en", "ja")}
        self.assertEqual(len(tags), 3)
        tag = self.get(f"/v1/usage/{user}", Accept_Language="de").headers["ETag"]
        same = self.get(f"/v1/usage/{user}", Accept_Language="de", If_None_Match=tag)
        self.assertEqual((same.status, same.headers["Vary"]), (304, "Accept-Language"))
        self.assertEqual(self.get(f"/v1/usage/{user}", Accept_Language="fr", If_None_Match=tag).status, 200)


class WordsPage(WordsCase):
    def page(self, query=""):
        answer = DashboardClient(self.service).get("/dashboard/words" + query)
        return answer.status, visible_text(answer)

    def test_every_sentence_is_shown_as_users_see_it_in_each_language(self):
        status, text = self.page()
        self.assertEqual(status, 200)
        self.assertIn("Sentences in en 86 words: none falls back to another language, none edited.", text)
        self.assertIn("gentle 1: You have 1 conversation left this month 2: You have 2 conversations left this month", text)
        self.assertIn("blocked_window Let's take a short break. I'm here for you again in 2 hours 10 minutes.", text)
        self.assertIn("label_trial Premium — Day 2 of 3", text)
        polish = self.page("?lang=pl")[1]
        self.assertIn("1: Została Ci 1 wiadomość do 1 grudnia 2: Zostały Ci 2 wiadomości do 1 grudnia 5: Zostało Ci 5", polish)
        self.assertIn("1: 1 godzinę 2: 2 godziny 5: 5 godzin", polish)
        for lang in GENTLE:
            self.assertNotIn("{", self.page(f"?lang={lang}")[1])

    def test_edits_and_fallbacks_are_marked_also_before_any_answer_has_them(self):
        self.psql.run("insert into headroom.words (lang, word, other) values ('it', 'state_free', 'Gratis')")
        self.psql.run("update headroom.words set other = 'Bitte <b>warten</b>' where lang = 'de' and word = 'unreadable'")
        self.psql.run("delete from headroom.words where lang = 'de' and word = 'trial'")
        italian = self.page("?lang=IT")[1]
        self.assertIn("Sentences in it 86 words: 85 fall back to another language, 1 edited.", italian)
        self.assertIn("state_expired Expired falls back to en", italian)
        self.assertIn("state_free Gratis edited", italian)
        german = self.page("?lang=de")[1]
        self.assertIn("unreadable Bitte <b>warten</b> edited", german)
        self.assertIn("trial 1: 1 of 100 trial messages remaining", german)
        self.assertIn("86 words: 1 falls back to another language, 1 edited.", german)

    def test_an_unknown_language_is_not_found(self):
        for query in ("?lang=xx", "?lang=de_DE"):
            self.assertEqual(self.page(query)[0], 404)


class StandardLanguage(WordsCase):
    FLAGS = ("--language", "de-AT")

    def test_requests_without_a_language_have_that_of_the_setting(self):
        user = self.subscriber(used=640)
        self.assertEqual(self.banner(f"CHECK {user}"), GENTLE["de"])
        self.assertEqual(self.banner(f"CHECK {user} lang=xx"), GENTLE["de"])
        self.assertEqual(self.banner(f"CHECK {user} lang=en"), GENTLE["en"])
        answer = self.get(f"/v1/usage/{user}", Accept_Language="xx")
        self.assertEqual((answer.json["banner"], answer.headers["Content-Language"]), (GENTLE["de"], "de"))
        # An incomplete language falls back to the setting's.
        self.psql.run("insert into headroom.words (lang, word, other) values ('it', 'state_active', 'Attivo')")
        usage = Answer(self.send_command(f"USAGE {user} lang=it"))
        self.assertEqual((usage["state_label"], usage["banner"]), ("Attivo", GENTLE["de"]))

    def test_a_malformed_setting_is_refused(self):
        service = self.serve("--language", "de_AT", wait=False)
        service.process.wait(60)
        self.assertIn("language (HEADROOM_LANGUAGE) must be a language tag", service.log())


class WithoutDatabase(WordsCase):
    FLAGS = ("--when-unavailable", "allow", "--request-timeout-ms", "1000")
    OWN_CLUSTER = True

    def test_messages_are_let_through_in_the_language_with_the_last_known_words(self):
        user = self.subscriber(used=640)
        self.psql.run("update headroom.words set other = 'Los, weiter' where lang = 'de' and word = 'uncounted'")
        self.send_command(f"CHECK {user}")
        self.cluster.stop_immediately()
        self.assertIn('degraded=1 banner="Los, weiter"', self.send_command(f"CONSUME {user} lang=de"))
        self.assertIn("you can keep chatting", self.send_command(f"CONSUME {user}"))
        self.assertIn("-UNAVAILABLE", self.send_command(f"USAGE {user} lang=de"))
        self.assertNotIn("Los, weiter", self.send_command(f"USAGE {user} lang=de"))
