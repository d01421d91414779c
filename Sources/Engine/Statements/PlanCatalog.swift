import JSON
import Postgres
import Usage

/// All plans at one revision of `headroom.plans`. A usage row has the revision at which it was written; a lane that
/// reads a newer one reads the plans again.
struct PlanCatalog {
    let revision: Int32
    private let plans: [String: Plan]
    /// The errors of plans whose row has a value out of range. Only requests of their users fail.
    private let invalid: [String: PostgresError]
    private let hasWeeks: Bool
    private let hasDays: Bool

    init(revision: Int32, plans: [Plan], invalid: [String: PostgresError] = [:]) {
        self.revision = revision
        self.invalid = invalid
        hasWeeks = plans.contains { $0.cycle == .weekly }
        hasDays = plans.contains { $0.cycle == .daily }
        self.plans = Dictionary(plans.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        endlessPeriods = plans.filter { !$0.cycle.isPeriodic }.map { BillingPeriod(planNamed: $0.name) }
    }

    static let empty = PlanCatalog(revision: -1, plans: [])

    /// Decodes the result of `read_plans`.
    init(_ result: QueryResult) throws(PostgresError) {
        let (name, revision) = (try result.column("plan"), try result.column("revision"))
        var plans: [Plan] = []
        var invalid: [String: PostgresError] = [:]
        for row in 0..<result.rowCount where !result.isNull(row, name) {
            do throws(PostgresError) {
                plans.append(try Plan(result, row))
            } catch {
                invalid[result.text(row, name)] = error
            }
        }
        // Without a revision, the plans are read again with the next row that has one.
        let newest = result.rowCount > 0 ? (try? result.int32(0, revision)) : nil
        self.init(revision: newest ?? 0, plans: plans, invalid: invalid)
    }

    /// The periods of plans whose allowance never resets.
    private let endlessPeriods: [BillingPeriod]

    /// The periods in which the usable row of any user may be on a day in UTC. A month may have begun in the previous
    /// calendar month, and in some time zones it is the day before or after.
    func usualPeriods(on today: CivilDate) -> [BillingPeriod] {
        let month = BillingPeriod(year: today.year, month: today.month)
        let days = (-1...1 as ClosedRange<Int64>).map { CivilDate(daysSince1970: today.daysSince1970 + $0) }
        var periods = [month] + (month.previousMonth.map { [$0] } ?? []) + endlessPeriods
        if hasWeeks { periods += Set(days.map(BillingPeriod.init(weekOf:))) }
        if hasDays { periods += days.map(BillingPeriod.init(day:)) }
        return periods
    }

    /// The plans without a value out of range, by name.
    var all: [Plan] { plans.values.sorted { $0.name < $1.name } }

    /// The plan with a name. A plan that was deleted after its last message keeps its name and the usual percentages.
    ///
    /// - Throws: if its row has a value out of range.
    func plan(named name: String) throws(PostgresError) -> Plan {
        if let plan = plans[name] { return plan }
        if let error = invalid[name] { throw error }
        return Plan(name: name, label: name, cycle: .monthly, allowance: nil)
    }
}

extension Plan {
    /// Decodes a row of `read_plans`. The columns are looked up in each row, because plans are few and read rarely.
    fileprivate convenience init(_ result: QueryResult, _ row: Int) throws(PostgresError) {
        func source(_ name: StaticString) -> StoredColumn { StoredColumn("headroom.plans", "\(name)") }
        func text(_ name: StaticString) throws(PostgresError) -> String { result.text(row, try result.column(name)) }
        func count(_ name: StaticString, in range: ClosedRange<Int32>) throws(PostgresError) -> Int {
            try result.count(row, try result.column(name), of: source(name), in: range)
        }
        let cycle: Plan.Cycle =
            switch try text("cycle") {
            case "trial": .trial(days: try count("trial_days", in: 1...3_650))
            case "lifetime": .lifetime
            case "weekly": .weekly
            case "daily": .daily
            default: .monthly
            }
        let timeZone = try result.column("time_zone")
        let hasWindow = !result.isNull(row, try result.column("window_seconds"))
        let limits = try result.column("limits")
        let isEnforced = try result.bool(row, try result.column("enforced"))
        self.init(
            name: try text("plan"),
            label: try text("label"),
            cycle: cycle,
            timeZone: result.isNull(row, timeZone) ? nil : result.text(row, timeZone),
            allowance: try result.countOrNil(row, try result.column("allowance"), of: source("allowance")),
            window: hasWindow
                ? Plan.Window(
                    messages: try count("window_messages", in: 1...1_000_000),
                    seconds: try count("window_seconds", in: 60...2_678_400)
                ) : nil,
            isEnforced: isEnforced,
            limits: result.isNull(row, limits) ? [] : try PlanLimit.all(result.text(row, limits)),
            gentlePercent: try count("gentle_percent", in: 0...100),
            prominentPercent: try count("prominent_percent", in: 0...100)
        )
    }
}

extension PlanLimit {
    /// Decodes a plan's rows of `headroom.plan_limits`, which are a JSON array.
    fileprivate static func all(_ json: String) throws(PostgresError) -> [PlanLimit] {
        guard case .array(let rows)? = try? JSONValue(parsing: Array(json.utf8)) else { return [] }
        var limits: [PlanLimit] = []
        for row in rows { if let limit = try PlanLimit(row) { limits.append(limit) } }
        return limits
    }

    /// Returns nil for a row of a kind that only a later release knows.
    private convenience init?(_ row: JSONValue) throws(PostgresError) {
        guard let kind = row["kind"]?.string.flatMap(PlanLimit.Kind.init), let name = row["name"]?.string else {
            return nil
        }
        let seconds = try row.count("window_seconds", in: 60...2_678_400)
        let messages = try row.count("window_messages", in: 1...1_000_000)
        self.init(
            kind,
            name,
            label: row["label"]?.string,
            allowance: try row.count("allowance", in: 0...Int64(Int32.max)),
            window: messages.flatMap { messages in seconds.map { Plan.Window(messages: messages, seconds: $0) } },
            weight: try row.count("weight", in: 1...1_000) ?? 1,
            fallback: row["fallback"]?.string.flatMap(ModelName.init)
        )
    }
}

extension JSONValue {
    /// A number of a limit; nil if it has none.
    ///
    /// - Throws: if it is out of range, because a constraint was removed.
    fileprivate func count(_ name: String, in range: ClosedRange<Int64>) throws(PostgresError) -> Int? {
        guard case .integer(let number)? = self[name] else { return nil }
        guard range.contains(number) else {
            throw StoredColumn("headroom.plan_limits", name)
                .invalid(number, unless: "\(name) between \(range.lowerBound) and \(range.upperBound)")
        }
        return Int(number)
    }
}
