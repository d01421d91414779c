/// A field of an answer about a user, in the order of the line protocol. docs/reference/fields.md explains each.
///
/// This is the only list of the fields. The encoders write what `Answer.writeFields` gives them, the client decodes
/// these names, and tests compare openapi.json and the page with it. `degraded` stands only in replies without an
/// answer: messages were let through uncounted (`UncountedAnswer`).
public enum AnswerField: CaseIterable, Sendable {
    case user, plan, state, tier, display, used, held, limit, remaining
    case windowLimit, windowUsed, windowRemaining, windowResets
    case period, resets, expires, renews, graceUntil, day, days
    case crossed, reason, retryAfter, shadow, released, replayed, degraded
    case previousPlan, nextPlan, label, stateLabel, accessible, price, currency, manage, steps, notice, banner

    /// The type of a field's value.
    public enum Kind: Sendable {
        /// A user's UUID.
        case user
        /// The raw value of an enumeration.
        case name
        case number
        /// A number, or `unlimited`, which is null in JSON.
        case limit
        case instant
        /// The field is 1, or true in JSON; otherwise it is absent.
        case flag
        case text
    }

    /// The name as a line has it, with the space before it and the equals sign behind it.
    @inlinable @inline(__always) public var lineName: StaticString { definition.lineName }
    public var kind: Kind { definition.kind }
    /// Whether of the verbs only `USAGE` answers with the field.
    public var isOnlyOfUsage: Bool { definition.isOnlyOfUsage }

    /// The name without the space and the equals sign.
    public var name: String { String("\(lineName)".dropFirst().dropLast()) }

    @inlinable @inline(__always)
    var definition: (lineName: StaticString, kind: Kind, isOnlyOfUsage: Bool) {
        switch self {
        case .user: (" user=", .user, false)
        case .plan: (" plan=", .text, false)
        case .state: (" state=", .name, false)
        case .tier: (" tier=", .name, false)
        case .display: (" display=", .name, false)
        case .used: (" used=", .number, false)
        case .held: (" held=", .number, false)
        case .limit: (" limit=", .limit, false)
        case .remaining: (" remaining=", .limit, false)
        case .windowLimit: (" window_limit=", .number, false)
        case .windowUsed: (" window_used=", .number, false)
        case .windowRemaining: (" window_remaining=", .number, false)
        case .windowResets: (" window_resets=", .instant, false)
        case .period: (" period=", .text, false)
        case .resets: (" resets=", .instant, false)
        case .expires: (" expires=", .instant, false)
        case .renews: (" renews=", .instant, true)
        case .graceUntil: (" grace_until=", .instant, true)
        case .day: (" day=", .number, false)
        case .days: (" days=", .number, false)
        case .crossed: (" crossed=", .name, false)
        case .reason: (" reason=", .name, false)
        case .retryAfter: (" retry_after=", .number, false)
        case .shadow: (" shadow=", .flag, false)
        case .released: (" released=", .number, false)
        case .replayed: (" replayed=", .flag, false)
        case .degraded: (" degraded=", .flag, false)
        case .previousPlan: (" previous_plan=", .text, false)
        case .nextPlan: (" next_plan=", .text, true)
        case .label: (" label=", .text, true)
        case .stateLabel: (" state_label=", .text, true)
        case .accessible: (" accessible=", .text, true)
        case .price: (" price=", .text, true)
        case .currency: (" currency=", .text, true)
        case .manage: (" manage=", .text, true)
        case .steps: (" steps=", .text, true)
        case .notice: (" notice=", .text, false)
        case .banner: (" banner=", .text, false)
        }
    }
}

extension Allowance.Name {
    /// The fields with the numbers of the allowance.
    public var fields: (limit: AnswerField, used: AnswerField, remaining: AnswerField, resets: AnswerField) {
        switch self {
        case .period: (.limit, .used, .remaining, .resets)
        case .window: (.windowLimit, .windowUsed, .windowRemaining, .windowResets)
        }
    }
}

/// The value of a field of an answer.
public enum AnswerValue {
    case user(UserID)
    /// The raw value of an enumeration.
    case name(String)
    case number(Int)
    /// Nil is unlimited.
    case limit(Int?)
    case instant(Instant)
    case writtenInstant(WrittenInstant)
    case flag
    case text(String)
}

/// Writes the fields of an answer in some form: as a line, or as a JSON object.
public protocol AnswerFieldWriter {
    mutating func write(_ field: AnswerField, _ value: AnswerValue)
}

