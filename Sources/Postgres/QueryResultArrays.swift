import CLibPQ

/// One-dimensional arrays in a result; nil stands for a NULL element. They throw as the other getters do.
extension QueryResult {
    public func int32s(_ row: Int, _ column: Int) throws(PostgresError) -> [Int32?] {
        try array(row, column, .int32Array, of: .int32) { Int32(bigEndian: $0.loadUnaligned(as: Int32.self)) }
    }

    public func int64s(_ row: Int, _ column: Int) throws(PostgresError) -> [Int64?] {
        try array(row, column, .int64Array, of: .int64) { Int64(bigEndian: $0.loadUnaligned(as: Int64.self)) }
    }

    /// Calls `body` with each element of an array without NULLs, in turn; nothing is gathered.
    ///
    /// - Throws: before the first element, also if one is NULL.
    public func forEachInt64(_ row: Int, _ column: Int, _ body: (Int64) -> Void) throws(PostgresError) {
        let bytes = bytes(row, column)
        guard type(column) == .int64Array, let begin = ArrayHeader.endOfBigintHeader(bytes) else {
            throw mismatch(row, column, wanted: .int64Array)
        }
        // A bigint has 8 bytes, so those without NULLs stand 12 bytes apart, each behind its length.
        for offset in stride(from: begin + 4, to: bytes.count, by: 12) {
            body(Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Int64.self)))
        }
    }

    public func texts(_ row: Int, _ column: Int) throws(PostgresError) -> [String?] {
        try array(row, column, .textArray, of: .text) { String(decoding: $0, as: UTF8.self) }
    }

    /// Reads a `bytea[]` of records, as `record_send` returns them, as the rows of a result of its own; nil if it is
    /// NULL or empty.
    ///
    /// - Parameter names: of the records' attributes, which the server does not send. Further attributes, as a later
    ///   release may have, are left out.
    public func records(_ row: Int, _ column: Int, _ names: [StaticString]) throws(PostgresError) -> QueryResult? {
        guard !isNull(row, column) else { return nil }
        var records: [[RecordField]] = []
        var areRecords = true
        try forEachElement(row, column, .byteaArray, of: .bytea) {
            if let fields = $0.flatMap({ RecordField.first(names.count, of: $0) }) {
                records.append(fields)
            } else {
                areRecords = false
            }
        }
        guard areRecords else {
            throw .otherResult("\(columnName(column)) has no records with \(names.count) attributes")
        }
        guard let first = records.first else { return nil }
        guard let result = PQmakeEmptyPGresult(nil, PGRES_TUPLES_OK) else { preconditionFailure("out of memory") }
        var attributes = zip(names, first).map { name, field in
            var attribute = PGresAttDesc()
            // libpq copies it.
            attribute.name = UnsafeMutablePointer(
                mutating: UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
            )
            attribute.format = 1
            attribute.typid = field.type
            return attribute
        }
        PQsetResultAttrs(result, Int32(attributes.count), &attributes)
        for (row, fields) in records.enumerated() {
            for (column, field) in fields.enumerated() {
                let start = field.value?.baseAddress?.assumingMemoryBound(to: CChar.self)
                let length = Int32(field.value?.count ?? -1)
                PQsetvalue(result, Int32(row), Int32(column), UnsafeMutablePointer(mutating: start), length)
            }
        }
        return QueryResult(result, warnings: [])
    }

    private func array<Element>(
        _ row: Int,
        _ column: Int,
        _ type: TypeOID,
        of elementType: TypeOID,
        _ decode: (UnsafeRawBufferPointer) -> Element
    ) throws(PostgresError) -> [Element?] {
        var elements: [Element?] = []
        try forEachElement(row, column, type, of: elementType) { elements.append($0.map(decode)) }
        return elements
    }

    /// Calls `body` with each element. Arrays of more dimensions are read as one row of elements.
    @inline(__always)
    private func forEachElement(
        _ row: Int,
        _ column: Int,
        _ type: TypeOID,
        of elementType: TypeOID,
        _ body: (UnsafeRawBufferPointer?) -> Void
    ) throws(PostgresError) {
        let bytes = bytes(row, column)
        guard let header = ArrayHeader(bytes), self.type(column) == type, header.elementType == elementType else {
            throw mismatch(row, column, wanted: type)
        }
        var offset = header.byteCount
        for _ in 0..<header.elementCount {
            guard let length = bytes.int32(at: offset), length <= bytes.count - offset - 4 else {
                throw mismatch(row, column, wanted: type)
            }
            offset += 4
            guard length >= 0 else {
                body(nil)
                continue
            }
            body(UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + length)]))
            offset += length
        }
    }
}

