import Postgres
import Usage

/// An operator's change in a transaction of its own. It has a number in its lane's receipt, so that it is made once.
struct ChangeStatement {
    let user: UserID
    let change: OperatorChange
    /// The author in the audit log; nil means the service's role.
    let author: ChangeAuthor?
    let unknownUsersPolicy: UnknownUsersPolicy

    /// Makes the change. A change that was made before under this number is not made again.
    ///
    /// - Returns: whether the change's key had made it before, so that this request changed nothing; and the reply to
    ///   the commit.
    /// - Throws: `receiptUnknown` if the lane's receipt is neither at this number nor at the one before.
    func execute(
        _ attempt: ExactlyOnceSender.Attempt,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> (isRepeated: Bool, commit: QueryResult) {
        let connection = attempt.connection
        let receipt = ReceiptStatement.parameters(attempt.bucket, lane: attempt.receipt, number: attempt.number)
        try connection.begin(by: author, deadline: deadline)
        let advanced = try connection.query(EmbeddedSQL.advanceReceipt, receipt, deadline: deadline)
        let answers: QueryResult
        if advanced.rowCount == 1 {
            answers = try makeChange(attempt, deadline: deadline)
        } else {
            try attempt.requireRepetition()
            answers = try connection.query(EmbeddedSQL.readReceiptAnswer, receipt, deadline: deadline)
            guard answers.rowCount == 1 else {
                throw PostgresError(.server(StatementFailure.receiptUnknown), "the lane's receipt is at another number")
            }
        }
        let commit = try connection.query("commit", deadline: deadline)
        let isRepeated = answers.rowCount == 1 && !answers.isNull(0, 0) && answers.text(0, 0) == "replayed"
        return (isRepeated, commit)
    }

    /// - Returns: the answer that the receipt keeps.
    private func makeChange(
        _ attempt: ExactlyOnceSender.Attempt,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> QueryResult {
        var parameters = Parameters()
        parameters.append(uuid: (user.high, user.low))
        let statement: String
        switch change {
        case .setPlan(let plan):
            parameters.append(text: plan.plan)
            parameters.append(text: plan.state?.rawValue)
            parameters.append(timestamptz: plan.startedAt?.microsecondsSince1970)
            parameters.append(timestamptz: plan.expiresAt?.microsecondsSince1970)
            parameters.append(timestamptz: plan.graceUntil?.microsecondsSince1970)
            parameters.append(int32: plan.anchorDay.map { Int32($0) })
            statement = EmbeddedSQL.setPlan
        case .grant(let messages, let key, let reason):
            parameters.append(int32: Int32(messages))
            parameters.append(text: reason)
            parameters.append(text: key.text)
            parameters.append(text: unknownUsersPolicy.rawValue)
            parameters.append(int16: attempt.bucket)
            parameters.append(uuid: attempt.receipt.uuid)
            statement = EmbeddedSQL.grantMessages
        case .resetUsage(let period):
            parameters.append(text: period?.label)
            statement = EmbeddedSQL.resetUsage
        case .closeWindow:
            parameters.append(text: "window")
            statement = EmbeddedSQL.resetUsage
        case .forget:
            statement = EmbeddedSQL.forgetUser
        }
        return try attempt.connection.query(statement, parameters, deadline: deadline)
    }
}

extension DatabaseConnection {
    /// Begins a transaction whose changes the audit log shows with their author; nil means the service's role.
    func begin(by author: ChangeAuthor?, deadline: ContinuousClock.Instant) throws(PostgresError) {
        try execute("begin", deadline: deadline)
        try setActor(author, deadline: deadline)
    }

    func setActor(_ author: ChangeAuthor?, deadline: ContinuousClock.Instant) throws(PostgresError) {
        guard let author else { return }
        var parameters = Parameters()
        parameters.append(text: author.actor)
        parameters.append(text: author.reason ?? "")
        _ = try query(EmbeddedSQL.setActor, parameters, deadline: deadline)
    }
}
