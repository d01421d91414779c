import Usage

/// A subscription as a store or an operator reported it, and the state that follows from it at an instant.
///
/// It stores inputs only. State and access are derived, so no job has to run when a subscription, trial or grace period
/// ends. Intervals are half-open: at `expiresAt` access has ended.
public struct ModelSubscription: Sendable, Equatable {
    public var plan: Plan
    /// Start of the trial. Other plans do not use it.
    public var startedAt: Instant?
    /// End of the paid time, or of a trial that does not end after the plan's days. Nil is never.
    public var expiresAt: Instant?
    /// End of the grace period. Only used during a billing issue.
    public var graceUntil: Instant?
    public var hasBillingIssue: Bool
    /// When the user cancelled. At or after a trial's end, it means that an operator or a store ended the trial: see
    /// `state(at:)`.
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

extension ModelSubscription {
    /// The grace period after `expiresAt` if the store gives no `graceUntil`: 16 days.
    public static let fallbackGraceSeconds: Int64 = 16 * 86_400

    /// The first instant without access, ignoring `revokedAt`. Nil is never.
    public var accessEndsAt: Instant? {
        switch plan.cycle {
        case .trial(let days): expiresAt ?? startedAt?.advanced(bySeconds: Int64(days) * 86_400)
        case .lifetime, .monthly, .weekly, .daily: hasBillingIssue ? graceEndsAt : expiresAt
        }
    }

    /// At least `expiresAt`: billing can fail before the paid time ends, and the user keeps access for it. Without any
    /// date there is no grace period.
    private var graceEndsAt: Instant {
        guard let grace = graceUntil ?? expiresAt?.advanced(bySeconds: ModelSubscription.fallbackGraceSeconds) else {
            return Instant(microsecondsSince1970: .min)
        }
        return expiresAt.map { max($0, grace) } ?? grace
    }

    /// The state at `instant`. Order of precedence: revoked, billing issue, cancelled, active.
    ///
    /// A trial that has run out keeps the state `trial`, so that a client can explain it. A trial that was ended has an
    /// `unsubscribedAt` at or after its end, and the state `expired`.
    public func state(at instant: Instant) -> SubscriptionState {
        if isRevoked(at: instant) { return .revoked }
        let isOver = isOver(at: instant)
        return switch plan.cycle {
        case .trial: isOver && wasEnded ? .expired : .trial
        // A lifetime plan too, which was another one when it was bought.
        case _ where hasBillingIssue: isOver ? .billingRetry : .gracePeriod
        case .lifetime: isOver ? .expired : .free
        case _ where isOver: .expired
        case .monthly, .weekly, .daily: unsubscribedAt == nil ? .active : .cancelled
        }
    }

    /// Why the user has no access at `instant`; nil with access.
    public func denialReason(at instant: Instant) -> DenialReason? {
        switch state(at: instant) {
        case .revoked: .revoked
        case .expired: .expired
        case .billingRetry: .billingRetry
        case .trial: isOver(at: instant) ? .trialEnded : nil
        case .active, .cancelled, .gracePeriod, .free: nil
        }
    }

    private var wasEnded: Bool {
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
