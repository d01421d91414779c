import Postgres
import TestSupport
import Testing

@testable import Engine
@testable import Usage

@Suite("Words, in SQL")
struct WordsTests {
    /// All of them but those that dates and waits are made of, which are in the sentences.
    private static let sentences = Sentence.allCases.filter { sentence in
        !sentence.blanks.contains { [.month, .n, .larger].contains($0) }
    }

    private static let languages = ["en", "de", "es", "fr", "ja", "pl", "pt"]

    @Test("are the service's in every sentence, language and number", arguments: languages)
    func everyWord(language: String) async throws {
        let database = try await TestDatabase.migrated()
        let vocabulary = Words.shipped.vocabulary(for: LanguageTag(language))
        let numbers = [0, 1, 2, 3, 4, 5, 10, 11, 12, 14, 15, 19, 20, 21, 22, 25, 100, 101, 102, 111, 112, 122, 800]
        var expected: [String] = []
        for sentence in WordsTests.sentences {
            for number in numbers { expected.append(text(sentence, number, vocabulary)) }
        }
        try await database.psql.execute("set headroom.language = '\(language)'")
        let (words, asked) = (WordsTests.sentences.map(\.rawValue), numbers.map(Int64.init))
        let answered = try await database.psql.run { connection in
            var parameters = Parameters()
            parameters.appendTexts(count: words.count) { words[$0] }
            parameters.appendInt64s(count: asked.count) { asked[$0] }
            let result = try connection.query(
                """
                -- SQL functions answer about the current period, so the two sentences about a past one keep the blank.
                select replace(headroom.format_sentence(
                    word, n, n, n * 2, n, '2026-03-01T00:00:00Z'::timestamptz + n * interval '1 day', 'A {day} plan',
                    n::integer, 3, n * 1000
                ), '{period}', 'trial')
                from unnest($1::text[]) with ordinality as words (word, ordinal)
                cross join unnest($2::bigint[]) with ordinality as numbers (n, ordinal)
                order by words.ordinal, numbers.ordinal
                """,
                parameters,
                deadline: .now + waitLimit
            )
            return (0..<result.rowCount).map { result.text($0, 0) }
        }
        #expect(answered.count == expected.count)
        for (sql, swift) in zip(answered, expected) where sql != swift { #expect(sql == swift) }
        let unlimited = try await database.psql.text(
            "select headroom.format_sentence('lifetime', null, 3, null, null, null, null, null, null)"
        )
        var values = Phrase.Values()
        values.allowance = Allowance(used: 3, limit: nil)
        #expect(unlimited == Phrase(.lifetime, values).text(in: vocabulary))
    }

    /// As the SQL of the test fills it in.
    private func text(_ sentence: Sentence, _ number: Int, _ vocabulary: Vocabulary) -> String {
        var values = Phrase.Values()
        values.allowance = Allowance(used: number, limit: number * 2)
        values.date = at("2026-03-01").advanced(bySeconds: Int64(number) * 86_400)
        (values.day, values.days) = (number, 3)
        values.waitSeconds = Int64(number) * 1_000
        let plan = Plan(name: "a", label: "A {day} plan", cycle: .trial(days: 3), allowance: 9)
        values.entitlement =
            UsageSnapshot(
                plan: plan,
                state: .trial,
                period: billingPeriod("trial"),
                used: number,
                limit: 9,
                startedAt: at("2026-03-01"),
                resetsAt: nil,
                expiresAt: nil,
                observedAt: at("2026-03-01")
            ).entitlement
        return Phrase(sentence, values).text(in: vocabulary)
    }

    @Test("have the service's plural rules")
    func plurals() async throws {
        let database = try await TestDatabase.migrated()
        let languages = [
            "ar", "be", "bs", "cs", "cy", "dsb", "en", "fr", "ga", "hr", "hsb", "ja", "lt", "lv", "mo", "mt", "pl",
            "pt-BR", "ro",
            "ru", "sh", "sk", "sl", "sr-Latn", "uk",
        ]
        let numbers = Array(0...200) + [1_000, 1_001, 1_002, 1_011, 1_000_000, 2_147_483_647]
        let stored = try await database.psql.text(
            """
            select string_agg(headroom.plural_category(lang, n), ' ' order by lang collate "C", n)
            from unnest('{\(languages.joined(separator: ","))}'::text[]) as lang
            cross join unnest('{\(numbers.map(String.init).joined(separator: ","))}'::bigint[]) as n
            """
        )
        let expected = languages.flatMap { language in
            numbers.map { PluralRule(LanguageTag(language) ?? .english).category(of: $0).rawValue }
        }
        #expect(stored == expected.joined(separator: " "))
        #expect(try await database.psql.text("select headroom.plural_category('en', null)") == "other")
    }

    @Test("have the service's spelling of languages")
    func tags() async throws {
        let database = try await TestDatabase.migrated()
        for tag in [
            "de", "DE", "pt-br", "zh-HANT-tw", "en-a-BB-cccc", "en-X-US", "sl-rozaj-biske", "es-419", "de-1901", "",
            "d", "de-",
            "de--a", "de_DE", "d3", "x-a", "abcdefghi", "de-abcdefghi", "de-abcdefgh-abcdefgh-abcdefgh-abcdef",
        ] {
            let stored = try await database.psql.text("select headroom.canonical_language('\(tag)')")
            #expect(stored == LanguageTag(tag)?.text, "\(tag)")
        }
        for tag in ["pt-BR", "zh-Hant-x-app", "xx"] {
            try await database.psql.execute("set headroom.language = '\(tag)'")
            let stored = try await database.psql.text("select array_to_string(headroom.language_lookup(), ' ')")
            let expected = (LanguageTag(tag)?.lookup ?? []).map(\.text) + ["en"]
            #expect(stored == expected.joined(separator: " "))
        }
    }

    @Test("that an operator has edited or deleted stay so when a release ships others; the rest follow the release")
    func upgrade() async throws {
        let database = try await TestDatabase.migrated()
        let psql = database.psql
        try await psql.execute(
            """
            update headroom.words set other = 'Mine' where lang = 'de' and word = 'state_free';
            update headroom.words set other = 'My English' where lang = 'en' and word = 'state_free';
            delete from headroom.words where lang = 'de' and word = 'state_trial';
            insert into headroom.words (lang, word, other) values ('it', 'state_free', 'Gratis');
            -- As an earlier release would have left it.
            update headroom.shipped_words set other = 'Old';
            update headroom.words set one = null, few = null, many = null, other = 'Old'
            where lang = 'de' and word = 'state_active';
            update headroom.shipped_words set one = null, few = null, many = null;
            insert into headroom.shipped_words (lang, word, other) values ('de', 'gone', 'Old'), ('xx', 'state_free', 'Old');
            insert into headroom.words (lang, word, other) values ('xx', 'state_free', 'Old');
            """
        )
        _ = try await psql.run { try Schema.migrate($0) }
        func other(_ lang: String, _ word: String) async throws -> String? {
            try await psql.text("select other from headroom.words where lang = '\(lang)' and word = '\(word)'")
        }
        #expect(try await other("de", "state_free") == "Mine")
        #expect(try await other("en", "state_free") == "My English")
        #expect(try await other("de", "state_trial") == nil)
        #expect(try await other("it", "state_free") == "Gratis")
        #expect(try await other("de", "state_active") == "Aktiv")
        #expect(try await other("xx", "state_free") == nil)
        #expect(try await psql.number("select headroom.restore_words('de')") == 2)
        #expect(try await other("de", "state_trial") == "Probezeit")
        let revision = "select words_revision from headroom.plan_revision"
        let before = try await psql.number(revision)
        _ = try await psql.run { try Schema.migrate($0) }
        #expect(try await psql.number(revision) == before)
    }

    @Test("of a release that has more of them are written to a database that lacks them in English")
    func newWords() async throws {
        let database = try await TestDatabase.migrated()
        let psql = database.psql
        try await psql.execute(
            """
            alter table headroom.words disable trigger keep_english;
            delete from headroom.words where word = 'window';
            delete from headroom.shipped_words where word = 'window';
            delete from headroom.word_blanks where word = 'window';
            alter table headroom.words enable trigger keep_english;
            """
        )
        _ = try await psql.run { try Schema.migrate($0) }
        #expect(try await psql.number("select count(*) from headroom.words where word = 'window'") == 7)
        #expect(
            try await psql.text("select array_to_string(blanks, ' ') from headroom.word_blanks where word = 'window'")
                == "remaining limit used wait"
        )
    }
}
