import Usage

/// How the paid time of a subscription is divided into periods of the allowance. It has no clock: the database applies
/// it to the present time (`headroom.paid_period`, the same rules in SQL).
///
/// A payment whose time follows what was paid continues the run: its first period begins where the paid time ended.
/// Any other payment begins a new run at its own start, with a fresh count
/// (docs/decisions/0049-a-period-is-what-was-paid.md).
public struct PaidPeriods: Sendable, Equatable {
    /// The first period that matters: the one before the newest payment's time if it continues a run, else its own.
    public private(set) var startedAt: Instant
    /// The end of that period. From it on, one period follows the other.
    public private(set) var endsAt: Instant
    /// The day of the month on which later periods begin, in a shorter month its last day.
    public private(set) var anchorDay: Int
    /// The start of the newest payment's time, also of a payment that is inferred; not of one that adds no time. A
    /// repeated report of it begins nothing. Nil before the first payment.
    private var paidFrom: Instant?
    private var isTrial: Bool
    /// The end of the newest payment's time, also if access has ended before it; nil if it has none.
    private(set) var paidUntil: Instant?
    let length: Length

    /// Paid time, as a store reports it.
    struct Payment {
        var start: Instant
        /// The end of the paid time; nil if it has none.
        var end: Instant?
        /// The instant from which the store counts periods; nil is the start.
        var anchor: Instant?
        var isTrial: Bool
    }

    /// Begins a new run with a payment.
    private init(_ payment: Payment, _ length: Length) {
        startedAt = payment.start
        let anchor = payment.anchor ?? payment.start
        var next = length.instant(length.count(from: anchor, to: startedAt) + 1, after: anchor)
        if let end = payment.end, next >= end.lessTolerance { next = max(end, startedAt) }
        endsAt = next
        anchorDay = next.dayOfMonth(preferring: anchor.date.day)
        paidFrom = startedAt
        isTrial = payment.isTrial
        paidUntil = payment.end
        self.length = length
    }

    /// Periods of a subscription of which no payment is known yet.
    static func beforePayment(from start: Instant, until end: Instant?, _ length: Length) -> PaidPeriods {
        var periods = PaidPeriods(Payment(start: start, end: end, isTrial: false), length)
        periods.paidFrom = nil
        return periods
    }

    /// The periods after a payment.
    ///
    /// - Parameters:
    ///   - before: nil before the first payment.
    ///   - paidUntil: the end of what was paid before; nil if it had no end.
    ///   - refunded: the period of a refunded subscription in which the payment begins.
    static func paid(
        _ payment: Payment,
        after before: PaidPeriods?,
        paidUntil: Instant?,
        refunded: (start: Instant, end: Instant)?,
        _ length: Length
    ) -> PaidPeriods {
        var own = PaidPeriods(payment, length)
        if let before, before.paidFrom == payment.start {
            // The payment is reported again: only what changed since then counts, such as its end.
            guard payment.end != paidUntil, before.startedAt == own.startedAt else { return before }
            return own
        }
        // The payment adds no time: the item of a subscription was replaced, for instance, and the difference charged.
        if let before, !before.isTrial, let first = before.paidFrom, first < payment.start,
            let end = payment.end, end == paidUntil, payment.start < end
        {
            return before
        }
        if let before, before.paidFrom != nil, !before.isTrial, let paidUntil,
            payment.start.lessTolerance <= paidUntil, paidUntil.lessTolerance <= payment.start
        {
            let last = before.period(at: paidUntil.justBefore, until: paidUntil)
            if last.start <= payment.start { own.continueFrom(last.start, paidUntil) }
        } else if let refunded {
            // The refunded messages were used, so the count goes on, and the reset stays where it was.
            own.continueFrom(refunded.start, refunded.end)
        }
        return own
    }

    private mutating func continueFrom(_ start: Instant, _ end: Instant) {
        startedAt = start
        endsAt = end
        anchorDay = end.dayOfMonth(preferring: anchorDay)
    }

    /// The end of the present period moves along with the end of the paid time, without a charge.
    mutating func extend(from old: Instant, to new: Instant, at instant: Instant) {
        let present = period(at: min(instant, old.justBefore), until: old)
        let end = present.end.microsecondsSince1970 + new.microsecondsSince1970 - old.microsecondsSince1970
        continueFrom(present.start, Instant(microsecondsSince1970: end))
        paidUntil = new
    }

    /// The period at an instant.
    ///
    /// - Parameter paidUntil: periods after it are not paid, such as those of a grace period.
    func period(at instant: Instant, until paidUntil: Instant?) -> (start: Instant, end: Instant) {
        if let paidUntil, instant >= paidUntil {
            let day = paidUntil.dayOfMonth(preferring: anchorDay)
            let count = length.count(from: paidUntil, to: instant, day: day)
            return (
                length.instant(count, after: paidUntil, day: day), length.instant(count + 1, after: paidUntil, day: day)
            )
        }
        guard instant >= endsAt else { return (startedAt, min(endsAt, paidUntil ?? endsAt)) }
        // No period begins shortly before the end of the paid time.
        let latest = paidUntil?.lessTolerance.justBefore ?? .latest
        let count = max(length.count(from: endsAt, to: min(instant, latest), day: anchorDay), 0)
        let end = length.instant(count + 1, after: endsAt, day: anchorDay)
        return (
            length.instant(count, after: endsAt, day: anchorDay), end <= latest ? end : paidUntil ?? end
        )
    }
}

