/// The parameters of one statement in PostgreSQL's binary format, one after the other in one buffer. The n-th value
/// that was appended is `$n`.
public struct Parameters: ~Copyable {
    @usableFromInline var bytes: UnsafeMutableRawPointer
    @usableFromInline var capacity: Int
    /// The number of bytes written.
    @usableFromInline var end = 0
    @usableFromInline var values: [Value] = []

    /// The position of a parameter: an offset, because the buffer moves as it grows.
    @usableFromInline
    struct Value {
        @usableFromInline var type: TypeOID
        @usableFromInline var offset: Int
        /// The length in bytes; -1 for NULL.
        @usableFromInline var length: Int

        @inlinable
        init(type: TypeOID, offset: Int, length: Int) {
            self.type = type
            self.offset = offset
            self.length = length
        }
    }

    @inlinable
    public init() {
        self.init(capacity: 256)
    }

    /// - Parameter capacity: the first size of the buffer in bytes.
    @inlinable
    public init(capacity: Int) {
        self.capacity = max(capacity, 16)
        bytes = .allocate(byteCount: self.capacity, alignment: 8)
        // This is enough for nearly every statement.
        values.reserveCapacity(16)
    }

    deinit {
        bytes.deallocate()
    }

    @inlinable public var count: Int { values.count }

    // MARK: Single values

    @inlinable
    public mutating func append(uuid: (high: UInt64, low: UInt64)) {
        reserve(16)
        appendValue(.uuid, length: 16)
        write(uuid.high)
        write(uuid.low)
    }

    @inlinable
    public mutating func append(int16: Int16) {
        reserve(2)
        appendValue(.int16, length: 2)
        write(int16)
    }

    @inlinable
    public mutating func append(int32: Int32?) {
        guard let int32 else { return appendNull(.int32) }
        reserve(4)
        appendValue(.int32, length: 4)
        write(int32)
    }

    @inlinable
    public mutating func append(int64: Int64?) {
        guard let int64 else { return appendNull(.int64) }
        reserve(8)
        appendValue(.int64, length: 8)
        write(int64)
    }

    @inlinable
    public mutating func append(bool: Bool?) {
        guard let bool else { return appendNull(.bool) }
        reserve(1)
        appendValue(.bool, length: 1)
        write(UInt8(bool ? 1 : 0))
    }

    /// - Parameter timestamptz: microseconds since 1970; `Int64.max` is infinity, `Int64.min` -infinity.
    @inlinable
    public mutating func append(timestamptz: Int64?) {
        guard let timestamptz else { return appendNull(.timestamptz) }
        reserve(8)
        appendValue(.timestamptz, length: 8)
        write(Timestamp.toPostgres(timestamptz))
    }

    @inlinable
    public mutating func append(text: String?) {
        guard let text else { return appendNull(.text) }
        let start = end
        write(utf8: text)
        values.append(Value(type: .text, offset: start, length: end - start))
    }

    @inlinable
    public mutating func append(bytes: UnsafeRawBufferPointer) {
        reserve(bytes.count)
        appendValue(.bytea, length: bytes.count)
        write(bytes)
    }

    @inlinable
    public mutating func append(bytes: [UInt8]?) {
        guard let bytes else { return appendNull(.bytea) }
        bytes.withUnsafeBytes { append(bytes: $0) }
    }

    @inlinable
    public mutating func appendNull(_ type: TypeOID) {
        values.append(Value(type: type, offset: 0, length: -1))
    }

    // MARK: Writing

    @inlinable
    mutating func appendValue(_ type: TypeOID, length: Int) {
        values.append(Value(type: type, offset: end, length: length))
    }

    @inlinable
    mutating func reserve(_ count: Int) {
        if capacity - end < count { grow(by: count) }
    }

    @usableFromInline
    mutating func grow(by count: Int) {
        let larger = max(capacity * 2, end + count)
        let moved = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 8)
        moved.copyMemory(from: bytes, byteCount: end)
        bytes.deallocate()
        bytes = moved
        capacity = larger
    }

    /// Writes in network byte order. The space must have been reserved.
    @inlinable
    mutating func write(_ value: some FixedWidthInteger) {
        bytes.storeBytes(of: value.bigEndian, toByteOffset: end, as: type(of: value))
        end += value.bitWidth / 8
    }

    /// Writes the bytes. The space must have been reserved.
    @inlinable
    mutating func write(_ source: UnsafeRawBufferPointer) {
        guard let address = source.baseAddress else { return }
        (bytes + end).copyMemory(from: address, byteCount: source.count)
        end += source.count
    }

    /// Writes the text, and reserves the space for it.
    @inlinable
    mutating func write(utf8 text: String) {
        var text = text
        text.withUTF8 { utf8 in
            reserve(utf8.count)
            write(UnsafeRawBufferPointer(utf8))
        }
    }
}

extension Parameters {
    /// Calls `body` with the parallel arrays that libpq's functions take. The pointers are valid during the call only.
    borrowing func withBinaryFormat<Result>(
        _ body: (
            _ count: Int32,
            _ types: UnsafePointer<UInt32>?,
            _ values: UnsafePointer<UnsafePointer<CChar>?>?,
            _ lengths: UnsafePointer<Int32>?,
            _ formats: UnsafePointer<Int32>?
        ) -> Result
    ) -> Result {
        let count = values.count
        return withUnsafeTemporaryAllocation(of: UnsafePointer<CChar>?.self, capacity: count) { pointers in
            withUnsafeTemporaryAllocation(of: UInt32.self, capacity: count) { types in
                withUnsafeTemporaryAllocation(of: Int32.self, capacity: 2 * count) { numbers in
                    for (index, value) in values.enumerated() {
                        let isNull = value.length < 0
                        let pointer = UnsafeRawPointer(bytes + value.offset).assumingMemoryBound(to: CChar.self)
                        pointers.initializeElement(at: index, to: isNull ? nil : pointer)
                        types.initializeElement(at: index, to: value.type.rawValue)
                        // The protocol limits a message to 1 GB, which fits Int32.
                        numbers.initializeElement(at: index, to: Int32(clamping: max(value.length, 0)))
                        numbers.initializeElement(at: count + index, to: 1)
                    }
                    let lengths = numbers.baseAddress.map { UnsafePointer($0) }
                    return body(
                        Int32(clamping: count),
                        UnsafePointer(types.baseAddress),
                        UnsafePointer(pointers.baseAddress),
                        lengths,
                        lengths.map { $0 + count }
                    )
                }
            }
        }
    }
}
