import Dispatch
import Postgres

/// What an operator's psql is to the tests: one database session, which can hold a transaction open between calls.
///
/// @unchecked Sendable: the connection is touched on `queue` only, which is serial and no part of the cooperative pool.
final class Session: @unchecked Sendable {
    private let queue = DispatchQueue(label: "test.session")
    private let connection: Connection

    private init(_ connection: Connection) {
        self.connection = connection
    }

    static func open(_ options: ConnectionOptions) async throws -> Session {
        try await onThread { Session(try Connection.connect(options)) }
    }

    static func open(_ conninfo: String) async throws -> Session {
        try await open(ConnectionOptions(conninfo: conninfo, connectTimeout: .seconds(30), applicationName: "psql"))
    }

    func run<Value: Sendable>(_ work: @escaping @Sendable (Connection) throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result { try work(self.connection) }) }
        }
    }

    func execute(_ script: String) async throws {
        try await run { try $0.execute(script, deadline: .now + .seconds(60)) }
    }

    /// The first column of the first row, as text; nil for NULL or no row.
    func text(_ sql: String) async throws -> String? {
        try await run { connection in
            let result = try connection.query("select (\(sql))::text", deadline: .now + .seconds(60))
            return result.rowCount == 0 || result.isNull(0, 0) ? nil : result.text(0, 0)
        }
    }

    func number(_ sql: String) async throws -> Int? {
        try await text(sql).flatMap { Int($0) }
    }
}