extension AnswerFieldWriter {
    @inlinable @inline(__always)
    mutating func write(_ field: AnswerField, ifAny text: String?) {
        if let text { write(field, .text(text)) }
    }

    @inlinable @inline(__always)
    mutating func write(_ field: AnswerField, ifAny instant: Instant?) {
        if let instant { write(field, .instant(instant)) }
    }
}

/// The sentences of an answer, in the language and the time zone of its request. They are made once, because the
/// encoder of lines needs their length before it writes.
public struct AnswerTexts: Sendable {
    public let tier: Tier
    public let notice: String?
    public let banner: String?
    // Only USAGE answers with the others. Counted messages must not pay for them.
    public let label: String?
    public let stateLabel: String?
    public let accessible: String?
    public let steps: String?

    public init(_ answer: Answer, in vocabulary: Vocabulary) {
        let snapshot = answer.snapshot
        tier = snapshot.tier
        notice = snapshot.notice(in: vocabulary)
        banner = answer.banner(at: tier, in: vocabulary)
        guard answer.isDetailed else {
            (label, stateLabel, accessible, steps) = (nil, nil, nil, nil)
            return
        }
        label = snapshot.label(in: vocabulary)
        stateLabel = snapshot.stateLabel.text(in: vocabulary)
        accessible = snapshot.accessible(in: vocabulary)
        steps = snapshot.steps?.text(in: vocabulary)
    }
}

extension Answer {
    /// Gives `writer` the fields that apply to this answer, in the order of `AnswerField`.
    ///
    /// It is inlinable, because the writers are in other modules: each gets a compiled copy of its own, and lines are
    /// written without a call for each field.
    @inlinable
    public func writeFields(_ texts: AnswerTexts, to writer: inout some AnswerFieldWriter) {
        let snapshot = snapshot
        let plan = snapshot.plan
        writer.write(.user, .user(user))
        writer.write(.plan, .text(plan.name))
        writer.write(.state, .name(snapshot.state.rawValue))
        writer.write(.tier, .name(texts.tier.rawValue))
        writer.write(.display, .name(Display(tier: texts.tier, plan: plan, limit: snapshot.limit).rawValue))
        writer.write(.used, .number(snapshot.used))
        writer.write(.held, .number(snapshot.held))
        writer.write(.limit, .limit(snapshot.limit))
        writer.write(.remaining, .limit(snapshot.remaining))
        for allowance in snapshot.otherAllowancesShown {
            let fields = allowance.name.fields
            writer.write(fields.limit, .number(allowance.limit))
            writer.write(fields.used, .number(allowance.used))
            writer.write(fields.remaining, .number(allowance.remaining))
            writer.write(fields.resets, ifAny: allowance.resetsAt)
        }
        writer.write(.period, .text(snapshot.period.label))
        if snapshot.resetsShown != nil, let resetsAt = snapshot.entitlement.writtenResetsAt {
            writer.write(.resets, .writtenInstant(resetsAt))
        }
        writer.write(.expires, ifAny: snapshot.expiresShown)
        writer.write(.renews, ifAny: renews)
        writer.write(.graceUntil, ifAny: graceUntil)
        if let (day, days) = snapshot.trialDay {
            writer.write(.day, .number(day))
            writer.write(.days, .number(days))
        }
        if let crossed { writer.write(.crossed, .name(crossed.rawValue)) }
        if let reason { writer.write(.reason, .name(reason.rawValue)) }
        if let retryAfterSeconds { writer.write(.retryAfter, .number(Int(clamping: retryAfterSeconds))) }
        if isShadow { writer.write(.shadow, .flag) }
        if let released { writer.write(.released, .number(released)) }
        if isRepeated { writer.write(.replayed, .flag) }
        writer.write(.previousPlan, ifAny: snapshot.previousPlan)
        if isDetailed {
            writer.write(.nextPlan, ifAny: nextPlan)
            writer.write(.label, ifAny: texts.label)
            writer.write(.stateLabel, ifAny: texts.stateLabel)
            writer.write(.accessible, ifAny: texts.accessible)
            writer.write(.price, ifAny: details?.price)
            writer.write(.currency, ifAny: details?.currency)
            writer.write(.manage, ifAny: details?.manage)
            writer.write(.steps, ifAny: texts.steps)
        }
        writer.write(.notice, ifAny: texts.notice)
        writer.write(.banner, ifAny: texts.banner)
    }
}
