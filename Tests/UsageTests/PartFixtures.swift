import TestSupport
import Testing

@testable import Usage

extension PartCounter {
    /// What is counted of a limit. The open window began an hour before the snapshots of `UsageSnapshot.team`.
    static func of(
        _ used: Int = 0,
        held: Int = 0,
        window: Int? = nil,
        windowHeld: Int = 0,
        until windowEndsAt: String = "2026-11-10T14:00:00Z"
    ) -> PartCounter {
        var counter = PartCounter()
        (counter.used, counter.held, counter.windowHeld) = (used, held, windowHeld)
        if let window {
            counter.windowUsed = window
            (counter.windowOpenedAt, counter.windowEndsAt) = (at("2026-11-10T11:00:00Z"), at(windowEndsAt))
        }
        return counter
    }
}

extension PlanLimit {
    static func large(
        _ allowance: Int? = nil,
        window: Int? = nil,
        weight: Int = 1,
        fallback: ModelName? = nil
    ) -> PlanLimit {
        PlanLimit(
            .model,
            "large*",
            label: "Large",
            allowance: allowance,
            window: window.map { Plan.Window(messages: $0, seconds: 10_800) },
            weight: weight,
            fallback: fallback
        )
    }

    static func member(_ allowance: Int? = nil, window: Int? = nil) -> PlanLimit {
        let window = window.map { Plan.Window(messages: $0, seconds: 10_800) }
        return PlanLimit(.member, "*", allowance: allowance, window: window)
    }
}

extension UsageSnapshot {
    /// A request with the model `large-2` by the member `ben`, to an account in November, on November 10 at noon.
    ///
    /// - Parameters:
    ///   - window: counted in the open window and its limit, of the plan's windows of three hours.
    ///   - large: the limit of the model and what is counted; nil if the request names none.
    ///   - member: the limit of members and what is counted; nil if the request names none.
    static func team(
        _ used: Int = 0,
        held: Int = 0,
        of limit: Int? = 800,
        window: (used: Int, limit: Int)? = nil,
        large: (limit: PlanLimit, counter: PartCounter)? = nil,
        member: (limit: PlanLimit, counter: PartCounter)? = nil,
        fallback: PartUsage.Fallback? = nil,
        cycle: Plan.Cycle = .monthly,
        isEnforced: Bool = true,
        denialReason: DenialReason? = nil,
        expiresAt: String? = nil,
        observedAt: String = "2026-11-10T12:00:00Z"
    ) -> UsageSnapshot {
        let limits = [large?.limit, member?.limit].compactMap(\.self)
        let plan = Plan(
            name: "team",
            label: "Team",
            cycle: cycle,
            allowance: limit,
            window: window.map { Plan.Window(messages: $0.limit, seconds: 10_800) },
            isEnforced: isEnforced,
            limits: limits
        )
        var snapshot = UsageSnapshot(
            plan: plan,
            state: denialReason == nil ? .active : .expired,
            period: billingPeriod("2026-11"),
            used: used,
            held: held,
            limit: limit,
            window: window.map {
                UsageWindow(limit: $0.limit, openedAt: at("2026-11-10T11:00:00Z"), endsAt: at("2026-11-10T14:00:00Z"))
            },
            windowUsed: window?.used ?? 0,
            denialReason: denialReason,
            startedAt: at("2026-11-01"),
            resetsAt: cycle.isPeriodic ? at(cycle == .daily ? "2026-11-11" : "2026-12-01") : nil,
            expiresAt: expiresAt.map(at),
            observedAt: at(observedAt)
        )
        if let (limit, counter) = large {
            let part = MessagePart.model("large-2")
            snapshot.parts.append(PartUsage(part, limit: limit, counter: counter, fallback: fallback))
        }
        if let (limit, counter) = member {
            snapshot.parts.append(PartUsage(.member(ben), limit: limit, counter: counter))
        }
        return snapshot
    }
}

/// The fields of an answer by their names, as a line has them.
struct FieldList: AnswerFieldWriter {
    static var isComplete: Bool { false }
    private(set) var values: [String: String] = [:]
    private var name = ""

    init(_ answer: Answer) { answer.writeFields(answer.texts(in: Words.shipped.standard), to: &self) }

    private mutating func put(value: String) {
        precondition(values.updateValue(value, forKey: name) == nil, "\(name) is there twice")
    }

    mutating func putName(_ lineName: StaticString) { name = String("\(lineName)".dropFirst().dropLast()) }
    mutating func put(_ user: UserID) { put(value: "\(user)") }
    mutating func putWord(_ word: String) { put(value: word) }
    mutating func put(_ number: Int) { put(value: String(number)) }
    mutating func putUnlimited() { put(value: "unlimited") }
    mutating func put(_ instant: Instant) { put(value: instant.text) }
    mutating func put(_ instant: WrittenInstant) { put(value: instant.text) }
    mutating func putFlag() { put(value: "1") }
    mutating func putText(_ text: String) { put(value: text) }
}

/// A request to an account with limits for models and members, and its answer.
struct PartExample: Sendable, CustomTestStringConvertible {
    enum Request: Sendable {
        case consume(Int = 1)
        case reserve(Int = 1)
        case check(Int = 1)
        case usage
    }

    let request: Request
    let snapshot: UsageSnapshot
    /// The status, and the fields that are compared; one with a minus sign before it must be absent.
    let answer: String
    /// Nil if there is none.
    let banner: String?

    init(
        _ snapshot: UsageSnapshot,
        asking request: Request = .consume(),
        _ answer: String,
        _ banner: String?
    ) {
        (self.snapshot, self.request, self.answer, self.banner) = (snapshot, request, answer, banner)
    }

    var testDescription: String { "\(answer) | \(banner ?? "")" }

    /// Checks the answer, that a refusal counts nothing, and that `CHECK` and `RESERVE` refuse alike.
    func check() {
        var after = snapshot
        let given =
            switch request {
            case .consume(let messages): after.consume(messages, of: ada)
            case .reserve(let messages): after.reserve(messages, of: ada)
            case .check(let messages): after.check(messages, of: ada)
            case .usage: after.usage(of: ada)
            }
        var fields = FieldList(given).values
        fields["status"] = "\(given.status)".prefix { $0 != "(" }.uppercased()
        for word in "status=\(answer)".split(separator: " ").map(String.init) {
            let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
            let (name, value) = word.hasPrefix("-") ? (String(word.dropFirst()), nil) : (parts[0], parts[1])
            #expect(fields[name] == value, "\(name)")
        }
        #expect(fields["banner"] == banner)
        guard case .blocked = given.status else { return }
        #expect(after == snapshot)
        #expect(after.check(given.requested, of: ada) == given)
        #expect(after.consume(given.requested, of: ada) == given)
        #expect(after.reserve(given.requested, of: ada) == given)
    }
}
