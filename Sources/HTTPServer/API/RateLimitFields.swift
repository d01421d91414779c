import HTTPTypes
import Usage

/// A user's allowance of messages as the IETF's RateLimit fields tell it (draft-ietf-httpapi-ratelimit-headers-10): the plan
/// is the policy, `q` its allowance and `w` the seconds of its period, `r` what remains and `t` the seconds until it comes
/// back. The unit is a message, so none is named; requests of this API are not limited.
struct RateLimitFields {
    let policy: String?
    let limit: String?

    /// Neither where nothing is limited.
    init(_ snapshot: UsageSnapshot) {
        guard let quota = snapshot.limit, let remaining = snapshot.remaining, !snapshot.isPast,
            Plan.isName(snapshot.plan.name)
        else {
            (policy, limit) = (nil, nil)
            return
        }
        // Of letters, digits and underscores: nothing in it has to be escaped.
        let name = "\"\(snapshot.plan.name)\""
        let end = snapshot.resetsShown ?? (snapshot.plan.isTrial ? snapshot.expiresAt : nil)
        let window = end.map { ";w=\(max(0, $0.secondsRoundedUp(since: snapshot.startedAt)))" } ?? ""
        policy = "\(name);q=\(quota)\(window)"
        // A trial's end brings nothing back, nor does a reset when access has ended.
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
