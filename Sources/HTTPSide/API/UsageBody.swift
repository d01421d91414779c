import Usage

/// `GET /v1/usage/{user}`: the fields of `USAGE`'s answer, under their names. One that does not apply is left out, but for
/// those that say how much: null is unlimited, and `unlimited` says so.
struct UsageBody: Encodable {
    private let answer: Answer

    init(_ answer: Answer) {
        self.answer = answer
    }

    private enum Name: String, CodingKey {
        case user, plan, state, tier, display, used, held, limit, remaining, unlimited, period, resets, expires, renews,
            day, days, reason
        case graceUntil = "grace_until"
        case previousPlan = "previous_plan"
        case nextPlan = "next_plan"
        case label, accessible, notice, banner
    }

    func encode(to encoder: any Encoder) throws {
        let standing = answer.standing
        var object = encoder.container(keyedBy: Name.self)
        try object.encode(answer.user.description, forKey: .user)
        try object.encode(standing.plan.name, forKey: .plan)
        try object.encode(standing.state.rawValue, forKey: .state)
        try object.encode(standing.tier.rawValue, forKey: .tier)
        try object.encode(standing.display.rawValue, forKey: .display)
        try object.encode(standing.used, forKey: .used)
        try object.encode(standing.held, forKey: .held)
        try object.encode(standing.limit, forKey: .limit)
        try object.encode(standing.remaining, forKey: .remaining)
        try object.encode(standing.limit == nil, forKey: .unlimited)
        try object.encode(standing.period.label, forKey: .period)
        try object.encodeIfPresent(standing.resetsShown?.text, forKey: .resets)
        try object.encodeIfPresent(standing.expiresShown?.text, forKey: .expires)
        try object.encodeIfPresent(answer.renews?.text, forKey: .renews)
        try object.encodeIfPresent(answer.graceUntil?.text, forKey: .graceUntil)
        try object.encodeIfPresent(standing.trialDay?.day, forKey: .day)
        try object.encodeIfPresent(standing.trialDay?.days, forKey: .days)
        try object.encodeIfPresent(answer.reason?.rawValue, forKey: .reason)
        try object.encodeIfPresent(standing.previousPlan, forKey: .previousPlan)
        try object.encodeIfPresent(answer.nextPlan, forKey: .nextPlan)
        try object.encode(standing.label, forKey: .label)
        try object.encode(standing.accessible, forKey: .accessible)
        try object.encodeIfPresent(standing.notice, forKey: .notice)
        try object.encodeIfPresent(standing.banner, forKey: .banner)
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
