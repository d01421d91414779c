import Postgres
import Usage

/// Executes the requests of many users on the slow path, once per number of a lane's receipt. `perform_batch.sql`
/// documents parameters and result.
struct PerformBatchStatement {
    static let query = PreparedQuery(name: "perform_batch", sql: EmbeddedSQL.performBatch)

    private let groups: ArraySlice<Batch.Group>
    /// The requests of the groups, as positions in the batch.
    let requests: [Int]
    private let arguments: [Arguments]
    private let unknownUsersPolicy: UnknownUsersPolicy

    init(_ groups: ArraySlice<Batch.Group>, of batch: Batch, _ unknownUsersPolicy: UnknownUsersPolicy) {
        self.groups = groups
        self.unknownUsersPolicy = unknownUsersPolicy
        requests = groups.flatMap(\.range)
        arguments = requests.map { Arguments(batch.requests[$0].operation) }
    }

    func parameters(lane: LaneID, number: Int64) -> Parameters {
        var firsts: [Int32] = []
        var next: Int32 = 1
        for group in groups {
            firsts.append(next)
            next += Int32(group.range.count)
        }
        var parameters = Parameters(capacity: 256 + groups.count * 32 + arguments.count * 48)
        parameters.append(uuid: lane.uuid)
        parameters.append(int64: number)
        parameters.append(usersOf: groups)
        parameters.appendInt32s(count: firsts.count) { firsts[$0] }
        parameters.appendTexts(count: arguments.count) { arguments[$0].verb }
        parameters.appendInt32s(count: arguments.count) { arguments[$0].messages }
        parameters.appendTexts(count: arguments.count) { arguments[$0].key?.text }
        parameters.appendInt32s(count: arguments.count) { arguments[$0].ttlSeconds }
        parameters.append(text: unknownUsersPolicy.rawValue)
        return parameters
    }

    /// A request as `headroom.perform_requests` takes it.
    private struct Arguments {
        var verb: String
        var messages: Int32 = 0
        var key: MessageKey?
        var ttlSeconds: Int32 = 0

        init(_ operation: BatchedOperation) {
            switch operation {
            case .consume(let messages, let key):
                (verb, self.messages, self.key) = ("consume", Int32(messages), key)
            case .reserve(let messages, let key, let ttlSeconds):
                (verb, self.messages, self.key, self.ttlSeconds) = ("reserve", Int32(messages), key, Int32(ttlSeconds))
            case .commit(let key):
                (verb, self.key) = ("commit", key)
            case .release(let key):
                (verb, self.key) = ("release", key)
            case .check(let messages):
                (verb, self.messages) = ("check", Int32(messages))
            case .usage:
                verb = "usage"
            }
        }
    }

    /// A row for each request.
    struct Result {
        private let result: QueryResult
        private let snapshots: UsageSnapshotDecoder
        private let ordinal, verdict, messages, isReplay: Int

        init(_ result: QueryResult) throws(PostgresError) {
            self.result = result
            snapshots = try UsageSnapshotDecoder(result)
            ordinal = try result.column("ordinal")
            verdict = try result.column("verdict")
            messages = try result.column("messages")
            isReplay = try result.column("is_replay")
        }

        var rows: Range<Int> { 0..<result.rowCount }
        /// Of the first row; nil where there is none.
        var planRevision: Int32? { result.rowCount > 0 ? snapshots.planRevision(0) : nil }

        /// The index of the row's request in `requests`.
        func index(_ row: Int) -> Int { result.ordinal(row, ordinal) }

        /// - Throws: as `EntitlementDecoder.entitlement`.
        func slowPathResult(_ row: Int, _ catalog: PlanCatalog) throws(PostgresError) -> SlowPathResult {
            SlowPathResult(
                snapshot: try snapshots.snapshot(row, catalog),
                verdict: SlowPathResult.Verdict(rawValue: result.text(row, verdict)),
                messages: Int(try result.int64(row, messages)),
                isReplay: try result.bool(row, isReplay)
            )
        }
    }
}

extension Parameters {
    mutating func append(usersOf groups: ArraySlice<Batch.Group>) {
        let first = groups.startIndex
        appendUUIDs(count: groups.count) {
            let user = groups[first + $0].user
            return (user.high, user.low)
        }
    }
}
