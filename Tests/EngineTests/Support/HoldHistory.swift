import TestSupport
import Usage

@testable import Engine

/// Users, plans and keys of random histories of keys and holds. Allowances are small, so that limits are met often.
struct HoldHistory {
    static let plans = [
        small, other, .pro, .free,
        Plan(
            name: "trial",
            label: "Trial",
            cycle: .trial(days: 3),
            allowance: 30,
            limits: [PlanLimit(.model, "*", allowance: 10, weight: 2)]
        ),
        week, day, unenforced,
    ]
    private static let small = Plan(
        name: "small",
        label: "Small",
        cycle: .monthly,
        allowance: 40,
        limits: [
            PlanLimit(.model, "gpt-5", allowance: 6, weight: 3, fallback: "gpt-5-mini"),
            PlanLimit(.model, "gpt*", allowance: 9, window: Plan.Window(messages: 5, seconds: 7_200)),
            PlanLimit(.model, "claude"),
            PlanLimit(.member, "*", allowance: 25, window: Plan.Window(messages: 12, seconds: 10_800)),
        ]
    )
    private static let week = Plan(name: "week", label: "Week", cycle: .weekly, timeZone: "Asia/Tokyo", allowance: 30)
    private static let other = Plan(
        name: "other",
        label: "Other",
        cycle: .monthly,
        allowance: 60,
        window: Plan.Window(messages: 12, seconds: 7_200),
        limits: [
            PlanLimit(.model, "gpt*", allowance: 12, window: Plan.Window(messages: 7, seconds: 10_800), weight: 2),
            PlanLimit(.member, "*", window: Plan.Window(messages: 9, seconds: 7_200)),
        ]
    )
    private static let day = Plan(
        name: "day",
        label: "Day",
        cycle: .daily,
        timeZone: "Atlantic/Azores",
        allowance: 20,
        window: Plan.Window(messages: 9, seconds: 10_800),
        limits: [
            PlanLimit(
                .model,
                "gpt-5",
                window: Plan.Window(messages: 4, seconds: 86_400),
                fallback: "claude"
            ),
            PlanLimit(.model, "gpt*", allowance: 8),
        ]
    )
    private static let unenforced = Plan(
        name: "unenforced",
        label: "Unenforced",
        cycle: .monthly,
        allowance: 20,
        isEnforced: false,
        limits: [PlanLimit(.model, "gpt*", allowance: 5, weight: 2), PlanLimit(.member, "*", allowance: 4)]
    )

    /// What happens at one instant.
    enum Step {
        /// Requests that arrive together.
        case execute([(user: UserID, operation: EngineOperation)])
        /// An operator's plain UPDATE of `message_count`, by a positive or negative difference.
        case raise(UserID, by: Int)
        /// An operator's plain DELETE of the current period's row, and of the window. The clock moves on, because a
        /// window is known by the instant at which it opened.
        case delete(UserID, then: Instant)
        case move(to: Instant)
    }

    private static let periods = [
        "2026-10", "2026-11", "2026-W43", "2026-W44", "2026-10-24", "2026-10-25", "2026-10-26",
    ].map(billingPeriod)

    /// On the Azores, clocks go back at 01:00 of the next day to 00:00, so that it has two midnights.
    static let start = at("2026-10-24T12:00:00Z")
    static let users = (0..<5).map { user(UInt64($0)) }
    /// Few, so that most are used again. Their characters need escapes in arrays, strings and lines.
    private static let keys = ["a", "b", "{c,\"d\"}", "e\\'f", "NULL", "ключ"]

    private(set) var now = HoldHistory.start
    private var ends: [Instant] = []
    private var steps = 0
    private var generator: SeededGenerator

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    mutating func next() -> Step {
        steps += 1
        return switch Int.random(in: 0..<100, using: &generator) {
        case 0..<6: .raise(generator.element(of: HoldHistory.users), by: Int.random(in: -9...4, using: &generator))
        case 6..<8: .delete(generator.element(of: HoldHistory.users), then: nextMicrosecond())
        case 8..<24: .move(to: later())
        default: .execute(requests(Int.random(in: 1...20, using: &generator)))
        }
    }

    private mutating func requests(_ count: Int) -> [(user: UserID, operation: EngineOperation)] {
        var requests: [(user: UserID, operation: EngineOperation)] = []
        for _ in 0..<count {
            let user = generator.element(of: HoldHistory.users)
            requests.append((user, operation(of: user)))
        }
        return requests
    }

