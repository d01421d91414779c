/// What the store or an operator told about a subscription, and what follows from it at an instant.
///
/// Only inputs are kept, never "blocked": expiry, the trial's end and the end of grace need no job that would have to
/// run in time. Every interval is half-open, so at exactly `expiresAt` there is no access any more.
public struct Subscription: Sendable, Equatable {
    public var plan: Plan
    /// Start of a trial; for other plans only for the record.
    public var startedAt: Instant?
    /// End of what was paid for, or a trial's end where it is not `startedAt` plus the plan's days. Nil is never.
    public var expiresAt: Instant?
    /// End of the grace that the store gives in a billing issue; without one it means nothing.
    public var graceUntil: Instant?
    public var hasBillingIssue: Bool
    /// When the store said "will not renew". At or after a trial's end: that somebody ended it, see `state(at:)`.
    public var unsubscribedAt: Instant?
    public var revokedAt: Instant?

    public init(
        plan: Plan,
        startedAt: Instant? = nil,
        expiresAt: Instant? = nil,
        graceUntil: Instant? = nil,
        hasBillingIssue: Bool = false,
        unsubscribedAt: Instant? = nil,
        revokedAt: Instant? = nil
    ) {
        self.plan = plan
        self.startedAt = startedAt
        self.expiresAt = expiresAt
        self.graceUntil = graceUntil
        self.hasBillingIssue = hasBillingIssue
        self.unsubscribedAt = unsubscribedAt
        self.revokedAt = revokedAt
    }
}

extension Subscription {
    /// 16 days, where the store gives no date; stores can be set to 3, 16 or 28, so a given date counts first.
    public static let fallbackGraceSeconds: Int64 = 16 * 86_400

    public var isUnsubscribed: Bool { unsubscribedAt != nil }

    /// The first instant without access, revocation aside; nil is never.
    public var accessEndsAt: Instant? {
        switch plan.cycle {
        case .trial(let days): expiresAt ?? startedAt?.advanced(bySeconds: Int64(days) * 86_400)
        case .monthly where hasBillingIssue: graceEndsAt
        case .monthly, .lifetime: expiresAt
        }
    }

    /// Billing can fail before the paid time is over, and a store's grace can be shorter than what is left of it: who
    /// paid keeps access until then. An issue about which no date is known gives no grace: it ended before all time.
    private var graceEndsAt: Instant {
        guard let grace = graceUntil ?? expiresAt?.advanced(bySeconds: Subscription.fallbackGraceSeconds) else {
            return Instant(microsecondsSince1970: .min)
        }
        return expiresAt.map { max($0, grace) } ?? grace
    }

    /// Revoked counts before a billing issue, that before cancelled, and that before active.
    ///
    /// A trial that ran out stays a trial, so that a client can say so, also when it was cancelled while it ran; one that
    /// was declared over is expired, and that declaration is its `unsubscribedAt`.
    public func state(at instant: Instant) -> SubscriptionState {
        if isRevoked(at: instant) { return .revoked }
        let isOver = isOver(at: instant)
        return switch plan.cycle {
        case .trial: isOver && isDeclaredOver ? .expired : .trial
        case .lifetime: isOver ? .expired : .free
        case .monthly where hasBillingIssue: isOver ? .billingRetry : .gracePeriod
        case .monthly where isOver: .expired
        case .monthly: isUnsubscribed ? .cancelled : .active
        }
    }

    /// Why there is no access at `instant`; nil with access.
    public func denialReason(at instant: Instant) -> DenialReason? {
        switch state(at: instant) {
        case .revoked: .revoked
        case .expired: .expired
        case .billingRetry: .billingRetry
        case .trial: isOver(at: instant) ? .trialEnded : nil
        case .active, .cancelled, .gracePeriod, .free: nil
        }
    }

    /// The earliest instant after `instant` at which state or access change by time alone; nil when they never do.
    public func changes(after instant: Instant) -> Instant? {
        let (state, denialReason) = (state(at: instant), denialReason(at: instant))
        return [revokedAt, accessEndsAt].compactMap(\.self).sorted().first { candidate in
            candidate > instant
                && (self.state(at: candidate) != state || self.denialReason(at: candidate) != denialReason)
        }
    }

    private var isDeclaredOver: Bool {
        guard let unsubscribedAt, let accessEndsAt else { return false }
        return unsubscribedAt >= accessEndsAt
    }

    private func isRevoked(at instant: Instant) -> Bool {
        revokedAt.map { $0 <= instant } ?? false
    }

    private func isOver(at instant: Instant) -> Bool {
        accessEndsAt.map { $0 <= instant } ?? false
    }
}
