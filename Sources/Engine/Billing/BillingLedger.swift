import Billing
import Postgres
import Usage

/// Applies billing events: locks the customer, reads what is recorded, lets `CustomerReducer` decide, and writes the
/// difference, each event in one transaction.
package struct BillingLedger {
    /// If two sessions deadlock, PostgreSQL aborts one of them. The ledger rolls back and tries again: five attempts in all.
    private static let attemptsMaximum = 5

    private static let reading = PreparedQuery(name: "read_customer", sql: EmbeddedSQL.readCustomer)
    private static let writing = PreparedQuery(name: "write_customer", sql: EmbeddedSQL.writeCustomer)

    private let connection: Connection
    private let deadline: ContinuousClock.Instant

    package init(_ connection: Connection, deadline: ContinuousClock.Instant) {
        self.connection = connection
        self.deadline = deadline
    }

    /// Records an event and applies it. One that was applied before changes nothing.
    ///
    /// - Returns: JSON, what became of it and what its user has now.
    package func apply(_ event: BillingEvent) throws(PostgresError) -> String {
        try repeating { () throws(PostgresError) in try attempt(event, isAgain: false).answer }
    }

    /// Applies an event that is recorded, as it is read now, in place of what it was taken for.
    ///
    /// - Returns: JSON, as `apply`; nil where it was applied before and could not be now. Nothing is changed then.
    package func replay(_ event: BillingEvent) throws(PostgresError) -> String? {
        try repeating { () throws(PostgresError) in
            let attempt = try attempt(event, isAgain: true)
            return attempt.isRefused ? nil : attempt.answer
        }
    }

    private func repeating<Value>(
        _ attempt: () throws(PostgresError) -> Value
    ) throws(PostgresError) -> Value {
        var number = 1
        while true {
            do throws(PostgresError) {
                return try attempt()
            } catch {
                // The connection is used for other events, too.
                if connection.isUsable { try connection.execute("rollback", deadline: deadline) }
                guard number < BillingLedger.attemptsMaximum, error.sqlState?.isClass("40") == true else {
                    throw connection.explaining(error, deadline: deadline)
                }
                number += 1
            }
        }
    }

    private func attempt(
        _ event: BillingEvent,
        isAgain: Bool
    ) throws(PostgresError) -> (answer: String, isRefused: Bool) {
        let document = try CustomerDocument(json: try read(event, isAgain: isAgain))
        if let answer = document.answer {
            try connection.execute("rollback", deadline: deadline)
            return (answer.text, false)
        }
        guard let now = document.now else { throw PostgresError(.misuse, "headroom.read_customer returned no time") }
        var recorded = event.recorded(by: document.mapping, receivedAt: document.receivedAt ?? now)
        if recorded.problem == nil, let plan = document.unknownPlan(in: recorded.effects) {
            recorded.problem = .malformed("there is no plan '\(plan)'; select plan from headroom.plans lists them")
        }
        let state = CustomerReducer.reduce(document.history(with: recorded), at: now)
        let change = CustomerChange(event, recorded, state, document)
        if isAgain, let before = document.before, before != "failed", change.event.outcome == "failed" {
            try connection.execute("rollback", deadline: deadline)
            return ("", true)
        }
        var parameters = Parameters()
        parameters.append(text: change.jsonText)
        let committed = try connection.query(BillingLedger.writing, parameters, as: .last, deadline: deadline)
        // The standby has not confirmed it: it may be lost with the primary, so the sender has to send it again.
        guard !committed.warnings.contains(where: { $0.sqlState == .warning }) else {
            throw PostgresError(.timedOut, "no standby confirmed the event")
        }
        return (committed.text(0, 0), false)
    }

    private func read(_ event: BillingEvent, isAgain: Bool) throws(PostgresError) -> String {
        let (names, users) = (event.customerNames, event.users.map(\.description))
        let (products, entitlements) = (event.products, event.entitlements)
        var parameters = Parameters()
        parameters.append(text: event.source.rawValue)
        parameters.append(text: event.id)
        parameters.append(bool: isAgain)
        parameters.appendTexts(count: names.count) { names[$0] }
        parameters.appendTexts(count: users.count) { users[$0] }
        parameters.appendTexts(count: products.count) { products[$0] }
        parameters.appendTexts(count: entitlements.count) { entitlements[$0] }
        return try connection.query(BillingLedger.reading, parameters, as: .first, deadline: deadline).text(0, 0)
    }
}
