/// A plan: a row of `headroom.plans`.
///
/// It is a class, so that the answers of a batch share one instance. An edited row becomes a new instance.
public final class Plan: Sendable {
    /// When an allowance is renewed.
    public enum Cycle: Hashable, Sendable {
        /// Each month, from a store's payment on, or else on the subscriber's anchor day.
        case monthly
        /// Each week, from a store's payment on, or else on Monday at 00:00 in the plan's time zone.
        case weekly
        /// Each day at 00:00 in the plan's time zone.
        case daily
        /// Never; the plan ends this many days of 24 hours after its start.
        case trial(days: Int)
        /// Never.
        case lifetime

        /// Whether one period follows another; otherwise the plan has a single one, which never resets.
        public var isPeriodic: Bool {
            switch self {
            case .monthly, .weekly, .daily: true
            case .trial, .lifetime: false
            }
        }
    }

    /// A limit for a time that begins with a message.
    public struct Window: Sendable, Hashable {
        /// Messages allowed in a window.
        public var messages: Int
        /// How long a window lasts, from its first message on.
        public var seconds: Int

        public init(messages: Int, seconds: Int) {
            self.messages = messages
            self.seconds = seconds
        }
    }

    public let name: String
    /// The name that users read: "Premium".
    public let label: String
    public let cycle: Cycle
    /// The time zone in which the days and weeks of a daily or weekly plan begin: an IANA name, or nil for UTC. Only
    /// the database computes periods with it.
    public let timeZone: String?
    /// The time zone of dates in sentences; nil also for a name that only the database knows.
    let civilTimeZone: CivilTimeZone?
    /// Messages per period; nil is unlimited.
    public let allowance: Int?
    /// The plan's shorter limit beside the allowance; nil if it has none.
    public let window: Window?
    /// Whether messages beyond the limit are refused. An unenforced plan counts them, and their answers say `shadow`.
    public let isEnforced: Bool
    /// The limits for parts of the plan's messages.
    public let limits: [PlanLimit]
    /// Percent of the limit from which a user is in the gentle tier.
    public let gentlePercent: Int
    /// Percent of the limit from which a user is in the prominent tier.
    public let prominentPercent: Int

    public init(
        name: String,
        label: String,
        cycle: Cycle,
        timeZone: String? = nil,
        allowance: Int?,
        window: Window? = nil,
        isEnforced: Bool = true,
        limits: [PlanLimit] = [],
        gentlePercent: Int = 80,
        prominentPercent: Int = 95
    ) {
        self.name = name
        self.label = label
        self.cycle = cycle
        self.timeZone = timeZone
        civilTimeZone = timeZone.flatMap { CivilTimeZone($0) }
        self.allowance = allowance
        self.window = window
        self.isEnforced = isEnforced
        // Equal plans have equal limits, in whatever order they were read.
        self.limits = limits.sorted { ($0.kind.rawValue, $0.name) < ($1.kind.rawValue, $1.name) }
        self.gentlePercent = gentlePercent
        self.prominentPercent = prominentPercent
    }

    public var isTrial: Bool {
        if case .trial = cycle { true } else { false }
    }

    /// Whether a text can be a plan's name: lower-case ASCII, so that it can label a billing period and is never a
    /// month, a week or a day.
    public static func isName(_ text: String) -> Bool {
        let bytes = text.utf8
        guard let first = bytes.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first), bytes.count <= 32
        else { return false }
        return bytes.allSatisfy {
            switch $0 {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): true
            default: false
            }
        }
    }
}

extension Plan: Equatable {
    public static func == (lhs: Plan, rhs: Plan) -> Bool {
        lhs.name == rhs.name && lhs.label == rhs.label && lhs.cycle == rhs.cycle
            && lhs.timeZone == rhs.timeZone && lhs.allowance == rhs.allowance && lhs.window == rhs.window
            && lhs.isEnforced == rhs.isEnforced && lhs.limits == rhs.limits && lhs.gentlePercent == rhs.gentlePercent
            && lhs.prominentPercent == rhs.prominentPercent
    }
}

extension Plan {
    /// The plans that a migration inserts into `headroom.plans`. Operators change them there.
    public static let paid = Plan(name: "paid", label: "Premium", cycle: .monthly, allowance: 800)
    public static let pro = Plan(name: "pro", label: "Pro", cycle: .monthly, allowance: nil)
    public static let trial = Plan(name: "trial", label: "Trial", cycle: .trial(days: 3), allowance: 100)
    public static let free = Plan(name: "free", label: "Free", cycle: .lifetime, allowance: 0)
    public static let initial = [paid, pro, trial, free]
}
