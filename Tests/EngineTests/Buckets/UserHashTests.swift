import Postgres
import TestSupport
import Testing
import Usage

@Suite("The hash of a user")
struct UserHashTests {
    @Test("is PostgreSQL's")
    func agreement() async throws {
        var random = SeededGenerator(seed: 1)
        var users = (0..<4_000).map { _ in UserID(high: random.next(), low: random.next()) }
        users += (0..<64).map { UserID(high: 1 << $0, low: 0) } + (0..<64).map { UserID(high: 0, low: 1 << $0) }
        users += [UserID(high: 0, low: 0), UserID(high: .max, low: .max)] + (0..<100).map { user($0) }
        let all = users
        let database = try await TestDatabase.migrated()
        let hashes = try await database.psql.run { connection in
            var parameters = Parameters()
            parameters.appendUUIDs(count: all.count) { (all[$0].high, all[$0].low) }
            let result = try connection.query(
                "select uuid_hash_extended(one.id, 0) from unnest($1::uuid[]) with ordinality as one (id, ordinal) "
                    + "order by one.ordinal",
                parameters,
                deadline: .now + waitLimit
            )
            return try (0..<result.rowCount).map { UInt64(bitPattern: try result.int64($0, 0)) }
        }
        #expect(hashes == all.map(\.hash))
    }
}
