/// The service's present load, from the lines of `INFO`.
struct LiveFigures: Equatable, Sendable {
    enum Database: String, Sendable {
        case up, degraded, down

        /// A class of the stylesheet.
        var state: String {
            switch self {
            case .up: "good"
            case .degraded: "warning"
            case .down: "bad"
            }
        }
    }

    var answersPerSecond: Double
    /// Nil without answers in the last seconds.
    var p99Microseconds: Int?
    var queueDepth: Int
    var database: Database
    /// Answers with `shadow` since the start.
    var shadowAnswers: Int

    /// - Parameter info: lines `name=value`.
    init(info: [String]) {
        var values: [Substring: Substring] = [:]
        for line in info {
            guard let equals = line.firstIndex(of: "=") else { continue }
            values[line[..<equals]] = line[line.index(after: equals)...]
        }
        answersPerSecond = values["answers_per_second"].flatMap { Double($0) } ?? 0
        p99Microseconds = values["latency_p99_us"].flatMap { Int($0) }
        queueDepth = values["queue_depth"].flatMap { Int($0) } ?? 0
        shadowAnswers = values["answers_shadow"].flatMap { Int($0) } ?? 0
        database = values["database"].flatMap { Database(rawValue: String($0)) } ?? .down
    }

    var view: LiveView {
        let rate = rateText
        return LiveView(
            rate: rate,
            p99: p99Text,
            queue: NumberText.grouped(queueDepth),
            database: database.rawValue,
            state: database.state,
            number: answersPerSecond,
            sentence: "\(rate) answers a second, \(NumberText.count(queueDepth, "request")) waiting, the database is "
                + "\(database.rawValue)."
        )
    }

    private var rateText: String {
        if answersPerSecond >= 99.95 { return NumberText.grouped(Int(answersPerSecond.rounded())) }
        let tenths = Int((answersPerSecond * 10).rounded())
        return tenths == 0 ? "0" : "\(tenths / 10).\(tenths % 10)"
    }

    private var p99Text: String {
        guard let microseconds = p99Microseconds else { return "–" }
        if microseconds < 10_000 { return "\(LiveFigures.hundredths(microseconds / 10)) ms" }
        if microseconds < 1_000_000 { return "\(NumberText.grouped(microseconds / 1_000)) ms" }
        return "\(LiveFigures.hundredths(microseconds / 10_000)) s"
    }

    private static func hundredths(_ number: Int) -> String {
        let rest = number % 100
        return "\(number / 100).\(rest < 10 ? "0" : "")\(rest)"
    }
}

/// The live figures as the template and the script of the page show them.
struct LiveView: Encodable {
    var rate: String
    var p99: String
    var queue: String
    var database: String
    /// A class of the stylesheet.
    var state: String
    /// Answers per second, for the chart.
    var number: Double
    var sentence: String
}
