import LineProtocol
import Usage

/// The fields of a line as docs/reference/fields.md describes them, in its order.
typealias ExpectedFields = [(name: String, value: String?)]

extension FieldLine {
    /// A field with a nil value is absent.
    static func expected(_ status: String, _ expected: ExpectedFields) -> FieldLine {
        guard var line = FieldLine("+" + status) else { preconditionFailure("a status") }
        line.fields = expected.compactMap { field in
            field.value.map { FieldLine.Field(name: field.name, value: inOneLine($0)) }
        }
        return line
    }
}

/// The text as a reply has it: control characters become spaces, so that a reply stays one line.
func inOneLine(_ text: String) -> String {
    let scalars = text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : $0 }
    return String(String.UnicodeScalarView(scalars))
}

extension Answer {
    var expected: FieldLine {
        let (name, reason): (String, DenialReason?) =
            switch status {
            case .allowed: ("ALLOWED", nil)
            case .held: ("HELD", nil)
            case .ok: ("OK", snapshot.accessDenialReason)
            case .blocked(let refusal): ("BLOCKED", refusal)
            }
        let outcome: ExpectedFields = [
            ("crossed", crossed?.rawValue), ("reason", reason?.rawValue),
            ("retry_after", retryAfterSeconds?.description), ("fallback", fallback?.model.text),
            ("released", released?.description), ("replayed", isRepeated ? "1" : nil),
            ("previous_plan", snapshot.previousPlan),
            ("next_plan", isDetailed && snapshot.renewsAt != nil ? snapshot.details?.nextPlan : nil),
            ("label", isDetailed ? snapshot.label : nil), ("state_label", isDetailed ? snapshot.stateLabel.text : nil),
            ("accessible", isDetailed ? snapshot.accessible.text : nil),
            ("price", isDetailed ? snapshot.details?.price : nil),
            ("currency", isDetailed ? snapshot.details?.currency : nil),
            ("manage", isDetailed ? snapshot.details?.manage : nil),
            ("steps", isDetailed ? snapshot.steps?.text : nil), ("notice", snapshot.notice?.text),
            ("banner", texts(in: Words.shipped.standard).banner),
        ]
        return .expected(name, [("user", user.description)] + snapshot.expected(isDetailed) + outcome)
    }
}

extension UsageSnapshot {
    fileprivate func expected(_ isDetailed: Bool) -> ExpectedFields {
        let comesBack = limit != nil && denialReason == nil && !isPast
        let ends = plan.isTrial || state == .cancelled || (state == .active || state == .free) && renews != true
        let (shown, taken) = (isPast ? nil : window, windowUsed + windowHeld)
        let isInGrace = state == .gracePeriod && denialReason == nil && !isPast
        return [
            ("plan", plan.name), ("state", state.rawValue), ("tier", tier.rawValue), ("display", display.rawValue),
            ("used", String(used)), ("held", held > 0 ? String(held) : nil), ("limit", unlimited(limit)),
            ("remaining", unlimited(remaining)), ("window_limit", (shown?.limit).map(String.init)),
            ("window_used", shown.map { _ in String(windowUsed) }),
            ("window_remaining", shown.map { String(denialReason == nil ? max(0, $0.limit - taken) : 0) }),
            ("window_resets", denialReason == nil ? shown?.endsAt?.text : nil),
        ] + expectedOfParts + [
            ("period", period.label),
            ("resets", comesBack ? resetsAt?.text : nil), ("expires", ends ? expiresAt?.text : nil),
            ("renews", isDetailed ? renewsAt?.text : nil),
            ("grace_until", isDetailed && isInGrace ? expiresAt?.text : nil),
            ("day", (trialDay?.day).map(String.init)), ("days", (trialDay?.days).map(String.init)),
        ]
    }
}

extension UsageSnapshot {
    fileprivate var expectedOfParts: ExpectedFields {
        otherAllowancesShown.flatMap { shown -> ExpectedFields in
            guard let part = shown.part else { return [] }
            let name = part.kind.rawValue
            let resets = part.kind == .model ? shown.resetsAt?.text : nil
            return [
                (name, part.name), ("\(name)_limit", shown.limit.map(String.init)),
                ("\(name)_used", shown.used.map(String.init)),
                ("\(name)_remaining", shown.remaining.map(String.init)), ("\(name)_resets", resets),
            ]
        }
    }
}

extension PeriodUsage {
    var expected: FieldLine {
        .expected(
            "PERIOD",
            [
                ("user", user.description), ("period", period.label), ("used", String(used)),
                ("limit", unlimited(limit)), ("tier", tier.rawValue),
            ]
        )
    }
}

extension PeriodReport {
    var expected: FieldLine {
        let tiers = Tier.allCases.map { (name: $0.rawValue, value: String?.some(String(users(in: $0)))) }
        let sums: ExpectedFields = [
            ("period", period.label), ("users", String(users)), ("messages", String(messages)),
        ]
        return .expected("REPORT", sums + tiers)
    }
}

private func unlimited(_ number: Int?) -> String { number.map(String.init) ?? "unlimited" }
