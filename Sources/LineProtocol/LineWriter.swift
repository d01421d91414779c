import NIOCore
import Usage

/// Fills one line in place. A `ByteBuffer` checks uniqueness and capacity at each write, and an answer has about
/// forty; here the room is made once and only its bound is checked.
struct LineWriter {
    private let bytes: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    /// The longest `Int`: a sign and 19 digits.
    static let integerBytesMaximum = 20

    /// An instant has 20 characters, and two more for years past 9999.
    private static let instantBytesMaximum = 22

    fileprivate init(_ bytes: UnsafeMutableRawBufferPointer) {
        self.bytes = bytes
    }

    mutating func put(_ byte: UInt8) {
        makeSure(1)
        putUnchecked(byte)
    }

    /// The text as it is, control characters included. Not called `put`: a literal would be taken for a `String`.
    mutating func putLiteral(_ text: StaticString) {
        put(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    mutating func put(_ number: Int) {
        makeSure(LineWriter.integerBytesMaximum)
        if number < 0 { put(UInt8(ascii: "-")) }
        var digits = 1
        var power: UInt = 10
        while power <= number.magnitude {
            digits += 1
            let (next, overflow) = power.multipliedReportingOverflow(by: 10)
            if overflow { break }
            power = next
        }
        var rest = number.magnitude
        for position in stride(from: count + digits - 1, through: count, by: -1) {
            bytes[position] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        }
        count += digits
    }

    mutating func put(_ user: UserID) {
        makeSure(UserID.textLength)
        user.forEachTextByte { putUnchecked($0) }
    }

    mutating func put(_ instant: Instant) {
        makeSure(LineWriter.instantBytesMaximum)
        instant.forEachTextByte { putUnchecked($0) }
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
        UnsafeMutableRawBufferPointer(rebasing: bytes[count...]).copyMemory(from: source)
        count += source.count
    }

    /// For bytes whose room has been made sure of together.
    private mutating func putUnchecked(_ byte: UInt8) {
        bytes[count] = byte
        count += 1
    }

    /// The room is the callers' arithmetic; were it wrong, stopping here is better than writing past the end.
    private func makeSure(_ room: Int) {
        precondition(bytes.count - count >= room, "a line was given too little room")
    }
}

extension LineWriter {
    /// A field's value: as it is, or in double quotes when a reader that splits at spaces would misread it.
    mutating func putValue(_ value: String) {
        var value = value
        value.withUTF8 { utf8 in
            let source = UnsafeRawBufferPointer(utf8)
            if source.isEmpty || source.contains(where: LineWriter.isQuoted) {
                putQuoted(source)
            } else {
                put(source)
            }
        }
    }

    private mutating func putQuoted(_ source: UnsafeRawBufferPointer) {
        makeSure(2 * source.count + 2)
        putUnchecked(UInt8(ascii: "\""))
        for byte in source {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { putUnchecked(UInt8(ascii: "\\")) }
            putUnchecked(spaceIfControl(byte))
        }
        putUnchecked(UInt8(ascii: "\""))
    }

    /// A value with this byte stands in quotes; control characters do, because they become spaces.
    private static func isQuoted(_ byte: UInt8) -> Bool {
        byte <= UInt8(ascii: " ") || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte == 0x7F
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
            var line = LineWriter(bytes)
            body(&line)
            line.putLiteral("\r\n")
            return line.count
        }
    }
}

private func spaceIfControl(_ byte: UInt8) -> UInt8 {
    byte < 0x20 || byte == 0x7F ? UInt8(ascii: " ") : byte
}
