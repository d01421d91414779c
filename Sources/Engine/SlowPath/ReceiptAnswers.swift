import Usage

/// The results of a batch on the slow path as text, for the lane's receipt: if the reply to the commit is lost, the
/// batch is answered from it.
///
/// A result consists of `name=value` fields; one without a value is left out. Foundation's encoders would make the
/// whole batch a tenth slower.
enum ReceiptAnswers {
    // No name of a plan or a period contains these characters.
    fileprivate static let fieldSeparator: Character = "\u{1F}"
    private static let resultSeparator: Character = "\u{1E}"

    static func text(_ results: [SlowPathResult]) -> String {
        var text = ""
        text.reserveCapacity(results.count * 256)
        for result in results {
            var fields = ReceiptFields()
            // Writing fields does not fail.
            _ = try? fields.code(result, of: result.answer?.user) { _ in result.answer?.snapshot.plan }
            if !text.isEmpty { text.append(resultSeparator) }
            text += fields.text
        }
        return text
    }

    /// Decodes the results; nil if the text is not one that `text(_:)` returns, because the receipt was edited.
    ///
    /// - Parameters:
    ///   - users: the users of the requests, in their order.
    ///   - plan: finds the plan with this name.
    static func results(_ text: String, of users: [UserID], plan: (String) -> Plan?) -> [SlowPathResult]? {
        let records = text.split(separator: resultSeparator, omittingEmptySubsequences: false)
        guard records.count == users.count else { return nil }
        return try? zip(records, users).map { record, user in
            var fields = ReceiptFields(reading: record)
            return try fields.code(nil, of: user, plan)
        }
    }
}

/// The fields of one result. The same code writes them and reads them, so that each stands once.
private struct ReceiptFields {
    struct Unreadable: Error {}

    private static let failures: [String: EngineError] = [
        "conflict": .keyConflict, "released": .keyReleased, "expired": .holdExpired, "unknown": .noSuchKey,
        "too large": .commitTooLarge,
    ]

    /// The fields that were written.
    private(set) var text = ""
    /// The fields to read; nil if fields are written.
    private var values: [Substring: Substring]?

    init() {}

    init(reading record: Substring) {
        var values: [Substring: Substring] = [:]
        for field in record.split(separator: ReceiptAnswers.fieldSeparator) {
            let end = field.firstIndex(of: "=") ?? field.endIndex
            values[field[..<end]] = field[end...].dropFirst()
        }
        self.values = values
    }

    /// Writes a value, or reads it if `value` is nil because fields are read.
    mutating func optional<Value: LosslessStringConvertible>(
        _ name: String,
        _ value: Value?
    ) throws(Unreadable) -> Value? {
        guard let values else {
            guard let value else { return nil }
            if !text.isEmpty { text.append(ReceiptAnswers.fieldSeparator) }
            text += name
            text.append("=")
            text += value.description
            return value
        }
        guard let text = values[name[...]] else { return nil }
        guard let value = Value(String(text)) else { throw Unreadable() }
        return value
    }

    mutating func optional<Word: RawRepresentable<String>>(_ name: String, _ word: Word?) throws(Unreadable) -> Word? {
        guard let text = try optional(name, word?.rawValue) else { return nil }
        guard let word = Word(rawValue: text) else { throw Unreadable() }
        return word
    }

    mutating func optional(_ name: String, _ instant: Instant?) throws(Unreadable) -> Instant? {
        try optional(name, instant?.microsecondsSince1970).map { Instant(microsecondsSince1970: $0) }
    }

    func required<Value>(_ value: Value?) throws(Unreadable) -> Value {
        guard let value else { throw Unreadable() }
        return value
    }

    /// - Parameters:
    ///   - result: the result to write; nil to read one.
    ///   - user: the user of the request; nil for a failure that is written.
    mutating func code(
        _ result: SlowPathResult?,
        of user: UserID?,
        _ plan: (String) -> Plan?
    ) throws(Unreadable) -> SlowPathResult {
        let answer = result?.answer
        // Nearly all results are answers, for which no failure is looked up.
        let failure = answer == nil ? ReceiptFields.failures.first { result?.outcome == .failure($0.value) }?.key : nil
        if let failure = try optional("failure", failure) {
            return SlowPathResult(try required(ReceiptFields.failures[failure]))
        }
        return SlowPathResult(
            Answer(
                user: try required(user),
                status: try required(Answer.Status(word: required(optional("status", answer?.status.word)))),
                snapshot: try code(answer?.snapshot, plan),
                crossed: try optional("crossed", answer?.crossed),
                isCrossing: try required(optional("is_crossing", answer?.isCrossing)),
                retryAfterSeconds: try optional("retry_after", answer?.retryAfterSeconds),
                released: try optional("released", answer?.released),
                requested: try required(optional("requested", answer?.requested)),
                isShadow: try required(optional("is_shadow", answer?.isShadow)),
                isRepeated: try required(optional("is_repeated", answer?.isRepeated)),
                isDetailed: try required(optional("is_detailed", answer?.isDetailed))
            ),
            messagesCounted: try required(optional("messages_counted", result?.messagesCounted))
        )
    }

