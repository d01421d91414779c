import Usage

/// A row of an imported file.
struct ImportRow: Equatable {
    var line: Int
    var user: UserID
    var plan: String?
    var state: String?
    /// An instant in microseconds since 1970, as are the others.
    var started: Int64?
    var expires: Int64?
    var graceUntil: Int64?
    var anchorDay: Int32?
    /// The billing period; nil means the present one.
    var period: String?
    /// The part of the user's messages that was used; nil means all.
    var part: MessagePart?
    var used: Int32 = 0
    var limit = Limit.ofPlan

    enum Limit: Equatable {
        /// The limit stays that of the plan.
        case ofPlan
        /// The limit is set; nil means unlimited.
        case set(Int32?)
    }
}

/// Makes rows of records, and finds the problems of records.
struct ImportRowDecoder {
    /// The kind of a plan, which decides which states it may have.
    struct PlanKind: Equatable {
        var cycle: String

        /// The states that `set_plan` accepts.
        var states: [String] {
            switch cycle {
            case "trial": ["trial", "expired", "revoked"]
            case "lifetime": ["free", "expired", "revoked"]
            default: ["active", "cancelled", "grace_period", "billing_retry", "expired", "revoked"]
            }
        }
    }

    let columns: ImportColumns
    /// The plans, by name.
    let plans: [String: PlanKind]
    let namespace: UserNamespace?
    /// Returns whether counts may be imported into a period with this label.
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
        row.part = values.part(namespace)
        if row.part != nil, row.limit != .ofPlan {
            values.report(.limit, "belongs to all messages of the user; headroom.plan_limits has those of parts")
        }
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

        /// The user; any user if the record names none.
        mutating func user(_ namespace: UserNamespace?) -> UserID {
            if let user = columns.value(.user, record).flatMap({ UserID($0, in: namespace) }) { return user }
            report(.user, UserNamespace.rule(namespace))
            return UserID(high: 0, low: 0)
        }

        mutating func part(_ namespace: UserNamespace?) -> MessagePart? {
            let (model, member) = (value(.model), value(.member))
            if model != nil, member != nil { report(.member, "write a row for the model and another for the member") }
            if let model {
                if let name = ModelName(model) { return .model(name) }
                report(.model, "must be \(ModelName.form), or empty")
            } else if let member {
                if let member = UserID(member, in: namespace) { return .member(member) }
                report(.member, UserNamespace.rule(namespace, of: "member"))
            }
            return nil
        }

        /// The value of a column; nil if there is none, or a word that exports write for none.
        private mutating func value(_ column: ImportColumn) -> String? {
            guard let text = columns.value(column, record) else { return nil }
            guard !ExportedText.missing.contains(text.lowercased()) else {
                let advice = "COPY does with (format csv), and pandas' to_csv without na_rep"
                report(column, "has a word for a missing value; export an empty field instead, as \(advice)")
                return nil
            }
            return text
        }

        mutating func plan(among plans: [String: PlanKind]) -> String? {
            guard let name = value(.plan) else { return nil }
            guard plans[name] != nil else {
                let names = plans.keys.sorted().joined(separator: ", ")
                report(.plan, "there is no such plan; add it to headroom.plans, or name one of \(names)")
                return nil
            }
            return name
        }

        mutating func state(of kind: PlanKind, plan: String) -> String? {
            guard let state = value(.state) else { return nil }
            if !kind.states.contains(state) {
                report(.state, "plan \(plan) has the states \(kind.states.joined(separator: ", "))")
            }
            return state
        }

        mutating func number(_ column: ImportColumn, in range: ClosedRange<Int32>) -> Int32? {
            guard let text = value(column) else { return nil }
            if let number = ExportedText.number(text), range.contains(number) { return number }
            report(column, "must be a whole number from \(range.lowerBound) to \(range.upperBound), or empty")
            return nil
        }

        mutating func limit() -> ImportRow.Limit {
            guard let text = value(.limit) else { return .ofPlan }
            if text == "unlimited" { return .set(nil) }
            guard let limit = ExportedText.number(text) else {
                let range = "a whole number from 0 to \(Int32.max)"
                report(.limit, "must be \(range), unlimited, or empty for the plan's own limit")
                return .ofPlan
            }
            return .set(limit)
        }

        mutating func instant(_ column: ImportColumn) -> Int64? {
            guard let text = value(column) else { return nil }
            if let instant = ExportedText.instant(text) { return instant.microsecondsSince1970 }
            let form = "2026-11-24 or 2026-11-24T09:30:00Z"
            report(
                column,
                ExportedText.instant(text + "Z") == nil
                    ? "must be a date or an instant in the years 2000 to 9999: \(form)"
                    : "has no time zone; export an offset or Z: \(form)"
            )
            return nil
        }
    }
}
