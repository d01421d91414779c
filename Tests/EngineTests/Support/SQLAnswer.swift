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
        "window_used", "window_remaining", "window_resets", "model", "model_limit", "model_used", "model_remaining",
        "model_resets", "member", "member_limit", "member_used", "member_remaining", "period", "resets", "expires",
        "day", "days", "crossed", "reason", "retry_after", "fallback", "shadow", "previous_plan", "price", "currency",
        "manage",
    ]

    static func read(_ sql: String, from session: Session) async throws -> Fields {
        try await session.run { connection in try rows(sql, Parameters(), connection)[0] }
    }

    /// - Parameter sql: yields rows of `headroom.answer`, or of a view, which has no fields about models and members.
    static func rows(
        _ sql: String,
        _ parameters: borrowing Parameters,
        _ connection: DatabaseConnection
    ) throws -> [Fields] {
        let columns = names.map { "answer.fields ->> '\($0)'" }
        let result = try connection.query(
            "select \(columns.joined(separator: ", ")) from (select to_jsonb(one) as fields from (\(sql)) as one) as answer",
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
        func shown(_ name: Allowance.Name) -> ShownAllowance? {
            snapshot.otherAllowancesShown.first { $0.name == name }
        }
        let (window, model, member) = (shown(.window), shown(.model), shown(.member))
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
            "window_resets": window?.resetsAt?.text,
            "model": model?.part?.name, "model_limit": text(model?.limit), "model_used": text(model?.used),
            "model_remaining": text(model?.remaining), "model_resets": model?.resetsAt?.text,
            "member": member?.part?.name, "member_limit": text(member?.limit), "member_used": text(member?.used),
            "member_remaining": text(member?.remaining), "period": snapshot.period.label,
            "resets": snapshot.resetsShown?.text, "expires": snapshot.expiresShown?.text,
            "day": text(snapshot.trialDay?.day), "days": text(snapshot.trialDay?.days),
            "crossed": answer.crossed?.rawValue, "reason": answer.reason?.rawValue,
            "retry_after": answer.retryAfterSeconds.map(String.init), "fallback": answer.fallback?.model.text,
            "shadow": answer.isShadow ? "true" : nil,
            "previous_plan": snapshot.previousPlan, "price": snapshot.details?.price,
            "currency": snapshot.details?.currency, "manage": snapshot.details?.manage,
        ]
    }

    /// The parts of a snapshot as an array of `headroom.part_usage`, as `headroom.requested_parts` reads them.
    static func parts(_ parts: [PartUsage]) -> String {
        guard !parts.isEmpty else { return "null" }
        var rows = parts.map { row($0.part.kind.rawValue, $0.part.name, $0.limit, $0.counter) }
        if let fallback = parts.lazy.compactMap(\.fallback).first {
            rows.append(row("fallback", fallback.model.text, fallback.limit, fallback.counter))
        }
        return "array[\(rows.joined(separator: ", "))]"
    }

    private static func row(_ kind: String, _ name: String, _ limit: PlanLimit?, _ counter: PartCounter) -> String {
        func text(_ value: String?) -> String { value.map { "'\($0)'" } ?? "null" }
        func number(_ value: Int?) -> String { value.map(String.init) ?? "null" }
        func instant(_ value: Instant?) -> String {
            value.map { "timestamptz 'epoch' + \($0.microsecondsSince1970) * interval '1 microsecond'" } ?? "null"
        }
        let hasLimit = limit != nil
        let isOpen = counter.windowOpenedAt != nil
        let columns = [
            text(kind), text(name), text(limit.map { $0.kind == .model ? $0.name : name }), text(limit?.label),
            number(limit?.allowance), number(limit?.window?.messages), number(limit?.window?.seconds),
            number(limit?.weight), text(limit?.fallback?.text), number(hasLimit ? 1 : nil),
            number(hasLimit ? counter.used : nil), number(hasLimit ? counter.held : nil),
            instant(counter.windowOpenedAt), instant(counter.windowEndsAt),
            number(isOpen ? counter.windowUsed : nil), number(isOpen ? counter.windowHeld : nil), "null",
        ]
        return "row(\(columns.joined(separator: ", ")))::headroom.part_usage"
    }
}
