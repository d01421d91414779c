import Foundation

// Conversions from and to Foundation's types, which the service itself does not use for messages.

extension UserID {
    public init(_ uuid: UUID) {
        self = withUnsafeBytes(of: uuid.uuid) { bytes in
            UserID(
                high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
                low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
    }
}

extension UUID {
    public init(_ user: UserID) {
        var bytes: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        withUnsafeMutableBytes(of: &bytes) { bytes in
            bytes.storeBytes(of: user.high.bigEndian, as: UInt64.self)
            bytes.storeBytes(of: user.low.bigEndian, toByteOffset: 8, as: UInt64.self)
        }
        self.init(uuid: bytes)
    }
}

extension MessageKey {
    /// The UUID's text in lower case, as PostgreSQL and most languages write it.
    public init(_ uuid: UUID) {
        self.init(validated: UserID(uuid).description)
    }
}

extension InvalidMessageKey: LocalizedError {
    public var errorDescription: String? { description }
}

extension Instant {
    /// Keeps microseconds. A date beyond what `Instant` can hold becomes the nearest that it can; the service refuses a
    /// year that is not 2000 to 9999.
    public init(_ date: Date) {
        let microseconds = (date.timeIntervalSince1970 * 1_000_000).rounded()
        // Beyond these, and for what is no number, there is no such integer.
        let exact = Int64(exactly: microseconds)
        self.init(microsecondsSince1970: exact ?? (microseconds > 0 ? .max : .min))
    }
}

extension Date {
    public init(_ instant: Instant) {
        self.init(timeIntervalSince1970: Double(instant.microsecondsSince1970) / 1_000_000)
    }
}

extension UsageStatus {
    /// `resets` as a date.
    public var resetDate: Date? { resets.map { Date($0) } }
    /// `expires` as a date.
    public var expirationDate: Date? { expires.map { Date($0) } }
    /// `renews` as a date.
    public var renewalDate: Date? { renews.map { Date($0) } }
    /// `graceUntil` as a date.
    public var graceEndDate: Date? { graceUntil.map { Date($0) } }
}
