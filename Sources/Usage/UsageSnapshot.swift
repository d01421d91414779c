/// A user's usage at one instant as the database has it; every answer is derived from it.
///
/// The entitlement is a reference: a batch makes a snapshot per message, and the snapshots of a user share the
/// entitlement. Counts take four bytes each, as in the database, because an answer is copied several times on its way
/// to its connection.
public struct UsageSnapshot: Sendable, Equatable {
    public var entitlement: Entitlement
    @usableFromInline var storedUsed: Int32
    @usableFromInline var storedHeld: Int32
    @usableFromInline var storedWindowUsed: Int32
    @usableFromInline var storedWindowHeld: Int32
    /// When the usage was observed, by the database's clock.
    public var observedAt: Instant
    /// When the store renews an active subscription. It is nil also if it was not looked up: only `USAGE` needs it.
    public var renewsAt: Instant?
    /// Why the user has no access; nil with access.
    public var denialReason: DenialReason?

    @inlinable
    public init(
        entitlement: Entitlement,
        used: Int,
        held: Int = 0,
        windowUsed: Int = 0,
        windowHeld: Int = 0,
        denialReason: DenialReason? = nil,
        observedAt: Instant,
        renewsAt: Instant? = nil
    ) {
        self.entitlement = entitlement
        storedUsed = Int32(clamping: used)
        storedHeld = Int32(clamping: held)
        storedWindowUsed = Int32(clamping: windowUsed)
        storedWindowHeld = Int32(clamping: windowHeld)
        self.denialReason = denialReason
        self.observedAt = observedAt
        self.renewsAt = renewsAt
    }

    public init(
        plan: Plan,
        state: SubscriptionState,
        period: BillingPeriod,
        used: Int,
        held: Int = 0,
        limit: Int?,
        window: UsageWindow? = nil,
        windowUsed: Int = 0,
        windowHeld: Int = 0,
        denialReason: DenialReason? = nil,
        startedAt: Instant,
        resetsAt: Instant? = nil,
        expiresAt: Instant? = nil,
        previousPlan: String? = nil,
        renews: Bool? = nil,
        observedAt: Instant,
        renewsAt: Instant? = nil
    ) {
        let entitlement = Entitlement(
            plan: plan,
            state: state,
            period: period,
            limit: limit,
            window: window,
            startedAt: startedAt,
            resetsAt: resetsAt,
            expiresAt: expiresAt,
            previousPlan: previousPlan,
            renews: renews
        )
        self.init(
            entitlement: entitlement,
            used: used,
            held: held,
            windowUsed: windowUsed,
            windowHeld: windowHeld,
            denialReason: denialReason,
            observedAt: observedAt,
            renewsAt: renewsAt
        )
    }
}

/// The counts. They stop at `countMaximum`.
extension UsageSnapshot {
    /// The largest `integer` of PostgreSQL, at which the count of an unlimited plan stops.
    public static let countMaximum = Int(Int32.max)

    /// Messages counted in this period.
    @inlinable public var used: Int {
        get { Int(storedUsed) }
        set { storedUsed = Int32(clamping: newValue) }
    }
    /// Messages reserved and not committed or released yet; they count as used.
    @inlinable public var held: Int {
        get { Int(storedHeld) }
        set { storedHeld = Int32(clamping: newValue) }
    }
    /// Messages counted in the open window.
    @inlinable public var windowUsed: Int {
        get { Int(storedWindowUsed) }
        set { storedWindowUsed = Int32(clamping: newValue) }
    }
    /// Messages reserved in the open window and not committed or released yet; they count as used.
    @inlinable public var windowHeld: Int {
        get { Int(storedWindowHeld) }
        set { storedWindowHeld = Int32(clamping: newValue) }
    }
}

