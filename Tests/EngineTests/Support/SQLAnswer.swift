import Postgres
import TestSupport
import Usage

@testable import Engine

/// Reads rows of `headroom.answer` with all fields as text, and computes the same fields from a Swift `Answer`, so that
/// tests can compare the two. A field that does not apply is nil.
enum SQLAnswer {
    typealias Fields = [String: String?]

    /// In the order of the line protocol.
    static let names = [
        "status", "user", "plan", "state", "tier", "display", "used", "held", "limit", "remaining", "window_limit",
        "window_used", "window_remaining", "window_resets", "period", "resets", "expires", "day", "days", "crossed",
        "reason", "retry_after", "shadow", "previous_plan", "price", "currency", "manage",
    ]

    static func read(_ sql: String, from session: Session) async throws -> Fields {
        try await session.run { connection in try rows(sql, Parameters(), connection)[0] }
    }

    /// - Parameter sql: yields rows of `headroom.answer`.
    static func rows(
        _ sql: String,
        _ parameters: borrowing Parameters,
        _ connection: DatabaseConnection
    ) throws -> [Fields] {
        let columns = names.map { "answer.\"\($0)\"::text" }
        let result = try connection.query(
            "select \(columns.joined(separator: ", ")) from (\(sql)) as answer",
            parameters,
            deadline: .now + waitLimit
        )
        return (0..<result.rowCount).map { row in
            var fields: Fields = [:]
            for (column, name) in names.enumerated() {
                fields[name] = .some(result.isNull(row, column) ? nil : result.text(row, column))
            }
            return fields
        }
    }

    /// The fields in the order of their names, so that a difference shows the field.
    static func lines(_ fields: Fields) -> [String] { fields.map { "\($0.key)=\($0.value ?? "null")" }.sorted() }

    /// The fields that `headroom.format_answer` must give for an answer.
    static func fields(of answer: Answer) -> Fields {
        let snapshot = answer.snapshot
        let window = snapshot.otherAllowancesShown.first
        var status = "OK"
        switch answer.status {
        case .ok: break
        case .allowed: status = "ALLOWED"
        case .held: status = "HELD"
        case .blocked: status = "BLOCKED"
        }
        func text(_ number: Int?) -> String? { number.map(String.init) }
        return [
            "status": status, "user": "\(answer.user)", "plan": snapshot.plan.name, "state": snapshot.state.rawValue,
            "tier": snapshot.tier.rawValue, "display": snapshot.display.rawValue, "used": text(snapshot.used),
            "held": snapshot.held > 0 ? text(snapshot.held) : nil, "limit": text(snapshot.limit),
            "remaining": text(snapshot.remaining), "window_limit": text(window?.limit),
            "window_used": text(window?.used), "window_remaining": text(window?.remaining),
            "window_resets": window?.resetsAt?.text, "period": snapshot.period.label,
            "resets": snapshot.resetsShown?.text, "expires": snapshot.expiresShown?.text,
            "day": text(snapshot.trialDay?.day), "days": text(snapshot.trialDay?.days),
            "crossed": answer.crossed?.rawValue, "reason": answer.reason?.rawValue,
            "retry_after": answer.retryAfterSeconds.map(String.init), "shadow": answer.isShadow ? "true" : nil,
            "previous_plan": snapshot.previousPlan, "price": snapshot.details?.price,
            "currency": snapshot.details?.currency, "manage": snapshot.details?.manage,
        ]
    }
}
