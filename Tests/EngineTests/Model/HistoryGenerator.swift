import TestSupport
import Usage

@testable import Engine

/// One step of a history: requests that arrive together, or another change of the database.
enum HistoryStep {
    case requests([(user: UserID, operation: EngineOperation)])
    case moveClock(Instant)
    case setLimit(UserID, BillingPeriod, Int?)
    case definePlan(Plan)
    /// `increment_and_check_usage`, as another client of the database calls it.
    case consumeBySQL(UserID, Int, MessageParts?)
}

/// Generates histories in which limits are small, dates are near, and time is often exactly on a boundary.
struct HistoryGenerator {
    private var random: SeededGenerator
    let users = (0..<6).map { user($0) }
    /// Some clocks go forward in March, and back in October and November.
    private(set) var now: Instant

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        now = at(seed.isMultiple(of: 2) ? "2026-10-23T22:00:00Z" : "2026-01-28T22:00:00Z")
    }

    /// The plans before the first step.
    var initialPlans: [Plan] {
        [
            Plan(
                name: "paid",
                label: "Premium",
                cycle: .monthly,
                allowance: 20,
                limits: [
                    PlanLimit(.model, "gpt-5", allowance: 4, weight: 2, fallback: "gpt-5-mini"),
                    PlanLimit(.model, "gpt*", window: Plan.Window(messages: 5, seconds: 7_200)),
                    PlanLimit(.member, "*", allowance: 8),
                ]
            ),
            Plan(
                name: "basic",
                label: "Basic",
                cycle: .monthly,
                allowance: 8,
                window: Plan.Window(messages: 4, seconds: 7_200),
                gentlePercent: 50,
                prominentPercent: 75
            ),
            Plan(name: "week", label: "Week", cycle: .weekly, timeZone: "America/New_York", allowance: 9),
            Plan(name: "day", label: "Day", cycle: .daily, timeZone: "Atlantic/Azores", allowance: 5),
            Plan(name: "trial", label: "Trial", cycle: .trial(days: 3), allowance: 10),
            Plan(name: "free", label: "Free", cycle: .lifetime, allowance: 3),
        ]
    }

    mutating func step(_ model: ReferenceModel) -> HistoryStep {
        switch Int.random(in: 0..<100, using: &random) {
        case ..<62:
            let count = random.chance(30) ? 1 : Int.random(in: 2...20, using: &random)
            return .requests((0..<count).map { _ in request() })
        case ..<80:
            now = later(model)
            return .moveClock(now)
        case ..<90:
            return .setLimit(random.element(of: Array(users[..<3])), period(), random.chance(20) ? nil : allowance())
        case ..<92:
            return .definePlan(plan())
        case ..<95:
            return .definePlan(random.element(of: model.plans.keys.sorted().map { model.plans[$0]! }).with(limits()))
        default:
            return .consumeBySQL(random.element(of: users), messages(), RandomParts.parts(&random))
        }
    }

    private mutating func request() -> (user: UserID, operation: EngineOperation) {
        let user = random.element(of: users)
        switch Int.random(in: 0..<100, using: &random) {
        case ..<58: return (user, inParts(.consume(messages())))
        case ..<70: return (user, inParts(.check(messages())))
        case ..<78: return (user, inParts(.usage))
        case ..<83: return (user, .usageInPeriod(period()))
        case ..<88: return (user, .history(Int.random(in: 1...8, using: &random)))
        case ..<93: return (user, .setPlan(change(of: user)))
        case ..<96: return (user, grant(to: user))
        case ..<97:
            if let parts = RandomParts.parts(&random) { return (user, .change(.resetUsage(nil, parts: parts))) }
            return (user, .resetUsage(random.chance(50) ? nil : period()))
        case ..<98: return (user, .change(.closeWindow(parts: RandomParts.parts(&random))))
        default: return (user, .forget)
        }
    }

    private mutating func inParts(_ operation: EngineOperation) -> EngineOperation {
        RandomParts.parts(&random).map { operation.inParts($0) } ?? operation
    }

    private mutating func limits() -> [PlanLimit] {
        RandomParts.limits(&random) { $0.element(of: HistoryGenerator.allowances) }
    }

    /// Few keys, so that some come again, with the same number of messages or another.
    private mutating func grant(to user: UserID) -> EngineOperation {
        let key = messageKey(random.element(of: ["ticket 1", "ticket 2", "ticket 3", "ticket 4", "ticket 5"]))
        var grant = Grant(random.element(of: [1, 1, 5, 5, 1_000_000]), key: key)
        if random.chance(50) { grant.reason = "sorry" }
        // Which limit an operator means by an edit depends on what balances are attached to the row just then.
        if !users[..<3].contains(user), random.chance(70) {
            let days: Int64 = random.element(of: [0, 1, 1, 2, 7, 40])
            grant.end = days == 7 ? .never : .at(now.advanced(bySeconds: days * 86_400))
        }
        return .grant(grant)
    }

    private mutating func messages() -> Int {
        random.element(of: [1, 1, 1, 1, 2, 3, 4, 5, 8, 10, 19, 20, 21, 1_000_000])
    }

    private static let allowances = [0, 1, 2, 3, 5, 8, 10, 19, 20, 21, 100]

    private mutating func allowance() -> Int { random.element(of: HistoryGenerator.allowances) }

    private mutating func change(of user: UserID) -> PlanChange {
        let states = SubscriptionState.allCases.map { Optional($0) }
        return PlanChange(
            user: user,
            plan: random.chance(3) ? "absent" : random.element(of: HistoryGenerator.planChoices),
            state: random.chance(40) ? nil : random.element(of: states),
            startedAt: date(),
            expiresAt: date(),
            graceUntil: date(),
            anchorDay: random.chance(60) ? nil : random.element(of: [1, 2, 15, 28, 29, 30, 31])
        )
    }

    private static let planChoices = [
        "paid", "paid", "basic", "pro", "week", "week", "day", "day", "day", "trial", "free",
    ]

    /// Often none, sometimes now, else within some weeks, to the microsecond.
    private mutating func date() -> Instant? {
        if random.chance(60) { return nil }
        if random.chance(10) { return now }
        let microseconds = Int64.random(in: -40 * 86_400_000_000...40 * 86_400_000_000, using: &random)
        return Instant(microsecondsSince1970: now.microsecondsSince1970 + microseconds)
    }

    private mutating func period() -> BillingPeriod {
        if random.chance(35) { return BillingPeriod(planNamed: random.element(of: ["trial", "trial", "free"])) }
        let (year, month) = (now.date.year, now.date.month)
        let near = now.advanced(bySeconds: 86_400 * random.element(of: [-7, -1, 0, 0, 1])).date
        return switch random.element(of: [0, 0, 0, 1, 1, 2, 3, 4, 4, 4]) {
        case 3: BillingPeriod(weekOf: near)
        case 4: BillingPeriod(day: near)
        case 0: BillingPeriod(year: year, month: month)
        case 1: month == 1 ? BillingPeriod(year: year - 1, month: 12) : BillingPeriod(year: year, month: month - 1)
        default: month == 12 ? BillingPeriod(year: year + 1, month: 1) : BillingPeriod(year: year, month: month + 1)
        }
    }

    private mutating func plan() -> Plan {
        let percentages = [0, 50, 80, 95, 100]
        let gentle = random.element(of: percentages)
        let prominent = random.element(of: percentages.filter { $0 >= gentle })
        let name = random.element(of: ["paid", "basic", "pro", "week", "day", "trial", "free"])
        let cycle: Plan.Cycle =
            switch name {
            case "trial": .trial(days: Int.random(in: 1...9, using: &random))
            case "free" where random.chance(50): .lifetime
            case "week" where random.chance(60): .weekly
            case "day" where random.chance(60): .daily
            default: random.element(of: [.monthly, .monthly, .weekly, .daily])
            }
        let zones = [
            nil, "UTC", "Atlantic/Azores", "America/Havana", "America/New_York", "Europe/Berlin", "Asia/Tokyo",
            "Pacific/Kiritimati", "Pacific/Pago_Pago",
        ]
        let isUnlimited = name != "trial" && random.chance(15)
        return Plan(
            name: name,
            label: random.element(of: ["Gold", "Größer & \"besser\"", "Plan \\ 7"]),
            cycle: cycle,
            timeZone: cycle == .weekly || cycle == .daily ? random.element(of: zones) : nil,
            allowance: isUnlimited ? nil : allowance(),
            window: window(),
            isEnforced: !random.chance(20),
            limits: limits(),
            gentlePercent: gentle,
            prominentPercent: prominent
        )
    }

    private mutating func window() -> Plan.Window? {
        if random.chance(50) { return nil }
        return Plan.Window(
            messages: random.element(of: [1, 2, 3, 5, 8, 10, 100]),
            seconds: random.element(of: [60, 3_600, 7_200, 86_400, 2_678_400])
        )
    }

    /// A little later, some days later, or at, just before or just after the instant at which something changes.
    private mutating func later(_ model: ReferenceModel) -> Instant {
        let step: Int64 = random.element(of: [1, 1_000_000, 3_600_000_000, 86_400_000_000, 5 * 86_400_000_000])
        let some = Instant(microsecondsSince1970: now.microsecondsSince1970 + step)
        if random.chance(4) { return now.advanced(bySeconds: 33 * 86_400) }
        guard random.chance(60) else { return some }
        let (user, parts) = (random.element(of: users), RandomParts.parts(&random))
        let snapshot = model.usage(user, parts: parts, at: now).snapshot
        let windows = [snapshot.window?.endsAt] + snapshot.parts.map(\.counter.windowEndsAt)
        let boundaries = ([snapshot.resetsAt, snapshot.expiresAt] + windows).compactMap(\.self).filter { $0 > some }
        guard !boundaries.isEmpty else { return some }
        let offset: Int64 = random.element(of: [-1, 0, 0, 1])
        return Instant(microsecondsSince1970: random.element(of: boundaries).microsecondsSince1970 + offset)
    }
}

extension Plan {
    /// The plan with other limits for parts.
    fileprivate func with(_ limits: [PlanLimit]) -> Plan {
        Plan(
            name: name,
            label: label,
            cycle: cycle,
            timeZone: timeZone,
            allowance: allowance,
            window: window,
            isEnforced: isEnforced,
            limits: limits,
            gentlePercent: gentlePercent,
            prominentPercent: prominentPercent
        )
    }
}
