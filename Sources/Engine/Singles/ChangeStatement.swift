import Postgres
import Usage

extension EngineOperation {
    /// An operator's change: it has a number of its own in its lane's receipt.
    var isChange: Bool {
        switch self {
        case .setPlan, .grant, .resetUsage, .forget, .attributed: true
        case .consume, .reserve, .commit, .release, .check, .usage, .usageInPeriod, .history: false
        }
    }
}

/// Who makes a change, and why, for the audit log.
struct Author {
    var actor: String
    var reason: String?
}

/// What operators change, each in a transaction of its own.
extension BatchExecutor {
    /// Makes the change unless it was made already under this number, by a connection that was lost.
    ///
    /// - Parameter author: whom the audit log is to name; nil names the service's role.
    /// - Returns: whether the change's key had made it before, so that this request changed nothing.
    func change(
        _ request: Request,
        _ author: Author?,
        number: Int64,
        isRepeated: Bool,
        on connection: Connection
    ) throws(PostgresError) -> Bool {
        var receipt = Parameters()
        receipt.append(uuid: link.lane.uuid)
        receipt.append(int64: number)
        try connection.execute("begin", deadline: request.deadline)
        if let author {
            var parameters = Parameters()
            parameters.append(text: author.actor)
            parameters.append(text: author.reason ?? "")
            _ = try connection.query(EmbeddedSQL.setActor, parameters, deadline: request.deadline)
        }
        let moved = try connection.query(EmbeddedSQL.moveReceipt, receipt, deadline: request.deadline)
        let note =
            moved.rowCount == 1
            ? try make(request, on: connection)
            : try connection.query(EmbeddedSQL.readReceiptAnswer, receipt, deadline: request.deadline)
        let committed = try connection.query("commit", deadline: request.deadline)
        if isRepeated || committed.warnings.contains(where: { $0.sqlState == .warning }) {
            try trips.confirm(connection, deadline: request.deadline)
        }
        return note.rowCount == 1 && !note.isNull(0, 0) && note.text(0, 0) == "replayed"
    }

    /// - Returns: what the receipt notes of it.
    private func make(_ request: Request, on connection: Connection) throws(PostgresError) -> QueryResult {
        var parameters = Parameters()
        parameters.append(uuid: (request.user.high, request.user.low))
        let statement: String
        switch request.operation {
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
            parameters.append(text: configuration.unknownUsers.rawValue)
            parameters.append(uuid: link.lane.uuid)
            statement = EmbeddedSQL.grantMessages
        case .resetUsage(let period):
            parameters.append(text: period?.label)
            statement = EmbeddedSQL.resetUsage
        case .forget:
            statement = EmbeddedSQL.forgetUser
        case .consume, .reserve, .commit, .release, .check, .usage, .usageInPeriod, .history, .attributed:
            preconditionFailure("not a change")
        }
        return try connection.query(statement, parameters, deadline: request.deadline)
    }

    static let noSuchPeriod = EngineError(
        .notFound,
        "this user has no usage in that period; HISTORY lists the periods"
    )

    /// What the SQL functions raise on purpose, in the protocol's entitlement. Nothing of the request is repeated.
    func refusal(of operation: EngineOperation, _ error: PostgresError) -> EngineError {
        switch (error.sqlState, operation) {
        case (SQLState(rawValue: "P0002"), .setPlan):
            EngineError(.notFound, "there is no such plan; select plan from headroom.plans lists them")
        case (SQLState(rawValue: "P0002"), _):
            BatchExecutor.noSuchPeriod
        case (SQLState(rawValue: "HR002"), .grant):
            .grantConflict
        case (SQLState(rawValue: "22003"), .grant):
            .grantTooLarge
        case (SQLState(rawValue: "22023"), _):
            EngineError(.badArgument, "that state does not fit the plan. " + (error.hint ?? ""))
        default:
            failure(for: error)
        }
    }
}
