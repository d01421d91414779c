import Foundation
import TestSupport
import Usage

@testable import Billing

/// A store that charges one customer, with a ledger of its own, and the customer, who sends as many messages as there
/// are whenever there is something new. The ledger counts in allowances: one for each month (or week) that was paid.
struct PaymentSimulation {
    struct Charge {
        var start: Instant
        var end: Instant
        /// When each allowance begins.
        var allowances: [Instant]
    }

    /// What is wrong, with the history.
    struct Violation: Error, CustomStringConvertible {
        var description: String
    }

    private static let tolerance: Int64 = 3 * 86_400
    private static let plan = "paid"
    private static let calendar = {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = TimeZone(secondsFromGMT: 0)!
        return calendar
    }()

    private var random: SeededGenerator
    private let cycle: Plan.Cycle
    private(set) var charges: [Charge] = []
    private(set) var graces: [Instant] = []
    private(set) var events: [RecordedEvent] = []
    private var extensions = 0
    /// The instant of the newest event.
    private var clock = Instant(microsecondsSince1970: 0)
    private var anchor: Instant
    private var months: Int

    init(_ random: SeededGenerator) {
        self.random = random
        cycle = self.random.chance(20) ? .weekly : .monthly
        anchor = at("2026-01-01").advanced(bySeconds: self.random.seconds(0...31_536_000))
        months = self.random.element(of: [1, 1, 1, 1, 12, 3])
        charge(anchor, .purchased)
        for _ in 0..<self.random.element(of: [1, 2, 3, 4, 5, 6]) { step() }
    }
}

// MARK: The store

extension PaymentSimulation {
    private var present: Charge { charges[charges.count - 1] }

    /// The end of a paid time that began with a payment `length` periods after the anchor.
    private static func instant(_ count: Int, _ cycle: Plan.Cycle, after anchor: Instant) -> Instant {
        if cycle == .weekly { return anchor.advanced(bySeconds: Int64(count) * 604_800) }
        let date = Date(timeIntervalSince1970: TimeInterval(anchor.secondsSince1970))
        let later = calendar.date(byAdding: .month, value: count, to: date)!
        return Instant(secondsSince1970: Int64(later.timeIntervalSince1970))
    }

    /// The newest of the store's dates that lies after an instant.
    private func nextEnd(after start: Instant) -> Instant {
        var count = months
        while PaymentSimulation.instant(count, cycle, after: anchor)
            <= start.advanced(bySeconds: PaymentSimulation.tolerance)
        {
            count += months
        }
        return PaymentSimulation.instant(count, cycle, after: anchor)
    }

    /// - Parameter first: when the first allowance begins.
    private mutating func charge(
        _ start: Instant,
        _ kind: BillingEffect.Kind,
        from first: Instant? = nil,
        at instant: Instant? = nil
    ) {
        var charge = Charge(start: start, end: nextEnd(after: start), allowances: [first ?? start])
        for count in 1... {
            let next = PaymentSimulation.instant(count, cycle, after: charge.allowances[0])
            guard next < charge.end.advanced(bySeconds: -PaymentSimulation.tolerance) else { break }
            charge.allowances.append(next)
        }
        if charge.allowances[0] >= charge.end { charge.allowances = [] }
        charges.append(charge)
        let instant = instant ?? start
        report(instant, kind, started: start, until: charge.end)
        // Some stores report a payment twice: the subscription and its invoice.
        if random.chance(30) { report(instant.advanced(bySeconds: 2), .renewed, started: start, until: charge.end) }
    }

    /// Ends the newest charge's time early.
    private mutating func cut(at instant: Instant) {
        charges[charges.count - 1].allowances.removeAll { $0 >= instant }
    }

