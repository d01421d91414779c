import Foundation

/// `headroom top`: what a service does at this moment.
public struct TopSample: Sendable, Encodable {
    /// The answer to INFO.
    public let info: ServiceInfo
    /// Answers a second by tier and outcome since the picture before this one; nil in the first.
    public let rates: [String: Double]?
    /// Answers a second: since the picture before, or of the last seconds.
    public let perSecond: Double
    /// The answer to TOP; nil until it has come, and where it was refused.
    public let busiest: [Record]?

    let target: String

    enum CodingKeys: String, CodingKey {
        case info, rates, busiest
        case perSecond = "per_second"
    }

    /// What is a counter of answers in INFO; the rates have the same names.
    static let outcomes = ["allowed", "blocked", "held", "ok"].map { "answers_" + $0 }
    static let tiers = Tiers.names.map { "tier_" + $0 }

    /// - Parameters:
    ///   - earlier: the answer to an INFO so many seconds before; nil if this is the first.
    public init(
        _ info: ServiceInfo,
        after earlier: (info: ServiceInfo, seconds: Double)?,
        busiest: [Record]?,
        target: String
    ) {
        self.info = info
        self.busiest = busiest
        self.target = target
        // A service that started anew meanwhile counts from 0.
        if let earlier, earlier.seconds > 0, earlier.info.count("uptime_s") <= info.count("uptime_s") {
            let names = TopSample.outcomes + TopSample.tiers + ["errors"]
            let rates = Dictionary(
                uniqueKeysWithValues: names.map { name in
                    let counted = max(0, info.count(name) - earlier.info.count(name))
                    return (name, (Double(counted) / earlier.seconds * 10).rounded() / 10)
                }
            )
            self.rates = rates
            perSecond = TopSample.outcomes.reduce(0) { $0 + (rates[$1] ?? 0) }
        } else {
            rates = nil
            perSecond = info.number("answers_per_second") ?? 0
        }
    }

    /// With a null where something is not known: each picture has the same names.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(info, forKey: .info)
        try container.encode(rates, forKey: .rates)
        try container.encode(perSecond, forKey: .perSecond)
        try container.encode(busiest, forKey: .busiest)
    }

    func rate(_ name: String) -> String { rates?[name].map(rate) ?? "-" }

    func rate(_ number: Double) -> String {
        number < 100 ? String(format: "%.1f", number) : grouped(Int(number.rounded()))
    }

    func latency(_ name: String) -> String {
        info.number("latency_\(name)_us").map { String(format: "%.2f ms", $0 / 1_000) } ?? "-"
    }

    // MARK: A line

    /// Over the lines, where there is no terminal to draw a picture on.
    public static let lineHeader = TopSample.line([
        "time", "a second", "p50 ms", "p99 ms", "silent", "gentle", "prominent", "blocked", "errors", "waiting",
    ])

    /// One line; the counts are those since the line before, a second.
    public func line(at time: String) -> String {
        func milliseconds(_ name: String) -> String {
            info.number("latency_\(name)_us").map { String(format: "%.2f", $0 / 1_000) } ?? "-"
        }
        return TopSample.line(
            [time, rate(perSecond), milliseconds("p50"), milliseconds("p99")]
                + TopSample.tiers.map { rate($0) } + [rate("errors"), grouped(info.count("queue_depth"))]
        )
    }

    private static func line(_ cells: [String]) -> String {
        cells.enumerated().map { index, cell in
            String(repeating: " ", count: max(0, (index == 0 ? 8 : 9) - cell.count)) + cell
        }.joined(separator: " ")
    }
}
