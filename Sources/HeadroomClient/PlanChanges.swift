import Foundation

// Disfavored, so that code of this package gets the initializer with instants.

extension PlanChange {
    /// A change to the initial state of the plan: trial, active or free.
    ///
    /// - Parameters:
    ///   - plan: the plan's name.
    ///   - startedAt: as ``PlanChange/startedAt``. Dates are sent to the second.
    ///   - expiresAt: as ``PlanChange/expiresAt``.
    ///   - graceUntil: as ``PlanChange/graceUntil``.
    ///   - anchorDay: the day of the month on which the allowance of a monthly plan comes back, 1 to 31; nil keeps the
    ///     user's.
    @_disfavoredOverload
    public init(
        user: UserID,
        plan: String,
        startedAt: Date? = nil,
        expiresAt: Date? = nil,
        graceUntil: Date? = nil,
        anchorDay: Int? = nil
    ) {
        self.init(
            user: user,
            plan: plan,
            state: nil,
            startedAt: startedAt.map { Instant($0) },
            expiresAt: expiresAt.map { Instant($0) },
            graceUntil: graceUntil.map { Instant($0) },
            anchorDay: anchorDay
        )
    }

    /// A change to a given state.
    ///
    /// - Parameters: as those of ``init(user:plan:startedAt:expiresAt:graceUntil:anchorDay:)``.
    @_disfavoredOverload
    public init(
        user: UserID,
        plan: String,
        state: SubscriptionState,
        startedAt: Date? = nil,
        expiresAt: Date? = nil,
        graceUntil: Date? = nil,
        anchorDay: Int? = nil
    ) {
        self.init(
            user: user,
            plan: plan,
            startedAt: startedAt,
            expiresAt: expiresAt,
            graceUntil: graceUntil,
            anchorDay: anchorDay
        )
        self.state = state
    }

    /// `startedAt` as a date.
    public var startDate: Date? {
        get { startedAt.map { Date($0) } }
        set { startedAt = newValue.map { Instant($0) } }
    }

    /// `expiresAt` as a date.
    public var expirationDate: Date? {
        get { expiresAt.map { Date($0) } }
        set { expiresAt = newValue.map { Instant($0) } }
    }

    /// `graceUntil` as a date.
    public var graceEndDate: Date? {
        get { graceUntil.map { Date($0) } }
        set { graceUntil = newValue.map { Instant($0) } }
    }
}
