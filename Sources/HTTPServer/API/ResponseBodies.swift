import Engine
import NIOCore
import ServiceCore
import Usage

extension Answer {
    /// The fields of the answer's line as JSON, under the same names and in the same order. Fields that do not apply
    /// are left out, except that `held` may be 0, and `limit` and `remaining` are null for an unlimited plan. `allowed`
    /// says what the first word of the line does, for answers to messages.
    ///
    /// - Parameter vocabulary: that of the request's language and time zone.
    func json(in vocabulary: Vocabulary) -> ByteBuffer {
        var object = JSONObjectWriter()
        object.put("allowed", isAllowed)
        object.put("unlimited", snapshot.limit == nil)
        writeFields(texts(in: vocabulary), to: &object)
        return object.finish()
    }

    /// Whether the message is allowed; nil for an answer that is about no message, such as that to a release.
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

extension [ReportedAllowance] {
    /// The body of `GET /v1/usage/{user}/allowances`.
    func json(of user: UserID, in period: BillingPeriod) -> ByteBuffer {
        var body = JSONObjectWriter()
        body.putName(AnswerField.user.lineName)
        body.put(user)
        body.putName(AnswerField.period.lineName)
        body.putText(period.label)
        body.put(
            "allowances",
            map { allowance in
                var object = JSONObjectWriter()
                object.put("unlimited", allowance.limit == nil)
                allowance.writeFields(to: &object)
                return object.finish()
            }
        )
        return body.finish()
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
