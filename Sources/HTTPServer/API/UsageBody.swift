import ServiceCore
import Usage

/// The fields of an answer's line, under the same names. Fields that do not apply are left out, except that `limit` and
/// `remaining` are null for an unlimited plan. `allowed` says what the line's first word does, for answers to messages.
struct UsageBody: Encodable {
    private let answer: Answer

    init(_ answer: Answer) {
        self.answer = answer
    }

    private enum Name: String, CodingKey {
        case allowed
        case user, plan, state, tier, display, used, held, limit, remaining, unlimited, period, resets, expires, renews,
            day, days, crossed, reason, released, replayed
        case retryAfter = "retry_after"
        case graceUntil = "grace_until"
        case previousPlan = "previous_plan"
        case nextPlan = "next_plan"
        case label
        case stateLabel = "state_label"
        case accessible, price, currency, manage, steps, notice, banner
    }

    func encode(to encoder: any Encoder) throws {
        let snapshot = answer.snapshot
        var object = encoder.container(keyedBy: Name.self)
        try object.encodeIfPresent(answer.isAllowed, forKey: .allowed)
        try object.encode(answer.user.description, forKey: .user)
        try object.encode(snapshot.plan.name, forKey: .plan)
        try object.encode(snapshot.state.rawValue, forKey: .state)
        try object.encode(snapshot.tier.rawValue, forKey: .tier)
        try object.encode(snapshot.display.rawValue, forKey: .display)
        try object.encode(snapshot.used, forKey: .used)
        try object.encode(snapshot.held, forKey: .held)
        try object.encode(snapshot.limit, forKey: .limit)
        try object.encode(snapshot.remaining, forKey: .remaining)
        try object.encode(snapshot.limit == nil, forKey: .unlimited)
        try object.encode(snapshot.period.label, forKey: .period)
        try object.encodeIfPresent(snapshot.resetsShown?.text, forKey: .resets)
        try object.encodeIfPresent(snapshot.expiresShown?.text, forKey: .expires)
        try object.encodeIfPresent(answer.renews?.text, forKey: .renews)
        try object.encodeIfPresent(answer.graceUntil?.text, forKey: .graceUntil)
        try object.encodeIfPresent(snapshot.trialDay?.day, forKey: .day)
        try object.encodeIfPresent(snapshot.trialDay?.days, forKey: .days)
        try object.encodeIfPresent(answer.crossed?.rawValue, forKey: .crossed)
        try object.encodeIfPresent(answer.reason?.rawValue, forKey: .reason)
        try object.encodeIfPresent(answer.retryAfterSeconds, forKey: .retryAfter)
        try object.encodeIfPresent(answer.released, forKey: .released)
        if answer.isRepeated { try object.encode(true, forKey: .replayed) }
        try object.encodeIfPresent(snapshot.previousPlan, forKey: .previousPlan)
        try object.encodeIfPresent(answer.nextPlan, forKey: .nextPlan)
        if answer.isDetailed {
            try object.encode(snapshot.label, forKey: .label)
            try object.encode(snapshot.stateLabel.text, forKey: .stateLabel)
            try object.encode(snapshot.accessible.text, forKey: .accessible)
            try object.encodeIfPresent(answer.details?.price, forKey: .price)
            try object.encodeIfPresent(answer.details?.currency, forKey: .currency)
            try object.encodeIfPresent(answer.details?.manage, forKey: .manage)
            try object.encodeIfPresent(snapshot.steps?.text, forKey: .steps)
        }
        try object.encodeIfPresent(snapshot.notice?.text, forKey: .notice)
        try object.encodeIfPresent(snapshot.banner?.text, forKey: .banner)
    }
}

extension Answer {
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
