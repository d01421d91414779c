import Postgres
import TestSupport
import Testing

@testable import Engine
@testable import Usage

@Suite("Words, in SQL")
struct WordsTests {
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
        let shipped = ShippedWords.rows.count { $0.sentence == .window }
        #expect(try await psql.number("select count(*) from headroom.words where word = 'window'") == shipped)
        #expect(
            try await psql.text("select array_to_string(blanks, ' ') from headroom.word_blanks where word = 'window'")
                == "remaining limit used wait"
        )
    }
}
