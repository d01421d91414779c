import Postgres
import Usage

/// All plans at one revision of `headroom.plans`. A usage row says at which revision it was written; a lane that meets
/// a newer one reads the plans again.
struct PlanCatalog {
    let revision: Int32
    private let plans: [String: Plan]

    init(revision: Int32, plans: [Plan]) {
        self.revision = revision
        self.plans = Dictionary(plans.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    }

    static let empty = PlanCatalog(revision: -1, plans: [])

    /// Decodes the result of `read_plans`.
    init(_ result: QueryResult) {
        var plans: [Plan] = []
        for row in 0..<result.rowCount {
            let cycle: Plan.Cycle =
                switch result.text(row, 3) {
                case "trial": .trial(days: Int(result.int32(row, 5)))
                case "lifetime": .lifetime
                default: .monthly
                }
            plans.append(
                Plan(
                    name: result.text(row, 1),
                    label: result.text(row, 2),
                    cycle: cycle,
                    allowance: result.isNull(row, 4) ? nil : Int(result.int32(row, 4)),
                    gentlePercent: Int(result.int32(row, 6)),
                    prominentPercent: Int(result.int32(row, 7))
                )
            )
        }
        self.init(revision: result.rowCount > 0 ? result.int32(0, 0) : 0, plans: plans)
    }

    /// A plan that was deleted after its last message keeps its name and the usual percentages.
    func plan(named name: String) -> Plan {
        plans[name] ?? Plan(name: name, label: name, cycle: .monthly, allowance: nil)
    }
}
