import Postgres
import TestSupport
import Testing

@testable import Engine

@Suite("The effect of a statement that failed")
struct StatementFailureTests {
    @Test(
        "is unknown when the server did not answer",
        arguments: [PostgresError.Kind.connectionLost, .connectFailed, .timedOut, .misuse]
    )
    func unknown(kind: PostgresError.Kind) { #expect(StatementFailure(of: PostgresError(kind, "")) == .unknown) }

    @Test(
        "is none after a deadlock or a serialization failure, and the statement can be sent again",
        arguments: ["40P01", "40001"]
    )
    func rolledBack(state: String) {
        #expect(StatementFailure(of: PostgresError(.server(SQLState(rawValue: state)), "")) == .rolledBack)
    }

    @Test(
        "is none when the server takes no writes, or cannot forward it, and another server may take it",
        arguments: ["25006", "08006", "08001", "57P01", "57P03", "25001"]
    )
    func unavailableServer(state: String) {
        #expect(StatementFailure(of: PostgresError(.server(SQLState(rawValue: state)), "")) == .unavailableServer)
    }

    @Test(
        "is none when Citus has planned it before a table became one of Citus, or a shard was split",
        arguments: [
            ("XX000", "could not find valid entry for shard 102020"),
            ("22004", "the partition column of table public.message_usage should have a value"),
        ]
    )
    func movingTables(state: String, message: String) {
        #expect(StatementFailure(of: PostgresError(.server(SQLState(rawValue: state)), message)) == .unavailableServer)
        #expect(StatementFailure(of: PostgresError(.server(SQLState(rawValue: state)), "another")) == .refused)
    }

    @Test("is none when a row that Citus has copied to another server exists there")
    func forwardedDuplicate() {
        let message = "duplicate key value violates unique constraint \"message_keys_pkey_102051\""
        #expect(StatementFailure(of: PostgresError(.server(SQLState(rawValue: "XX000")), message)) == .rolledBack)
    }

    @Test("is none when the session's statements are older than what they use, and a new session may execute them")
    func outdatedSession() {
        #expect(StatementFailure(of: PostgresError(.server(.featureNotSupported), "")) == .outdatedSession)
    }

    @Test(
        "is none after any other refusal",
        arguments: ["22003", "23514", "P0001", "55P03", "57014", "53100", "42P01", "XX000"]
    )
    func refused(state: String) {
        #expect(StatementFailure(of: PostgresError(.server(SQLState(rawValue: state)), "")) == .refused)
    }
}
