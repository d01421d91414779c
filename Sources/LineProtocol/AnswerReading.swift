import Usage

/// `+ALLOWED …`, `+BLOCKED …`, `+HELD …` or `+OK user=…`, read back: what `Answer.encode` wrote.
public struct ReceivedAnswer: Sendable, Equatable {
    public var status: Answer.Status
    public var usage: UsageStatus
    /// Messages that a `RELEASE` gave back.
    public var released: Int?

    public init(status: Answer.Status, usage: UsageStatus, released: Int? = nil) {
        self.status = status
        self.usage = usage
        self.released = released
    }
}

/// A field of an answer, in the order in which they stand.
private enum AnswerField: String, CaseIterable {
    case user, plan, state, tier, display, used, held, limit, remaining, period, resets, expires, renews
    case graceUntil = "grace_until"
    case day, days, crossed, reason
    case retryAfter = "retry_after"
    case released, replayed
    case previousPlan = "previous_plan"
    case nextPlan = "next_plan"
    case label, accessible, notice, banner, degraded

    static let named = allCases.map { field -> (name: PackedName, field: AnswerField) in
        guard let name = Array(field.rawValue.utf8).withUnsafeBytes({ PackedName($0) }) else {
            preconditionFailure("the table has a name that cannot be packed")
        }
        return (name, field)
    }
}

extension ReceivedAnswer {
    /// - Parameter line: without its plus sign and its end.
    /// - Returns: nil for a line that is no answer about a user.
    /// - Throws: where it is one, and a field is missing, or has a value that it cannot have.
    static func read(_ line: UnsafeRawBufferPointer) throws(MalformedReply) -> ReceivedAnswer? {
        var scanner = FieldScanner(line)
        guard let word = scanner.word(of: UInt8(ascii: "A")...UInt8(ascii: "Z")) else { return nil }
        var fields = AnswerFields()
        var isFirst = true
        // Fields keep their order, so the next one is mostly found at the first look.
        var expected = 0
        while !scanner.isAtEnd {
            guard let name = scanner.name(), let value = scanner.value() else { throw MalformedReply(.fieldLine) }
            let field = AnswerReading.field(name, from: &expected)
            // A `+OK` without fields and a `+PERIOD …` are other replies.
            if isFirst, field != .user { return nil }
            isFirst = false
            guard let field else { continue }
            guard fields.take(field, value) else { throw MalformedReply(.value(of: field.rawValue)) }
        }
        return isFirst ? nil : try fields.answer(word)
    }
}

private enum AnswerReading {
    /// The field of this name, looked for from where the last one was found. Nil for one that is not known, because new ones
    /// may be added.
    static func field(_ bytes: UnsafeRawBufferPointer, from expected: inout Int) -> AnswerField? {
        guard let name = PackedName(bytes) else { return nil }
        let named = AnswerField.named
        for index in expected..<named.count where named[index].name == name {
            expected = index + 1
            return named[index].field
        }
        for index in 0..<expected where named[index].name == name {
            expected = index + 1
            return named[index].field
        }
        return nil
    }
}

/// What has been read of an answer.
private struct AnswerFields {
    private var user: UserID?
    private var plan: String?
    private var state: SubscriptionState?
    private var tier: Tier?
    private var display: Display?
    private var used: Int?
    private var limit: Int??
    private var remaining: Int??
    private var period: BillingPeriod?
    private var released: Int?
    private var isDegraded = false
    /// Those that may be absent, in their places.
    private var rest = UsageStatus.degraded(UserID(high: 0, low: 0))

