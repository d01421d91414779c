import NIOCore
import Usage

/// Writes one line into memory that is reserved once. `ByteBuffer` would check uniqueness and capacity for each of an
/// answer's forty or so writes, and this checks a bound only.
struct LineWriter {
    private let start: UnsafeMutableRawPointer
    private let capacity: Int
    private(set) var count = 0

    /// The length of the longest `Int`: a sign and 19 digits.
    static let integerBytesMaximum = 20

    fileprivate init(_ start: UnsafeMutableRawPointer, capacity: Int) {
        self.start = start
        self.capacity = capacity
    }

    /// Writes the text unchanged, including control characters. It is not named `put`: a literal is a `String` by
    /// default, so `put("text")` would call the other `put`.
    ///
    /// It is inlined, because the compiler turns a copy of known length into a few moves.
    @inline(__always)
    mutating func putLiteral(_ text: StaticString) {
        requireCapacity(text.utf8CodeUnitCount)
        (start + count).copyMemory(from: text.utf8Start, byteCount: text.utf8CodeUnitCount)
        count += text.utf8CodeUnitCount
    }

    mutating func put(_ number: Int) {
        requireCapacity(LineWriter.integerBytesMaximum)
        if number < 0 { putUnchecked(UInt8(ascii: "-")) }
        var magnitude = number.magnitude
        count += LineWriter.digits(of: magnitude)
        var position = count
        while magnitude >= 100 {
            position -= 2
            putPair(magnitude % 100, at: position)
            magnitude /= 100
        }
        if magnitude >= 10 {
            putPair(magnitude, at: position - 2)
        } else {
            putUnchecked(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: magnitude), at: position - 1)
        }
    }

    private static func digits(of number: UInt) -> Int {
        var digits = 0
        var rest = number
        while rest >= 10_000 {
            digits += 4
            rest /= 10_000
        }
        return digits + (rest < 100 ? (rest < 10 ? 1 : 2) : (rest < 1_000 ? 3 : 4))
    }

    /// Writes two digits at once.
    private func putPair(_ pair: UInt, at position: Int) {
        let tens = pair / 10
        let digits = UInt16(truncatingIfNeeded: tens | (pair &- tens &* 10) << 8)
        start.storeBytes(of: (digits &+ 0x3030).littleEndian, toByteOffset: position, as: UInt16.self)
    }

    mutating func put(_ user: UserID) {
        requireCapacity(UserID.textLength)
        user.writeText(to: rest)
        count += UserID.textLength
    }

    mutating func put(_ instant: Instant) {
        requireCapacity(Instant.textLengthMaximum)
        count += instant.writeText(to: rest)
    }

    mutating func put(_ instant: WrittenInstant) {
        requireCapacity(WrittenInstant.bytesMaximum)
        count += instant.writeText(to: rest)
    }

    /// Writes a word that needs no quotes, such as the raw value of an enumeration.
    @inline(__always)
    mutating func putWord(_ word: String) {
        word.withBytes { put($0) }
    }

    /// Writes the text with a space for each control character, so that a plan's label cannot end an answer's line.
    mutating func put(_ text: String) {
        text.withBytes { source in
            if source.isPrintableASCII {
                put(source)
            } else {
                requireCapacity(source.count)
                for byte in source { putUnchecked(spaceIfControl(byte)) }
            }
        }
    }

    private mutating func put(_ source: UnsafeRawBufferPointer) {
        requireCapacity(source.count)
        rest.copyMemory(from: source)
        count += source.count
    }

    /// The memory that is not written yet.
    private var rest: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(start: start + count, count: capacity - count)
    }

    /// Writes a byte whose capacity was checked already.
    private mutating func putUnchecked(_ byte: UInt8) {
        putUnchecked(byte, at: count)
        count += 1
    }

    private func putUnchecked(_ byte: UInt8, at position: Int) {
        start.storeBytes(of: byte, toByteOffset: position, as: UInt8.self)
    }

    /// Callers compute the capacity. If it were too small, a trap is safer than a write past the end.
    private func requireCapacity(_ bytes: Int) {
        precondition(capacity - count >= bytes, "the line is longer than its capacity")
    }
}

extension LineWriter {
    /// Writes a field's value, in double quotes if it is empty or has spaces, quotes or backslashes. Control characters
    /// become spaces.
    mutating func putValue(_ value: String) {
        value.withBytes { source in
            if !source.isEmpty, source.isPlain(from: UInt8(ascii: "!")) {
                put(source)
            } else {
                putQuoted(source)
            }
        }
    }

    private mutating func putQuoted(_ source: UnsafeRawBufferPointer) {
        requireCapacity(2 * source.count + 2)
        putUnchecked(UInt8(ascii: "\""))
        if source.isPlain(from: UInt8(ascii: " ")) {
            put(source)
        } else {
            for byte in source {
                if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { putUnchecked(UInt8(ascii: "\\")) }
                putUnchecked(spaceIfControl(byte))
            }
        }
        putUnchecked(UInt8(ascii: "\""))
    }

    /// The most bytes that `putValue` writes: each one escaped, and the quotes. It is 0 for nil.
    static func valueBytesMaximum(_ value: String?) -> Int {
        value.map { 2 * $0.utf8.count + 2 } ?? 0
    }
}

extension ByteBuffer {
    /// Appends what `body` writes, and CRLF.
    ///
    /// - Parameter capacityBytes: at least the number of bytes that `body` writes.
    mutating func writeLine(capacityBytes: Int, _ body: (inout LineWriter) -> Void) {
        // A number and an instant require the capacity of the longest, so the last field may require 24 bytes more.
        writeWithUnsafeMutableBytes(minimumWritableBytes: capacityBytes + 24) { bytes in
            guard let start = bytes.baseAddress else { preconditionFailure("NIO has reserved no memory for a line") }
            var line = LineWriter(start, capacity: bytes.count)
            body(&line)
            line.putLiteral("\r\n")
            return line.count
        }
    }
}

extension String {
    /// Calls `body` with the bytes of UTF-8. Unlike `withUTF8`, it needs no copy of the string, whose reference would
    /// be counted.
    @inline(__always)
    fileprivate func withBytes(_ body: (UnsafeRawBufferPointer) -> Void) {
        if utf8.withContiguousStorageIfAvailable({ body(UnsafeRawBufferPointer($0)) }) == nil {
            var copy = self
            copy.withUTF8 { body(UnsafeRawBufferPointer($0)) }
        }
    }
}

private func spaceIfControl(_ byte: UInt8) -> UInt8 {
    byte < 0x20 || byte == 0x7F ? UInt8(ascii: " ") : byte
}
