import Foundation

/// A time zone of the IANA database, for the dates in sentences.
public struct CivilTimeZone: Sendable, Hashable {
    /// The name in IANA's spelling: `Europe/Berlin`.
    public let name: String
    private let zone: TimeZone

    /// The most bytes of a name; IANA's names are shorter.
    public static let lengthMaximum = 64

    /// The form of a name, for error texts.
    public static let form = "the name of a time zone in IANA's spelling, such as Europe/Berlin"

    /// Looks up a zone. It is nil unless the text is a name in IANA's database in the same spelling (not
    /// `europe/berlin`). The database is Foundation's, which keeps the zones that it has looked up; the text never
    /// becomes the path of a file.
    public init?(_ text: some StringProtocol) {
        guard text.utf8.count <= CivilTimeZone.lengthMaximum, CivilTimeZone.isName(text),
            let zone = TimeZone(identifier: String(text))
        else { return nil }
        name = String(text)
        self.zone = zone
    }

    /// Whether the text may be a name of IANA's. Foundation also accepts offsets (`GMT+3`), abbreviations (`IST`), of
    /// which some mean several zones, and anything after a name and a byte that is 0.
    private static func isName(_ text: some StringProtocol) -> Bool {
        var hasSmallLetter = false
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"): hasSmallLetter = true
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"),
                UInt8(ascii: "_"), UInt8(ascii: "+"), UInt8(ascii: "-"):
                break
            default: return false
            }
        }
        return hasSmallLetter ? !text.hasPrefix("SystemV/") : namesInCapitals.contains(String(text))
    }

    private static let namesInCapitals: Set = [
        "CET", "CST6CDT", "EET", "EST", "EST5EDT", "GB", "GMT", "GMT+0", "GMT-0", "GMT0", "HST", "MET", "MST",
        "MST7MDT", "NZ", "NZ-CHAT", "PRC", "PST8PDT", "ROC", "ROK", "UCT", "UTC", "W-SU", "WET",
    ]

    fileprivate func secondsEastOfUTC(at instant: Instant) -> Int64 {
        Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(instant.secondsSince1970))))
    }

    public static func == (lhs: CivilTimeZone, rhs: CivilTimeZone) -> Bool { lhs.name == rhs.name }

    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

extension CivilTimeZone: CustomStringConvertible {
    public var description: String { name }
}

/// A date as an answer shows it.
public struct RelativeDate: Sendable, Equatable {
    public var date: CivilDate
    /// Whether the date is in another year than the answer, and so is shown with its year.
    public var isInOtherYear: Bool
    /// Whether the instant is the midnight at which the month of the answer ends.
    var endsThisMonth = false

    public init(_ date: CivilDate, isInOtherYear: Bool = false) {
        (self.date, self.isInOtherYear) = (date, isInOtherYear)
    }

    /// - Parameter zone: nil is UTC.
    init(_ instant: Instant, observedAt: Instant, in zone: CivilTimeZone?) {
        let now = CivilDate(daysSince1970: floorDivide(observedAt.civilSeconds(in: zone), 86_400))
        let seconds = instant.civilSeconds(in: zone)
        let day = floorDivide(seconds, 86_400)
        date = CivilDate(daysSince1970: day)
        isInOtherYear = date.year != now.year
        endsThisMonth =
            seconds == day * 86_400 && date.day == 1
            && (date.year * 12 + date.month) - (now.year * 12 + now.month) == 1
    }
}

extension Instant {
    /// Whole seconds from 1970 on a clock of the zone; nil is UTC.
    func civilSeconds(in zone: CivilTimeZone?) -> Int64 {
        secondsSince1970 + (zone?.secondsEastOfUTC(at: self) ?? 0)
    }
}
