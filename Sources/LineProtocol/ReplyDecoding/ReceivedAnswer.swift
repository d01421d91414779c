import Usage

/// A decoded `+ALLOWED …`, `+BLOCKED …`, `+HELD …` or `+OK user=…`, which `Answer.encode` writes.
public struct ReceivedAnswer: Sendable, Equatable {
    public var status: Answer.Status
    public var usage: UsageStatus
    /// The number of messages that a `RELEASE` gave back.
    public var released: Int?

    public init(status: Answer.Status, usage: UsageStatus, released: Int? = nil) {
        self.status = status
        self.usage = usage
        self.released = released
    }
}

extension ReceivedAnswer {
    /// - Parameter line: the line without its plus sign and its end.
    /// - Returns: nil for a line that is not an answer about a user.
    /// - Throws: if a field of such an answer is missing or has an invalid value.
    static func decode(_ line: UnsafeRawBufferPointer) throws(MalformedReply) -> ReceivedAnswer? {
        var scanner = FieldScanner(line)
        guard let word = scanner.word(of: UInt8(ascii: "A")...UInt8(ascii: "Z")) else { return nil }
        var fields = AnswerFields()
        var isFirst = true
        var search = AnswerFieldSearch()
        while !scanner.isAtEnd {
            guard let name = scanner.name(), let value = scanner.value() else { throw MalformedReply(.fieldLine) }
            let field = search.field(name)
            // Only answers about a user begin with the field `user`.
            if isFirst, field != .user { return nil }
            isFirst = false
            guard let field else { continue }
            guard fields.set(field, value) else { throw MalformedReply(.value(of: field.name)) }
        }
        return isFirst ? nil : try fields.answer(word)
    }
}

private struct AnswerFieldSearch {
    private static let fields = AnswerField.allCases.map { (name: PackedName($0.name), field: $0) }

    /// The index at which the search begins, which is after the last field that was found. Fields are sent in order, so
    /// it mostly succeeds at once.
    private var expected = 0

