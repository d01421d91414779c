import Postgres
import Usage

/// A row whose values are read by column name. Each access searches the columns, so this is not for the lanes.
///
/// The methods throw as those of `QueryResult`, and also if the result has no such column.
struct ResultRow {
    fileprivate let result: QueryResult
    fileprivate let row: Int

    func isNull(_ name: StaticString) throws(PostgresError) -> Bool { result.isNull(row, try result.column(name)) }

    /// The text; empty for NULL.
    func text(_ name: StaticString) throws(PostgresError) -> String { result.text(row, try result.column(name)) }

    func textOrNil(_ name: StaticString) throws(PostgresError) -> String? {
        try isNull(name) ? nil : try text(name)
    }

    /// The elements of an array, without NULLs.
    func texts(_ name: StaticString) throws(PostgresError) -> [String] {
        try result.texts(row, try result.column(name)).compactMap(\.self)
    }

    func bytes(_ name: StaticString) throws(PostgresError) -> [UInt8] {
        Array(result.bytes(row, try result.column(name)))
    }

    func bool(_ name: StaticString) throws(PostgresError) -> Bool { try result.bool(row, try result.column(name)) }

    func boolOrNil(_ name: StaticString) throws(PostgresError) -> Bool? {
        try isNull(name) ? nil : try bool(name)
    }

    /// The value of an `integer`.
    func int32(_ name: StaticString) throws(PostgresError) -> Int {
        Int(try result.int32(row, try result.column(name)))
    }

    func int32OrNil(_ name: StaticString) throws(PostgresError) -> Int? {
        try isNull(name) ? nil : try int32(name)
    }

    /// The value of a `bigint`.
    func int64(_ name: StaticString) throws(PostgresError) -> Int64 { try result.int64(row, try result.column(name)) }

    func int64OrNil(_ name: StaticString) throws(PostgresError) -> Int64? {
        try isNull(name) ? nil : try int64(name)
    }

    func user(_ name: StaticString) throws(PostgresError) -> UserID {
        let (high, low) = try result.uuid(row, try result.column(name))
        return UserID(high: high, low: low)
    }

    func period(_ name: StaticString) throws(PostgresError) -> BillingPeriod {
        BillingPeriod(storedLabel: try text(name))
    }

    /// The tier; `silent` for a text that is no tier.
    func tier(_ name: StaticString) throws(PostgresError) -> Tier { Tier(rawValue: try text(name)) ?? .silent }

    /// The instant in a column that only the service's own statements fill.
    func instant(_ name: StaticString) throws(PostgresError) -> Instant {
        Instant(microsecondsSince1970: try result.timestamp(row, try result.column(name)))
    }

    /// - Parameter table: the table with a column of the same name. The error names it if the value is out of range.
    func instant(_ name: StaticString, of table: String) throws(PostgresError) -> Instant {
        try result.instant(row, try result.column(name), of: StoredColumn(table, "\(name)"))
    }

    func instantOrNil(_ name: StaticString, of table: String) throws(PostgresError) -> Instant? {
        try result.instantOrNil(row, try result.column(name), of: StoredColumn(table, "\(name)"))
    }

    func sum(_ name: StaticString, of table: String) throws(PostgresError) -> Int {
        try result.sum(row, try result.column(name), of: StoredColumn(table, "\(name)"))
    }

    func count(
        _ name: StaticString,
        of column: StoredColumn,
        in range: ClosedRange<Int32> = 0...Int32.max
    ) throws(PostgresError) -> Int {
        try result.count(row, try result.column(name), of: column, in: range)
    }

    func countOrNil(_ name: StaticString, of column: StoredColumn) throws(PostgresError) -> Int? {
        try result.countOrNil(row, try result.column(name), of: column)
    }
}

extension QueryResult {
    func rows<Value>(
        _ decode: (ResultRow) throws(PostgresError) -> Value
    ) throws(PostgresError) -> [Value] {
        try (0..<rowCount).map { row throws(PostgresError) in try decode(ResultRow(result: self, row: row)) }
    }

    var rows: [ResultRow] { (0..<rowCount).map { ResultRow(result: self, row: $0) } }

    /// The first row. It traps if there is none.
    var firstRow: ResultRow { ResultRow(result: self, row: 0) }
}
