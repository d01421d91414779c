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
        let instants = [snapshot.resetsShown, snapshot.expiresShown, renews, graceUntil].compactMap(\.self)
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
        usage.accessible = isDetailed ? inOneLine(snapshot.accessible) : nil
        usage.notice = snapshot.notice.map(inOneLine)
        usage.banner = snapshot.banner.map(inOneLine)
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