/// The properties of the entitlement. Setting one creates a new entitlement.
extension UsageSnapshot {
    @inlinable public var plan: Plan {
        get { entitlement.plan }
        set { entitlement = entitlement.with(plan: newValue) }
    }
    @inlinable public var state: SubscriptionState { entitlement.state }
    @inlinable public var period: BillingPeriod {
        get { entitlement.period }
        set { entitlement = entitlement.with(period: newValue) }
    }
    @inlinable public var limit: Int? {
        get { entitlement.limit }
        set { entitlement = entitlement.with(limit: .some(newValue)) }
    }
    @inlinable public var window: UsageWindow? {
        get { entitlement.window }
        set { entitlement = entitlement.with(window: .some(newValue)) }
    }
    @inlinable public var startedAt: Instant {
        get { entitlement.startedAt }
        set { entitlement = entitlement.with(startedAt: newValue) }
    }
    @inlinable public var resetsAt: Instant? {
        get { entitlement.resetsAt }
        set { entitlement = entitlement.with(resetsAt: .some(newValue)) }
    }
    @inlinable public var expiresAt: Instant? {
        get { entitlement.expiresAt }
        set { entitlement = entitlement.with(expiresAt: .some(newValue)) }
    }
    @inlinable public var previousPlan: String? {
        get { entitlement.previousPlan }
        set { entitlement = entitlement.with(previousPlan: .some(newValue)) }
    }
    @inlinable public var renews: Bool? {
        get { entitlement.renews }
        set { entitlement = entitlement.with(renews: .some(newValue)) }
    }
    /// The parts to which the request's messages belong; empty for a request that names none.
    @inlinable public var parts: [PartUsage] {
        get { entitlement.parts }
        set { entitlement = entitlement.with(parts: newValue) }
    }
    @inlinable public var details: SubscriptionDetails? {
        get { entitlement.details }
        set { if newValue != entitlement.details { entitlement = entitlement.with(details: .some(newValue)) } }
    }
}

/// What a refusal needs of the allowance into which messages do not fit. It is this small because each message asks
/// for it, and mostly gets nil.
struct RefusingAllowance {
    let name: Allowance.Name
    let isUsedUp: Bool

    @inline(__always)
    init?(_ allowance: Allowance?) {
        guard let allowance else { return nil }
        (name, isUsedUp) = (allowance.name, allowance.isUsedUp)
    }
}

extension UsageSnapshot {
    /// Whether the period is over.
    public var isPast: Bool {
        resetsAt.map { observedAt >= $0 } ?? false
    }

    /// The reset as answers show it: nil without a limit, without access, and after the period.
    public var resetsShown: Instant? { limit != nil && showsResets ? resetsAt : nil }

    @inline(__always) private var showsResets: Bool { denialReason == nil && !isPast }

    /// When the user can send again after the period's reset: nil if access ends at or before the reset.
    public var availableAgainAt: Instant? { unlessAccessEnds(before: resetsShown) }

    /// When the messages of an allowance come back and the user can send them: nil if access ends at or before that.
    func availableAgainAt(_ allowance: Allowance) -> Instant? {
        allowance.limit != nil && showsResets ? unlessAccessEnds(before: allowance.resetsAt) : nil
    }

    @inline(__always)
    private func unlessAccessEnds(before reset: Instant?) -> Instant? {
        guard let reset, let accessEndsAt else { return reset }
        return accessEndsAt > reset ? reset : nil
    }

    /// When access ends unless the user pays; nil is never. A subscription that a store renews goes on: the end of what
    /// is paid is the usual end of its period, whose messages come back then.
    private var accessEndsAt: Instant? {
        renews == true && (state == .active || state == .free) ? nil : expiresAt
    }

    /// The end of a trial, or of a subscription that is not renewed, as answers show it.
    public var expiresShown: Instant? {
        if plan.isTrial || state == .cancelled { return expiresAt }
        return state == .active || state == .free ? accessEndsAt : nil
    }

    /// The end of the grace period, as answers show it. Access ends then unless a payment succeeds.
    public var graceUntilShown: Instant? {
        state == .gracePeriod && denialReason == nil && !isPast ? expiresAt : nil
    }

    public var allowances: Allowances {
        var allowances = Allowances(
            period: Allowance(
                used: used,
                held: held,
                limit: limit,
                renewedLimit: renewedLimit,
                resetsAt: resetsAt,
                weight: weight
            ),
            windowAllowance
        )
        appendPartAllowances(to: &allowances)
        return allowances
    }

