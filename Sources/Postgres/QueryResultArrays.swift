/// One-dimensional arrays in a result; nil stands for a NULL element.
extension QueryResult {
    public func int32s(_ row: Int, _ column: Int) -> [Int32?] {
        array(row, column) { Int32(bigEndian: $0.loadUnaligned(as: Int32.self)) }
    }

    public func int64s(_ row: Int, _ column: Int) -> [Int64?] {
        array(row, column) { Int64(bigEndian: $0.loadUnaligned(as: Int64.self)) }
    }

    /// Each element of an array without NULLs, in turn; nothing is gathered.
    public func forEachInt64(_ row: Int, _ column: Int, _ body: (Int64) -> Void) {
        forEachElement(row, column) { bytes in
            if let bytes { body(Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))) }
        }
    }

    public func texts(_ row: Int, _ column: Int) -> [String?] {
        array(row, column) { String(decoding: $0, as: UTF8.self) }
    }

    private func array<Element>(
        _ row: Int,
        _ column: Int,
        _ decode: (UnsafeRawBufferPointer) -> Element
    ) -> [Element?] {
        var elements: [Element?] = []
        forEachElement(row, column) { elements.append($0.map(decode)) }
        return elements
    }

    /// The layout is described at `Parameters.appendArray`. Arrays of more dimensions are read as one row of elements.
    @inline(__always)
    private func forEachElement(_ row: Int, _ column: Int, _ body: (UnsafeRawBufferPointer?) -> Void) {
        let bytes = bytes(row, column)
        var offset = 0
        func next() -> Int {
            defer { offset += 4 }
            return Int(Int32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Int32.self)))
        }
        let dimensions = next()
        offset += 8  // whether there are NULLs, and the elements' type
        var count = dimensions == 0 ? 0 : 1
        for _ in 0..<dimensions {
            count *= next()
            offset += 4  // lower bound
        }
        for _ in 0..<count {
            let length = next()
            guard length >= 0 else {
                body(nil)
                continue
            }
            body(UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + length)]))
            offset += length
        }
    }
}
