import NIOCore
import Usage

/// Fills one line in place. A `ByteBuffer` checks uniqueness and capacity at each write, and an answer has about
/// forty; here the room is made once and only its bound is checked.
struct LineWriter {
    private let start: UnsafeMutableRawPointer
    private let capacity: Int
    private(set) var count = 0

    /// The longest `Int`: a sign and 19 digits.
    static let integerBytesMaximum = 20

    fileprivate init(_ start: UnsafeMutableRawPointer, capacity: Int) {
        self.start = start
        self.capacity = capacity
    }

    /// The text as it is, control characters included. Not called `put`: a literal would be taken for a `String`.
    ///
    /// Inlined, because a copy whose length the compiler knows is a few moves and no call.
    @inline(__always)
    mutating func putLiteral(_ text: StaticString) {
        makeSure(text.utf8CodeUnitCount)
        (start + count).copyMemory(from: text.utf8Start, byteCount: text.utf8CodeUnitCount)
        count += text.utf8CodeUnitCount
    }

    mutating func put(_ number: Int) {
        makeSure(LineWriter.integerBytesMaximum)
        if number < 0 { putUnchecked(UInt8(ascii: "-")) }
        var rest = number.magnitude
        count += LineWriter.digits(of: rest)
        var position = count
        while rest >= 100 {
            position -= 2
            putPair(rest % 100, at: position)
            rest /= 100
        }
        if rest >= 10 {
            putPair(rest, at: position - 2)
        } else {
            putUnchecked(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest), at: position - 1)
        }
    }

    private static func digits(of number: UInt) -> Int {
        var digits = 1
        var power: UInt = 10
        // The largest `Int` has 19 digits, and the first power with more would soon overflow.
        while number >= power, digits < 19 {
            digits += 1
            power &*= 10
        }
        return digits
    }

    private func putPair(_ pair: UInt, at position: Int) {
        putUnchecked(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: pair / 10), at: position)
        putUnchecked(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: pair % 10), at: position + 1)
    }

    mutating func put(_ user: UserID) {
        makeSure(UserID.textLength)
        user.writeText(to: room)
        count += UserID.textLength
    }

    mutating func put(_ instant: Instant) {
        makeSure(Instant.textLengthMaximum)
        count += instant.writeText(to: room)
    }

    /// A name that needs neither quotes nor care: the raw value of an enumeration.
    @inline(__always)
    mutating func putName(_ name: String) {
        var name = name
        name.withUTF8 { put(UnsafeRawBufferPointer($0)) }
    }

    /// The text, with a space for each control character: whatever an operator wrote into a plan's label, an answer
    /// stays one line.
    mutating func put(_ text: String) {
        var text = text
        text.withUTF8 { utf8 in
            let source = UnsafeRawBufferPointer(utf8)
            if source.isPrintableASCII {
                put(source)
            } else {
                makeSure(source.count)
                for byte in source { putUnchecked(spaceIfControl(byte)) }
            }
        }
    }

    private mutating func put(_ source: UnsafeRawBufferPointer) {
        makeSure(source.count)
        room.copyMemory(from: source)
        count += source.count
    }

    /// What is not written yet.
    private var room: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(start: start + count, count: capacity - count)
    }

    /// For bytes whose room has been made sure of together.
    private mutating func putUnchecked(_ byte: UInt8) {
        putUnchecked(byte, at: count)
        count += 1
    }

    private func putUnchecked(_ byte: UInt8, at position: Int) {
        start.storeBytes(of: byte, toByteOffset: position, as: UInt8.self)
    }

    /// The room is the callers' arithmetic; were it wrong, stopping here is better than writing past the end.
    private func makeSure(_ room: Int) {
        precondition(capacity - count >= room, "a line was given too little room")
    }
}

extension LineWriter {
    /// A field's value: as it is, or in double quotes when a reader that splits at spaces would misread it; control
    /// characters count as spaces, because they become some.
    mutating func putValue(_ value: String) {
        var value = value
        value.withUTF8 { utf8 in
            let source = UnsafeRawBufferPointer(utf8)
            if !source.isEmpty, source.isPlain(from: UInt8(ascii: "!")) {
                put(source)
            } else {
                putQuoted(source)
            }
        }
    }

    private mutating func putQuoted(_ source: UnsafeRawBufferPointer) {
        makeSure(2 * source.count + 2)
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

    /// The most bytes that `putValue` writes: each one escaped, and the quotes. A field without a value takes none.
    static func valueBytesMaximum(_ value: String?) -> Int {
        value.map { 2 * $0.utf8.count + 2 } ?? 0
    }
}

extension ByteBuffer {
    /// Appends what `body` writes, and CRLF.
    ///
    /// - Parameter capacityBytes: no fewer than `body` writes.
    mutating func writeLine(capacityBytes: Int, _ body: (inout LineWriter) -> Void) {
        // An integer and an instant ask for the room of the longest, so that much more is there than the line needs.
        writeWithUnsafeMutableBytes(minimumWritableBytes: capacityBytes + 24) { bytes in
            guard let start = bytes.baseAddress else { preconditionFailure("a line was given no room") }
            var line = LineWriter(start, capacity: bytes.count)
            body(&line)
            line.putLiteral("\r\n")
            return line.count
        }
    }
}

private func spaceIfControl(_ byte: UInt8) -> UInt8 {
    byte < 0x20 || byte == 0x7F ? UInt8(ascii: " ") : byte
}
