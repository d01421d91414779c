/// One-dimensional arrays, written in place: a closure returns each element in turn, so that no array is built first.
extension Parameters {
    @inlinable
    public mutating func appendUUIDs(count: Int, _ element: (_ index: Int) -> (high: UInt64, low: UInt64)) {
        appendFixedArray(.uuidArray, of: .uuid, count: count, elementLength: 16) { parameters, index in
            let (high, low) = element(index)
            parameters.write(high)
            parameters.write(low)
        }
    }

    @inlinable
    public mutating func appendInt64s(count: Int, _ element: (_ index: Int) -> Int64) {
        appendFixedArray(.int64Array, of: .int64, count: count, elementLength: 8) { parameters, index in
            parameters.write(element(index))
        }
    }

    @inlinable
    public mutating func appendInt32s(count: Int, _ element: (_ index: Int) -> Int32) {
        appendFixedArray(.int32Array, of: .int32, count: count, elementLength: 4) { parameters, index in
            parameters.write(element(index))
        }
    }

    /// - Parameter element: returns nil for NULL.
    @inlinable
    public mutating func appendNullableInt64s(count: Int, _ element: (_ index: Int) -> Int64?) {
        appendArray(.int64Array, of: .int64, count: count) { $0.writeElement(element($1)) }
    }

    /// - Parameter element: returns nil for NULL.
    @inlinable
    public mutating func appendNullableInt32s(count: Int, _ element: (_ index: Int) -> Int32?) {
        appendArray(.int32Array, of: .int32, count: count) { $0.writeElement(element($1)) }
    }

    @inlinable
    public mutating func appendBools(count: Int, _ element: (_ index: Int) -> Bool) {
        appendFixedArray(.boolArray, of: .bool, count: count, elementLength: 1) { parameters, index in
            parameters.write(UInt8(element(index) ? 1 : 0))
        }
    }

    /// - Parameter element: returns microseconds since 1970, or nil for NULL.
    @inlinable
    public mutating func appendTimestamps(count: Int, _ element: (_ index: Int) -> Int64?) {
        appendArray(.timestamptzArray, of: .timestamptz, count: count) {
            $0.writeElement(element($1).map { Timestamp.toPostgres($0) })
        }
    }

    /// - Returns: false for NULL.
    @inlinable
    mutating func writeElement(_ value: (some FixedWidthInteger)?) -> Bool {
        reserve(4 + MemoryLayout<UInt64>.size)
        guard let value else {
            write(Int32(-1))
            return false
        }
        write(Int32(value.bitWidth / 8))
        write(value)
        return true
    }

    /// - Parameter element: returns the text, or nil for NULL.
    @inlinable
    public mutating func appendTexts(count: Int, _ element: (_ index: Int) -> String?) {
        appendArray(.textArray, of: .text, count: count) { parameters, index in
            parameters.reserve(4)
            let lengthOffset = parameters.end
            guard let text = element(index) else {
                parameters.write(Int32(-1))
                return false
            }
            parameters.end += 4
            parameters.write(utf8: text)
            parameters.patch(Int32(clamping: parameters.end - lengthOffset - 4), at: lengthOffset)
            return true
        }
    }

    /// Appends an array whose elements all have `elementLength` bytes and are not NULL, so the space is reserved once
    /// for all.
    @inlinable
    mutating func appendFixedArray(
        _ type: TypeOID,
        of elementType: TypeOID,
        count: Int,
        elementLength: Int,
        _ writeElement: (inout Parameters, Int) -> Void
    ) {
        reserve(20 + count * (4 + elementLength))
        appendArray(type, of: elementType, count: count) { parameters, index in
            parameters.write(Int32(truncatingIfNeeded: elementLength))
            writeElement(&parameters, index)
            return true
        }
    }

    /// Appends an array in the binary form (PostgreSQL's array_recv): number of dimensions, whether there are NULLs,
    /// the elements' type; for each dimension length and lower bound; then the elements, each after its length. The
    /// empty array has no dimension.
    ///
    /// - Parameter writeElement: writes length and value of one element; it returns false if that was NULL.
    @inlinable
    mutating func appendArray(
        _ type: TypeOID,
        of elementType: TypeOID,
        count: Int,
        _ writeElement: (inout Parameters, Int) -> Bool
    ) {
        let start = end
        reserve(20)
        write(Int32(count == 0 ? 0 : 1))
        write(Int32(0))
        write(elementType.rawValue)
        if count > 0 {
            write(Int32(clamping: count))
            write(Int32(1))
        }
        var hasNull = false
        for index in 0..<count where !writeElement(&self, index) {
            hasNull = true
        }
        if hasNull { patch(Int32(1), at: start + 4) }
        values.append(Value(type: type, offset: start, length: end - start))
    }

    @inlinable
    mutating func patch(_ value: Int32, at offset: Int) {
        bytes.storeBytes(of: value.bigEndian, toByteOffset: offset, as: Int32.self)
    }
}
