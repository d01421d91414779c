import LineProtocol
import NIOCore
import Usage

/// Decodes an encoded reply with the decoder of our client library.
func decodedByClient(_ buffer: ByteBuffer) throws(Violation) -> ReceivedReply {
    var buffer = buffer
    var decoder = ReplyFrameDecoder()
    let reply: ReceivedReply?
    do throws(MalformedReply) {
        reply = try decoder.next(in: &buffer).map { frame throws(MalformedReply) in try ReceivedReply(frame) }
    } catch {
        throw Violation(description: "not decoded: \(error)")
    }
    guard let reply else { throw Violation(description: "an incomplete reply") }
    try require(buffer.readableBytes == 0, "bytes are left after the reply")
    return reply
}

extension Answer {
    /// The value that the client must decode from this answer. Nil if an instant's year has more than four digits:
    /// the client cannot parse its text.
    var received: ReceivedAnswer? {
        let shown = snapshot.otherAllowancesShown
        let instants = ([snapshot.resetsShown, snapshot.expiresShown, renews, graceUntil] + shown.map(\.resetsAt))
            .compactMap(\.self)
        guard instants.allSatisfy({ Instant($0.text) != nil }) else { return nil }
        var usage = UsageStatus(
            user: user,
            plan: inOneLine(snapshot.plan.name),
            state: snapshot.state,
            tier: snapshot.tier,
            display: snapshot.display,
            used: snapshot.used,
            limit: snapshot.limit,
            remaining: snapshot.remaining,
            period: BillingPeriod(storedLabel: inOneLine(snapshot.period.label))
        )
        usage.held = snapshot.held
        for allowance in shown { usage.add(allowance) }
        usage.fallback = fallback?.model
        usage.resets = snapshot.resetsShown
        usage.expires = snapshot.expiresShown
        usage.renews = renews
        usage.graceUntil = graceUntil
        usage.nextPlan = nextPlan.map(inOneLine)
        usage.day = snapshot.trialDay?.day
        usage.days = snapshot.trialDay?.days
        usage.crossed = crossed
        usage.reason = reason
        usage.retryAfter = retryAfterSeconds.map { .seconds($0) }
        usage.previousPlan = snapshot.previousPlan.map(inOneLine)
        usage.label = isDetailed ? inOneLine(snapshot.label) : nil
        usage.stateLabel = isDetailed ? snapshot.stateLabel.text : nil
        usage.price = details?.price.map(inOneLine)
        usage.currency = details?.currency.map(inOneLine)
        usage.manage = details?.manage.map(inOneLine)
        usage.steps = isDetailed ? snapshot.steps?.text : nil
        usage.accessible = isDetailed ? inOneLine(snapshot.accessible.text) : nil
        usage.notice = snapshot.notice.map { inOneLine($0.text) }
        usage.banner = texts(in: Words.shipped.standard).banner.map(inOneLine)
        usage.isRepeated = isRepeated
        return ReceivedAnswer(status: status, usage: usage, released: released)
    }
}

extension UsageStatus {
    fileprivate mutating func add(_ shown: ShownAllowance) {
        let (limit, used, remaining) = (shown.limit, shown.used, shown.remaining)
        switch shown.part {
        case .model(let name):
            model = ModelUsage(name: name, limit: limit, used: used, remaining: remaining, resets: shown.resetsAt)
        case .member(let id): member = MemberUsage(id: id, limit: limit, used: used, remaining: remaining)
        case nil:
            guard let limit, let used, let remaining else { return }
            window = WindowStatus(limit: limit, used: used, remaining: remaining, resets: shown.resetsAt)
        }
    }
}

extension PeriodUsage {
    /// The value that the client must decode from this line of a history.
    var received: PeriodUsage {
        var period = self
        period.period = BillingPeriod(storedLabel: inOneLine(self.period.label))
        return period
    }
}

extension PeriodReport {
    /// The value that the client must decode from this report.
    var received: PeriodReport {
        var report = PeriodReport(period: BillingPeriod(storedLabel: inOneLine(period.label)))
        for tier in Tier.allCases { report.add(users: users(in: tier), in: tier, messages: 0) }
        report.messages = messages
        return report
    }
}
