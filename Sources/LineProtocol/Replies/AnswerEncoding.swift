import NIOCore
import Usage

extension Answer {
    /// The most bytes of the fields without strings: names, numbers, instants and enumerations.
    private static let fixedBytesMaximum = 976

    /// Writes the line. The fields have a fixed order, so that lines can be compared as text. A field that does not
    /// apply is absent.
    ///
    /// - Parameter vocabulary: the vocabulary of the request's language and time zone.
    public func encode(into buffer: inout ByteBuffer, in vocabulary: Vocabulary = Words.shipped.standard) {
        let tier = snapshot.tier
        // The texts are built first, because the line's capacity depends on their length.
        let usageTexts = isDetailed ? usageTexts(in: vocabulary) : nil
        let notice = snapshot.notice(in: vocabulary)
        let banner = banner(at: tier, in: vocabulary)
        var capacity = Answer.fixedBytesMaximum
        capacity += LineWriter.valueBytesMaximum(snapshot.plan.name)
        capacity += LineWriter.valueBytesMaximum(snapshot.period.label)
        capacity += LineWriter.valueBytesMaximum(snapshot.previousPlan)
        if let usageTexts {
            for (_, text) in usageTexts { capacity += LineWriter.valueBytesMaximum(text) }
        }
        capacity += LineWriter.valueBytesMaximum(notice) + LineWriter.valueBytesMaximum(banner)
        buffer.writeLine(capacityBytes: capacity) { line in
            putStatus(into: &line)
            line.putLiteral(" user=")
            line.put(user)
            snapshot.putCount(tier, into: &line)
            snapshot.putDates(renews: renews, graceUntil: graceUntil, into: &line)
            putOutcome(into: &line)
            line.putField(" previous_plan=", snapshot.previousPlan)
            if let usageTexts {
                for (name, text) in usageTexts { line.putField(name, text) }
            }
            line.putField(" notice=", notice)
            line.putField(" banner=", banner)
        }
    }

    /// The texts that only `USAGE` answers with. Counted messages must not pay for them.
    private func usageTexts(in vocabulary: Vocabulary) -> [(name: StaticString, text: String?)] {
        [
            (" next_plan=", nextPlan), (" label=", snapshot.label(in: vocabulary)),
            (" state_label=", snapshot.stateLabel.text(in: vocabulary)),
            (" accessible=", snapshot.accessible(in: vocabulary)),
            (" price=", details?.price),
            (" currency=", details?.currency), (" manage=", details?.manage),
            (" steps=", snapshot.steps?.text(in: vocabulary)),
        ]
    }

    private func putStatus(into line: inout LineWriter) {
        switch status {
        case .allowed: line.putLiteral("+ALLOWED")
        case .blocked: line.putLiteral("+BLOCKED")
        case .held: line.putLiteral("+HELD")
        case .ok: line.putLiteral("+OK")
        }
    }

    /// Writes what the request has changed.
    private func putOutcome(into line: inout LineWriter) {
        if let crossed { line.putField(" crossed=", crossed.rawValue) }
        if let reason { line.putField(" reason=", reason.rawValue) }
        if let retryAfterSeconds {
            line.putLiteral(" retry_after=")
            line.put(Int(clamping: retryAfterSeconds))
        }
        if isShadow { line.putLiteral(" shadow=1") }
        if let released {
            line.putLiteral(" released=")
            line.put(released)
        }
        if isRepeated { line.putLiteral(" replayed=1") }
    }
}

extension UsageSnapshot {
    fileprivate func putCount(_ tier: Tier, into line: inout LineWriter) {
        let plan = plan
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
        if let window = windowShown {
            line.putLiteral(" window_limit=")
            line.put(window.limit)
            line.putLiteral(" window_used=")
            line.put(window.used)
            line.putLiteral(" window_remaining=")
            line.put(window.remaining)
            if let resetsAt = window.resetsAt {
                line.putLiteral(" window_resets=")
                line.put(resetsAt)
            }
        }
        line.putField(" period=", period.label)
    }

    /// Writes when the allowance resets, and when the subscription ends or renews. A cancelled subscription has both
    /// `resets` and `expires`.
    fileprivate func putDates(renews: Instant?, graceUntil: Instant?, into line: inout LineWriter) {
        if resetsShown != nil, let writtenResetsAt = entitlement.writtenResetsAt {
            line.putLiteral(" resets=")
            line.put(writtenResetsAt)
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
    /// - Parameter name: the field's name with the space before it and the equals sign after it.
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