    /// - Returns: false when the field cannot have this value.
    mutating func take(_ field: AnswerField, _ value: FieldText) -> Bool {
        switch field {
        case .user: return AnswerFields.set(&user, UserID(value.bytes))
        case .plan: return AnswerFields.set(&plan, value.text)
        case .state: return AnswerFields.set(&state, SubscriptionState(rawValue: value.text))
        case .tier: return AnswerFields.set(&tier, Tier(rawValue: value.text))
        case .display: return AnswerFields.set(&display, Display(rawValue: value.text))
        case .used: return AnswerFields.set(&used, value.bytes.plainNumber)
        case .held: return AnswerFields.set(&rest.held, value.bytes.plainNumber)
        case .limit: return AnswerFields.set(&limit, value.allowance)
        case .remaining: return AnswerFields.set(&remaining, value.allowance)
        case .period: return AnswerFields.set(&period, BillingPeriod(storedLabel: value.text))
        case .resets: return AnswerFields.set(&rest.resets, Instant(value.bytes))
        case .expires: return AnswerFields.set(&rest.expires, Instant(value.bytes))
        case .renews: return AnswerFields.set(&rest.renews, Instant(value.bytes))
        case .graceUntil: return AnswerFields.set(&rest.graceUntil, Instant(value.bytes))
        case .day: return AnswerFields.set(&rest.day, value.bytes.plainNumber)
        case .days: return AnswerFields.set(&rest.days, value.bytes.plainNumber)
        case .crossed: return AnswerFields.set(&rest.crossed, Tier(rawValue: value.text))
        case .reason: return AnswerFields.set(&rest.reason, DenialReason(rawValue: value.text))
        case .retryAfter: return AnswerFields.set(&rest.retryAfter, value.bytes.plainNumber.map { .seconds($0) })
        case .released: return AnswerFields.set(&released, value.bytes.plainNumber)
        case .replayed: return AnswerFields.set(&rest.isReplayed, value.bytes.plainNumber.map { $0 == 1 })
        case .previousPlan: return AnswerFields.set(&rest.previousPlan, value.text)
        case .nextPlan: return AnswerFields.set(&rest.nextPlan, value.text)
        case .label: return AnswerFields.set(&rest.label, value.text)
        case .accessible: return AnswerFields.set(&rest.accessible, value.text)
        case .notice: return AnswerFields.set(&rest.notice, value.text)
        case .banner: return AnswerFields.set(&rest.banner, value.text)
        case .degraded: return AnswerFields.set(&isDegraded, value.bytes.plainNumber.map { $0 == 1 })
        }
    }

    private static func set<Value>(_ place: inout Value, _ value: Value?) -> Bool {
        guard let value else { return false }
        place = value
        return true
    }

    private static func set<Value>(_ place: inout Value?, _ value: Value?) -> Bool {
        place = value
        return value != nil
    }

    func answer(_ word: UnsafeRawBufferPointer) throws(MalformedReply) -> ReceivedAnswer {
        let status: Answer.Status
        if word.isWord("ALLOWED") {
            status = .allowed
        } else if word.isWord("BLOCKED"), let reason = rest.reason {
            status = .blocked(reason)
        } else if word.isWord("HELD") {
            status = .held
        } else if word.isWord("OK") {
            status = .ok
        } else {
            throw MalformedReply(.fieldLine)
        }
        guard let user else { throw MalformedReply(.fieldLine) }
        if isDegraded { return ReceivedAnswer(status: status, usage: .degraded(user), released: released) }
        guard let plan, let state, let tier, let display, let used, let limit, let remaining, let period else {
            throw MalformedReply(.fieldLine)
        }
        var usage = rest
        usage.isDegraded = false
        usage.user = user
        usage.plan = plan
        usage.state = state
        usage.tier = tier
        usage.display = display
        usage.used = used
        usage.limit = limit
        usage.remaining = remaining
        usage.period = period
        return ReceivedAnswer(status: status, usage: usage, released: released)
    }
}

extension FieldText {
    /// A limit, or what remains of it: `unlimited` is nil, and what is no number is no value at all.
    fileprivate var allowance: Int?? {
        if bytes.isWord("UNLIMITED") { return .some(nil) }
        return bytes.plainNumber.map { .some($0) }
    }
}
