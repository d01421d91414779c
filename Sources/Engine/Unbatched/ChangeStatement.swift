import Postgres
import Usage

/// An operator's change in a transaction of its own, in one round trip. It has a number in its lane's receipt, so that
/// it is made once.
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
        let answers: QueryResult
        do throws(PostgresError) {
            try connection.sendPipeline { pipeline throws(PostgresError) in
                try pipeline.begin()
                if let author { try pipeline.send(EmbeddedSQL.setActor, author.parameters) }
                // The server executes none of the statements after one that fails.
                try pipeline.send(EmbeddedSQL.advanceReceipt, receipt)
                try sendChange(to: pipeline, attempt)
                try pipeline.commit()
            }
            let results = try connection.awaitResults(orTimeOutAt: deadline)
            // The change comes last; its result has a row.
            answers = results[results.count - 1]
        } catch  where attempt.isRepetition && error.kind == .server(StatementFailure.receiptUnknown) {
            try connection.rollBack(deadline: deadline)
            answers = try connection.query(EmbeddedSQL.readReceiptAnswer, receipt, deadline: deadline)
            // The receipt is at another number.
            guard answers.rowCount == 1 else { throw error }
        }
        let isRepeated = answers.rowCount == 1 && !answers.isNull(0, 0) && answers.text(0, 0) == "replayed"
        return (isRepeated, answers)
    }

    /// The result of the statement is the answer that the receipt keeps.
    private func sendChange(
        to pipeline: Pipeline,
        _ attempt: ExactlyOnceSender.Attempt
    ) throws(PostgresError) {
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
        case .grant(let grant):
            parameters.append(int32: Int32(grant.messages))
            parameters.append(text: grant.reason)
            parameters.append(text: grant.key.text)
            parameters.append(timestamptz: grant.end.microsecondsSince1970)
            parameters.append(text: unknownUsersPolicy.rawValue)
            parameters.append(int16: attempt.bucket)
            parameters.append(uuid: attempt.receipt.uuid)
            statement = EmbeddedSQL.grantMessages
        case .resetUsage(let period, let parts):
            parameters.append(text: period?.label)
            parameters.append(parts)
            statement = EmbeddedSQL.resetUsage
        case .closeWindow(let parts):
            parameters.append(text: "window")
            parameters.append(parts)
            statement = EmbeddedSQL.resetUsage
        case .forget:
            statement = EmbeddedSQL.forgetUser
        }
        try pipeline.send(statement, parameters)
    }
}

extension Grant.End {
    /// The largest number is infinity in PostgreSQL.
    fileprivate var microsecondsSince1970: Int64? {
        switch self {
        case .withPeriod: nil
        case .at(let instant): instant.microsecondsSince1970
        case .never: .max
        }
    }
}

extension Parameters {
    fileprivate mutating func append(_ parts: MessageParts?) {
        append(text: parts?.model?.text)
        append(text: parts?.member.map { "\($0)" })
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
        _ = try query(EmbeddedSQL.setActor, author.parameters, deadline: deadline)
    }
}

extension ChangeAuthor {
    /// The parameters of `set_actor.sql`.
    fileprivate var parameters: Parameters {
        var parameters = Parameters()
        parameters.append(text: actor)
        parameters.append(text: reason ?? "")
        return parameters
    }
}