    /// Returns nil for an unknown name: newer services may send more fields.
    mutating func field(_ bytes: UnsafeRawBufferPointer) -> AnswerField? {
        guard let name = PackedName(bytes) else { return nil }
        let named = AnswerFieldSearch.fields
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

/// The decoded fields of an answer.
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
    private var windowLimit: Int?
    private var windowUsed: Int?
    private var windowRemaining: Int?
    private var windowResets: Instant?
    private var released: Int?
    private var isDegraded = false
    /// The optional fields. The required ones are set when all are known.
    private var usage = UsageStatus.degraded(UserID(high: 0, low: 0), banner: nil)

    /// - Returns: false for an invalid value.
    mutating func set(_ field: AnswerField, _ value: FieldText) -> Bool {
        switch field {
        case .user: return AnswerFields.assign(&user, UserID(value.bytes))
        case .plan: return AnswerFields.assign(&plan, value.text)
        case .state: return AnswerFields.assign(&state, SubscriptionState(rawValue: value.text))
        case .tier: return AnswerFields.assign(&tier, Tier(rawValue: value.text))
        case .display: return AnswerFields.assign(&display, Display(rawValue: value.text))
        case .used: return AnswerFields.assign(&used, value.bytes.plainNumber)
        case .held: return AnswerFields.assign(&usage.held, value.bytes.plainNumber)
        case .limit: return AnswerFields.assign(&limit, value.allowance)
        case .remaining: return AnswerFields.assign(&remaining, value.allowance)
        case .windowLimit: return AnswerFields.assign(&windowLimit, value.bytes.plainNumber)
        case .windowUsed: return AnswerFields.assign(&windowUsed, value.bytes.plainNumber)
        case .windowRemaining: return AnswerFields.assign(&windowRemaining, value.bytes.plainNumber)
        case .windowResets: return AnswerFields.assign(&windowResets, Instant(value.bytes))
        case .period: return AnswerFields.assign(&period, BillingPeriod(storedLabel: value.text))
        case .resets: return AnswerFields.assign(&usage.resets, Instant(value.bytes))
        case .expires: return AnswerFields.assign(&usage.expires, Instant(value.bytes))
        case .renews: return AnswerFields.assign(&usage.renews, Instant(value.bytes))
        case .graceUntil: return AnswerFields.assign(&usage.graceUntil, Instant(value.bytes))
        case .day: return AnswerFields.assign(&usage.day, value.bytes.plainNumber)
        case .days: return AnswerFields.assign(&usage.days, value.bytes.plainNumber)
        case .crossed: return AnswerFields.assign(&usage.crossed, Tier(rawValue: value.text))
        case .reason: return AnswerFields.assign(&usage.reason, DenialReason(rawValue: value.text))
        case .retryAfter: return AnswerFields.assign(&usage.retryAfter, value.bytes.plainNumber.map { .seconds($0) })
        case .shadow: return AnswerFields.assign(&usage.isShadow, value.flag)
        case .released: return AnswerFields.assign(&released, value.bytes.plainNumber)
        case .replayed: return AnswerFields.assign(&usage.isRepeated, value.flag)
        case .previousPlan: return AnswerFields.assign(&usage.previousPlan, value.text)
        case .nextPlan: return AnswerFields.assign(&usage.nextPlan, value.text)
        case .label: return AnswerFields.assign(&usage.label, value.text)
        case .stateLabel: return AnswerFields.assign(&usage.stateLabel, value.text)
        case .accessible: return AnswerFields.assign(&usage.accessible, value.text)
        case .price: return AnswerFields.assign(&usage.price, value.text)
        case .currency: return AnswerFields.assign(&usage.currency, value.text)
        case .manage: return AnswerFields.assign(&usage.manage, value.text)
        case .steps: return AnswerFields.assign(&usage.steps, value.text)
        case .notice: return AnswerFields.assign(&usage.notice, value.text)
        case .banner: return AnswerFields.assign(&usage.banner, value.text)
        case .degraded: return AnswerFields.assign(&isDegraded, value.flag)
        }
    }

    private static func assign<Value>(_ target: inout Value, _ value: Value?) -> Bool {
        guard let value else { return false }
        target = value
        return true
    }

    private static func assign<Value>(_ target: inout Value?, _ value: Value?) -> Bool {
        target = value
        return value != nil
    }

    func answer(_ word: UnsafeRawBufferPointer) throws(MalformedReply) -> ReceivedAnswer {
        let status: Answer.Status
        if word.isWord("ALLOWED") {
            status = .allowed
        } else if word.isWord("BLOCKED"), let reason = usage.reason {
            status = .blocked(reason)
        } else if word.isWord("HELD") {
            status = .held
        } else if word.isWord("OK") {
            status = .ok
        } else {
            throw MalformedReply(.fieldLine)
        }
        guard let user else { throw MalformedReply(.fieldLine) }
        if isDegraded {
            return ReceivedAnswer(status: status, usage: .degraded(user, banner: usage.banner), released: released)
        }
        guard let plan, let state, let tier, let display, let used, let limit, let remaining, let period else {
            throw MalformedReply(.fieldLine)
        }
        var usage = usage
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
        switch (windowLimit, windowUsed, windowRemaining) {
        case (nil, nil, nil): break
        case (let windowLimit?, let windowUsed?, let windowRemaining?):
            usage.window = WindowStatus(
                limit: windowLimit,
                used: windowUsed,
                remaining: windowRemaining,
                resets: windowResets
            )
        default: throw MalformedReply(.fieldLine)
        }
        return ReceivedAnswer(status: status, usage: usage, released: released)
    }
}

extension FieldText {
    /// The value of a flag, which is true for 1. A field that does not apply is absent, so any other value is invalid.
    fileprivate var flag: Bool? { bytes.plainNumber == 1 ? true : nil }

    /// The value of `limit` or `remaining`. `unlimited` is `.some(nil)`; an invalid value is nil.
    fileprivate var allowance: Int?? {
        if bytes.isWord("UNLIMITED") { return .some(nil) }
        return bytes.plainNumber.map { .some($0) }
    }
}
