import Foundation
import Postgres
import TestSupport

@testable import Engine

/// Sends the statements of PostgREST for a request: in a transaction, one statement that sets the user, and one that
/// accesses the table or the function. As its releases 11 to 13 do, but with literals for its untyped parameters.
struct PostgRESTClient {
    /// The body of the reply, or the SQLSTATE of the error.
    enum Reply: Equatable {
        case body(String)
        case refused(String)
    }

    /// A form of `increment_and_check_usage`.
    enum Form {
        case planAware, planAwareWithDefault, withParts, ownPeriod

        /// Names and types.
        fileprivate var parameters: [(name: String, type: String)] {
            switch self {
            case .planAware: [("p_user_id", "uuid"), ("p_messages", "integer")]
            case .planAwareWithDefault: [("p_user_id", "uuid")]
            case .withParts: [("p_user_id", "uuid"), ("p_model", "text"), ("p_member", "uuid")]
            case .ownPeriod: [("p_user_id", "uuid"), ("p_billing_period", "text"), ("p_limit", "integer")]
            }
        }

        /// Whether it returns a row, or else a value.
        fileprivate var returnsComposite: Bool { self != .ownPeriod }
    }

    let session: Session
    /// The role in the token, or the one for requests without a token.
    var role = "headroom_user"
    /// The token's `sub`; nil for a request without a token.
    var subject: String?
    /// Before version 9 each claim had a setting of its own.
    var hasClaimSettings = false

    /// `GET /message_usage?user_id=eq.…&select=…`
    func get(user: String, select columns: String) async throws -> Reply {
        let selected =
            columns == "*"
            ? #""public"."message_usage".*"#
            : columns.split(separator: ",").map { #""public"."message_usage"."\#($0)""# }.joined(separator: ", ")
        return try await send(
            """
            WITH pgrst_source AS ( SELECT \(selected) FROM "public"."message_usage"  WHERE \
            "public"."message_usage"."user_id" = '\(user)'    )  SELECT null::bigint AS total_result_set, \
            pg_catalog.count(_postgrest_t) AS page_total, coalesce(json_agg(_postgrest_t), '[]') AS body, \
            nullif(current_setting('response.headers', true), '') AS response_headers, \
            nullif(current_setting('response.status', true), '') AS response_status FROM ( SELECT * FROM pgrst_source ) \
            _postgrest_t
            """,
            path: "/message_usage",
            isReading: true
        )
    }

    /// `POST /rpc/increment_and_check_usage` with the arguments as a JSON object.
    func increment(_ body: String, _ form: Form) async throws -> Reply {
        let parameters = form.parameters
        let names = parameters.map { "\"\($0.name)\"" }.joined(separator: ", ")
        let types = parameters.map { "\"\($0.name)\" \($0.type)" }.joined(separator: ", ")
        let arguments = parameters.map { "\"\($0.name)\" := pgrst_body.\"\($0.name)\"" }.joined(separator: ", ")
        let call = #""public"."increment_and_check_usage"(\#(arguments))"#
        let (returned, lateral, aggregate) =
            form.returnsComposite
            ? (#""pgrst_call".*"#, "\(call) pgrst_call", "coalesce(json_agg(_postgrest_t)->0, 'null')")
            : (
                "pgrst_call.pgrst_scalar", "(SELECT \(call) pgrst_scalar) pgrst_call",
                "coalesce(json_agg(_postgrest_t.pgrst_scalar)->0, 'null')"
            )
        return try await send(
            """
            WITH pgrst_source AS (SELECT \(returned) FROM (SELECT '\(body)'::json AS json_data) pgrst_payload, LATERAL (SELECT \
            \(names) FROM json_to_record(pgrst_payload.json_data) AS _(\(types)) LIMIT 1) pgrst_body , LATERAL \
            \(lateral)) SELECT null::bigint AS total_result_set, pg_catalog.count(_postgrest_t) AS page_total, \
            \(aggregate) AS body, nullif(current_setting('response.headers', true), '') AS response_headers, \
            nullif(current_setting('response.status', true), '') AS response_status FROM (SELECT \
            "increment_and_check_usage".* FROM "pgrst_source" AS "increment_and_check_usage") _postgrest_t
            """,
            path: "/rpc/increment_and_check_usage",
            isReading: false
        )
    }

    /// `PATCH`, `DELETE` and `POST /message_usage`. The body is the number of rows.
    func change(_ statement: String) async throws -> Reply {
        try await send(
            """
            WITH pgrst_source AS (\(statement) RETURNING 1) SELECT '' AS total_result_set, \
            pg_catalog.count(_postgrest_t) AS page_total, pg_catalog.count(_postgrest_t)::text AS body FROM (SELECT * FROM \
            pgrst_source) _postgrest_t
            """,
            path: "/message_usage",
            isReading: false
        )
    }

    private func send(_ statement: String, path: String, isReading: Bool) async throws -> Reply {
        let claims =
            subject.map { #"{"aud":"authenticated","role":"\#(role)","sub":"\#($0)"}"# } ?? #"{"role":"\#(role)"}"#
        let claim =
            hasClaimSettings
            ? "set_config('request.jwt.claim.sub', $3, true)" : "set_config('request.jwt.claims', $3, true)"
        let before = """
            select set_config('search_path', $1, true), set_config('role', $2, true), \(claim), \
            set_config('request.method', $4, true), set_config('request.path', $5, true), \
            set_config('request.headers', '{}', true), set_config('request.cookies', '{}', true)
            """
        let settings = [
            #""public", "extensions""#, role, hasClaimSettings ? subject ?? "" : claims, isReading ? "GET" : "POST",
            path,
        ]
        return try await session.run { connection in
            let deadline = ContinuousClock.now + waitLimit
            let access = isReading ? "READ ONLY" : "READ WRITE"
            try connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED \(access)", deadline: deadline)
            do {
                var parameters = Parameters()
                for setting in settings { parameters.append(text: setting) }
                _ = try connection.query(before, parameters, deadline: deadline)
                let result = try connection.query(statement, deadline: deadline)
                let body = result.text(0, 2)
                try connection.execute("COMMIT", deadline: deadline)
                return .body(body)
            } catch let error as PostgresError {
                guard case .server(let state) = error.kind else { throw error }
                try connection.execute("ROLLBACK", deadline: deadline)
                return .refused(state.rawValue)
            }
        }
    }
}
