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