    private mutating func report(
        _ instant: Instant,
        _ kind: BillingEffect.Kind,
        started: Instant? = nil,
        until: Instant? = nil,
        graceUntil: Instant? = nil,
        isPrompt: Bool = false
    ) {
        var effect = BillingEffect(kind, transaction: "T", started: started, expires: until, graceUntil: graceUntil)
        effect.plan = PaymentSimulation.plan
        // A report that is a day late, of an extension, cannot take back the period that has begun meanwhile.
        let delay = isPrompt ? 0 : random.chance(25) ? random.seconds(0...100_000) : random.seconds(0...20)
        clock = max(clock, instant)
        events.append(
            RecordedEvent(
                key: RecordedEvent.Key(source: "appstore", id: "\(events.count)"),
                at: instant,
                receivedAt: instant.advanced(bySeconds: delay),
                identities: ["\(ada)"],
                effects: [effect]
            )
        )
    }

    private mutating func step() {
        let kinds: [BillingEffect.Kind] = [.purchased, .renewed]
        switch random.seconds(0...99) {
        case 0..<45:
            // Charged up to a day early, or two days late.
            let dayBefore = present.end.advanced(bySeconds: -86_400)
            let isShifted = random.chance(20) && dayBefore > present.allowances.last ?? present.end
            let shift = isShifted ? random.seconds(-86_400...172_800) : 0
            charge(present.end.advanced(bySeconds: shift), .renewed, from: present.end)
        case 45..<57:
            let start = random.instant(clock, present.end)
            guard start > present.start.advanced(bySeconds: 2 * PaymentSimulation.tolerance),
                start < present.end.advanced(bySeconds: -PaymentSimulation.tolerance)
            else { return }
            cut(at: start)
            anchor = start
            months = random.element(of: [1, 1, 12])
            charge(start, random.element(of: kinds))
        case 57..<70:
            lapse()
            anchor = present.end.advanced(bySeconds: random.seconds(PaymentSimulation.tolerance + 1...5_000_000))
            charge(anchor, random.element(of: kinds))
        case 70..<80 where cycle == .monthly:
            let end = present.end
            graces.append(end)
            report(end, .gracePeriod, graceUntil: end.advanced(bySeconds: 16 * 86_400))
            let recovery = end.advanced(bySeconds: random.seconds(200_000...1_300_000))
            if random.chance(60) {
                graces.removeLast()
                charge(end, .renewed, at: recovery)
            } else {
                report(end.advanced(bySeconds: 16 * 86_400), .expired, until: end)
                anchor = end.advanced(bySeconds: random.seconds(17 * 86_400...5_000_000))
                charge(anchor, random.element(of: kinds))
            }
        case 80..<90: refund()
        default:
            let instant = random.instant(clock.advanced(bySeconds: 10), present.end)
            let seconds = random.seconds(86_400...2_000_000)
            guard instant < present.end else { return }
            let delayed = present.allowances.map { $0 > instant ? $0.advanced(bySeconds: seconds) : $0 }
            charges[charges.count - 1].allowances = delayed
            charges[charges.count - 1].end = present.end.advanced(bySeconds: seconds)
            anchor = anchor.advanced(bySeconds: seconds)
            extensions += 1
            report(instant, .extended, until: present.end, isPrompt: true)
        }
    }

    private mutating func lapse() {
        report(random.instant(clock, present.end), .cancelled)
        report(present.end, .expired, until: present.end)
    }

    private mutating func refund() {
        // A refund that is reported before its purchase gives nothing.
        let arrival = events.map(\.receivedAt).max()!
        let instant = random.instant(arrival.advanced(bySeconds: 10), present.end.advanced(bySeconds: -400_000))
        guard instant < present.end else { return }
        report(instant, .revoked)
        let known = events[events.count - 1].receivedAt
        // The refunded messages were used: an allowance that is bought now begins with the period that follows.
        let following = present.allowances.first { $0 > instant } ?? present.end
        // Until the store reports the refund, the customer has what was paid.
        cut(at: known)
        anchor = known.advanced(bySeconds: random.seconds(60...4_000_000))
        if abs(anchor.secondsSince1970 - present.end.secondsSince1970) <= PaymentSimulation.tolerance {
            anchor = present.end.advanced(bySeconds: PaymentSimulation.tolerance + 1)
        }
        months = 1
        charge(anchor, random.element(of: [.purchased, .renewed]), from: max(following, anchor))
    }
}

