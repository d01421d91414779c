import Billing
import JSON
import Postgres
import Usage

/// Applies billing events: locks the customer, reads what is recorded, lets `CustomerReducer` decide, and writes the
/// difference, each event in one transaction.
package struct BillingLedger {
    /// The most attempts. PostgreSQL aborts a transaction on a deadlock or a serialization failure (SQLSTATE class 40),
    /// and the ledger executes it again.
    private static let maximumAttempts = 5

    private static let lockAndReadCustomer = PreparedQuery(
        name: "lock_and_read_customer",
        sql: EmbeddedSQL.lockAndReadCustomer
    )
    private static let writeCustomer = PreparedQuery(name: "write_customer", sql: EmbeddedSQL.writeCustomer)

    let connection: DatabaseConnection
    let deadline: ContinuousClock.Instant
    /// The author in the audit log; nil means the session's role.
    let author: ChangeAuthor?

    package init(_ connection: DatabaseConnection, deadline: ContinuousClock.Instant, author: ChangeAuthor? = nil) {
        self.connection = connection
        self.deadline = deadline
        self.author = author
    }

    /// Records an event and applies it. An event that was applied before changes nothing.
    ///
    /// - Returns: JSON, the outcome and what the user has now.
    package func apply(_ event: BillingEvent) throws(PostgresError) -> String {
        guard let answer = try applyOrRecord(event, isReplay: false) else {
            throw PostgresError(.misuse, "headroom.record_refused_event returned no answer")
        }
        return answer
    }

    /// Applies a recorded event again. The caller has decoded it anew from its stored payload.
    ///
    /// - Returns: JSON, as `apply`; nil if an earlier attempt succeeded and this one would fail. Nothing changes then.
    package func replay(_ event: BillingEvent) throws(PostgresError) -> String? {
        try applyOrRecord(event, isReplay: true)
    }

    func retrying<Value>(
        _ attempt: () throws(PostgresError) -> Value
    ) throws(PostgresError) -> Value {
        var number = 1
        while true {
            do throws(PostgresError) {
                return try attempt()
            } catch {
                // The transaction is rolled back, because the connection is reused for other events.
                if connection.isUsable { try connection.execute("rollback", deadline: deadline) }
                guard number < BillingLedger.maximumAttempts, error.sqlState?.isClass("40") == true else {
                    throw connection.explaining(error, deadline: deadline)
                }
                number += 1
            }
        }
    }

    /// Executes one transaction. `lockAndRead` begins it; the last statement, a commit or a rollback, ends it.
    func attempt(
        _ event: BillingEvent,
        isReplay: Bool
    ) throws(PostgresError) -> (answer: String, isRejected: Bool) {
        let customer = try lockAndRead(event, isReplay: isReplay)
        try connection.setActor(author, deadline: deadline)
        if let answer = customer.answer {
            // An earlier delivery may have been committed without a standby, and answered with an error.
            try requireReplicated(try connection.query("commit", deadline: deadline))
            return (answer.jsonText, false)
        }
        let change = try change(by: event, customer)
        // A replay must not turn an event that succeeded into a failed one.
        if isReplay, let before = customer.before, before != "failed", change.event.outcome == "failed" {
            try connection.execute("rollback", deadline: deadline)
            return ("", true)
        }
        return (try write(change), false)
    }

    /// Computes what an event changes that is not recorded yet.
    func change(by event: BillingEvent, _ customer: RecordedCustomer) throws(PostgresError) -> CustomerChange {
        guard let now = customer.now else {
            throw PostgresError(.misuse, "headroom.lock_and_read_customer returned no time")
        }
        var recorded = event.recorded(by: customer.mapping, receivedAt: customer.receivedAt ?? now)
        recorded.appliedAt = customer.appliedAt
        if recorded.problem == nil, let plan = customer.unknownPlan(in: recorded.effects) {
            recorded.problem = .malformed("there is no plan '\(plan)'; select plan from headroom.plans lists them")
        }
        let state = CustomerReducer.reduce(customer.history(with: recorded), at: now)
        return CustomerChange(event, recorded, state, customer)
    }

    /// Writes a change and commits.
    ///
    /// - Returns: JSON, the answer to the event's sender.
    func write(_ change: CustomerChange) throws(PostgresError) -> String {
        var parameters = Parameters()
        parameters.append(text: change.jsonText)
        let committed = try connection.query(BillingLedger.writeCustomer, parameters, as: .last, deadline: deadline)
        try requireReplicated(committed)
        return try committed.firstRow.text("answer")
    }

    /// Begins a transaction of the ledger's author.
    func begin() throws(PostgresError) {
        try connection.begin(by: author, deadline: deadline)
    }

    /// Checks that a standby has confirmed the commit, which may have succeeded with a warning. Otherwise the event may
    /// be lost with the primary, so its sender has to send it again.
    func requireReplicated(_ commit: QueryResult) throws(PostgresError) {
        guard !commit.isUnreplicated else { throw PostgresError(.timedOut, "no standby confirmed the event") }
    }

    /// Locks the customer and reads its rows.
    ///
    /// - Parameter isFirst: whether this is the first statement, which begins the transaction.
    func lockAndRead(
        _ event: BillingEvent,
        isReplay: Bool,
        isFirst: Bool = true
    ) throws(PostgresError) -> RecordedCustomer {
        let (names, users) = (event.customerNames, event.users.map(\.description))
        let (products, entitlements) = (event.products, event.entitlements)
        var parameters = Parameters()
        parameters.append(text: event.source.rawValue)
        parameters.append(text: event.id)
        parameters.append(bool: isReplay)
        parameters.appendTexts(count: names.count) { names[$0] }
        parameters.appendTexts(count: users.count) { users[$0] }
        parameters.appendTexts(count: products.count) { products[$0] }
        parameters.appendTexts(count: entitlements.count) { entitlements[$0] }
        let rows =
            if isFirst {
                try connection.query(BillingLedger.lockAndReadCustomer, parameters, as: .first, deadline: deadline)
            } else {
                try connection.query(EmbeddedSQL.lockAndReadCustomer, parameters, deadline: deadline)
            }
        return try RecordedCustomer(json: try rows.firstRow.text("customer"))
    }
}

extension SessionPool {
    /// Records a billing event and applies it, in one transaction. A repeated event changes nothing.
    ///
    /// - Returns: JSON, the outcome.
    package func apply(_ event: BillingEvent, by deadline: ContinuousClock.Instant) async throws(Failure) -> String {
        try await perform(by: deadline) { connection throws(PostgresError) in
            try BillingLedger(connection, deadline: deadline).apply(event)
        }
    }
}
