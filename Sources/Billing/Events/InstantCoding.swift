import Usage

/// The form is ISO 8601 in UTC, with milliseconds or microseconds unless they are zero. Stores give milliseconds, which
/// order events of one second.
extension Instant: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let instant = Instant(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not an instant in ISO 8601")
        }
        self = instant
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(preciseText)
    }

    /// `2026-11-24T09:30:00.123Z`; a whole second has no fraction.
    public var preciseText: String {
        let microseconds = microsecondsSince1970 - secondsSince1970 * 1_000_000
        guard microseconds != 0 else { return text }
        let isWholeMillisecond = microseconds % 1_000 == 0
        let fraction = String(isWholeMillisecond ? microseconds / 1_000 : microseconds)
        let zeros = String(repeating: "0", count: (isWholeMillisecond ? 3 : 6) - fraction.utf8.count)
        return "\(text.dropLast()).\(zeros)\(fraction)Z"
    }
}

extension Instant {
    /// - Returns: nil outside the years 2000 to 9999, the range of the database.
    package init?(millisecondsSince1970 milliseconds: Int64) {
        guard (946_684_800_000..<253_402_300_800_000).contains(milliseconds) else { return nil }
        self.init(microsecondsSince1970: milliseconds * 1_000)
    }
}
