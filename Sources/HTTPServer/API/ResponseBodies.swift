import NIOCore
import ServiceCore
import Usage

extension Answer {
    /// The fields of the answer's line as JSON, under the same names. Fields that do not apply are left out, except
    /// that `limit` and `remaining` are null for an unlimited plan. `allowed` says what the line's first word does, for
    /// answers to messages.
    ///
    /// - Parameter vocabulary: that of the request's language and time zone.
    func json(in vocabulary: Vocabulary) -> ByteBuffer {
        var object = JSONObjectWriter()
        // Each derived once: sentences are put together.
        let snapshot = snapshot
        let trialDay = snapshot.trialDay
        let tier = snapshot.tier
        if isDetailed { object.put("accessible", snapshot.accessible(in: vocabulary)) }
        object.put("allowed", isAllowed)
        object.put("banner", banner(at: tier, in: vocabulary))
        object.put("crossed", crossed?.rawValue)
        object.put("currency", details?.currency)
        object.put("day", trialDay?.day)
        object.put("days", trialDay?.days)
        object.put("display", Display(tier: tier, plan: snapshot.plan, limit: snapshot.limit).rawValue)
        object.put("expires", snapshot.expiresShown?.text)
        object.put("grace_until", graceUntil?.text)
        object.put("held", snapshot.held)
        if isDetailed { object.put("label", snapshot.label(in: vocabulary)) }
        object.putOrNull("limit", snapshot.limit)
        object.put("manage", details?.manage)
        object.put("next_plan", nextPlan)
        object.put("notice", snapshot.notice(in: vocabulary))
        object.put("period", snapshot.period.label)
        object.put("plan", snapshot.plan.name)
        object.put("previous_plan", snapshot.previousPlan)
        object.put("price", details?.price)
        object.put("reason", reason?.rawValue)
        object.put("released", released)
        object.putOrNull("remaining", snapshot.remaining)
        object.put("renews", renews?.text)
        object.put("replayed", isRepeated ? true : nil)
        object.put("resets", snapshot.resetsShown?.text)
        object.put("retry_after", retryAfterSeconds)
        object.put("shadow", isShadow ? true : nil)
        object.put("state", snapshot.state.rawValue)
        if isDetailed {
            object.put("state_label", snapshot.stateLabel.text(in: vocabulary))
            object.put("steps", snapshot.steps?.text(in: vocabulary))
        }
        object.put("tier", tier.rawValue)
        object.put("unlimited", snapshot.limit == nil)
        object.put("used", snapshot.used)
        object.put("user", user.description)
        if let window = snapshot.windowShown {
            object.put("window_limit", window.limit)
            object.put("window_remaining", window.remaining)
            object.put("window_resets", window.resetsAt?.text)
            object.put("window_used", window.used)
        }
        return object.finish()
    }

    /// Nil for an answer that is about no message, such as that to a release.
    fileprivate var isAllowed: Bool? {
        switch status {
        case .allowed, .held: true
        case .blocked: false
        case .ok: nil
        }
    }
}

/// The answer to a message that is let through uncounted.
struct UncountedBody: Encodable {
    let allowed: Bool?
    let user: String
    let released: Int?
    let degraded = true
    let banner: String

    init(_ answer: UncountedAnswer) {
        allowed = answer.status == .released ? nil : true
        user = answer.user.description
        released = answer.status == .released ? 0 : nil
        banner = answer.banner
    }
}

/// `GET /v1/history/{user}`.
struct HistoryBody: Encodable {
    struct Period: Encodable {
        let usage: PeriodUsage

        private enum Name: String, CodingKey {
            case period, used, limit, unlimited, tier
        }

        func encode(to encoder: any Encoder) throws {
            var object = encoder.container(keyedBy: Name.self)
            try object.encode(usage.period.label, forKey: .period)
            try object.encode(usage.used, forKey: .used)
            try object.encode(usage.limit, forKey: .limit)
            try object.encode(usage.limit == nil, forKey: .unlimited)
            try object.encode(usage.tier.rawValue, forKey: .tier)
        }
    }

    let user: String
    let periods: [Period]

    init(_ user: UserID, _ periods: [PeriodUsage]) {
        self.user = user.description
        self.periods = periods.map { Period(usage: $0) }
    }
}

/// `GET /v1/report`.
struct ReportBody: Encodable {
    let period: String
    let users: Int
    let messages: Int
    let silent: Int
    let gentle: Int
    let prominent: Int
    let blocked: Int

    init(_ report: PeriodReport) {
        period = report.period.label
        users = report.users
        messages = report.messages
        silent = report.users(in: .silent)
        gentle = report.users(in: .gentle)
        prominent = report.users(in: .prominent)
        blocked = report.users(in: .blocked)
    }
}
