import Postgres
import Usage

/// All plans at one revision of `headroom.plans`. A usage row says at which revision it was written; a lane that meets
/// a newer one reads the plans again.
struct PlanCatalog {
    let revision: Int32
    private let plans: [String: Plan]
    /// Plans whose row holds a value out of range: only their users are refused.
    private let invalid: [String: PostgresError]

    init(revision: Int32, plans: [Plan], invalid: [String: PostgresError] = [:]) {
        self.revision = revision
        self.invalid = invalid
        self.plans = Dictionary(plans.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    }

    static let empty = PlanCatalog(revision: -1, plans: [])

    /// Decodes the result of `read_plans`.
    init(_ result: QueryResult) {
        var plans: [Plan] = []
        var invalid: [String: PostgresError] = [:]
        for row in 0..<result.rowCount where !result.isNull(row, 1) {
            do throws(PostgresError) {
                plans.append(try Plan(result, row))
            } catch {
                invalid[result.text(row, 1)] = error
            }
        }
        // Without a revision, the plans are read again with the next row.
        let revision = result.rowCount > 0 ? (try? result.int32(0, 0)) : nil
        self.init(revision: revision ?? 0, plans: plans, invalid: invalid)
    }

    /// Those whose rows hold no value out of range, by name.
    var all: [Plan] { plans.values.sorted { $0.name < $1.name } }

    /// A plan that was deleted after its last message keeps its name and the usual percentages.
    ///
    /// - Throws: when its row holds a value out of range.
    func plan(named name: String) throws(PostgresError) -> Plan {
        if let plan = plans[name] { return plan }
        if let error = invalid[name] { throw error }
        return Plan(name: name, label: name, cycle: .monthly, allowance: nil)
    }
}

extension Plan {
    /// From a row of `read_plans`.
    fileprivate convenience init(_ result: QueryResult, _ row: Int) throws(PostgresError) {
        func column(_ name: String) -> StoredColumn { StoredColumn("headroom.plans", name) }
        let cycle: Plan.Cycle =
            switch result.text(row, 3) {
            case "trial": .trial(days: try result.count(row, 5, of: column("trial_days"), in: 1...3_650))
            case "lifetime": .lifetime
            default: .monthly
            }
        self.init(
            name: result.text(row, 1),
            label: result.text(row, 2),
            cycle: cycle,
            allowance: try result.countOrNil(row, 4, of: column("allowance")),
            gentlePercent: try result.count(row, 6, of: column("gentle_percent"), in: 0...100),
            prominentPercent: try result.count(row, 7, of: column("prominent_percent"), in: 0...100)
        )
    }
}
