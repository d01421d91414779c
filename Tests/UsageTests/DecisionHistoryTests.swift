import Testing
import Usage

@testable import TestSupport

/// Random requests to one user. The model keeps the history; before each request its snapshot goes to the functions of
/// the service, which must answer as the model does.
@Suite("Decisions in random histories")
struct DecisionHistoryTests {
    @Test(
        "are those of the model, and so is what an answer shows",
        arguments: SeededGenerator.seeds(always: Array(1...40))
    )
    func agreement(seed: UInt64) throws {
        var history = DecisionHistory(seed: seed)
        var before = (usage: history.usage, snapshot: history.snapshot)
        for step in 0..<300 {
            let now = (usage: history.usage, snapshot: history.snapshot)
            let isSame = now.usage.shown == before.usage.shown
            #expect(now.snapshot.hasSameUsage(as: before.snapshot) == isSame, "seed \(seed), step \(step)")
            before = now
            let (operation, actual, expected) = history.step()
            guard let expected else { continue }
            let modelled = history.model.answer(ada, expected, isDetailed: operation.hasPrefix("usage"))
            let answer = (actual ?? modelled).withoutUnusedFallback
            let isSameAnswer = answer == modelled.withoutUnusedFallback
            #expect(isSameAnswer, "seed \(seed), step \(step): \(operation)")
            #expect(answer.fields == expected.fields, "seed \(seed), step \(step): \(operation)")
            guard isSameAnswer, answer.fields == expected.fields else { return }
        }
    }
}

private struct DecisionHistory {
    private(set) var model: ReferenceModel
    private var random: SeededGenerator
    private var now = at("2026-10-24T12:00:00Z")
    private let large: Bool

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        large = seed.isMultiple(of: 4)
        model = ReferenceModel(unknownUsersPolicy: UnknownUsersPolicy.allCases[Int(seed % 3)])
        for name in ["month", "week", "day", "free", "trial"] { model.setPlanDefinition(plan(name)) }
    }

    var usage: CountingModel.Reply { model[ada, at: now].usage() }
    var snapshot: UsageSnapshot { model.answer(ada, usage).snapshot }

    /// What was asked, the service's answer where a function of it decides, and the model's.
    mutating func step() -> (String, Answer?, CountingModel.Reply?) {
        let messages = messages()
        let key = random.element(of: ["a", "b", "c", "d"]) + "\(now.date.daysSince1970)"
        let parts = CountingModel.Parts(RandomParts.parts(&random))
        let reply = model[ada, at: now].usage(parts)
        let before = model.answer(ada, reply).snapshot
        var after = before
        switch Int.random(in: 0..<100, using: &random) {
        case ..<25:
            let expected = model[ada, at: now].take(messages, parts)
            return ("consume \(messages) \(parts)", after.consume(messages, of: ada), expected)
        case ..<45:
            let isNew = model[ada, at: now].keys[key] == nil
            let seconds = random.element(of: [60, 7_200])
            let expected = try? model[ada, at: now].take(messages, parts, key: key, seconds: seconds)
            return ("reserve \(messages) \(parts) \(key)", isNew ? after.reserve(messages, of: ada) : nil, expected)
        case ..<57:
            let (hold, count) = (openHold(key), random.chance(50) ? nil : Int.random(in: 0...3, using: &random))
            after = hold?.snapshot ?? after
            guard let expected = try? model[ada, at: now].commit(count, key: key) else { return ("commit", nil, nil) }
            let actual = hold.map { after.commit(count ?? $0.key.messages, ofHeld: $0.key.messages, of: ada) }
            return ("commit \(key)", actual, expected)
        case ..<64:
            let hold = openHold(key)
            after = hold?.snapshot ?? after
            let expected = try? model[ada, at: now].release(key: key)
            return ("release \(key)", hold.map { after.release($0.key.messages, of: ada) }, expected)
        case ..<72:
            return ("check \(messages) \(parts)", before.check(messages, of: ada), reply.decision(messages))
        case ..<76:
            return ("usage \(parts)", before.usage(of: ada), reply)
        case ..<79:
            let period = random.element(of: Array(model[ada, at: now].rows.keys).sorted() + ["none"])
            return ("usage \(parts) in \(period)", nil, model[ada, at: now].usage(parts, in: period))
        case ..<84:
            return ("set plan", nil, try? model[ada, at: now].setPlan(subscription(reply), state: state()))
        case ..<86:
            return ("grant", nil, try? model[ada, at: now].grant(random.element(of: [1, 5]), key: key))
        case ..<88:
            return ("reset \(parts)", nil, model[ada, at: now].reset(nil, random.chance(50) ? parts : nil))
        case ..<91:
            let limit = random.chance(20) ? nil : limit()
            model.setLimit(ada, period: before.period, limit: limit)
            return ("limit", nil, usage)
        case ..<94:
            let percent = random.element(of: [25, 50, 80, 90, 95, 100])
            let count = (before.limit ?? 100) * percent / 100 + random.element(of: [-1, 0, 1])
            model.setCount(ada, period: before.period, count: min(max(0, count), Int(Int32.max)), at: now)
            return ("count", nil, usage)
        case ..<95:
            model.setPlanDefinition(plan(reply.plan.name))
            return ("plan", nil, usage)
        default:
            now = later(reply)
            return ("clock \(now)", nil, usage)
        }
    }

    /// A key's hold in the open period that is in all of the present allowances and in no other, and what it is in.
    private func openHold(_ name: String) -> (key: CountingModel.Key, snapshot: UsageSnapshot)? {
        let model = model[ada, at: now]
        guard let key = model.keys[name], model.isActive(key) else { return nil }
        let reply = model.usage(key.parts)
        guard key.period == reply.period, reply.access == nil, key.weight == reply.allowances[0].weight,
            Set(key.shares.keys) == Set(reply.allowances.compactMap(\.counter)),
            reply.allowances.allSatisfy({ allowance in
                (allowance.seconds == nil
                    || key.window(of: allowance) != nil
                        && key.window(of: allowance) == allowance.opened)
                    && (allowance.counter.map { key.shares[$0]?.weight == allowance.weight } ?? true)
            })
        else { return nil }
        return (key, self.model.answer(ada, reply).snapshot)
    }

    private mutating func messages() -> Int { random.element(of: [1, 1, 1, 2, 3, 5, large ? 1_000_000 : 8]) }

    private mutating func limit() -> Int { DecisionHistory.limit(&random, large) }

    private static func limit(_ random: inout SeededGenerator, _ large: Bool) -> Int {
        large
            ? random.element(of: [0, 1_000_000, 3_000_001, 20_000_000, Int(Int32.max)])
            : random.element(of: [0, 1, 2, 3, 4, 5, 7, 8, 10, 12, 19, 20, 21, 640, 800])
    }

    private mutating func plan(_ name: String) -> Plan {
        let cycles: [String: Plan.Cycle] = [
            "month": .monthly, "week": .weekly, "day": .daily, "trial": .trial(days: 3),
        ]
        let percents = [random.element(of: [0, 25, 50, 80]), random.element(of: [80, 90, 95, 100])]
        let windowLimit = max(1, min(1_000_000, limit()))
        let window = Plan.Window(messages: windowLimit, seconds: random.element(of: [60, 7_200, 86_400, 2_678_400]))
        return Plan(
            name: name,
            label: name,
            cycle: cycles[name] ?? .lifetime,
            allowance: name != "trial" && random.chance(15) ? nil : limit(),
            window: random.chance(30) ? nil : window,
            isEnforced: !random.chance(25),
            limits: RandomParts.limits(&random) { [large] in DecisionHistory.limit(&$0, large) },
            gentlePercent: percents[0],
            prominentPercent: percents[1]
        )
    }

    /// Its end is often that of the period or of the window.
    private mutating func subscription(_ reply: CountingModel.Reply) -> Subscription {
        let ends = reply.allowances.map(\.resets) + [nil, now.number + Int.random(in: 1...40 * .day, using: &random)]
        return Subscription(
            plan: random.element(of: ["month", "month", "week", "day", "free", "trial"]),
            paidUntil: random.element(of: ends),
            anchorDay: random.element(of: [nil, 1, 25, 31]),
            renews: random.element(of: [nil, true, false])
        )
    }

    private mutating func state() -> String? {
        random.chance(60)
            ? nil : random.element(of: ["cancelled", "grace_period", "billing_retry", "expired", "revoked"])
    }

    /// Some time later, or on, just before or just after an instant at which something changes.
    private mutating func later(_ reply: CountingModel.Reply) -> Instant {
        let some = now.number + random.element(of: [1, .second, 60 * .second, 3_600 * .second, .day])
        let changes = (reply.allowances.map(\.resets) + [reply.expires]).compactMap(\.self).filter { $0 > some }
        guard random.chance(60), !changes.isEmpty else { return Instant(some) }
        return Instant(random.element(of: changes) + random.element(of: [-1, 0, 0, 1]))
    }
}

