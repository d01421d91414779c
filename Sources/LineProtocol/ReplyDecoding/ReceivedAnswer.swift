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
        var usage = UsageStatus.degraded(UserID(high: 0, low: 0), banner: nil)
        usage.isDegraded = false
        var released: Int?
        var found = AnswerFieldSet()
        var search = AnswerFieldSearch()
        while !scanner.isAtEnd {
            guard let name = scanner.name(), let value = scanner.value() else { throw MalformedReply(.fieldLine) }
            let field = search.field(name)
            // Only answers about a user begin with the field `user`.
            if found.isEmpty, field != .user { return nil }
            guard let field else { continue }
            found.insert(search.ordinal)
            if field == .released { released = value.bytes.plainNumber }
            guard usage.set(field, value), field != .released || released != nil else {
                throw MalformedReply(.value(of: field.name))
            }
        }
        if found.isEmpty { return nil }
        let status = try status(word, usage.reason)
        if usage.isDegraded {
            usage = .degraded(usage.user, banner: usage.banner)
        } else {
            guard found.contains(.required), usage.window == nil || found.contains(.requiredOfWindow),
                usage.model == nil || found.contains(.requiredOfModel),
                usage.member == nil || found.contains(.requiredOfMember)
            else {
                throw MalformedReply(.fieldLine)
            }
        }
        return ReceivedAnswer(status: status, usage: usage, released: released)
    }

    private static func status(
        _ word: UnsafeRawBufferPointer,
        _ reason: DenialReason?
    ) throws(MalformedReply) -> Answer.Status {
        if word.isWord("ALLOWED") { return .allowed }
        if word.isWord("BLOCKED"), let reason { return .blocked(reason) }
        if word.isWord("HELD") { return .held }
        if word.isWord("OK") { return .ok }
        throw MalformedReply(.fieldLine)
    }
}

/// Fields of an answer, by their positions in `AnswerField.allCases`.
private struct AnswerFieldSet {
    static let required = AnswerFieldSet([.user, .plan, .state, .tier, .display, .used, .limit, .remaining, .period])
    static let requiredOfWindow = AnswerFieldSet([.windowLimit, .windowUsed, .windowRemaining])
    static let requiredOfModel = AnswerFieldSet([.model])
    static let requiredOfMember = AnswerFieldSet([.member])

    private var bits: UInt64 = 0

    init(_ fields: [AnswerField] = []) {
        for (ordinal, field) in AnswerField.allCases.enumerated() where fields.contains(field) { insert(ordinal) }
    }

    var isEmpty: Bool { bits == 0 }

    func contains(_ other: AnswerFieldSet) -> Bool { bits & other.bits == other.bits }

    mutating func insert(_ ordinal: Int) {
        bits |= 1 << UInt64(ordinal)
    }
}

private struct AnswerFieldSearch {
    private static let fields = AnswerField.allCases.map { (name: PackedName($0.name), field: $0) }

    /// The position of the field that was found last.
    private(set) var ordinal = -1

    /// Fields are sent in order, so the search begins after the last one and mostly succeeds at once. Returns nil for
    /// an unknown name: newer services may send more fields.
    mutating func field(_ bytes: UnsafeRawBufferPointer) -> AnswerField? {
        guard let name = PackedName(bytes) else { return nil }
        let named = AnswerFieldSearch.fields
        for index in ordinal + 1..<named.count where named[index].name == name {
            ordinal = index
            return named[index].field
        }
        for index in 0..<ordinal + 1 where named[index].name == name {
            ordinal = index
            return named[index].field
        }
        return nil
    }
}
