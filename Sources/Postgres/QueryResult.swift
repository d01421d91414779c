import CLibPQ

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The rows of one statement, in binary format. Rows and columns count from 0.
///
/// A getter throws `SQLState.invalidStoredValue` for NULL and for a value of another type: an operator may have changed
/// a column. `text` and `bytes` read any type, and NULL as empty. An index out of range is a programming error and
/// traps.
public final class QueryResult: @unchecked Sendable {
    // Invariant: a PGresult is not changed after libpq has handed it out ("read-only after creation and can be passed
    // around between threads", manual section 34.20), all properties are constant, and only deinit frees it.
    private let result: OpaquePointer

    /// The notices of the statement. A success with a warning 01000 about synchronous replication is a commit that no
    /// standby has confirmed.
    public let warnings: [Warning]
    public let rowCount: Int
    public let columnCount: Int

    /// Takes ownership of the result.
    init(_ result: OpaquePointer, warnings: [Warning]) {
        self.result = result
        self.warnings = warnings
        rowCount = Int(PQntuples(result))
        columnCount = Int(PQnfields(result))
    }

    deinit {
        PQclear(result)
    }

    /// The number of rows inserted, updated, deleted or selected; 0 for statements that have no such number.
    public var affectedRows: Int {
        PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0
    }

    public func columnName(_ column: Int) -> String {
        PQfname(result, Int32(column)).map { String(cString: $0) } ?? ""
    }

    /// Returns the position of the column with this name, or of the last of several. Look it up once per result, not
    /// per row.
    ///
    /// `PQfnumber` would fold the case of the name first. The search begins at the end, where a batch's own values
    /// stand.
    ///
    /// - Throws: `SQLState.invalidStoredValue` if there is none.
    public func column(_ name: StaticString) throws(PostgresError) -> Int {
        let wanted = UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
        for column in stride(from: columnCount - 1, through: 0, by: -1) {
            if let found = PQfname(result, Int32(column)), strcmp(found, wanted) == 0 { return column }
        }
        throw .otherResult("the result has no column \(name)")
    }

    public func isNull(_ row: Int, _ column: Int) -> Bool {
        checkBounds(row, column)
        return PQgetisnull(result, Int32(row), Int32(column)) == 1
    }

    /// The value as the server sent it, valid while the result lives. It is empty for NULL.
    public func bytes(_ row: Int, _ column: Int) -> UnsafeRawBufferPointer {
        checkBounds(row, column)
        return UnsafeRawBufferPointer(
            start: PQgetvalue(result, Int32(row), Int32(column)),
            count: Int(PQgetlength(result, Int32(row), Int32(column)))
        )
    }

    public func int16(_ row: Int, _ column: Int) throws(PostgresError) -> Int16 {
        try integer(row, column, .int16)
    }

    public func int32(_ row: Int, _ column: Int) throws(PostgresError) -> Int32 {
        try integer(row, column, .int32)
    }

    public func int64(_ row: Int, _ column: Int) throws(PostgresError) -> Int64 {
        try integer(row, column, .int64)
    }

    public func bool(_ row: Int, _ column: Int) throws(PostgresError) -> Bool {
        (try integer(row, column, .bool) as UInt8) != 0
    }

    /// Reads an ordinal of `WITH ORDINALITY` as an index from 0 into the array that was sent. The statement computes
    /// it, so another type is a programming error and traps.
    public func ordinal(_ row: Int, _ column: Int) -> Int {
        let bytes = bytes(row, column)
        precondition(bytes.count == 4, "column \(column) (\(columnName(column))) is not an integer")
        return Int(Int32(bigEndian: bytes.loadUnaligned(as: Int32.self))) - 1
    }

    public func text(_ row: Int, _ column: Int) -> String {
        String(decoding: bytes(row, column), as: UTF8.self)
    }

    public func uuid(_ row: Int, _ column: Int) throws(PostgresError) -> (high: UInt64, low: UInt64) {
        let bytes = bytes(row, column)
        guard bytes.count == 16, type(column) == .uuid else { throw mismatch(row, column, wanted: .uuid) }
        return (
            UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
            UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        )
    }

    /// Reads microseconds since 1970; infinity is `Int64.max`, -infinity `Int64.min`.
    public func timestamp(_ row: Int, _ column: Int) throws(PostgresError) -> Int64 {
        Timestamp.fromPostgres(try integer(row, column, .timestamptz))
    }

    private func integer<Value: FixedWidthInteger>(
        _ row: Int,
        _ column: Int,
        _ wanted: TypeOID
    ) throws(PostgresError) -> Value {
        let bytes = bytes(row, column)
        // A check of the length alone would accept the text "1234" for an integer.
        guard bytes.count == Value.bitWidth / 8, type(column) == wanted else {
            throw mismatch(row, column, wanted: wanted)
        }
        return Value(bigEndian: bytes.loadUnaligned(as: Value.self))
    }

    /// The type of a column; for a domain, the type that it is over.
    func type(_ column: Int) -> TypeOID { TypeOID(rawValue: PQftype(result, Int32(column))) }

    /// libpq answers an index out of range with a line on standard error and a null pointer, so it is checked here.
    private func checkBounds(_ row: Int, _ column: Int) {
        precondition(row >= 0 && row < rowCount && column >= 0 && column < columnCount, "no such row or column")
    }

    func mismatch(_ row: Int, _ column: Int, wanted: TypeOID) -> PostgresError {
        let found = isNull(row, column) ? "NULL" : "of type \(type(column).name)"
        return PostgresError(
            .server(.invalidStoredValue),
            "\(columnName(column)) is \(found) instead of \(wanted.name)",
            hint: "The type of a column was changed, or its NOT NULL constraint was dropped: compare the table "
                + "with the files of sql/tables, and change it back."
        )
    }
}

extension PostgresError {
    /// The error about a result that does not have the form in which our functions return it.
    static func otherResult(_ message: String) -> PostgresError {
        PostgresError(
            .server(.invalidStoredValue),
            message,
            hint: "A function or a type was replaced: compare it with the files of sql, and change it back."
        )
    }
}