extension Answer {
    /// Only a refusal needs the count of the fallback.
    fileprivate var withoutUnusedFallback: Answer {
        guard reason == nil || status == .ok else { return self }
        var answer = self
        for index in snapshot.parts.indices { answer.snapshot.parts[index].fallback = nil }
        return answer
    }

    /// The fields that the model derives, too: see `Reply.fields`.
    var fields: [String: String] {
        func text(_ instant: Instant?) -> String? { instant.map { "\($0.number)" } }
        let fields = [
            "tier": snapshot.tier.rawValue,
            "fullest": "\(snapshot.allowances.fullest.name)",
            "display": snapshot.display.rawValue,
            "reason": reason?.rawValue,
            "remaining": snapshot.remaining.map(String.init),
            "resets": text(snapshot.resetsShown),
            "available": text(snapshot.availableAgainAt),
            "expires": text(snapshot.expiresShown),
            "beyond": snapshot.isBeyondUnenforcedLimit ? "unenforced" : nil,
            "grace_until": text(snapshot.graceUntilShown),
            "next_day": text(snapshot.nextTrialDayAt),
            "day": snapshot.trialDay.map { "\($0.day) of \($0.days)" },
            "fallback": fallback?.model.text,
        ]
        var shown = fields.compactMapValues { $0 }
        for allowance in snapshot.otherAllowancesShown {
            let count = allowance.limit.map { "\(allowance.used!) of \($0), \(allowance.remaining!) left" }
            let counted = [allowance.part?.name, count ?? allowance.used.map(String.init)].compactMap(\.self)
            shown["\(allowance.name)"] = counted.joined(separator: ": ")
            shown["\(allowance.name)_resets"] = text(allowance.resetsAt)
        }
        return shown
    }
}
