import NIOCore
import Usage

extension Answer {
    /// The maximum of the fields without strings: names, numbers, instants and enumerations.
    private static let fixedBytesMaximum = 832

    /// Writes the line. The fields have a fixed order, so that lines can be compared as text. A field that does not
    /// apply is absent.
    public func encode(into buffer: inout ByteBuffer) {
        // Built first, because the line's capacity depends on their length.
        let sentences = Sentences(
            label: isDetailed ? snapshot.label : nil,
            stateLabel: isDetailed ? snapshot.stateLabel : nil,
            accessible: isDetailed ? snapshot.accessible : nil,
            steps: isDetailed ? snapshot.steps : nil,
            notice: snapshot.notice,
            banner: snapshot.banner
        )
        var capacity = Answer.fixedBytesMaximum + sentences.bytesMaximum
        capacity += LineWriter.valueBytesMaximum(snapshot.plan.name)
        capacity += LineWriter.valueBytesMaximum(snapshot.period.label)
        capacity += LineWriter.valueBytesMaximum(snapshot.previousPlan)
        let nextPlan = nextPlan
        if let nextPlan { capacity += LineWriter.valueBytesMaximum(nextPlan) }
        let details = details
        if let details { capacity += details.bytesMaximum }
        buffer.writeLine(capacityBytes: capacity) { line in
            putStatus(into: &line)
            line.putLiteral(" user=")
            line.put(user)
            snapshot.putCount(into: &line)
            snapshot.putDates(renews: renews, graceUntil: graceUntil, into: &line)
            putOutcome(into: &line)
            line.putField(" previous_plan=", snapshot.previousPlan)
            if let nextPlan { line.putField(" next_plan=", nextPlan) }
            line.putField(" label=", sentences.label)
            line.putField(" state_label=", sentences.stateLabel)
            line.putField(" accessible=", sentences.accessible)
            if let details {
                line.putField(" price=", details.price)
                line.putField(" currency=", details.currency)
                line.putField(" manage=", details.manage)
            }
            line.putField(" steps=", sentences.steps)
            line.putField(" notice=", sentences.notice)
            line.putField(" banner=", sentences.banner)
        }
    }

    private func putStatus(into line: inout LineWriter) {
        switch status {
        case .allowed: line.putLiteral("+ALLOWED")
        case .blocked: line.putLiteral("+BLOCKED")
        case .held: line.putLiteral("+HELD")
        case .ok: line.putLiteral("+OK")
        }
    }

    /// What the request has changed.
    private func putOutcome(into line: inout LineWriter) {
        if let crossed { line.putField(" crossed=", crossed.rawValue) }
        if let reason { line.putField(" reason=", reason.rawValue) }
        if let retryAfterSeconds {
            line.putLiteral(" retry_after=")
            line.put(Int(clamping: retryAfterSeconds))
        }
        if let released {
            line.putLiteral(" released=")
            line.put(released)
        }
        if isReplay { line.putLiteral(" replayed=1") }
    }
}

/// The texts that an answer shows to a person.
private struct Sentences {
    var label: String?
    var stateLabel: String?
    var accessible: String?
    var steps: String?
    var notice: String?
    var banner: String?

    var bytesMaximum: Int {
        LineWriter.valueBytesMaximum(label) + LineWriter.valueBytesMaximum(stateLabel)
            + LineWriter.valueBytesMaximum(accessible) + LineWriter.valueBytesMaximum(steps)
            + LineWriter.valueBytesMaximum(notice) + LineWriter.valueBytesMaximum(banner)
    }
}

extension SubscriptionDetails {
    /// Of the fields without `next_plan`.
    fileprivate var bytesMaximum: Int {
        LineWriter.valueBytesMaximum(price) + LineWriter.valueBytesMaximum(currency)
            + LineWriter.valueBytesMaximum(manage)
    }
}

extension UsageSnapshot {
    fileprivate func putCount(into line: inout LineWriter) {
        let plan = plan
        let tier = tier
        line.putField(" plan=", plan.name)
        line.putLiteral(" state=")
        line.putName(state.rawValue)
        line.putLiteral(" tier=")
        line.putName(tier.rawValue)
        line.putLiteral(" display=")
        line.putName(Display(tier: tier, plan: plan, limit: limit).rawValue)
        line.putLiteral(" used=")
        line.put(used)
        if held > 0 {
            line.putLiteral(" held=")
            line.put(held)
        }
        line.putLimit(" limit=", limit)
        line.putLimit(" remaining=", remaining)
        line.putField(" period=", period.label)
    }

    /// When the allowance resets, and when the subscription ends or renews. A cancelled subscription has both `resets`
    /// and `expires`.
    fileprivate func putDates(renews: Instant?, graceUntil: Instant?, into line: inout LineWriter) {
        if let resetsShown {
            line.putLiteral(" resets=")
            line.put(resetsShown)
        }
        if let expiresShown {
            line.putLiteral(" expires=")
            line.put(expiresShown)
        }
        if let renews {
            line.putLiteral(" renews=")
            line.put(renews)
        }
        if let graceUntil {
            line.putLiteral(" grace_until=")
            line.put(graceUntil)
        }
        if let (day, days) = trialDay {
            line.putLiteral(" day=")
            line.put(day)
            line.putLiteral(" days=")
            line.put(days)
        }
    }
}

extension PeriodUsage {
    /// Writes `+PERIOD …`.
    func encode(into buffer: inout ByteBuffer) {
        buffer.writeLine(capacityBytes: 256 + LineWriter.valueBytesMaximum(period.label)) { line in
            line.putLiteral("+PERIOD user=")
            line.put(user)
            line.putField(" period=", period.label)
            line.putLiteral(" used=")
            line.put(used)
            line.putLimit(" limit=", limit)
            line.putLiteral(" tier=")
            line.putName(tier.rawValue)
        }
    }
}

extension PeriodReport {
    /// Writes `+REPORT …`.
    func encode(into buffer: inout ByteBuffer) {
        let capacity = 256 + LineWriter.valueBytesMaximum(period.label)
        buffer.writeLine(capacityBytes: capacity) { line in
            line.putLiteral("+REPORT")
            line.putField(" period=", period.label)
            line.putLiteral(" users=")
            line.put(users)
            line.putLiteral(" messages=")
            line.put(messages)
            for tier in Tier.allCases {
                line.putLiteral(" ")
                line.putName(tier.rawValue)
                line.putLiteral("=")
                line.put(users(in: tier))
            }
        }
    }
}

extension LineWriter {
    /// - Parameter name: with the space before it and the equals sign after it.
    @inline(__always)
    fileprivate mutating func putField(_ name: StaticString, _ value: String) {
        putLiteral(name)
        putValue(value)
    }

    /// Writes the field unless it has no value.
    @inline(__always)
    fileprivate mutating func putField(_ name: StaticString, _ value: String?) {
        guard let value else { return }
        putField(name, value)
    }

    @inline(__always)
    fileprivate mutating func putLimit(_ name: StaticString, _ limit: Int?) {
        putLiteral(name)
        if let limit {
            put(limit)
        } else {
            putLiteral("unlimited")
        }
    }
}
