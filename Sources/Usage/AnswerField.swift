/// A field of an answer about a user, in the order of the line protocol. docs/reference/fields.md explains each.
///
/// This is the only list of the fields. The encoders write what `Answer.writeFields` gives them, the client decodes
/// these names, and tests compare openapi.json and the page with it. `degraded` stands only in replies without an
/// answer: messages were let through uncounted (`UncountedAnswer`).
public enum AnswerField: CaseIterable, Sendable {
    case user, plan, state, tier, display, used, held, limit, remaining, extra, extraExpires
    case windowLimit, windowUsed, windowRemaining, windowResets
    case model, modelLimit, modelUsed, modelRemaining, modelResets
    case member, memberLimit, memberUsed, memberRemaining
    case period, resets, expires, renews, graceUntil, day, days
    case crossed, reason, retryAfter, fallback, shadow, released, replayed, degraded
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
        case .extra: (" extra=", .number, false)
        case .extraExpires: (" extra_expires=", .instant, false)
        case .windowLimit: (" window_limit=", .number, false)
        case .windowUsed: (" window_used=", .number, false)
        case .windowRemaining: (" window_remaining=", .number, false)
        case .windowResets: (" window_resets=", .instant, false)
        case .model: (" model=", .text, false)
        case .modelLimit: (" model_limit=", .number, false)
        case .modelUsed: (" model_used=", .number, false)
        case .modelRemaining: (" model_remaining=", .number, false)
        case .modelResets: (" model_resets=", .instant, false)
        case .member: (" member=", .user, false)
        case .memberLimit: (" member_limit=", .number, false)
        case .memberUsed: (" member_used=", .number, false)
        case .memberRemaining: (" member_remaining=", .number, false)
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
        case .fallback: (" fallback=", .text, false)
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
    /// The fields with the numbers of the allowance. A member's period and window end with the user's, or are said by
    /// `retry_after`.
    public var fields: (limit: AnswerField, used: AnswerField, remaining: AnswerField, resets: AnswerField?) {
        switch self {
        case .period: (.limit, .used, .remaining, .resets)
        case .window: (.windowLimit, .windowUsed, .windowRemaining, .windowResets)
        case .model: (.modelLimit, .modelUsed, .modelRemaining, .modelResets)
        case .member: (.memberLimit, .memberUsed, .memberRemaining, nil)
        }
    }
}

/// Writes the fields of an answer in some form, as a line or as a JSON object: for each one its name, then its value.
///
/// The requirements are small, and know no field: the compiler then inlines them into `Answer.writeFields`, where the
/// names are constants. A requirement with the field as its parameter costs twice as many instructions.
public protocol AnswerFieldWriter {
    /// Whether what follows from other fields is also written: `held` if it is 0, and what remains of a reported
    /// allowance.
    static var isComplete: Bool { get }

    /// - Parameter lineName: `AnswerField.lineName`.
    mutating func putName(_ lineName: StaticString)
    mutating func put(_ user: UserID)
    /// - Parameter word: the raw value of an enumeration.
    mutating func putWord(_ word: String)
    mutating func put(_ number: Int)
    mutating func putUnlimited()
    mutating func put(_ instant: Instant)
    mutating func put(_ instant: WrittenInstant)
    mutating func putFlag()
    mutating func putText(_ text: String)
}

extension AnswerFieldWriter {
    @inlinable @inline(__always)
    mutating func write(_ field: AnswerField, user: UserID) {
        putName(field.lineName)
        put(user)
    }

    @inlinable @inline(__always)
    mutating func write(_ field: AnswerField, name: String) {
        putName(field.lineName)
        putWord(name)
    }

    @inlinable @inline(__always)
    mutating func write(_ field: AnswerField, number: Int) {
        putName(field.lineName)
        put(number)
    }

    @inlinable @inline(__always)
    mutating func write(_ field: AnswerField, limit: Int?) {
        putName(field.lineName)
        if let limit { put(limit) } else { putUnlimited() }
    }

    @inlinable @inline(__always)
    mutating func write(_ field: AnswerField, ifAny instant: Instant?) {
        guard let instant else { return }
        putName(field.lineName)
        put(instant)
    }

    @inlinable @inline(__always)
    mutating func write(_ field: AnswerField, ifAny text: String?) {
        guard let text else { return }
        putName(field.lineName)
        putText(text)
    }

    @inlinable @inline(__always)
    mutating func write(flag field: AnswerField) {
        putName(field.lineName)
        putFlag()
    }
}