/// The part of an array before its elements; `Parameters.appendArray` describes the layout.
private struct ArrayHeader {
    let byteCount: Int
    let hasNulls: Bool
    let elementType: TypeOID
    let elementCount: Int

    /// - Returns: the offset at which the elements of an array of bigints without NULLs begin; nil for anything else.
    @inline(__always)
    static func endOfBigintHeader(_ bytes: UnsafeRawBufferPointer) -> Int? {
        // Nearly all arrays have one dimension, no NULLs, and bigints, which is read at once.
        if bytes.count >= 20, bytes.loadUnaligned(as: UInt64.self) == UInt64(0x1_0000_0000).bigEndian,
            bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self) == TypeOID.int64.rawValue.bigEndian
        {
            let count = Int(Int32(bigEndian: bytes.loadUnaligned(fromByteOffset: 12, as: Int32.self)))
            return count * 12 == bytes.count - 20 ? 20 : nil
        }
        guard let header = ArrayHeader(bytes), header.elementType == .int64, !header.hasNulls,
            bytes.count - header.byteCount == header.elementCount * 12
        else { return nil }
        return header.byteCount
    }

    /// - Returns: nil for NULL, which has no bytes, and for a value of another type that cannot be an array.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let dimensions = bytes.int32(at: 0), let flags = bytes.int32(at: 4), let type = bytes.int32(at: 8),
            (0...6).contains(dimensions)
        else { return nil }
        var count = dimensions == 0 ? 0 : 1
        for dimension in 0..<dimensions {
            // Each element has a length of 4 bytes at least; without this bound the product could overflow.
            guard let length = bytes.int32(at: 12 + dimension * 8), (0...bytes.count).contains(length * count) else {
                return nil
            }
            count *= length
        }
        byteCount = 12 + dimensions * 8
        guard byteCount <= bytes.count else { return nil }
        hasNulls = flags != 0
        elementType = TypeOID(rawValue: UInt32(truncatingIfNeeded: type))
        elementCount = count
    }
}

/// A field of a composite value, which has the number of its fields and, for each, its type, its length and its bytes.
private struct RecordField {
    let type: Oid
    /// Nil for NULL.
    let value: UnsafeRawBufferPointer?

    /// - Returns: nil for a value that is no record, or has fewer fields.
    static func first(_ count: Int, of record: UnsafeRawBufferPointer) -> [RecordField]? {
        guard let fieldCount = record.int32(at: 0), fieldCount >= count else { return nil }
        var fields: [RecordField] = []
        fields.reserveCapacity(count)
        var offset = 4
        for _ in 0..<count {
            guard let type = record.int32(at: offset), let length = record.int32(at: offset + 4),
                length <= record.count - offset - 8
            else { return nil }
            offset += 8
            let value = length < 0 ? nil : UnsafeRawBufferPointer(rebasing: record[offset..<(offset + length)])
            fields.append(RecordField(type: Oid(truncatingIfNeeded: type), value: value))
            offset += max(length, 0)
        }
        return fields
    }
}

extension UnsafeRawBufferPointer {
    /// Reads a big-endian number; nil if the bytes end before.
    fileprivate func int32(at offset: Int) -> Int? {
        guard offset + 4 <= count else { return nil }
        return Int(Int32(bigEndian: loadUnaligned(fromByteOffset: offset, as: Int32.self)))
    }
}