    private mutating func operation(of user: UserID) -> EngineOperation {
        let key = key()
        let messages = generator.element(of: [1, 1, 1, 2, 3, 9])
        switch Int.random(in: 0..<100, using: &generator) {
        case 0..<20: return inParts(.consume(messages))
        case 20..<45:
            if generator.chance(20) { ends.append(now.advanced(bySeconds: generator.element(of: [7_200, 10_800]))) }
            return inParts(.consume(messages, key: key), of: key)
        case 45..<63:
            let ttlSeconds = generator.element(of: [1, 10, 120, 7_200, 86_400])
            ends.append(now.advanced(bySeconds: Int64(ttlSeconds)))
            return inParts(.reserve(messages, key: key, ttlSeconds: ttlSeconds), of: key)
        case 63..<75: return .commit(generator.element(of: [nil, nil, messages, 0]), key: key)
        case 75..<85: return .release(key)
        case 85..<88: return inParts(.check(messages))
        case 88..<92: return inParts(.usage)
        case 92..<94:
            let calendarMonth = BillingPeriod(year: now.date.year, month: now.date.month)
            let period = generator.element(of: HoldHistory.periods)
            return period == calendarMonth ? .usage : .usageInPeriod(period)
        case 94: return .change(.resetUsage(nil, parts: RandomParts.parts(&generator)))
        case 95: return .change(.closeWindow(parts: RandomParts.parts(&generator)))
        case 96..<98 where user != HoldHistory.users.last: return .grant(balance())
        default: return .setPlan(plan(of: user))
        }
    }

    /// Most are small, so that messages take of several.
    private mutating func balance() -> Grant {
        var grant = Grant(generator.element(of: [1, 2, 5, 30]), key: key(), end: .never)
        let seconds: Int64 = generator.element(of: [0, 0, 60, 7_200, 86_400, 259_200])
        if seconds > 0 {
            let end = now.advanced(bySeconds: seconds)
            ends.append(end)
            grant.end = .at(end)
        }
        return grant
    }

    /// Most requests with a key name the same parts.
    private mutating func inParts(_ operation: EngineOperation, of key: MessageKey? = nil) -> EngineOperation {
        var ofKey = SeededGenerator(seed: key.map { $0.text.utf8.reduce(0) { $0 &* 31 &+ UInt64($1) } } ?? 0)
        let parts = key == nil || generator.chance(4) ? RandomParts.parts(&generator) : RandomParts.parts(&ofKey)
        return parts.map { operation.inParts($0) } ?? operation
    }

    /// Keys change with time, or soon all would have been used; sometimes an old one is used again.
    private mutating func key() -> MessageKey {
        let newest = steps / 20
        let age = Int.random(in: 0...(generator.chance(90) ? 1 : 9), using: &generator)
        return messageKey(generator.element(of: HoldHistory.keys) + (newest > age ? "\(newest - age)" : ""))
    }

    private mutating func plan(of user: UserID) -> PlanChange {
        let choices: [(String, SubscriptionState?)] = [
            ("small", nil), ("small", nil), ("small", nil), ("other", nil), ("other", nil), ("pro", nil),
            ("trial", nil), ("week", nil), ("day", nil), ("day", nil), ("day", .cancelled),
            ("small", .cancelled), generator.element(of: [("small", .expired), ("other", .revoked), ("free", nil)]),
        ]
        let (plan, state) = generator.element(of: choices)
        return PlanChange(user: user, plan: plan, state: state)
    }

    /// A little later, at or just before the end of a hold, of a day, of a week or of a month.
    private mutating func nextMicrosecond() -> Instant {
        now = Instant(microsecondsSince1970: now.microsecondsSince1970 + 1)
        return now
    }

    private mutating func later() -> Instant {
        ends.removeAll { $0 <= now }
        switch Int.random(in: 0..<10, using: &generator) {
        case 0..<3:
            now = now.advanced(bySeconds: Int64.random(in: 1...200, using: &generator))
        case 3..<8:
            let end = ends.min() ?? now.advanced(bySeconds: 60)
            let early = Instant(microsecondsSince1970: end.microsecondsSince1970 - 1)
            now = generator.chance(50) && early > now ? early : end
        case 8:
            now = now.advanced(bySeconds: 86_400)
        default:
            let plan = generator.element(of: [HoldHistory.day, HoldHistory.day, HoldHistory.week, .paid])
            guard let end = BillingCycle(containing: now, plan: plan)?.end else { return now }
            now = generator.chance(50) ? end : max(now, end.advanced(bySeconds: -1))
        }
        return now
    }
}
