import Billing
import JSON
import Postgres
import Usage

/// Records an event whose effect the database refuses.
///
/// Its sender would repeat it for some days with the same result, and then it would be lost: a paid purchase, for
/// instance. So it is recorded as failed, in a transaction of its own, and an operator replays it once the cause is
/// gone.
extension BillingLedger {
    /// Applies an event, or records it as failed.
    ///
    /// - Returns: JSON; nil if a replay would fail, and an earlier attempt succeeded.
    /// - Throws: an error that a repetition may overcome: it is transient, or a fault of the installation. If such a
    ///   fault lasts, the event is found among the failed ones.
    func applyOrRecord(_ event: BillingEvent, isReplay: Bool) throws(PostgresError) -> String? {
        do throws(PostgresError) {
            return try retrying { () throws(PostgresError) in
                let attempt = try attempt(event, isReplay: isReplay)
                return attempt.isRejected ? nil : attempt.answer
            }
        } catch {
            guard case .server = error.kind, !error.isTransient else { throw error }
            let answer = try retrying { () throws(PostgresError) in
                try record(event, refusedBy: error, isReplay: isReplay)
            }
            guard error.isAboutEffect else { throw error }
            return answer
        }
    }

    private func record(
        _ event: BillingEvent,
        refusedBy error: PostgresError,
        isReplay: Bool
    ) throws(PostgresError) -> String? {
        let names = event.customerNames
        var parameters = Parameters()
        parameters.append(text: CustomerChange.Event(event, problem: error.problem).jsonText)
        parameters.appendTexts(count: names.count) { names[$0] }
        parameters.append(bool: isReplay)
        try begin()
        let recorded = try connection.query(EmbeddedSQL.recordRefusedEvent, parameters, deadline: deadline)
        try requireReplicated(try connection.query("commit", deadline: deadline))
        return try recorded.firstRow.textOrNil("answer")
    }
}

extension PostgresError {
    /// The most characters of a problem. The message of somebody else's trigger may have any length.
    private static let problemLengthMaximum = 1_000

    /// Whether the error is about the event's effect: a value out of range, a constraint, an exception of a function or
    /// of somebody else's trigger. A fault of the installation, such as a missing right, is none.
    fileprivate var isAboutEffect: Bool {
        // These classes are data and integrity, cardinality, limits, triggers, checked views, routines, PL/pgSQL, and
        // our own.
        ["22", "23", "21", "54", "09", "27", "44", "38", "39", "P0", "HR"].contains { sqlState?.isClass($0) == true }
    }

    /// The problem of the failed event.
    fileprivate var problem: String {
        let reason = [message, hint].compactMap(\.self).joined(separator: "; ")
            .prefix(PostgresError.problemLengthMaximum)
        return "the database refused its effect: \(reason). Remove the cause, then run headroom events replay --failed."
    }
}

extension CustomerChange.Event {
    /// Makes an event that is recorded as failed, without its effects.
    fileprivate init(_ event: BillingEvent, problem: String) {
        self.init(
            source: event.source.rawValue,
            id: event.id,
            type: event.type,
            at: event.at,
            environment: event.environment?.rawValue,
            identities: event.identities,
            effects: [],
            payload: event.payload,
            user: event.namedUser?.description,
            outcome: EventResult.Outcome.failed.rawValue,
            problem: problem
        )
    }
}
