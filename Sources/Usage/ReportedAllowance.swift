/// What a user has of a limit for a model or a member in a billing period, for reports.
public struct ReportedAllowance: Sendable, Equatable {
    public var kind: PlanLimit.Kind
    /// The model, or the beginning of models' names and an asterisk; of a member the id.
    public var name: String
    public var label: String?
    public var used: Int
    public var held: Int
    /// Nil is unlimited.
    public var limit: Int?
    public var tier: Tier
    /// The open window; the numbers are nil if the limit has none, and the instant if none is open.
    public var windowLimit: Int?
    public var windowUsed: Int?
    public var windowHeld: Int?
    public var windowResetsAt: Instant?
    public var weight: Int
    public var fallback: String?

    public init(
        kind: PlanLimit.Kind,
        name: String,
        label: String? = nil,
        used: Int,
        held: Int,
        limit: Int? = nil,
        tier: Tier,
        windowLimit: Int? = nil,
        windowUsed: Int? = nil,
        windowHeld: Int? = nil,
        windowResetsAt: Instant? = nil,
        weight: Int = 1,
        fallback: String? = nil
    ) {
        self.kind = kind
        self.name = name
        self.label = label
        self.used = used
        self.held = held
        self.limit = limit
        self.tier = tier
        self.windowLimit = windowLimit
        self.windowUsed = windowUsed
        self.windowHeld = windowHeld
        self.windowResetsAt = windowResetsAt
        self.weight = weight
        self.fallback = fallback
    }

    /// Messages of the period that may still be sent; nil is unlimited.
    public var remaining: Int? { limit.map { max(0, $0 - used - held) } }
    /// Messages of the window that may still be sent; nil without a window.
    public var windowRemaining: Int? { windowLimit.map { max(0, $0 - (windowUsed ?? 0) - (windowHeld ?? 0)) } }
}

extension ReportedAllowance {
    /// Gives `writer` the fields in the order of a line. Those that answers have, too, have the same names.
    public func writeFields<Writer: AnswerFieldWriter>(to writer: inout Writer) {
        writer.putName(" kind=")
        writer.putWord(kind.rawValue)
        writer.putName(" name=")
        writer.putText(name)
        writer.write(.label, ifAny: label)
        writer.write(.used, number: used)
        if held > 0 || Writer.isComplete { writer.write(.held, number: held) }
        writer.write(.limit, limit: limit)
        if Writer.isComplete { writer.write(.remaining, limit: remaining) }
        writer.write(.tier, name: tier.rawValue)
        if let windowLimit, let windowUsed, let windowRemaining {
            writer.write(.windowLimit, number: windowLimit)
            writer.write(.windowUsed, number: windowUsed)
            if Writer.isComplete { writer.write(.windowRemaining, number: windowRemaining) }
        }
        writer.write(.windowResets, ifAny: windowResetsAt)
        writer.putName(" weight=")
        writer.put(weight)
        writer.write(.fallback, ifAny: fallback)
    }
}
