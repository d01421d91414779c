import Foundation
import HeadroomClient

/// Where a user stands, as the page reads it: the line protocol's names and absences, in JSON.
struct UsageObject: Encodable, Sendable {
    private let status: UsageStatus

    init(_ status: UsageStatus) {
        self.status = status
    }

    private enum CodingKeys: String, CodingKey {
        case user, plan, state, tier, display, used, held, limit, remaining, period, resets, expires, renews
        case graceUntil, nextPlan, day, days
        case crossed, reason, retryAfter, previousPlan, label, accessible, notice, banner, degraded
    }

    func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode("\(status.user)", forKey: .user)
        try fields.encode(status.display.rawValue, forKey: .display)
        try fields.encode(status.tier.rawValue, forKey: .tier)
        // Nobody could be asked: numbers would be made up.
        if status.isDegraded { return try fields.encode(true, forKey: .degraded) }
        try fields.encode(status.plan, forKey: .plan)
        try fields.encode(status.state.rawValue, forKey: .state)
        try fields.encode(status.used, forKey: .used)
        if status.held > 0 { try fields.encode(status.held, forKey: .held) }
        // Null is unlimited.
        try fields.encode(status.limit, forKey: .limit)
        try fields.encode(status.remaining, forKey: .remaining)
        try fields.encode(status.period.label, forKey: .period)
        try fields.encodeIfPresent(status.resets.map(UsageObject.text), forKey: .resets)
        try fields.encodeIfPresent(status.expires.map(UsageObject.text), forKey: .expires)
        try fields.encodeIfPresent(status.renews.map(UsageObject.text), forKey: .renews)
        try fields.encodeIfPresent(status.graceUntil.map(UsageObject.text), forKey: .graceUntil)
        try fields.encodeIfPresent(status.nextPlan, forKey: .nextPlan)
        try fields.encodeIfPresent(status.day, forKey: .day)
        try fields.encodeIfPresent(status.days, forKey: .days)
        try fields.encodeIfPresent(status.crossed?.rawValue, forKey: .crossed)
        try fields.encodeIfPresent(status.reason?.rawValue, forKey: .reason)
        try fields.encodeIfPresent(status.retryAfter?.components.seconds, forKey: .retryAfter)
        try fields.encodeIfPresent(status.previousPlan, forKey: .previousPlan)
        try fields.encodeIfPresent(status.label, forKey: .label)
        try fields.encodeIfPresent(status.accessible, forKey: .accessible)
        try fields.encodeIfPresent(status.notice, forKey: .notice)
        try fields.encodeIfPresent(status.banner, forKey: .banner)
    }

    private static func text(_ instant: Instant) -> String {
        Date(timeIntervalSince1970: TimeInterval(instant.secondsSince1970)).formatted(.iso8601)
    }
}
