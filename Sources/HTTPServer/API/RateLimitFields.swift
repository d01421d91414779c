import HTTPTypes
import Usage

/// A user's allowances of messages in the IETF's RateLimit header fields (draft-ietf-httpapi-ratelimit-headers-10): the
/// plan is a policy, and so are its window and its limits for the model and the member that the request names. `q` is
/// the allowance and `w` the seconds for which it lasts, `r` the remaining messages and `t` the seconds until they come
/// back. They count messages; requests of this API are not limited.
struct RateLimitFields {
    let policy: String?
    let limit: String?

    /// Both fields are nil if the user has no limit.
    init(_ snapshot: UsageSnapshot) {
        guard !snapshot.isPast, Plan.isName(snapshot.plan.name) else {
            (policy, limit) = (nil, nil)
            return
        }
        let each =
            [RateLimitFields.period(snapshot)].compactMap(\.self)
            + snapshot.otherAllowancesShown.compactMap { RateLimitFields.items($0, snapshot) }
        policy = each.isEmpty ? nil : each.map(\.policy).joined(separator: ", ")
        limit = each.isEmpty ? nil : each.map(\.limit).joined(separator: ", ")
    }

    private typealias Items = (policy: String, limit: String)

    // A plan's name needs no escaping: letters, digits and underscores.

    private static func period(_ snapshot: UsageSnapshot) -> Items? {
        guard let quota = snapshot.limit, let remaining = snapshot.remaining else { return nil }
        let name = "\"\(snapshot.plan.name)\""
        let end = snapshot.resetsShown ?? (snapshot.plan.isTrial ? snapshot.expiresAt : nil)
        let seconds = end.map { ";w=\(max(0, $0.secondsRoundedUp(since: snapshot.startedAt)))" } ?? ""
        // It is nil for a trial, which does not reset, and after the end of access.
        let reset = RateLimitFields.reset(snapshot.availableAgainAt, snapshot)
        return ("\(name);q=\(quota)\(seconds)", "\(name);r=\(remaining)\(reset)")
    }

    /// Nil for a part of the messages that has no limit.
    private static func items(_ allowance: ShownAllowance, _ snapshot: UsageSnapshot) -> Items? {
        guard let quota = allowance.limit, let remaining = allowance.remaining else { return nil }
        let name = "\"\(snapshot.plan.name).\(allowance.name)\""
        let seconds = allowance.seconds.map { ";w=\($0)" } ?? ""
        let reset = RateLimitFields.reset(allowance.resetsAt, snapshot)
        return ("\(name);q=\(quota)\(seconds)", "\(name);r=\(remaining)\(reset)")
    }

    private static func reset(_ instant: Instant?, _ snapshot: UsageSnapshot) -> String {
        instant.map { ";t=\(max(0, $0.secondsRoundedUp(since: snapshot.observedAt)))" } ?? ""
    }

    func write(to fields: inout HTTPFields) {
        if let policy { fields[.rateLimitPolicy] = policy }
        if let limit { fields[.rateLimit] = limit }
    }
}

extension HTTPField.Name {
    static let rateLimit = HTTPField.Name("RateLimit")!
    static let rateLimitPolicy = HTTPField.Name("RateLimit-Policy")!
}
