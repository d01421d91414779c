import Postgres
import Usage

/// A row of `headroom.usage_parts`, or the one to insert.
struct StoredPart: Equatable {
    var counter: PartCounter
    /// It changes when the count is reset.
    let generation: Int64
    /// An instant that is not later than the end of the first hold; nil without holds.
    var holdsEndAt: Instant?
    var isChanged = false
}

/// The place of such a row among those of a user.
struct PartKey: Hashable {
    let period: BillingPeriod
    let id: PartID
}

/// Reads counters of parts. `headroom.read_parts` documents parameters and result.
enum ReadPartsStatement {
    static let query = PreparedQuery(name: "read_parts", sql: EmbeddedSQL.readParts)

    typealias Wanted = (user: UserID, key: PartKey)

    /// - Parameter areWritten: the rows are written next, so new ones get a generation.
    static func parameters(_ wanted: [Wanted], in bucket: Bucket, areWritten: Bool = false) -> Parameters {
        var parameters = Parameters(capacity: 128 + wanted.count * 64)
        parameters.append(int16: bucket)
        parameters.appendUUIDs(count: wanted.count) { (wanted[$0].user.high, wanted[$0].user.low) }
        parameters.appendTexts(count: wanted.count) { wanted[$0].key.period.label }
        parameters.appendTexts(count: wanted.count) { wanted[$0].key.id.kind.rawValue }
        parameters.appendTexts(count: wanted.count) { wanted[$0].key.id.name }
        parameters.append(bool: areWritten)
        return parameters
    }

    /// The rows by the users' positions in `wanted`.
    static func parts(
        _ result: QueryResult,
        of wanted: [Wanted]
    ) throws(PostgresError) -> [UserID: [PartKey: StoredPart]] {
        var parts: [UserID: [PartKey: StoredPart]] = [:]
        for (index, part) in try result.rows({ row throws(PostgresError) in
            (try row.int32("ordinal") - 1, try StoredPart(row))
        }) {
            guard wanted.indices.contains(index) else {
                throw PostgresError.replacedFunction("headroom.read_parts returned a row that was not asked for")
            }
            parts[wanted[index].user, default: [:]][wanted[index].key] = part
        }
        return parts
    }
}

/// Writes counters of parts. `headroom.write_parts` documents the parameters.
enum WritePartsStatement {
    static let query = PreparedQuery(name: "write_parts", sql: EmbeddedSQL.writeParts)

    typealias Row = (user: UserID, key: PartKey, part: StoredPart, limit: PlanLimit?)

    static func parameters(_ rows: [Row], in bucket: Bucket) -> Parameters {
        let count = rows.count
        func int32(_ value: Int) -> Int32 { Int32(clamping: value) }
        var parameters = Parameters(capacity: 256 + count * 160)
        parameters.append(int16: bucket)
        parameters.appendUUIDs(count: count) { (rows[$0].user.high, rows[$0].user.low) }
        parameters.appendTexts(count: count) { rows[$0].key.period.label }
        parameters.appendTexts(count: count) { rows[$0].key.id.kind.rawValue }
        parameters.appendTexts(count: count) { rows[$0].key.id.name }
        parameters.appendInt64s(count: count) { rows[$0].part.generation }
        parameters.appendInt32s(count: count) { int32(rows[$0].part.counter.used) }
        parameters.appendInt32s(count: count) { int32(rows[$0].part.counter.held) }
        parameters.appendNullableInt32s(count: count) { rows[$0].limit?.allowance.map(int32) }
        parameters.appendTimestamps(count: count) { rows[$0].part.counter.windowOpenedAt?.microsecondsSince1970 }
        parameters.appendTimestamps(count: count) { rows[$0].part.counter.windowEndsAt?.microsecondsSince1970 }
        parameters.appendInt32s(count: count) { int32(rows[$0].part.counter.windowUsed) }
        parameters.appendInt32s(count: count) { int32(rows[$0].part.counter.windowHeld) }
        parameters.appendNullableInt32s(count: count) { (rows[$0].limit?.window?.messages).map(int32) }
        parameters.appendTimestamps(count: count) { rows[$0].part.holdsEndAt?.microsecondsSince1970 }
        return parameters
    }
}

extension StoredPart {
    fileprivate init(_ row: ResultRow) throws(PostgresError) {
        self.init(
            counter: try PartCounter(row),
            generation: try row.int64("generation"),
            holdsEndAt: try row.instantOrNil("holds_end_at", of: PartCounter.table)
        )
    }
}

extension PartCounter {
    static let table = "headroom.usage_parts"

    /// Decodes a row of `headroom.read_parts`.
    init(_ row: ResultRow) throws(PostgresError) {
        func source(_ name: String) -> StoredColumn { StoredColumn(PartCounter.table, name) }
        self.init()
        used = try row.count("used", of: source("used"))
        held = try row.count("held", of: source("held"))
        windowUsed = try row.countOrNil("window_used", of: source("window_used")) ?? 0
        windowHeld = try row.countOrNil("window_held", of: source("window_held")) ?? 0
        windowOpenedAt = try row.instantOrNil("window_opened_at", of: PartCounter.table)
        windowEndsAt = try row.instantOrNil("window_ends_at", of: PartCounter.table)
    }
}
