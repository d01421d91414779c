import LineProtocol
import NIOCore
import Usage

/// What our own client reads of what is encoded.
func receivedBack(_ buffer: ByteBuffer) throws(Violation) -> ReceivedReply {
    var buffer = buffer
    var framing = ReplyFraming()
    let reply: ReceivedReply?
    do throws(MalformedReply) {
        reply = try framing.next(in: &buffer).map { frame throws(MalformedReply) in try ReceivedReply(frame) }
    } catch {
        throw Violation(description: "not read back: \(error)")
    }
    guard let reply else { throw Violation(description: "nothing is read back") }
    try require(buffer.readableBytes == 0, "more than one reply is read back")
    return reply
}

extension Answer {
    /// Nil where it has an instant that cannot be written in four digits of a year.
    var received: ReceivedAnswer? {
        let instants = [standing.resetsShown, standing.expiresShown, renews, graceUntil].compactMap(\.self)
        guard instants.allSatisfy({ Instant($0.text) != nil }) else { return nil }
        var usage = UsageStatus(
            user: user,
            plan: inOneLine(standing.plan.name),
            state: standing.state,
            tier: standing.tier,
            display: standing.display,
            used: standing.used,
            limit: standing.limit,
            remaining: standing.remaining,
            period: BillingPeriod(storedLabel: inOneLine(standing.period.label))
        )
        usage.held = standing.held
        usage.resets = standing.resetsShown
        usage.expires = standing.expiresShown
        usage.renews = renews
        usage.graceUntil = graceUntil
        usage.nextPlan = nextPlan.map(inOneLine)
        usage.day = standing.trialDay?.day
        usage.days = standing.trialDay?.days
        usage.crossed = crossed
        usage.reason = reason
        usage.retryAfter = retryAfterSeconds.map { .seconds($0) }
        usage.previousPlan = standing.previousPlan.map(inOneLine)
        usage.label = isDetailed ? inOneLine(standing.label) : nil
        usage.accessible = isDetailed ? inOneLine(standing.accessible) : nil
        usage.notice = standing.notice.map(inOneLine)
        usage.banner = standing.banner.map(inOneLine)
        usage.isReplayed = isReplay
        return ReceivedAnswer(status: status, usage: usage, released: released)
    }
}

extension PeriodUsage {
    var received: PeriodUsage {
        var period = self
        period.period = BillingPeriod(storedLabel: inOneLine(self.period.label))
        return period
    }
}

extension PeriodReport {
    var received: PeriodReport {
        var report = PeriodReport(period: BillingPeriod(storedLabel: inOneLine(period.label)))
        for tier in Tier.allCases { report.add(users: users(in: tier), in: tier, messages: 0) }
        report.messages = messages
        return report
    }
}