// MARK: The ledger

extension PaymentSimulation {
    private func paid(by instant: Instant) -> Int { (charges.flatMap(\.allowances) + graces).count { $0 <= instant } }
}

// MARK: The customer

extension PaymentSimulation {
    /// Sends all messages that are left, whenever something may be new.
    ///
    /// - Throws: a `Violation` if more was allowed than paid, or less at the end.
    func check() throws(Violation) {
        let instants =
            (events.flatMap { [$0.receivedAt, $0.at] }
            + charges.flatMap { charge in
                [charge.start, charge.end] + charge.allowances
            }).flatMap { [$0.advanced(bySeconds: -1), $0, $0.advanced(bySeconds: 1)] }
        let last = charges[charges.count - 1].end.advanced(bySeconds: -1)
        let end = max(last, events.map(\.receivedAt).max()!.advanced(bySeconds: 1))
        // The starts of the rows that were used.
        var rows: Set<Instant> = []
        var before: (row: Instant, reset: Instant)?
        for now in Set(instants).sorted() where now <= end {
            guard let period = period(at: now) else { continue }
            let found =
                rows.contains(period.start)
                ? period.start : rows.filter { $0 >= period.start && $0 < period.end }.max()
            if let found { rows.remove(found) }
            rows.insert(period.start)
            // Months after an extension are of other lengths.
            let latest = extensions == 0 ? now : now.advanced(bySeconds: PaymentSimulation.tolerance)
            if rows.count > paid(by: latest) { throw violation("more than was paid", now, rows) }
            if let before, before.row == period.start, found == before.row, extensions == 0,
                period.end > before.reset.advanced(bySeconds: PaymentSimulation.tolerance + 172_800)
            {
                throw violation("the reset has moved from \(before.reset) to \(period.end)", now, rows)
            }
            before = (period.start, period.end)
        }
        if rows.count + extensions < charges.flatMap(\.allowances).count(where: { $0 <= last }) {
            throw violation("less than was paid", end, rows)
        }
    }

    private func violation(_ text: String, _ now: Instant, _ rows: Set<Instant>) -> Violation {
        let lines = events.sorted { $0.receivedAt < $1.receivedAt }.map { event in
            let effect = event.effects[0]
            return "\(event.receivedAt.text) \(effect.kind) at \(event.at.text)"
                + " \(effect.started?.text ?? "") until \(effect.expires?.text ?? effect.graceUntil?.text ?? "")"
        }
        return Violation(
            description: """
                \(text) at \(now.text), \(cycle), of \(rows.sorted().map(\.text)), paid \(paid(by: now)):
                \(lines.joined(separator: "\n"))
                """
        )
    }

    /// The period in which the customer may send; nil without access.
    private func period(at now: Instant) -> (start: Instant, end: Instant)? {
        let state = CustomerReducer.reduce(
            CustomerHistory(events: events.filter { $0.receivedAt <= now }, plans: [PaymentSimulation.plan: cycle]),
            at: now
        )
        guard let subscription = state.subscriptions[ada]?.first, let periods = subscription.periods,
            let end = subscription.expiresAt, subscription.revokedAt.map({ $0 > now }) ?? true
        else { return nil }
        if now < end { return periods.period(at: now, until: end) }
        if subscription.billingIssueAt != nil {
            return now < subscription.graceUntil ?? end ? periods.period(at: now, until: end) : nil
        }
        let isAwaited = subscription.unsubscribedAt == nil && subscription.renews != false
        guard isAwaited, now < end.advanced(bySeconds: 3_600) else { return nil }
        return periods.period(at: end.advanced(bySeconds: -1), until: end)
    }
}

extension SeededGenerator {
    fileprivate mutating func seconds(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &self) }

    fileprivate mutating func instant(_ start: Instant, _ end: Instant) -> Instant {
        Instant(secondsSince1970: seconds(start.secondsSince1970...max(end.secondsSince1970, start.secondsSince1970)))
    }
}
