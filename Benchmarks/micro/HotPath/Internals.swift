import CLibPQ
import Glibc
import LineProtocol
import NIOCore
import Usage

@testable import Engine
@testable import LineServer
@testable import Postgres
@testable import ServiceCore

// All uses of internal types by the cases, so that a change of those types affects this file only.

struct ConnectionUnderTest {
    private var machine = ConnectionStateMachine(
        connectionID: 1,
        slotsMaximum: 1_024,
        allowsWhenUnavailable: false,
        subscriptionsMaximum: 1_024,
        words: CurrentWords()
    )
    private let dependencies = ConnectionStateMachine.Dependencies(serverVersion: "1.0.0", info: { [] })
    private var room = ByteBufferAllocator().buffer(capacity: 8_192)
    private let request = DecodedRequest.command(.consume(user: Fixtures.user(1), messages: 1))
    private let answer = Fixtures.answer(used: 12)
    private var slots: [UInt64] = []

    /// The replies are encoded at the end, so this includes the cost of encoding an answer.
    mutating func turn(_ requests: Int) {
        slots.removeAll(keepingCapacity: true)
        for _ in 0..<requests {
            guard case .submit(let user, let operation, let slot) = machine.receive(request, dependencies) else {
                preconditionFailure("a CONSUME is for the store")
            }
            keep(user)
            keep(operation)
            slots.append(slot)
        }
        var room = self.room
        self.room = ByteBuffer()
        room.clear()
        for slot in slots {
            machine.complete(slot: slot, answer) {
                defer { room = ByteBuffer() }
                return room
            }
        }
        guard let replies = machine.takeReplies() else { preconditionFailure("all requests are answered") }
        self.room = replies
    }
}

struct TokensUnderTest {
    private let policy: AccessPolicy
    private let credentials: Credentials
    private let isRight: Bool

    /// - Parameters:
    ///   - tokens: the number of live tokens. The middle one has the digest of the presented token.
    ///   - wrongByte: the index at which that digest differs; nil if it is equal.
    init(tokens count: Int, wrongByte: Int?) {
        let random = (0..<count).map { number in (0..<32).map { UInt8(truncatingIfNeeded: number &* 31 &+ $0 &* 7) } }
        let tokens = random.map { NewToken(random: $0) }
        var live = tokens.enumerated().map { number, token in
            LiveToken(id: Int64(number), name: "backend", scopes: ["chat"], digest: token.digest)
        }
        if let wrongByte { live[count / 2].digest[wrongByte] ^= 1 }
        policy = AccessPolicy(isRequired: true, tokens: TokenList(live))
        credentials = Credentials(name: "backend", token: Secret(tokens[count / 2].text))
        isRight = wrongByte == nil
    }

    func authenticate(at now: ContinuousClock.Instant) {
        let verdict = policy.authenticate(credentials, at: now)
        guard case .success = verdict else {
            precondition(!isRight)
            return
        }
        precondition(isRight)
    }
}

struct MetricsUnderTest {
    private let metrics = LoopMetrics()
    private let request = DecodedRequest.command(.consume(user: Fixtures.user(1), messages: 1))
    private let answer = Fixtures.answer(used: 12)

    /// The work of the event loop for requests that are answered with one delivery.
    func turn(_ requests: Int) {
        for _ in 0..<requests { metrics.count(request) }
        metrics.latencies.begin(second: 1)
        for microseconds in 0..<UInt32(requests) {
            metrics.count(answer)
            metrics.latencies.record(microseconds: 900 &+ microseconds)
        }
    }
}

struct LaneMetricsUnderTest {
    private let metrics = LaneMetrics()

    /// The work of a lane for a batch that one statement counts, without its two readings of the clock.
    func countBatch() {
        metrics.batchSizes.record(64)
        metrics.queueWaits.record(.microseconds(123))
        metrics.record(.count, took: .microseconds(456))
        metrics.add(64, to: .messages)
    }
}

extension Request {
    /// Requests as one event loop stages them, of users in random order.
    fileprivate static func staged(_ count: Int, users: Int, in parts: MessageParts? = nil) -> [Request] {
        let deadline = Deadline(.now + .seconds(3_600))
        return (0..<count).map { number in
            Request(
                user: Fixtures.user(number % users),
                operation: .consume(1).inParts(parts),
                returnAddress: ReturnAddress(mailboxIndex: 0, connection: number & 63, slot: UInt64(number)),
                deadline: deadline
            )
        }
    }
}

extension [Request] {
    fileprivate var batched: [BatchedRequest] {
        compactMap(BatchedRequest.init)
    }
}

struct QueueUnderTest {
    private var queue = LaneQueue(capacity: 32_768)
    private let turns: [[Request]]
    private let requests: Int

    init(requests: Int, perTurn: Int) {
        self.requests = requests
        turns = Array(repeating: Request.staged(perTurn, users: perTurn), count: requests / perTurn)
    }

    /// Event loops append requests in turn, and the lane takes batches of 512.
    mutating func turn() {
        for staged in turns { keep(queue.enqueue(staged).action) }
        var taken = 0
        while case .batch(let batch)? = queue.take(atMost: 512) {
            taken += batch.count
            keep(batch)
        }
        precondition(taken == requests)
    }
}

