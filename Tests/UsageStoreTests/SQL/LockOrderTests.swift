import Foundation
import Postgres
import TestSupport
import Testing

@testable import UsageStore

/// A batch locks its rows in the order of its arrays only when the plan walks the arrays and looks each row up.
@Suite("The plan of a counting statement in a lane's session")
struct LockOrderTests {
    /// A statement, and arguments for one user.
    enum Counting: String, CaseIterable {
        case plain = """
            count_batch(
                '00000000-0000-0000-0000-000000000001', 1, array['00000000-0000-0000-0000-000000000002']::uuid[],
                array['2026-11'], array[1], array[1]::bigint[], array[0]::bigint[]
            )
            """
        case keyed = """
            count_keyed_batch(
                '00000000-0000-0000-0000-000000000001', 1, array['00000000-0000-0000-0000-000000000002']::uuid[],
                array['2026-11'], array[1], array[1]::bigint[], array[0]::bigint[], array['key'], array[1],
                array[1]::bigint[]
            )
            """

        var statement: PreparedStatement { self == .plain ? .countBatch : .countKeyedBatch }
    }

    private func plan(_ counting: Counting, _ conninfo: String) async throws -> [String: Any] {
        let options = ConnectionOptions(
            conninfo: conninfo,
            connectTimeout: waitLimit,
            sessionSettings: LaneSession.settings(unknownUsers: .trial, requestTimeout: waitLimit),
            role: ServiceRole.name
        )
        let session = try await Session.open(options)
        let json = try await session.run { connection in
            let statement = counting.statement
            try connection.prepare(statement.rawValue, statement.sql, deadline: .now + waitLimit)
            let result = try connection.query(
                "explain (format json) execute \(counting.rawValue)",
                deadline: .now + waitLimit
            )
            return result.text(0, 0)
        }
        let parsed = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [[String: Any]]
        return try #require(parsed?.first?["Plan"] as? [String: Any])
    }

    private func children(_ node: [String: Any]) -> [[String: Any]] {
        node["Plans"] as? [[String: Any]] ?? []
    }

    private func nodes(_ node: [String: Any]) -> [[String: Any]] {
        [node] + children(node).flatMap { nodes($0) }
    }

    private func expectLockOrder(_ plan: [String: Any]) throws {
        let update = try #require(
            nodes(plan).first { node in
                node["Node Type"] as? String == "ModifyTable" && node["Relation Name"] as? String == "message_usage"
            }
        )
        let join = try #require(
            nodes(update).first { node in
                node["Node Type"] as? String == "Nested Loop"
                    && children(node).contains { $0["Alias"] as? String == "usage" }
            }
        )
        let (outer, inner) = (children(join)[0], children(join)[1])
        #expect(nodes(outer).contains { $0["Node Type"] as? String == "Function Scan" }, "the arrays are walked")
        #expect(!nodes(outer).contains { $0["Node Type"] as? String == "Sort" })
        #expect(inner["Node Type"] as? String == "Index Scan", "and each row is looked up")
        #expect(inner["Alias"] as? String == "usage")
        #expect(inner["Index Name"] as? String == "message_usage_pkey")
        let condition = inner["Index Cond"] as? String ?? ""
        #expect(condition.contains("user_id = ANY (ARRAY["))
        #expect(condition.contains("billing_period = ($4"))
    }

    @Test("walks the arrays and looks each row up in the index, while the table is empty", arguments: Counting.allCases)
    func empty(counting: Counting) async throws {
        let database = try await TestDatabase.fresh()
        try expectLockOrder(try await plan(counting, database.conninfo))
    }

    @Test(
        "walks the arrays and looks each row up in the index, on a table that was just analyzed",
        arguments: [0, 1, 10, 100, 20_000],
        Counting.allCases
    )
    func analyzed(rows: Int, counting: Counting) async throws {
        let database = try await TestDatabase.fresh()
        try await database.psql.execute(
            """
            insert into message_usage (user_id, billing_period, message_count, "limit")
            select md5(number::text)::uuid, '2026-11', 1, 800 from generate_series(1, \(rows)) as number;
            """
        )
        try await database.psql.execute("analyze")
        try expectLockOrder(try await plan(counting, database.conninfo))
    }
}
