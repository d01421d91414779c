/// Where a user stands, as whoever asks is told: the fields of an answer, each with its type.
///
/// `Standing` is what the database says and answers are derived from; this is what is derived.
public struct UsageStatus: Sendable, Hashable {
    public var user: UserID
    /// The plan's name; `label` is what a person reads.
    public var plan: String
    public var state: SubscriptionState
    public var tier: Tier
    /// How to show the counter.
    public var display: Display
    /// Messages counted in this period.
    public var used: Int
    /// Messages reserved but not committed; they count as used meanwhile.
    public var held: Int
    /// Messages allowed in this period. Nil where there is no limit (`isUnlimited`), or none is known (`isDegraded`).
    public var limit: Int?
    /// Messages that may still be sent; nil where `limit` is. 0 without access, whatever the limit.
    public var remaining: Int?
    public var period: BillingPeriod
    /// When a monthly allowance comes back.
    public var resets: Instant?
    /// When a trial, or a cancelled subscription, ends.
    public var expires: Instant?
    /// When the store renews an active subscription: it charges then, and access goes on. Nil where it does not, and
    /// where no usage was asked for (`label` is nil).
    public var renews: Instant?
    /// Of a trial, from 1; day 1 is the first 24 hours.
    public var day: Int?
    /// How many days the trial has.
    public var days: Int?
    /// The tier into which this very message moved the user. Told once, so whoever reads it may notify the user.
    public var crossed: Tier?
    /// Why nothing may be sent: of a refusal, and wherever there is no access at all.
    public var reason: Refusal?
    /// Of a refusal that waiting alone mends: after how long.
    public var retryAfter: Duration?
    /// The monthly plan held before this one, or the one that lapsed: what a paywall may highlight.
    public var previousPlan: String?
    /// The plan as a person reads it: "Premium", "Trial — Day 2 of 3". Only where usage was asked for.
    public var label: String?
    /// The usage as a sentence for a screen reader. Only where usage was asked for.
    public var accessible: String?
    /// What to tell the user about the subscription.
    public var notice: String?
    /// What to tell the user about what is left.
    public var banner: String?
    /// The key was used before: this is the first outcome again, and nothing was counted now.
    public var isReplayed: Bool
    /// Nobody could be asked, and the message was let through, uncounted. All else here is then what shows a user nothing:
    /// no limit, no words, a hidden counter, and empty names of plan and period.
    public var isDegraded: Bool

    public init(
        user: UserID,
        plan: String,
        state: SubscriptionState,
        tier: Tier,
        display: Display,
        used: Int,
        limit: Int?,
        remaining: Int?,
        period: BillingPeriod
    ) {
        self.user = user
        self.plan = plan
        self.state = state
        self.tier = tier
        self.display = display
        self.used = used
        held = 0
        self.limit = limit
        self.remaining = remaining
        self.period = period
        isReplayed = false
        isDegraded = false
    }

    /// The plan has no limit. False where nobody could be asked.
    public var isUnlimited: Bool { limit == nil && !isDegraded }

    /// Of a user about whom nobody could be asked.
    public static func degraded(_ user: UserID) -> UsageStatus {
        var status = UsageStatus(
            user: user,
            plan: "",
            state: .active,
            tier: .silent,
            display: .hidden,
            used: 0,
            limit: nil,
            remaining: nil,
            period: BillingPeriod(storedLabel: "")
        )
        status.isDegraded = true
        return status
    }
}
