import Foundation

// The model of docs/app-store-and-revenuecat.md, line for line, and a program that prints what an app shows for the
// answer on standard input. store_pages.py compares it with the page, and runs it with answers of the service.

/// An answer of `GET /v1/usage/{user}`, as the app's backend passes it on.
///
/// The answer to a message decodes as well: it has no `label`, `stateLabel` and `accessible`. While Headroom lets
/// messages through uncounted there is only a banner.
struct Usage: Decodable, Sendable {
    enum Display: String, Decodable, Sendable {
        case hidden, compact, trial, blocked
    }

    let display: Display?
    let plan, state, reason, label, stateLabel, accessible: String?
    let used, remaining: Int?
    /// Nil without a limit.
    let limit: Int?
    let banner, notice, steps: String?
    /// When the messages come back, when the store charges next, and when the access ends.
    let resets, renews, expires, graceUntil: Date?
    let nextPlan, previousPlan, price, currency: String?
    let manage: URL?

    static func decode(_ json: Data) throws -> Usage {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        decoder.dateDecodingStrategy = .iso8601
        return try decoder.decode(Usage.self, from: json)
    }
}

extension Usage {
    /// The line above the composer.
    var counter: String? {
        display == .hidden || display == .blocked ? nil : banner
    }

    /// What stands in place of the composer.
    var gate: String? {
        display == .blocked ? banner ?? "" : nil
    }

    /// "680 of 800 messages used"
    var row: String? {
        guard let used else { return nil }
        guard let limit else { return used == 1 ? "1 message used" : "\(used) messages used" }
        return "\(used) of \(limit) messages used"
    }

    /// The filled part of the bar, 0 to 1; nil without a limit.
    var fraction: Double? {
        guard let used, let limit else { return nil }
        return limit == 0 ? 1 : min(1, Double(used) / Double(limit))
    }

    struct Moment: Identifiable, Sendable {
        /// Its name.
        let id: String
        let date: Date
    }

    /// The dates of the detail sheet.
    var moments: [Moment] {
        let end = graceUntil ?? expires
        // An allowance that comes back after the end of access is of no use.
        var reset = resets
        if let end, let resets, end <= resets { reset = nil }
        let dates: [(String, Date?)] = [("Refreshes", reset), ("Renews", renews), ("Access until", end)]
        return dates.compactMap { name, date in date.map { Moment(id: name, date: $0) } }
    }
}

let usage = try Usage.decode(FileHandle.standardInput.readDataToEndOfFile())
let dates = usage.moments.map { "\($0.id) \($0.date.ISO8601Format())" }
let shown: [(String, String?)] = [
    ("counter", usage.counter), ("gate", usage.gate), ("row", usage.row), ("notice", usage.notice),
    ("steps", usage.steps), ("label", usage.label), ("state", usage.stateLabel), ("accessible", usage.accessible),
    ("fraction", usage.fraction.map { "\($0)" }), ("dates", dates.isEmpty ? nil : dates.joined(separator: ", ")),
    ("manage", usage.manage?.absoluteString),
]
for (name, text) in shown {
    if let text { print("\(name): \(text)") }
}