    /// The limit of the next period: what is left in balances can be sent then, too.
    private var renewedLimit: Int? {
        guard let balances else { return plan.allowance }
        return plan.allowance.map { $0 + balances.messages }
    }

    private var windowAllowance: Allowance? {
        entitlement.window.map {
            Allowance(
                .window,
                used: windowUsed,
                held: windowHeld,
                limit: $0.limit,
                renewedLimit: $0.limit,
                resetsAt: $0.endsAt,
                weight: weight,
                windowSeconds: plan.window?.seconds
            )
        }
    }

    /// Whether there are allowances beside the period's. Most requests have none.
    @inlinable @inline(__always)
    var hasOtherAllowances: Bool { entitlement.hasOtherAllowances }

    /// The allowances beside the period's, as answers show them.
    @inlinable @inline(__always)
    public var otherAllowancesShown: [ShownAllowance] {
        hasOtherAllowances ? allOtherAllowancesShown : []
    }

    @usableFromInline var allOtherAllowancesShown: [ShownAllowance] {
        let parts = entitlement.parts.map { shown($0) }
        guard let window = windowAllowance.flatMap({ shown($0) }) else { return parts }
        return [window] + parts
    }

    /// An allowance as answers show it: nil without a limit, and after the period. Without access, nothing remains and
    /// nothing resets.
    func shown(_ allowance: Allowance) -> ShownAllowance? {
        guard let limit = allowance.limit, !isPast else { return nil }
        let hasAccess = denialReason == nil
        return ShownAllowance(
            name: allowance.name,
            limit: limit,
            used: allowance.used,
            remaining: hasAccess ? allowance.remaining : 0,
            resetsAt: hasAccess ? allowance.resetsAt : nil,
            seconds: allowance.windowSeconds
        )
    }

    public var tier: Tier {
        guard denialReason == nil else { return .blocked }
        guard hasOtherAllowances else { return Tier(used: used + held, limit: limit, plan: plan) }
        return tierOfFullest
    }

    /// It is not inlined, because most users have one allowance, and the others would cost them.
    @inline(never) private var tierOfFullest: Tier {
        let fullest = allowances.fullest
        return Tier(used: fullest.taken, limit: fullest.limit, plan: plan)
    }

    /// The user's tier, and the sum of the ranks of all allowances' tiers. A message lowers none of them, so that one
    /// was crossed if the sum has grown. It is 0 for a user with one allowance, whose tier tells it.
    @inline(__always)
    var tiers: (user: Tier, sum: Int) { hasOtherAllowances ? allTiers : (tier, 0) }

    @inline(never) private var allTiers: (user: Tier, sum: Int) {
        let allowances = allowances
        var sum = 0
        allowances.visit { sum += Tier(used: $0.taken, limit: $0.limit, plan: plan).rank }
        let fullest = allowances.fullest
        return (denialReason == nil ? Tier(used: fullest.taken, limit: fullest.limit, plan: plan) : .blocked, sum)
    }

    public var display: Display { Display(tier: tier, plan: plan, limit: limit) }

    /// Whether the allowance never resets. Such a counter is always shown.
    var hasLifetimeLimit: Bool { plan.cycle == .lifetime && limit != nil }

    /// Messages that may still be sent in this period; nil is unlimited. 0 without access, or if more than the limit is
    /// taken.
    public var remaining: Int? {
        denialReason == nil ? limit.map { max(0, $0 - used - held) } : 0
    }

    /// Why the user has no access. It is nil with access, even if the allowance is used up, and for a past period.
    public var accessDenialReason: DenialReason? {
        if let denialReason { return denialReason }
        // A lifetime plan without messages is no subscription.
        return limit == 0 && plan.cycle == .lifetime && plan.isEnforced && !isPast ? .noSubscription : nil
    }

    /// Why `messages` more may not be sent now; nil if all of them may.
    public func refusal(of messages: Int) -> DenialReason? {
        refusal(refusing(messages))
    }

    /// The allowance because of which `messages` are refused; nil if they fit into each.
    @inline(__always)
    func refusing(_ messages: Int) -> RefusingAllowance? {
        guard !hasOtherAllowances else { return RefusingAllowance(allowances.refusing(messages)) }
        let period = Allowance(used: used, held: held, limit: limit)
        return period.fits(messages) ? nil : RefusingAllowance(period)
    }

