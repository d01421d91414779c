import Foundation

/// `headroom top`: the activity of a service at one moment.
public struct TopSample: Sendable, Encodable {
    /// The answer to INFO.
    public let info: ServiceInfo
    /// Answers a second by tier and outcome since the previous sample; nil in the first.
    public let rates: [String: Double]?
    /// Answers a second since the previous sample; in the first, the rate that the service reports.
    public let perSecond: Double
    /// The answer to TOP; nil before it arrives, and if it was refused.
    public let busiest: [Record]?

    let target: String

    enum CodingKeys: String, CodingKey {
        case info, rates, busiest
        case perSecond = "per_second"
    }

    /// Counters of answers in INFO; the rates have the same names.
    static let outcomes = ["allowed", "blocked", "held", "ok"].map { "answers_" + $0 }
    static let tiers = Tiers.names.map { "tier_" + $0 }

    /// - Parameters:
    ///   - earlier: the previous answer to INFO, and the seconds since; nil for the first sample.
    public init(
        _ info: ServiceInfo,
        after earlier: (info: ServiceInfo, seconds: Double)?,
        busiest: [Record]?,
        target: String
    ) {
        self.info = info
        self.busiest = busiest
        self.target = target
        // The counters of a restarted service begin at 0.
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

    /// Every sample has the same names: a missing value is null.
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

    // MARK: One line a second

    /// The header of the lines that are printed where standard output is no terminal.
    public static let lineHeader = TopSample.line([
        "time", "a second", "p50 ms", "p99 ms", "silent", "gentle", "prominent", "blocked", "errors", "waiting",
    ])

    /// The sample as one line; rates are per second since the previous line.
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
