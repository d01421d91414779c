/// One-dimensional arrays in a result; nil stands for a NULL element. They throw as the other getters do.
extension QueryResult {
    public func int32s(_ row: Int, _ column: Int) throws(PostgresError) -> [Int32?] {
        try array(row, column, .int32Array, of: .int32) { Int32(bigEndian: $0.loadUnaligned(as: Int32.self)) }
    }

    public func int64s(_ row: Int, _ column: Int) throws(PostgresError) -> [Int64?] {
        try array(row, column, .int64Array, of: .int64) { Int64(bigEndian: $0.loadUnaligned(as: Int64.self)) }
    }

    /// Each element of an array without NULLs, in turn; nothing is gathered.
    public func forEachInt64(_ row: Int, _ column: Int, _ body: (Int64) -> Void) throws(PostgresError) {
        try forEachElement(row, column, .int64Array, of: .int64) { bytes in
            if let bytes { body(Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))) }
        }
    }

    public func texts(_ row: Int, _ column: Int) throws(PostgresError) -> [String?] {
        try array(row, column, .textArray, of: .text) { String(decoding: $0, as: UTF8.self) }
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

    /// The layout is described at `Parameters.appendArray`. Arrays of more dimensions are read as one row of elements.
    @inline(__always)
    private func forEachElement(
        _ row: Int,
        _ column: Int,
        _ type: TypeOID,
        of elementType: TypeOID,
        _ body: (UnsafeRawBufferPointer?) -> Void
    ) throws(PostgresError) {
        let bytes = bytes(row, column)
        func word(_ offset: Int) -> Int {
            Int(Int32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Int32.self)))
        }
        // NULL has no bytes. Without the type, a value may have any.
        guard self.type(column) == type, bytes.count >= 12, word(8) == Int(elementType.rawValue) else {
            throw mismatch(row, column, wanted: type)
        }
        let dimensions = word(0)
        var offset = 12
        var count = dimensions == 0 ? 0 : 1
        for _ in 0..<dimensions {
            count *= word(offset)
            offset += 8  // the length, and the lower bound
        }
        for _ in 0..<count {
            let length = word(offset)
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