    private mutating func code(
        _ snapshot: UsageSnapshot?,
        _ plan: (String) -> Plan?
    ) throws(Unreadable) -> UsageSnapshot {
        let plan = try required(plan(required(optional("plan", snapshot?.plan.name))))
        var decoded = UsageSnapshot(
            plan: plan,
            state: try required(optional("state", snapshot?.state)),
            period: BillingPeriod(storedLabel: try required(optional("period", snapshot?.period.label))),
            used: try required(optional("used", snapshot?.used)),
            held: try required(optional("held", snapshot?.held)),
            limit: try optional("limit", snapshot?.limit),
            window: try code(snapshot?.window),
            windowUsed: try required(optional("window_used", snapshot?.windowUsed)),
            windowHeld: try required(optional("window_held", snapshot?.windowHeld)),
            denialReason: try optional("denial_reason", snapshot?.denialReason),
            startedAt: try required(optional("started_at", snapshot?.startedAt)),
            resetsAt: try optional("resets_at", snapshot?.resetsAt),
            expiresAt: try optional("expires_at", snapshot?.expiresAt),
            previousPlan: try optional("previous_plan", snapshot?.previousPlan),
            renews: try optional("renews", snapshot?.renews),
            observedAt: try required(optional("observed_at", snapshot?.observedAt))
        )
        if let messages = try optional("extra", snapshot?.entitlement.balances?.messages) {
            let expiresAt = try optional("extra_expires", snapshot?.entitlement.balances?.expiresAt)
            decoded.set(Balances(messages: messages, expiresAt: expiresAt))
        }
        for kind in PlanLimit.Kind.allCases {
            guard let part = try code(snapshot?.parts.first { $0.part.kind == kind }, of: kind, plan) else { continue }
            decoded.parts.append(part)
        }
        return decoded
    }

    private mutating func code(
        _ usage: PartUsage?,
        of kind: PlanLimit.Kind,
        _ plan: Plan
    ) throws(Unreadable) -> PartUsage? {
        guard let name = try optional(kind.rawValue, usage?.part.name) else { return nil }
        let named: MessagePart? =
            switch kind {
            case .model: ModelName(name).map { .model($0) }
            case .member: UserID(name).map { .member($0) }
            }
        let part = try required(named)
        let counter = try code(usage?.counter, "\(kind)")
        var fallback: PartUsage.Fallback?
        if kind == .model, let model = try optional("fallback", usage?.fallback?.model.text) {
            let name = try required(ModelName(model))
            fallback = PartUsage.Fallback(
                model: name,
                limit: plan.limit(of: .model(name)),
                counter: try code(usage?.fallback?.counter, "fallback")
            )
        }
        return PartUsage(part, limit: plan.limit(of: part), counter: counter, fallback: fallback)
    }

    private mutating func code(_ counter: PartCounter?, _ prefix: String) throws(Unreadable) -> PartCounter {
        var decoded = PartCounter()
        decoded.used = try optional("\(prefix)_used", counter?.used) ?? 0
        decoded.held = try optional("\(prefix)_held", counter?.held) ?? 0
        decoded.windowUsed = try optional("\(prefix)_window_used", counter?.windowUsed) ?? 0
        decoded.windowHeld = try optional("\(prefix)_window_held", counter?.windowHeld) ?? 0
        decoded.windowOpenedAt = try optional("\(prefix)_window_opened_at", counter?.windowOpenedAt)
        decoded.windowEndsAt = try optional("\(prefix)_window_ends_at", counter?.windowEndsAt)
        return decoded
    }

    private mutating func code(_ window: UsageWindow?) throws(Unreadable) -> UsageWindow? {
        guard let limit = try optional("window_limit", window?.limit) else { return nil }
        return UsageWindow(
            limit: limit,
            openedAt: try optional("window_opened_at", window?.openedAt),
            endsAt: try optional("window_ends_at", window?.endsAt)
        )
    }
}

extension Answer.Status {
    fileprivate init?(word: String) {
        switch word {
        case "allowed": self = .allowed
        case "held": self = .held
        case "ok": self = .ok
        default:
            guard let reason = DenialReason(rawValue: word) else { return nil }
            self = .blocked(reason)
        }
    }

    /// A refusal is written as its reason.
    fileprivate var word: String {
        switch self {
        case .allowed: "allowed"
        case .held: "held"
        case .ok: "ok"
        case .blocked(let reason): reason.rawValue
        }
    }
}
