import Postgres
import TestSupport
import Usage

@testable import Engine

/// The role that tries a statement.
enum Actor: String, CaseIterable, Sendable {
    case service = "headroom_service"
    case `operator` = "headroom_operator"
    case dashboard = "headroom_dashboard"
    /// An end user, signed in as user 1.
    case user = "headroom_user"
    /// A role without grants, which has the rights of PUBLIC.
    case stranger = "pg_signal_backend"
}

extension TestDatabase {
    /// Runs statements as a role and rolls them back.
    ///
    /// - Parameter subject: the signed-in user, as PostgREST sets it.
    /// - Returns: "ok", or the SQLSTATE of the error.
    func attempt(_ sql: String, as role: String, subject: UserID? = nil) async throws -> String {
        let claims = subject.map { #"{"sub": "\#($0)", "role": "\#(role)"}"# } ?? ""
        return try await psql.run { connection in
            func execute(_ script: String) throws { try connection.execute(script, deadline: .now + waitLimit) }
            try execute("begin; set local role \(role); set local request.jwt.claims = '\(claims)'")
            defer { try? execute("rollback") }
            do {
                try execute(sql)
                return "ok"
            } catch let error as PostgresError {
                guard case .server(let state) = error.kind else { throw error }
                return state.rawValue
            }
        }
    }

    /// User 1 on a plan, with a key, a hold and a grant; user 2 in a trial; a token.
    func populate() async throws {
        try await psql.execute(
            """
            select from set_plan('\(user(1))', 'paid');
            select from increment_and_check_usage('\(user(1))');
            select from increment_and_check_usage('\(user(2))');
            select from grant_messages('\(user(1))', 10, 'a test');
            select from headroom.create_token('a', '{chat}', sha256('a'));
            select from headroom.lock_customer('{appstore:transaction:T}');
            """
        )
        try await hold(1, of: user(1))
    }
}
