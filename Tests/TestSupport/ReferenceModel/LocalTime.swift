import Foundation
import Usage

/// The days of a time zone by Foundation's rules, which do not come from PostgreSQL.
public struct LocalTime: Sendable {
    private let zone: TimeZone

    public init(zone name: String) {
        guard let zone = TimeZone(identifier: name) else { preconditionFailure("Foundation has no time zone \(name)") }
        self.zone = zone
    }

    public func date(of instant: Instant) -> CivilDate {
        let seconds = instant.secondsSince1970
        let offset = zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(seconds)))
        return Instant(secondsSince1970: seconds + Int64(offset)).date
    }

    /// The first instant of a day. Clocks are changed on a quarter of an hour, and no time zone is more than 14 hours
    /// from UTC.
    public func start(of day: CivilDate) -> Instant {
        let midnight = Instant(day).secondsSince1970
        let quarters = stride(from: midnight - 15 * 3_600, through: midnight + 15 * 3_600, by: 900)
        let first = quarters.lazy.map { Instant(secondsSince1970: $0) }
            .first { date(of: $0).daysSince1970 >= day.daysSince1970 }
        guard let first else { preconditionFailure("a day begins within 15 hours of midnight in UTC") }
        return first
    }
}
