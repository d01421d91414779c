import NIOCore
import Usage

@testable import LineProtocol

extension Command {
    /// The request's tokens, with instants to the microsecond.
    var exactTokens: [String] {
        if case .setPlan(let change) = self { [verb.rawValue] + change.arguments } else { tokens }
    }

    /// The request as a client encodes it; nil for a plan change, because `encode` rounds instants to seconds.
    var encoded: [UInt8]? {
        if case .setPlan = self { return nil }
        var buffer = ByteBuffer()
        encode(into: &buffer)
        return Array(buffer.readableBytesView)
    }
}

extension PlanChange {
    fileprivate var arguments: [String] {
        [user.description, plan] + option("state", state?.rawValue) + option("started", startedAt?.exactText)
            + option("expires", expiresAt?.exactText) + option("grace_until", graceUntil?.exactText)
            + option("anchor", anchorDay.map(String.init))
    }
}

extension Instant {
    /// With microseconds, which `text` omits, and with an offset where an instant just before 1970 or after 9999 needs
    /// one.
    fileprivate var exactText: String {
        let year = date.year
        let offsetHours: Int64 = year < 1970 ? 23 : year > 9999 ? -23 : 0
        let minutes: Int64 = year < 1970 ? 59 : year > 9999 ? -59 : 0
        let shown = advanced(bySeconds: offsetHours * 3_600 + minutes * 60)
        let microseconds = String(shown.microsecondsSince1970 - shown.secondsSince1970 * 1_000_000)
        let fraction = String(repeating: "0", count: 6 - microseconds.count) + microseconds
        return shown.text.dropLast() + "." + fraction + (offsetHours == 0 ? "Z" : offsetHours > 0 ? "+23:59" : "-23:59")
    }
}

private func option(_ name: String, _ value: String?) -> [String] {
    value.map { ["\(name)=\($0)"] } ?? []
}