extension PaidPeriods {
    enum Length {
        case week, month

        init(_ cycle: Plan.Cycle?) {
            self = cycle == .weekly ? .week : .month
        }

        /// - Parameter day: of the month, in a shorter month its last day; nil is that of `first`.
        func instant(_ count: Int, after first: Instant, day: Int? = nil) -> Instant {
            switch self {
            case .week: return first.advanced(bySeconds: Int64(count) * 7 * 86_400)
            case .month:
                let date = first.date
                let months = date.year * 12 + date.month - 1 + count
                let (year, month) = (months / 12, months % 12 + 1)
                let day = min(day ?? date.day, CivilDate.daysInMonth(year: year, month: month))
                let days = CivilDate(year: year, month: month, day: day).daysSince1970 - date.daysSince1970
                return first.advanced(bySeconds: days * 86_400)
            }
        }

        /// The number of whole weeks or months, negative before `first`.
        func count(from first: Instant, to instant: Instant, day: Int? = nil) -> Int {
            let estimate =
                switch self {
                case .week:
                    Int((instant.secondsSince1970 - first.secondsSince1970) / (7 * 86_400))
                case .month:
                    (instant.date.year - first.date.year) * 12 + instant.date.month - first.date.month
                }
            return self.instant(estimate, after: first, day: day) > instant ? estimate - 1 : estimate
        }
    }
}

extension Instant {
    /// A payment that begins within this time of the end of what was paid continues it, and a period that would end
    /// within this time of it ends with it.
    private static let toleranceSeconds: Int64 = 3 * 86_400

    fileprivate var lessTolerance: Instant { advanced(bySeconds: -Instant.toleranceSeconds) }
    fileprivate var justBefore: Instant { Instant(microsecondsSince1970: microsecondsSince1970 - 1) }

    /// The preferred day if this instant is on it, or on the last day of a shorter month; else this instant's own day.
    fileprivate func dayOfMonth(preferring day: Int) -> Int {
        let date = date
        return min(day, CivilDate.daysInMonth(year: date.year, month: date.month)) == date.day ? day : date.day
    }
}

extension StoreSubscription {
    /// The period in which it was refunded, if `instant` lies in the rest of it. A period of another length has a count
    /// of its own.
    func refundedPeriod(at instant: Instant, _ length: PaidPeriods.Length) -> (start: Instant, end: Instant)? {
        guard let periods, periods.length == length, let revokedAt, revokedAt <= instant else { return nil }
        let period = periods.period(at: revokedAt, until: periods.paidUntil)
        return instant < period.end ? period : nil
    }

    /// Divides the paid time into periods, after an effect.
    mutating func divideTime(
        after effect: BillingEffect,
        at: Instant,
        _ before: StoreSubscription,
        _ cycles: [String: Plan.Cycle],
        _ refunded: (PaidPeriods.Length) -> (start: Instant, end: Instant)?
    ) {
        let length = PaidPeriods.Length(plan.flatMap { cycles[$0] })
        let isPayment = (effect.kind == .purchased || effect.kind == .renewed) && effect.isUnpaid != true
        if isPayment {
            guard !before.isOfEarlierPeriod(effect) else { return }
            guard let start = effect.started ?? before.impliedStart(at: at) else {
                periods = nil
                return
            }
            periods = .paid(
                PaidPeriods.Payment(
                    start: start,
                    end: expiresAt,
                    anchor: effect.anchor ?? effect.anchorDay.flatMap { start.anchor(onDay: $0) },
                    isTrial: effect.period == .trial || plan.flatMap { cycles[$0] }?.isTrial == true
                ),
                after: before.periods,
                paidUntil: before.expiresAt,
                refunded: refunded(length),
                length
            )
        } else if before.startedAt == nil, before.periods == nil {
            periods = .beforePayment(from: effect.started ?? at, until: expiresAt, length)
        } else if let old = before.expiresAt, let new = expiresAt, old < new {
            if effect.kind == .extended {
                periods?.extend(from: old, to: new, at: at)
            } else if effect.kind != .productChanged, before.startedAt != nil, let known = periods {
                // The event of a renewal was lost. For another product, only the end of access is new.
                let renewal = PaidPeriods.Payment(start: old, end: new, isTrial: false)
                periods = .paid(renewal, after: known, paidUntil: old, refunded: nil, length)
            }
        }
    }

    /// The start of a payment that names none: it continues what was paid, or begins now. It is nil if no payment named
    /// one: the periods then begin on the anchor day.
    private func impliedStart(at: Instant) -> Instant? {
        guard startedAt != nil, periods != nil else { return nil }
        guard let expiresAt, billingIssueAt != nil || expiresAt <= at else { return at }
        return billingIssueAt != nil && at < (graceUntil ?? expiresAt) ? expiresAt : at
    }
}

extension Instant {
    /// An anchor day at 00:00 UTC; nil on that day itself, where periods begin with the payment.
    fileprivate func anchor(onDay day: Int) -> Instant? {
        let date = date
        guard date.day != day else { return nil }
        let last = CivilDate.daysInMonth(year: date.year, month: date.month)
        return Instant(CivilDate(year: date.year, month: date.month, day: min(day, last)))
    }
}
