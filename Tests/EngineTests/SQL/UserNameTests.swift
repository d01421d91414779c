import TestSupport
import Testing
import Usage

@Suite("Users' names, in SQL")
struct UserNameTests {
    private static let namespace = "0b1f2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d"
    /// What is dropped, replaced or taken for the same somewhere.
    private static let pieces = [
        "ann", "\u{FEFF}", "\u{FFFE}", "\u{FFFD}", "é", "e\u{301}", "\u{85}", "\u{A0}", "\u{7F}", " ", "%41", "+", "名",
        "👩‍👩‍👧", "\u{202E}",
    ].map { Array($0.utf8) }

    @Test("are the same users as in the service, for any bytes", arguments: SeededGenerator.seeds)
    func sameUsers(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let names = (0..<2_000).compactMap { _ in UserNameTests.name(using: &random) }
        let database = try await TestDatabase.fresh()
        try await database.psql.execute(
            """
            select headroom.claim_user_namespace('\(UserNameTests.namespace)');
            create function pg_temp.user_id(p_name text) returns uuid language plpgsql as $$
            begin
                return headroom.user_id(p_name);
            exception when invalid_parameter_value then
                return null;
            end
            $$;
            """
        )
        let literals = names.map { name in
            let digits = name.utf8.map { String($0, radix: 16) }.map { $0.count == 1 ? "0\($0)" : $0 }
            return "'\\x\(digits.joined())'"
        }
        let found = try await database.psql.rows(
            """
            select coalesce(pg_temp.user_id(convert_from(name, 'UTF8'))::text, 'refused')
            from unnest(array[\(literals.joined(separator: ", "))]::bytea[]) with ordinality as names (name, position)
            order by position
            """
        )
        let namespace = UserNamespace(try #require(UserID(UserNameTests.namespace)))
        let expected = names.map { UserID($0, in: namespace)?.description ?? "refused" }
        #expect(found == expected)
        #expect(expected.contains("refused") && Set(expected).count > 200)
    }

    /// Nil for bytes that no text of PostgreSQL has.
    private static func name(using random: inout SeededGenerator) -> String? {
        let count = Int.random(in: 0...(Bool.random(using: &random) ? 3 : 90), using: &random)
        let bytes = (0..<count).flatMap { _ in
            Int.random(in: 0..<8, using: &random) == 0
                ? Array(String(Unicode.Scalar(UInt16.random(in: 1..<0xD800, using: &random))!).utf8)
                : pieces.randomElement(using: &random)!
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
