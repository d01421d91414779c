import Postgres
import Usage

/// Reads the usage of many users; locks and writes nothing. `read_batch.sql` documents parameters and result.
enum ReadBatchStatement {
    static let query = PreparedQuery(name: "read_batch", sql: EmbeddedSQL.readBatch)

    /// - Parameters:
    ///   - hasDetails: whether to read what only answers to `USAGE` show.
    ///   - periodLabel: the label of the period in which a user's row is expected; no row has an empty one.
    static func parameters(
        in bucket: Bucket,
        count: Int,
        _ unknownUsersPolicy: UnknownUsersPolicy,
        hasDetails: Bool,
        user: (_ index: Int) -> UserID,
        periodLabel: (_ index: Int) -> String
    ) -> Parameters {
        var parameters = Parameters(capacity: 128 + count * 32)
        parameters.append(int16: bucket)
        parameters.appendUUIDs(count: count) {
            let user = user($0)
            return (user.high, user.low)
        }
        parameters.appendTexts(count: count) { periodLabel($0) }
        parameters.append(text: unknownUsersPolicy.rawValue)
        parameters.append(bool: hasDetails)
        return parameters
    }

    struct Result {
        let snapshots: DetailedSnapshotDecoder
        private let result: QueryResult
        private let isStaleColumn: Int

        init(_ result: QueryResult) throws(PostgresError) {
            self.result = result
            snapshots = try DetailedSnapshotDecoder(result)
            isStaleColumn = try result.column("is_stale")
        }

        var rows: Range<Int> { 0..<result.rowCount }

        var wordsRevision: Int32? { result.wordsRevision }
        /// The revision of the map of buckets when the statement began; nil if it returned no row.
        func bucketsRevision() throws(PostgresError) -> Int32? { try result.bucketsRevision() }

        /// Whether a message, even a denied one, would write the user's row anew.
        func isStale(_ row: Int) throws(PostgresError) -> Bool { try result.bool(row, isStaleColumn) }
    }
}

extension QueryResult {
    func bucketsRevision() throws(PostgresError) -> Int32? {
        rowCount > 0 ? try int32(0, column("buckets_revision")) : nil
    }
}
