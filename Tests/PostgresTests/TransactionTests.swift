import TestSupport
import Testing

@testable import Postgres

/// The first and the last statement of a transaction, each in one round trip with its BEGIN or COMMIT.
@Suite("Statements with BEGIN or COMMIT")
struct TransactionTests {
    private static let add = PreparedQuery(
        name: "add",
        sql: "insert into pairs (a, b) values ($1, 10 / $1) returning b"
    )
    /// Runs the scenario with a connection that has a table of its own.
    private func connectedToPairs(_ scenario: @escaping @Sendable (DatabaseConnection) throws -> Void) async throws {
        try await connected { connection in
            let table = "create temp table pairs (a int4 unique deferrable initially deferred, b int4)"
            try connection.execute(table, deadline: soon)
            try scenario(connection)
        }
    }

    private func failure(_ body: () throws -> Void) -> PostgresError.Kind? {
        #expect(throws: PostgresError.self) { try body() }?.kind
    }

    private func add(
        _ number: Int32,
        as position: DatabaseConnection.Position,
        _ connection: DatabaseConnection
    ) throws -> Int32 {
        var parameters = Parameters()
        parameters.append(int32: number)
        return try connection.query(TransactionTests.add, parameters, as: position, deadline: soon).int32(0, 0)
    }

    private func sum(_ connection: DatabaseConnection) throws -> Int32 {
        try connection.query("select coalesce(sum(b), 0)::int4 from pairs", deadline: soon).int32(0, 0)
    }

    @Test("the statement's rows are returned, and the transaction ends") func rows() async throws {
        try await connectedToPairs { connection in
            #expect(try add(2, as: .first, connection) == 5)
            #expect(connection.isInTransaction)
            #expect(try add(5, as: .last, connection) == 2)
            #expect(!connection.isInTransaction)
            // Again, so that what is prepared is used twice.
            #expect(try add(1, as: .first, connection) == 10)
            try connection.execute("rollback", deadline: soon)
            #expect(try sum(connection) == 7)
        }
    }

    @Test("a failed statement leaves the transaction open") func failedStatement() async throws {
        try await connectedToPairs { connection in
            for position in [DatabaseConnection.Position.first, .last] {
                if position == .last { _ = try add(1, as: .first, connection) }
                #expect(failure { _ = try add(0, as: position, connection) } == .server(.divisionByZero))
                #expect(connection.isUsable && connection.isInTransaction)
                try connection.execute("rollback", deadline: soon)
                #expect(try sum(connection) == 0)
            }
        }
    }

    @Test("a failed commit is an error") func failedCommit() async throws {
        try await connectedToPairs { connection in
            _ = try add(1, as: .first, connection)
            #expect(failure { _ = try add(1, as: .last, connection) } == .server(.uniqueViolation))
            #expect(connection.isUsable && !connection.isInTransaction)
            #expect(try sum(connection) == 0)
        }
    }

    @Test("a pipeline returns the results with rows, in their order") func pipeline() async throws {
        try await connectedToPairs { connection in
            try connection.prepare("number", "select $1::int4 + 1", deadline: soon)
            try connection.sendPipeline { pipeline throws(PostgresError) in
                try pipeline.begin()
                for number: Int32 in 1...3 {
                    var parameters = Parameters()
                    parameters.append(int32: number)
                    try pipeline.send(prepared: "number", parameters)
                }
            }
            let results = try #require(try connection.awaitResults(until: soon))
            #expect(try results.map { try $0.int32(0, 0) } == [2, 3, 4])
            #expect(connection.isInTransaction)
            try connection.rollBack(deadline: soon)
            #expect(!connection.isInTransaction)
            try connection.rollBack(deadline: soon)
        }
    }

    @Test("a pipeline executes nothing after a statement that fails") func failedPipeline() async throws {
        try await connectedToPairs { connection in
            _ = try add(1, as: .first, connection)
            try connection.rollBack(deadline: soon)
            #expect(
                failure {
                    try connection.sendPipeline { pipeline throws(PostgresError) in
                        try pipeline.begin()
                        for number: Int32 in [2, 0, 5] {
                            var parameters = Parameters()
                            parameters.append(int32: number)
                            try pipeline.send(prepared: TransactionTests.add.name, parameters)
                        }
                        try pipeline.commit()
                    }
                    _ = try connection.awaitResults(until: soon)
                } == .server(.divisionByZero)
            )
            #expect(connection.isUsable && connection.isInTransaction)
            try connection.rollBack(deadline: soon)
            #expect(try sum(connection) == 0)
        }
    }

    @Test("a statement that cannot be prepared leaves the session unchanged") func notPrepared() async throws {
        try await connectedToPairs { connection in
            let wrong = PreparedQuery(name: "wrong", sql: "select no_column from pairs")
            for _ in 1...2 {
                let failure = failure { _ = try connection.query(wrong, as: .first, deadline: soon) }
                #expect(failure == .server(.undefinedColumn))
            }
            #expect(connection.isUsable && !connection.isInTransaction)
        }
    }

    @Test("the warnings are those of the statement and of COMMIT") func warnings() async throws {
        try await connectedToPairs { connection in
            try connection.execute(
                """
                create function pg_temp.warn() returns int4 language plpgsql
                    as $$ begin raise warning 'in the statement'; return 3; end $$;
                create function pg_temp.warn_at_commit() returns trigger language plpgsql
                    as $$ begin raise warning 'in commit'; return null; end $$;
                create constraint trigger warn after insert on pairs deferrable initially deferred
                    for each row execute function pg_temp.warn_at_commit();
                """,
                deadline: soon
            )
            _ = try add(1, as: .first, connection)
            let warn = PreparedQuery(name: "warn", sql: "select pg_temp.warn()")
            let result = try connection.query(warn, as: .last, deadline: soon)
            #expect(try result.int32(0, 0) == 3)
            #expect(result.warnings.map(\.message) == ["in the statement", "in commit"])
        }
    }

    @Test("a session that ends before its commit is a lost connection") func lost() async throws {
        try await connectedToPairs { connection in
            _ = try add(1, as: .first, connection)
            let end = PreparedQuery(name: "end", sql: "select pg_terminate_backend(pg_backend_pid())")
            #expect(failure { _ = try connection.query(end, as: .last, deadline: soon) } == .connectionLost)
            #expect(!connection.isUsable)
        }
    }

    @Test("a statement that exceeds its deadline closes the connection") func deadline() async throws {
        try await connectedToPairs { connection in
            let long = PreparedQuery(name: "long", sql: "select pg_sleep(600)")
            let end = ContinuousClock.now + .milliseconds(300)
            #expect(failure { _ = try connection.query(long, as: .last, deadline: end) } == .timedOut)
            #expect(!connection.isUsable)
        }
    }
}
