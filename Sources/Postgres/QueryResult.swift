import CLibPQ

/// The rows of one statement, in binary format. Rows and columns count from 0.
///
/// The getters do not check NULL: ask `isNull` where a column can be. A getter that does not fit the column's length,
/// and an index out of range, are mistakes in the program and trap.
public final class QueryResult: @unchecked Sendable {
    // Invariant: a PGresult is not changed after libpq has handed it out ("read-only after creation and can be passed
    // around between threads", manual section 34.20), all properties are constant, and only deinit frees it.
    private let result: OpaquePointer

    /// What the server said while the statement ran. A success with a warning 01000 about synchronous replication is
    /// a commit that no standby has confirmed.
    public let warnings: [Warning]
    public let rowCount: Int
    public let columnCount: Int

    /// Takes over the result.
    init(_ result: OpaquePointer, warnings: [Warning]) {
        self.result = result
        self.warnings = warnings
        rowCount = Int(PQntuples(result))
        columnCount = Int(PQnfields(result))
    }

    deinit {
        PQclear(result)
    }

    /// Rows inserted, updated, deleted or selected; 0 for statements that have no such number.
    public var affectedRows: Int {
        PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0
    }

    public func columnName(_ column: Int) -> String {
        PQfname(result, Int32(column)).map { String(cString: $0) } ?? ""
    }

    public func isNull(_ row: Int, _ column: Int) -> Bool {
        checkBounds(row, column)
        return PQgetisnull(result, Int32(row), Int32(column)) == 1
    }

    /// The value as the server sent it, valid while the result lives. Empty for NULL.
    public func bytes(_ row: Int, _ column: Int) -> UnsafeRawBufferPointer {
        checkBounds(row, column)
        return UnsafeRawBufferPointer(
            start: PQgetvalue(result, Int32(row), Int32(column)),
            count: Int(PQgetlength(result, Int32(row), Int32(column)))
        )
    }

    public func int16(_ row: Int, _ column: Int) -> Int16 {
        integer(row, column)
    }

    public func int32(_ row: Int, _ column: Int) -> Int32 {
        integer(row, column)
    }

    public func int64(_ row: Int, _ column: Int) -> Int64 {
        integer(row, column)
    }

    public func bool(_ row: Int, _ column: Int) -> Bool {
        (integer(row, column) as UInt8) != 0
    }

    public func text(_ row: Int, _ column: Int) -> String {
        String(decoding: bytes(row, column), as: UTF8.self)
    }

    public func uuid(_ row: Int, _ column: Int) -> (high: UInt64, low: UInt64) {
        let bytes = bytes(row, column)
        guard bytes.count == 16 else { mismatch(row, column, wanted: 16) }
        return (
            UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
            UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        )
    }

    /// Microseconds since 1970; infinity is `Int64.max`, -infinity `Int64.min`.
    public func timestamp(_ row: Int, _ column: Int) -> Int64 {
        Timestamp.fromPostgres(integer(row, column))
    }

    private func integer<Value: FixedWidthInteger>(_ row: Int, _ column: Int) -> Value {
        let bytes = bytes(row, column)
        guard bytes.count == Value.bitWidth / 8 else { mismatch(row, column, wanted: Value.bitWidth / 8) }
        return Value(bigEndian: bytes.loadUnaligned(as: Value.self))
    }

    /// libpq answers an index out of range with a line on standard error and a null pointer.
    private func checkBounds(_ row: Int, _ column: Int) {
        precondition(row >= 0 && row < rowCount && column >= 0 && column < columnCount, "no such row or column")
    }

    private func mismatch(_ row: Int, _ column: Int, wanted: Int) -> Never {
        let name = columnName(column)
        let found = isNull(row, column) ? "NULL" : "\(bytes(row, column).count) bytes"
        preconditionFailure("column \(column) (\(name)) holds \(found), the getter expects \(wanted) bytes")
    }
}
