import CLibPQ
import Glibc
import LineProtocol
import NIOCore
import Usage

@testable import HeadroomServer
@testable import Postgres
@testable import UsageStore

// All that the bodies know of internal types: a change of those is followed here and nowhere else.

struct ConnectionUnderTest {
    private var machine = ConnectionStateMachine(connectionID: 1, slotsMaximum: 1_024, allowsWhenUnavailable: false)
    private let surroundings = ConnectionStateMachine.Surroundings(serverVersion: "1.0.0", info: { [] })
    private var room = ByteBufferAllocator().buffer(capacity: 8_192)
    private let request = DecodedRequest.command(.consume(user: Fixtures.user(1), messages: 1))
    private let outcome = Outcome.answer(Fixtures.answer(used: 12))
    private var slots: [UInt64] = []

    /// The replies are bytes at the end: what writing an answer costs is in this.
    mutating func turn(_ requests: Int) {
        slots.removeAll(keepingCapacity: true)
        for _ in 0..<requests {
            guard case .submit(let user, let operation, let slot) = machine.receive(request, surroundings) else {
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
            machine.complete(slot: slot, outcome) {
                defer { room = ByteBuffer() }
                return room
            }
        }
        guard let replies = machine.takeReplies() else { preconditionFailure("all requests are answered") }
        self.room = replies
    }
}

extension Request {
    /// Requests as one event loop stages them, of users in no order.
    fileprivate static func staged(_ count: Int, users: Int) -> [Request] {
        let deadline = ContinuousClock.now + .seconds(3_600)
        return (0..<count).map { number in
            Request(
                user: Fixtures.user(number % users),
                operation: .consume(1),
                returnAddress: ReturnAddress(mailbox: 0, connection: number & 63, slot: UInt64(number)),
                deadline: deadline
            )
        }
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

    /// What the event loops put in turn by turn, the lane takes in loads of 512.
    mutating func turn() {
        for staged in turns { keep(queue.enqueue(staged).action) }
        var taken = 0
        while case .batch(let load)? = queue.take(atMost: 512) {
            taken += load.count
            keep(load)
        }
        precondition(taken == requests)
    }
}

struct BatchUnderTest {
    private let arrived: [Request]
    private let batch: Batch
    private let result: QueryResult
    private let catalog = PlanCatalog(revision: 1, plans: Plan.initial)
    private let periods: [BillingPeriod]
    private var hints = PeriodHints(calendarMonth: Fixtures.period)

    init(requests: Int, users: Int) {
        arrived = Request.staged(requests, users: users)
        batch = Batch(arrived)
        periods = batch.groups.map { _ in Fixtures.period }
        result = QueryResult.counted(batch.groups.map { Int32($0.messages) })
    }

    func sort() {
        keep(Batch(arrived))
    }

    /// What `LaneCarrier.count` does before it sends; to be kept like it.
    func makeParameters() {
        let groups = batch.groups[...]
        let periods = groups.map { hints.period(of: $0.user) }
        var parameters = Parameters(capacity: 128 + groups.count * 48)
        parameters.append(uuid: (1, 2))
        parameters.append(int64: 3)
        parameters.appendUUIDs(count: groups.count) { (groups[$0].user.high, groups[$0].user.low) }
        parameters.appendTexts(count: groups.count) { periods[$0].label }
        parameters.appendInt64s(count: groups.count) { Int64(groups[$0].messages) }
        parameters.withBinaryFormat { keep($4) }
    }

    /// What `LaneCarrier.settle` does with the rows of a counted batch; to be kept like it.
    mutating func settle() {
        var completions: [Completion] = []
        completions.reserveCapacity(batch.requests.count)
        var isCounted = Array(repeating: false, count: batch.groups.count)
        for index in 0..<result.rowCount {
            let row = StandingRow(result, row: index)
            let ordinal = row.ordinal
            let group = batch.groups[ordinal]
            isCounted[ordinal] = true
            let before = row.standing(catalog, period: periods[ordinal], used: row.used - group.messages)
            let after = batch.settle(group, from: before, into: &completions)
            hints.learn(group.user, after)
        }
        precondition(completions.count == arrived.count)
        keep(isCounted)
        keep(completions)
    }
}

extension QueryResult {
    /// What `count_batch.sql` returns for users who send so many messages each, all of them counted.
    fileprivate static func counted(_ messages: [Int32]) -> QueryResult {
        let columns = [
            "ordinal", "message_count", "held", "limit", "plan", "state", "started_at", "resets_at", "expires_at",
            "previous_plan", "plan_revision", "now",
        ]
        guard let result = PQmakeEmptyPGresult(nil, PGRES_TUPLES_OK) else { preconditionFailure("out of memory") }
        let names = columns.map { strdup($0) }
        defer { for name in names { free(name) } }
        var attributes = names.map { name in
            var attribute = PGresAttDesc()
            attribute.name = name
            attribute.format = 1
            return attribute
        }
        PQsetResultAttrs(result, Int32(attributes.count), &attributes)
        for (row, count) in messages.enumerated() {
            let values: [[UInt8]?] = [
                bytes(Int32(row + 1)), bytes(12 + count), bytes(Int32(0)), bytes(Int32(1_000_000)),
                Array("paid".utf8), Array("active".utf8), bytes(Fixtures.start), bytes(Fixtures.end), nil, nil,
                bytes(Int32(1)), bytes(Fixtures.now),
            ]
            for (column, value) in values.enumerated() { set(value, row, column, of: result) }
        }
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

    private static func bytes(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }

    private static func bytes(_ instant: Instant) -> [UInt8] {
        bytes(instant.microsecondsSince1970 - 946_684_800_000_000)
    }
}
