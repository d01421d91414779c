import Postgres

/// Statements about a lane's receipt in a bucket, by which a batch takes effect once. Each of their files documents its
/// parameters.
enum ReceiptStatement {
    static let open = PreparedQuery(name: "open_lane", sql: EmbeddedSQL.openLane)
    static let read = PreparedQuery(name: "read_receipt", sql: EmbeddedSQL.readReceipt)
    static let touch = PreparedQuery(name: "touch_receipt", sql: EmbeddedSQL.touchReceipt)

    static func parameters(_ bucket: Bucket, lane: ReceiptID, number: Int64? = nil) -> Parameters {
        var parameters = Parameters()
        parameters.append(int16: bucket)
        parameters.append(uuid: lane.uuid)
        if let number { parameters.append(int64: number) }
        return parameters
    }

    /// The users that the batch with this number counted.
    ///
    /// - Throws: `receiptUnknown` if the receipt is of another batch.
    static func counts(_ result: QueryResult, number: Int64) throws(PostgresError) -> [CountedUser] {
        let (numberColumn, countsColumn) = (try result.column("number"), try result.column("counts"))
        guard result.rowCount == 1, try result.int64(0, numberColumn) == number, !result.isNull(0, countsColumn) else {
            throw PostgresError(.server(StatementFailure.receiptUnknown), "the lane's receipt is of another batch")
        }
        var decoder = CountedUserDecoder()
        return try result.int64s(0, countsColumn).compactMap { $0.flatMap { decoder.next($0) } }
    }
}

extension PreparedQuery {
    /// The statements that are prepared on each connection of a lane.
    static let lane = [
        CountBatchStatement.plain, CountBatchStatement.keyed, ReadBatchStatement.query, ReceiptStatement.open,
        ReceiptStatement.read, ReceiptStatement.touch, SlowPath.countDerived, LockUsersStatement.receipt,
        LockUsersStatement.users, LockUsersStatement.keys,
        WriteUsersStatement.firstSubscriptions, WriteUsersStatement.usageRows, WriteUsersStatement.earlierPeriods,
        WriteUsersStatement.pastUsage, WriteUsersStatement.newKeys, WriteUsersStatement.changedKeys,
        WriteUsersStatement.window, WriteUsersStatement.balances, WriteUsersStatement.receipt,
        ReadPartsStatement.query, WritePartsStatement.query,
    ]
}
