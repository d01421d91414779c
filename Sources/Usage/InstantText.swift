extension Instant {
    /// Parses ISO 8601: `2026-11-24`, `2026-11-24T09:30:00Z`, with a fraction of up to six digits, and with an offset
    /// (`+01:00`) instead of `Z`. A date alone is its midnight in UTC. The year is 2000 to 9999.
    ///
    /// The result is nil for anything else, including `infinity` and days that do not exist.
    package init?(_ text: some StringProtocol) {
        let instant = Array(text.utf8).withUnsafeBytes { Instant($0) }
        guard let instant else { return nil }
        self = instant
    }

    /// Parses bytes without creating a `String`.
    package init?(_ text: UnsafeRawBufferPointer) {
        var scanner = DigitScanner(text[...])
        guard let year = scanner.digits(4), scanner.skip("-"), let month = scanner.digits(2), scanner.skip("-"),
            let day = scanner.digits(2), (2000...9999).contains(year), (1...12).contains(month),
            (1...CivilDate.daysInMonth(year: year, month: month)).contains(day)
        else { return nil }
        let midnight = Instant(CivilDate(year: year, month: month, day: day))
        if scanner.isAtEnd {
            self = midnight
            return
        }
        guard scanner.skip("T"), let hour = scanner.digits(2), scanner.skip(":"), let minute = scanner.digits(2),
            scanner.skip(":"), let second = scanner.digits(2), hour < 24, minute < 60, second < 60,
            let fraction = scanner.fraction(), let offset = scanner.offsetMinutes(), scanner.isAtEnd
        else { return nil }
        let seconds = (hour * 60 + minute - offset) * 60 + second
        // The offset may lead to a year out of range.
        self.init(validating: midnight.microsecondsSince1970 + Int64(seconds) * 1_000_000 + Int64(fraction))
    }

    /// The instant as ISO 8601 in UTC to the second: `2026-11-24T09:30:00Z`, 20 characters.
    public var text: String {
        String(unsafeUninitializedCapacity: Instant.textLengthMaximum) { bytes in
            writeText(to: UnsafeMutableRawBufferPointer(bytes))
        }
    }

    /// The length of the longest text: years past 9999 are written with six digits.
    public static var textLengthMaximum: Int { 22 }

    /// Writes `text` to the beginning of `bytes`, which must have at least `textLengthMaximum` bytes.
    ///
    /// - Returns: the number of bytes written.
    public func writeText(to bytes: UnsafeMutableRawBufferPointer) -> Int {
        precondition(bytes.count >= Instant.textLengthMaximum, "the buffer is too small for an instant")
        let seconds = secondsSince1970
        let day = floorDivide(seconds, 86_400)
        let date = CivilDate(daysSince1970: day)
        let second = Int(seconds - day * 86_400)
        let year = max(0, date.year)
        let start = year > 9999 ? 2 : 0
        if year > 9999 { bytes.put(twoDigits: year / 10_000, at: 0) }
        bytes.put(twoDigits: year / 100 % 100, at: start)
        bytes.put(twoDigits: year % 100, at: start + 2)
        bytes[start + 4] = UInt8(ascii: "-")
        bytes.put(twoDigits: date.month, at: start + 5)
        bytes[start + 7] = UInt8(ascii: "-")
        bytes.put(twoDigits: date.day, at: start + 8)
        bytes[start + 10] = UInt8(ascii: "T")
        bytes.put(twoDigits: second / 3_600, at: start + 11)
        bytes[start + 13] = UInt8(ascii: ":")
        bytes.put(twoDigits: second / 60 % 60, at: start + 14)
        bytes[start + 16] = UInt8(ascii: ":")
        bytes.put(twoDigits: second % 60, at: start + 17)
        bytes[start + 19] = UInt8(ascii: "Z")
        return start + 20
    }
}

/// An instant that is written once and shown by many answers.
public struct WrittenInstant: Sendable {
    /// The bytes of the text. The tuple has room for at least `textLengthMaximum` bytes.
    private var bytes: (UInt64, UInt64, UInt64) = (0, 0, 0)
    private let count: Int

    init(_ instant: Instant) {
        count = withUnsafeMutableBytes(of: &bytes) { instant.writeText(to: $0) }
    }

    /// Writes the text as `Instant.writeText(to:)` does.
    public func writeText(to target: UnsafeMutableRawBufferPointer) -> Int {
        precondition(target.count >= WrittenInstant.bytesMaximum, "the buffer is too small for an instant")
        target.storeBytes(of: bytes.0, as: UInt64.self)
        target.storeBytes(of: bytes.1, toByteOffset: 8, as: UInt64.self)
        target.storeBytes(of: bytes.2, toByteOffset: 16, as: UInt64.self)
        return count
    }

    public var text: String {
        String(unsafeUninitializedCapacity: WrittenInstant.bytesMaximum) { bytes in
            writeText(to: UnsafeMutableRawBufferPointer(bytes))
        }
    }

    /// The number of bytes that `writeText(to:)` overwrites, whatever the length of the text.
    public static var bytesMaximum: Int { MemoryLayout<(UInt64, UInt64, UInt64)>.size }
}

extension UnsafeMutableRawBufferPointer {
    /// - Parameter number: 0 to 99.
    fileprivate func put(twoDigits number: Int, at position: Int) {
        let (tens, units) = UInt16(truncatingIfNeeded: number).quotientAndRemainder(dividingBy: 10)
        storeBytes(of: (0x3030 &+ tens &+ units << 8).littleEndian, toByteOffset: position, as: UInt16.self)
    }
}

extension Instant: CustomStringConvertible {
    public var description: String { text }
}

/// Reads fixed-width ASCII numbers. A method that fails at its first byte does not advance the scanner.
private struct DigitScanner {
    private var rest: Slice<UnsafeRawBufferPointer>

    init(_ bytes: Slice<UnsafeRawBufferPointer>) {
        rest = bytes
    }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard rest.first == UInt8(ascii: character) else { return false }
        rest.removeFirst()
        return true
    }

    mutating func digits(_ count: Int) -> Int? {
        guard rest.count >= count else { return nil }
        var number = 0
        for byte in rest.prefix(count) {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            number = number * 10 + Int(byte - UInt8(ascii: "0"))
        }
        rest.removeFirst(count)
        return number
    }

    /// Reads an optional fraction such as `.123456` as microseconds; nil unless one to six digits follow the dot.
    mutating func fraction() -> Int? {
        guard skip(".") else { return 0 }
        var microseconds = 0
        var unit = 1_000_000
        while let digit = digits(1) {
            guard unit > 1 else { return nil }
            unit /= 10
            microseconds += digit * unit
        }
        return unit == 1_000_000 ? nil : microseconds
    }

    /// Reads an offset as minutes east of UTC; `Z` is 0.
    mutating func offsetMinutes() -> Int? {
        if skip("Z") { return 0 }
        let sign: Int
        if skip("+") {
            sign = 1
        } else if skip("-") {
            sign = -1
        } else {
            return nil
        }
        guard let hours = digits(2), skip(":"), let minutes = digits(2), hours < 24, minutes < 60 else { return nil }
        return sign * (hours * 60 + minutes)
    }
}