/// The sentences of an answer, in the language and the time zone of its request. They are made once, because the
/// encoder of lines needs their length before it writes.
public struct AnswerTexts: Sendable {
    /// What only `USAGE` answers with.
    public struct Details: Sendable {
        public let label: String
        public let stateLabel: String
        public let accessible: String
        public let steps: String?
    }

    public let tier: Tier
    /// The name of the model to offer instead of the refused one.
    public let fallback: String?
    public let notice: String?
    public let banner: String?
    /// Counted messages must not pay for it.
    public let details: Details?
}

extension Answer {
    /// The texts in the language and the time zone of a request.
    public func texts(in vocabulary: Vocabulary) -> AnswerTexts {
        let tier = snapshot.tier
        let fallback = fallback
        return AnswerTexts(
            tier: tier,
            fallback: fallback?.model.text,
            notice: snapshot.notice(in: vocabulary),
            banner: banner(at: tier, fallback, in: vocabulary),
            details: isDetailed
                ? AnswerTexts.Details(
                    label: snapshot.label(in: vocabulary),
                    stateLabel: snapshot.stateLabel.text(in: vocabulary),
                    accessible: snapshot.accessible(in: vocabulary),
                    steps: snapshot.steps?.text(in: vocabulary)
                ) : nil
        )
    }

    /// Gives `writer` the fields that apply to this answer, in the order of `AnswerField`.
    ///
    /// It is inlinable, because the writers are in other modules: each gets a compiled copy of its own, and lines are
    /// written without a call for each field.
    @inlinable
    public func writeFields<Writer: AnswerFieldWriter>(_ texts: AnswerTexts, to writer: inout Writer) {
        let snapshot = snapshot
        let plan = snapshot.plan
        writer.write(.user, user: user)
        writer.write(.plan, ifAny: plan.name)
        writer.write(.state, name: snapshot.state.rawValue)
        writer.write(.tier, name: texts.tier.rawValue)
        writer.write(.display, name: Display(tier: texts.tier, plan: plan, limit: snapshot.limit).rawValue)
        writer.write(.used, number: snapshot.used)
        if snapshot.held > 0 || Writer.isComplete { writer.write(.held, number: snapshot.held) }
        writer.write(.limit, limit: snapshot.limit)
        writer.write(.remaining, limit: snapshot.remaining)
        if let balances = snapshot.balances {
            writer.write(.extra, number: balances.messages)
            writer.write(.extraExpires, ifAny: balances.expiresAt)
        }
        for allowance in snapshot.otherAllowancesShown {
            let fields = allowance.name.fields
            switch allowance.part {
            case .model(let model): writer.write(.model, ifAny: model.text)
            case .member(let member): writer.write(.member, user: member)
            case nil: break
            }
            if let limit = allowance.limit { writer.write(fields.limit, number: limit) }
            if let used = allowance.used { writer.write(fields.used, number: used) }
            if let remaining = allowance.remaining { writer.write(fields.remaining, number: remaining) }
            if let resets = fields.resets { writer.write(resets, ifAny: allowance.resetsAt) }
        }
        writer.write(.period, ifAny: snapshot.period.label)
        if snapshot.resetsShown != nil, let resetsAt = snapshot.entitlement.writtenResetsAt {
            writer.putName(AnswerField.resets.lineName)
            writer.put(resetsAt)
        }
        writer.write(.expires, ifAny: snapshot.expiresShown)
        writer.write(.renews, ifAny: renews)
        writer.write(.graceUntil, ifAny: graceUntil)
        if let (day, days) = snapshot.trialDay {
            writer.write(.day, number: day)
            writer.write(.days, number: days)
        }
        if let crossed { writer.write(.crossed, name: crossed.rawValue) }
        if let reason { writer.write(.reason, name: reason.rawValue) }
        if let retryAfterSeconds { writer.write(.retryAfter, number: Int(clamping: retryAfterSeconds)) }
        writer.write(.fallback, ifAny: texts.fallback)
        if isShadow { writer.write(flag: .shadow) }
        if let released { writer.write(.released, number: released) }
        if isRepeated { writer.write(flag: .replayed) }
        writer.write(.previousPlan, ifAny: snapshot.previousPlan)
        if let shown = texts.details {
            writer.write(.nextPlan, ifAny: nextPlan)
            writer.write(.label, ifAny: shown.label)
            writer.write(.stateLabel, ifAny: shown.stateLabel)
            writer.write(.accessible, ifAny: shown.accessible)
            writer.write(.price, ifAny: details?.price)
            writer.write(.currency, ifAny: details?.currency)
            writer.write(.manage, ifAny: details?.manage)
            writer.write(.steps, ifAny: shown.steps)
        }
        writer.write(.notice, ifAny: texts.notice)
        writer.write(.banner, ifAny: texts.banner)
    }
}
