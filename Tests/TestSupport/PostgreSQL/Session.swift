import Dispatch
import Postgres

/// A database session of an operator, as psql has one. A transaction may stay open between calls.
///
/// @unchecked Sendable: the connection is only used on `queue`, which is serial and not part of the cooperative pool.
public final class Session: @unchecked Sendable {
    private let queue = DispatchQueue(label: "test.session")
    private let connection: DatabaseConnection

    private init(_ connection: DatabaseConnection) {
        self.connection = connection
    }

    public static func open(_ options: ConnectionOptions) async throws -> Session {
        try await onThread { Session(try DatabaseConnection.connect(options)) }
    }

    public static func open(_ conninfo: String) async throws -> Session {
        try await open(
            ConnectionOptions(
                database: DatabaseTopology(conninfo),
                connectTimeout: waitLimit,
                applicationName: "psql",
                // PostgreSQL's default, as in psql.
                sessionSettings: [("search_path", "\"$user\", public")]
            )
        )
    }

    public func run<Value: Sendable>(
        _ work: @escaping @Sendable (DatabaseConnection) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try work(self.connection) }) }
        }
    }

    public func execute(_ script: String) async throws {
        try await run { try $0.execute(script, deadline: .now + waitLimit) }
    }

    /// The first column of the first row, as text; nil for NULL or no row.
    public func text(_ sql: String) async throws -> String? {
        try await run { connection in
            let result = try connection.query("select (\(sql))::text", deadline: .now + waitLimit)
            return result.rowCount == 0 || result.isNull(0, 0) ? nil : result.text(0, 0)
        }
    }

    public func number(_ sql: String) async throws -> Int? { try await text(sql).flatMap { Int($0) } }

    /// The rows of a query as text, with bars between the columns; nulls are left out.
    public func rows(_ sql: String) async throws -> [String] {
        let lines = try await text(
            """
            select string_agg(line_text, chr(10)) from (
                select (
                    select string_agg(field.value, '|' order by field.ordinality)
                    from json_each_text(row_to_json(line)) with ordinality as field
                ) as line_text
                from (\(sql)) as line
            ) as lines
            """
        )
        return lines.map { $0.split(separator: "\n").map(String.init) } ?? []
    }

    /// The SQLSTATE of the error of a script; nil without an error.
    public func sqlState(of script: String) async throws -> String? {
        try await run { connection in
            do throws(PostgresError) {
                try connection.execute(script, deadline: .now + waitLimit)
                return nil
            } catch {
                guard let state = error.sqlState else { throw error }
                return state.rawValue
            }
        }
    }
}
