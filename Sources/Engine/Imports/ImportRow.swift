import Usage

/// A row of a file that is imported.
struct ImportRow: Equatable {
    var line: Int
    var user: UserID
    var plan: String?
    var state: String?
    /// Microseconds since 1970, as the other instants.
    var started: Int64?
    var expires: Int64?
    var graceUntil: Int64?
    var anchorDay: Int32?
    /// Nil is the present one.
    var period: String?
    var used: Int32 = 0
    var limit = Limit.ofPlan

    enum Limit: Equatable {
        /// Stays as it is.
        case ofPlan
        /// Nil is unlimited.
        case set(Int32?)
    }
}

/// Makes rows of records, and finds what is wrong with them.
struct ImportRowDecoder {
    /// Of a plan, to which its states belong.
    struct PlanKind: Equatable {
        var cycle: String

        /// As `set_plan` accepts them.
        var states: [String] {
            switch cycle {
            case "trial": ["trial", "expired", "revoked"]
            case "lifetime": ["free", "expired", "revoked"]
            default: ["active", "cancelled", "grace_period", "billing_retry", "expired", "revoked"]
            }
        }
    }

    let columns: ImportColumns
    /// By name.
    let plans: [String: PlanKind]
    let namespace: UserNamespace?
    /// Whether counts may be imported into a period with this label.
    let isPeriod: (String) throws -> Bool

    /// - Returns: the row, if no problem was found.
    func row(_ record: CSVReader.Record) throws -> (row: ImportRow?, problems: [ImportProblem]) {
        if let problem = record.problem { return (nil, [ImportProblem(line: record.line, problem)]) }
        guard record.fields.count == columns.count else {
            let counts = "has \(record.fields.count) fields, and the first line has \(columns.count)"
            return (nil, [ImportProblem(line: record.line, "\(counts); separate them by commas")])
        }
        var values = Values(record: record, columns: columns)
        var row = ImportRow(line: record.line, user: values.user(namespace))
        row.plan = values.plan(among: plans)
        row.used = values.number(.used, in: 0...Int32.max) ?? 0
        row.limit = values.limit()
        if let period = columns.value(.period, record) {
            row.period = period
            if try BillingPeriod(period) == nil || !isPeriod(period) {
                values.report(.period, "there is no such period yet; name \(BillingPeriod.forms), that has begun")
            }
        }
        if let plan = row.plan, let kind = plans[plan] {
            row.state = values.state(of: kind, plan: plan)
            row.started = values.instant(.started)
            row.expires = values.instant(.expires)
            row.graceUntil = values.instant(.graceUntil)
            row.anchorDay = values.number(.anchor, in: 1...31)
        } else if columns.value(.plan, record) == nil {
            for column in ImportColumn.ofPlan where columns.value(column, record) != nil {
                values.report(column, "belongs to a plan; name the plan in the column plan, or leave this empty")
            }
        }
        return (values.problems.isEmpty ? row : nil, values.problems)
    }

    /// Reads the values of one record.
    private struct Values {
        let record: CSVReader.Record
        let columns: ImportColumns
        var problems: [ImportProblem] = []

        mutating func report(_ column: ImportColumn, _ text: String) {
            problems.append(ImportProblem(line: record.line, column: column.rawValue, text))
        }

        /// Any user if there is none.
        mutating func user(_ namespace: UserNamespace?) -> UserID {
            if let user = columns.value(.user, record).flatMap({ UserID($0, in: namespace) }) { return user }
            report(.user, UserNamespace.rule(namespace))
            return UserID(high: 0, low: 0)
        }

        mutating func plan(among plans: [String: PlanKind]) -> String? {
            guard let name = columns.value(.plan, record) else { return nil }
            guard plans[name] != nil else {
                let names = plans.keys.sorted().joined(separator: ", ")
                report(.plan, "there is no such plan; add it to headroom.plans, or name one of \(names)")
                return nil
            }
            return name
        }

        mutating func state(of kind: PlanKind, plan: String) -> String? {
            guard let state = columns.value(.state, record) else { return nil }
            if !kind.states.contains(state) {
                report(.state, "plan \(plan) has the states \(kind.states.joined(separator: ", "))")
            }
            return state
        }

        mutating func number(_ column: ImportColumn, in range: ClosedRange<Int32>) -> Int32? {
            guard let text = columns.value(column, record) else { return nil }
            if text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }), let number = Int32(text),
                range.contains(number)
            {
                return number
            }
            report(column, "must be a number from \(range.lowerBound) to \(range.upperBound), or empty")
            return nil
        }

        mutating func limit() -> ImportRow.Limit {
            guard let text = columns.value(.limit, record) else { return .ofPlan }
            if text == "unlimited" { return .set(nil) }
            guard let limit = Int32(text), limit >= 0, text.first != "+" else {
                report(.limit, "must be a number from 0 to \(Int32.max), unlimited, or empty for the plan's own limit")
                return .ofPlan
            }
            return .set(limit)
        }

        mutating func instant(_ column: ImportColumn) -> Int64? {
            guard let text = columns.value(column, record) else { return nil }
            guard let instant = Instant(text) else {
                report(
                    column,
                    "must be a date or an instant in the years 2000 to 9999: 2026-11-24 or 2026-11-24T09:30:00Z"
                )
                return nil
            }
            return instant.microsecondsSince1970
        }
    }
}
