import Postgres
import Usage

/// A column whose values the service computes with. A check constraint keeps them in range, unless it was dropped or
/// data was loaded without it.
struct StoredColumn: Sendable {
    let table: String
    let name: String

    init(_ table: String, _ name: String) {
        self.table = table
        self.name = name
    }

    func invalid(_ value: some CustomStringConvertible, unless condition: String) -> PostgresError {
        // This is the error of headroom.raise_invalid_row. The message is the same for all rows, so that it is logged
        // once.
        PostgresError(
            .server(.invalidStoredValue),
            "\(table).\(name) is out of range",
            detail: "The value is \(value).",
            hint: "select * from \(table) where (\(condition)) is not true lists such rows. Correct them, then add the "
                + "check constraint again."
        )
    }
}

extension QueryResult {
    /// The instant; nil for NULL.
    ///
    /// - Throws: an error with `SQLState.invalidStoredValue`, as the next two methods.
    func instantOrNil(_ row: Int, _ column: Int, of source: StoredColumn) throws(PostgresError) -> Instant? {
        guard !isNull(row, column) else { return nil }
        let microseconds = try timestamp(row, column)
        guard let instant = Instant(validating: microseconds) else {
            throw source.invalid(
                "\(microseconds) microseconds since 1970",
                unless: "headroom.is_instant(\(source.name))"
            )
        }
        return instant
    }

    func instant(_ row: Int, _ column: Int, of source: StoredColumn) throws(PostgresError) -> Instant {
        guard let instant = try instantOrNil(row, column, of: source) else {
            throw source.invalid("null", unless: "\(source.name) is not null")
        }
        return instant
    }

    /// The value of an `integer` that counts something; nil for NULL.
    func countOrNil(
        _ row: Int,
        _ column: Int,
        of source: StoredColumn,
        in range: ClosedRange<Int32> = 0...Int32.max
    ) throws(PostgresError) -> Int? {
        guard !isNull(row, column) else { return nil }
        let count = try int32(row, column)
        guard range.contains(count) else {
            let name = source.name == "limit" ? "\"limit\"" : source.name
            let condition =
                range.upperBound == .max
                ? "coalesce(\(name), \(range.lowerBound)) >= \(range.lowerBound)"
                : "\(name) between \(range.lowerBound) and \(range.upperBound)"
            throw source.invalid(count, unless: condition)
        }
        return Int(count)
    }

    func count(
        _ row: Int,
        _ column: Int,
        of source: StoredColumn,
        in range: ClosedRange<Int32> = 0...Int32.max
    ) throws(PostgresError) -> Int {
        guard let count = try countOrNil(row, column, of: source, in: range) else {
            throw source.invalid("null", unless: "\(source.name) is not null")
        }
        return count
    }

    /// The value of a `bigint` with a sum of counts. It is at most 10^15, so that sums of sums fit as well.
    func sum(_ row: Int, _ column: Int, of source: StoredColumn) throws(PostgresError) -> Int {
        let sum = try int64(row, column)
        guard (0...1_000_000_000_000_000).contains(sum) else {
            throw source.invalid(sum, unless: "\(source.name) between 0 and 1000000000000000")
        }
        return Int(sum)
    }
}

extension PostgresError {
    /// - Parameter message: a text that names the function.
    static func replacedFunction(_ message: String) -> PostgresError {
        PostgresError(
            .server(.invalidStoredValue),
            message,
            hint: "The function was replaced: compare it with its file in sql/functions, and change it back."
        )
    }

    var isAboutInvalidValue: Bool { sqlState == .invalidStoredValue }

    /// Data exceptions, constraint violations and errors raised by functions concern a row. Anything else, such as a
    /// missing table or a full disk, concerns all rows, and trying halves would only repeat it.
    var isAboutOneRow: Bool {
        guard case .server(let state) = kind else { return false }
        return state == .invalidStoredValue || state == .discardedRow || state.isClass("22") || state.isClass("23")
            || state.isClass("P0")
    }
}

extension EngineError {
    /// - Parameter error: an error whose message names the column.
    static func invalidValue(_ error: PostgresError) -> EngineError {
        EngineError(
            .internal,
            "\(error.message) in the database, so nothing was counted; the service's log says how to find and correct it"
        )
    }

    static let discardedRow = EngineError(
        .internal,
        "the database does not keep a row of this user, so nothing was counted; the service's log says which, and what to do"
    )

    /// The error without a more specific message.
    static let unreadableRow = EngineError(
        .internal,
        "a row of this user in the database cannot be read; the service's log says why"
    )

    /// The request was executed, but its answer is impossible.
    static func invalidValueAfterwards(_ error: PostgresError) -> EngineError {
        EngineError(
            .internal,
            "\(error.message) in the database. The request was carried out and cannot be answered; the service's log says "
                + "how to find and correct the value"
        )
    }
}