struct BatchUnderTest {
    private let arrived: [BatchedRequest]
    private let batch: Batch
    private let result: QueryResult
    private let cached: [UserCache.Entry?]
    private var charges: [PartCharge] = []
    private var users: UserCache

    init(requests: Int, users: Int, in parts: MessageParts? = nil) {
        arrived = Request.staged(requests, users: users, in: parts).batched
        batch = Batch(arrived)
        var cache = UserCache(today: CivilDate(year: 2026, month: 11, day: 10))
        let entitlement = Fixtures.answer(used: 12).snapshot.entitlement
        for group in batch.groups { cache.learn(group.user, entitlement, version: 1) }
        cached = batch.groups.map { cache.entry(of: $0.user) }
        self.users = cache
        result = QueryResult.counted(batch.groups.map { Int64($0.messages) }, ofModel: parts != nil)
        var groups = batch.groups[...]
        charges = charge(&groups)
    }

    func sort() {
        keep(Batch(arrived))
    }

    /// The work of `CountPath` before it sends.
    mutating func makeParameters() {
        var groups = batch.groups[...]
        let cached = groups.map { users.entry(of: $0.user) }
        let statement = CountBatchStatement(
            groups,
            cached: cached,
            charges: charge(&groups),
            requests: arrived,
            planRevision: 1,
            usual: [Fixtures.period]
        )
        let parameters = statement.parameters(in: 0, 1, lane: ReceiptID(high: 1, low: 2), number: 3)
        parameters.withBinaryFormat { keep($4) }
    }

    private func charge(_ groups: inout ArraySlice<Batch.UserRequests>) -> [PartCharge] {
        var charges: [PartCharge] = []
        for index in groups.indices where groups[index].hasParts {
            groups[index].charge(to: Fixtures.plan, batch.requests, as: index, into: &charges)
        }
        return charges
    }

    /// The work of `CountPath` for a counted batch of users with cached entitlements.
    mutating func answer() {
        let entitlements = cached.map { $0?.entitlement }
        let groups = batch.groups[...]
        var completions: [Completion] = []
        do {
            let counted = try CountBatchStatement.Result(result)
            let parts = try counted.parts(chargedTo: charges, groups: groups.count)
            keep(
                try batch.answer(groups, counted, entitlements, [:], parts, into: &completions) { user, after, _ in
                    users.learnExhaustion(user, after)
                }
            )
        } catch {
            preconditionFailure("counts: \(error)")
        }
        precondition(completions.count == arrived.count)
        keep(completions)
    }
}

extension QueryResult {
    /// The result of `count_batch.sql` for users with cached entitlements, all of whose messages are counted.
    fileprivate static func counted(_ messages: [Int64], ofModel: Bool) -> QueryResult {
        let columns = ["counts", "observed_at", "words_revision", "usage_rows", "parts"]
        guard let result = PQmakeEmptyPGresult(nil, PGRES_TUPLES_OK) else { preconditionFailure("out of memory") }
        let names = columns.map { strdup($0) }
        defer { for name in names { free(name) } }
        var attributes = names.map { name in
            var attribute = PGresAttDesc()
            attribute.name = name
            attribute.format = 1
            return attribute
        }
        // Values are decoded by the type of their column.
        attributes[1].typid = TypeOID.timestamptz.rawValue
        attributes[0].typid = TypeOID.int64Array.rawValue
        attributes[2].typid = TypeOID.int32.rawValue
        attributes[4].typid = TypeOID.int64Array.rawValue
        PQsetResultAttrs(result, Int32(attributes.count), &attributes)
        for column in columns.indices { set(nil, 0, column, of: result) }
        set(bytes(Fixtures.now), 0, 1, of: result)
        let counted = messages.enumerated().map { index, count in Int64(index + 1) << 32 | (12 + count) }
        set(array(counted.map { 1 << 48 | $0 }), 0, 0, of: result)
        if ofModel { set(array(counted), 0, 4, of: result) }
        set(bytes(Int32(1)), 0, 2, of: result)
        return QueryResult(result, warnings: [])
    }

    private static func set(_ value: [UInt8]?, _ row: Int, _ column: Int, of result: OpaquePointer) {
        guard var value else {
            PQsetvalue(result, Int32(row), Int32(column), nil, -1)
            return
        }
        value.withUnsafeMutableBytes {
            let start = $0.baseAddress?.assumingMemoryBound(to: CChar.self)
            _ = PQsetvalue(result, Int32(row), Int32(column), start, Int32($0.count))
        }
    }

    /// PostgreSQL's binary format of a bigint[]: a header, then each element after its length.
    private static func array(_ numbers: [Int64]) -> [UInt8] {
        [1, 0, 20, Int32(numbers.count), 1].flatMap { bytes($0) } + numbers.flatMap { bytes(Int32(8)) + bytes($0) }
    }

    private static func bytes(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }

    private static func bytes(_ instant: Instant) -> [UInt8] {
        bytes(instant.microsecondsSince1970 - 946_684_800_000_000)
    }
}