    /// - Parameter refusing: the allowance into which the messages do not fit, or nil.
    func refusal(_ refusing: RefusingAllowance?) -> DenialReason? {
        if let accessDenialReason { return accessDenialReason }
        guard let refusing, plan.isEnforced else { return nil }
        guard refusing.isUsedUp else { return refusing.name.exceededReason }
        return refusing.name == .period && plan.isTrial ? .trialLimitReached : refusing.name.usedUpReason
    }

    /// Whether more is counted or held than the limit of an unenforced plan.
    public var isBeyondUnenforcedLimit: Bool { !plan.isEnforced && refusing(0) != nil }

    /// Adds to the counts of every allowance.
    ///
    /// - Parameter opens: whether it opens the allowances that begin with a message.
    @inline(__always)
    mutating func add(used messages: Int = 0, held heldMessages: Int = 0, opens: Bool = false) {
        guard hasOtherAllowances else {
            used += messages
            held += heldMessages
            return
        }
        addToAll(used: messages, held: heldMessages, opens)
    }

    @inline(never)
    private mutating func addToAll(used messages: Int, held heldMessages: Int, _ opens: Bool) {
        if opens { openWindow() }
        let weight = weight
        used += messages * weight
        held += heldMessages * weight
        if entitlement.window != nil {
            windowUsed += messages * weight
            windowHeld += heldMessages * weight
        }
        addToParts(used: messages, held: heldMessages, opens)
    }

    private mutating func openWindow() {
        guard let window = entitlement.window, window.openedAt == nil,
            let seconds = plan.window?.seconds
        else { return }
        let endsAt = observedAt.advanced(bySeconds: Int64(seconds))
        entitlement = entitlement.with(
            window: .some(UsageWindow(limit: window.limit, openedAt: observedAt, endsAt: endsAt))
        )
    }

    /// Seconds after which refused `messages` would be allowed. It is nil if waiting does not help: without access, in
    /// a trial, if access ends before, and for more messages than the allowance.
    public func retryAfterSeconds(_ refusal: DenialReason, messages: Int) -> Int64? {
        guard refusal.isAboutAllowance else { return nil }
        var end = observedAt
        for allowance in allowances where !allowance.fits(messages) {
            guard messages * allowance.weight <= allowance.renewedLimit ?? .max,
                let availableAt = availableAgainAt(allowance)
            else { return nil }
            end = max(end, availableAt)
        }
        return end.secondsRoundedUp(since: observedAt)
    }

    /// Day X of N of a trial. Day 1 is the first 24 hours, and the last day lasts beyond the end. The days of a trial
    /// with an end of its own, such as a store's trial, follow from that end.
    public var trialDay: (day: Int, days: Int)? {
        guard case .trial(let planDays) = plan.cycle else { return nil }
        let days = expiresAt.map { max(1, -UsageSnapshot.days(from: $0, to: startedAt)) } ?? planDays
        return (min(max(1, UsageSnapshot.days(from: startedAt, to: observedAt) + 1), days), days)
    }

    /// The number of whole days of 24 hours, rounded down.
    private static func days(from start: Instant, to end: Instant) -> Int {
        Int(floorDivide(end.microseconds(since: start), 86_400_000_000))
    }
}

extension UsageSnapshot {
    /// Whether `USAGE` answers the same for both snapshots, apart from the time of observation.
    public func hasSameUsage(as other: UsageSnapshot) -> Bool {
        used == other.used && held == other.held && windowUsed == other.windowUsed && windowHeld == other.windowHeld
            && denialReason == other.denialReason
            && entitlement == other.entitlement
            && trialDay?.day == other.trialDay?.day && isPast == other.isPast && renewsAt == other.renewsAt
            && entitlement.details == other.entitlement.details
    }

    /// When the next day of a trial begins, which changes its label. It is nil on the last day, and without a trial.
    public var nextTrialDayAt: Instant? {
        guard let (day, days) = trialDay, day < days else { return nil }
        return startedAt.advanced(bySeconds: Int64(day) * 86_400)
    }
}
