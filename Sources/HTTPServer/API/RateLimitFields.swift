import HTTPTypes
import Usage

/// A user's allowance of messages in the IETF's RateLimit header fields (draft-ietf-httpapi-ratelimit-headers-10): the
/// plan is the policy, `q` its allowance and `w` the seconds of its period, `r` the remaining messages and `t` the
/// seconds until the reset. They count messages; requests of this API are not limited.
struct RateLimitFields {
    let policy: String?
    let limit: String?

    /// Both fields are nil if the user has no limit.
    init(_ snapshot: UsageSnapshot) {
        guard let quota = snapshot.limit, let remaining = snapshot.remaining, !snapshot.isPast,
            Plan.isName(snapshot.plan.name)
        else {
            (policy, limit) = (nil, nil)
            return
        }
        // A plan's name needs no escaping: letters, digits and underscores.
        let name = "\"\(snapshot.plan.name)\""
        let end = snapshot.resetsShown ?? (snapshot.plan.isTrial ? snapshot.expiresAt : nil)
        let window = end.map { ";w=\(max(0, $0.secondsRoundedUp(since: snapshot.startedAt)))" } ?? ""
        policy = "\(name);q=\(quota)\(window)"
        // Nil for a trial, which does not reset, and after the end of access.
        let seconds = snapshot.availableAgainAt?.secondsRoundedUp(since: snapshot.observedAt)
        let reset = seconds.map { ";t=\(max(0, $0))" } ?? ""
        limit = "\(name);r=\(remaining)\(reset)"
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
