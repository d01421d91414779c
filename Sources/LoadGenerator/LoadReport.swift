import Foundation

/// An optional value that is encoded as null when it is nil; Swift would omit its key.
public struct Nullable<Value: Encodable & Sendable & Equatable>: Encodable, Sendable, Equatable {
    public var value: Value?

    public init(_ value: Value?) {
        self.value = value
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let value { try container.encode(value) } else { try container.encodeNil() }
    }
}

/// The results of a run. docs/benchmarking.md documents the names in JSON, which do not change.
public struct LoadReport: Sendable, Encodable {
    public struct Distribution: Sendable, Equatable, Encodable {
        public var min, mean, p50, p90, p99, p999, p9999, max: Double

        enum CodingKeys: String, CodingKey {
            case min, mean, p50, p90, p99, max
            case p999 = "p99_9"
            case p9999 = "p99_99"
        }

        /// The result is nil when nothing was recorded.
        init?(_ latencies: Latencies) {
            guard latencies.count > 0 else { return nil }
            func at(_ percent: Double) -> Double { latencies.percentile(percent).milliseconds }
            min = latencies.minimum.milliseconds
            mean = UInt64(latencies.mean).milliseconds
            p50 = at(50)
            p90 = at(90)
            p99 = at(99)
            p999 = at(99.9)
            p9999 = at(99.99)
            max = latencies.maximum.milliseconds
        }
    }

    public let target: String
    public let mode: String
    public let connections: Int
    public let idleConnections: Int
    public let threads: Int
    public let pipeline: Nullable<Int>
    public let rateOffered: Nullable<Double>
    public let arrivals: Nullable<String>
    public let users: Int
    public let distribution: String
    public let verb: Nullable<String>
    public let messages: Nullable<Int>
    public let keyShare: Nullable<Double>
    public let command: Nullable<String>
    public let seed: UInt64
    public let seconds: Double
    public let requests: Int
    public let replies: Int
    public let allowed: Int
    public let blocked: Int
    public let other: Int
    public let errors: [String: Int]
    public let dropped: Int
    public let unanswered: Int
    public let brokenConnections: Int
    public let idleConnectionsClosed: Int
    public let warmupReplies: Int
    public let warmupAllowed: Int
    public let perSecond: Double
    public let clamped: Int
    public let latency: Nullable<Distribution>
    /// How late requests were sent; nil for closed loops.
    public let sendLag: Distribution?
    public let series: [SecondLine]
    /// Reasons to doubt the figures; empty when there are none.
    public let problems: [String]

    enum CodingKeys: String, CodingKey {
        case target, mode, connections, threads, pipeline, arrivals, users, distribution, verb, messages, command, seed
        case seconds, requests, replies, allowed, blocked, other, errors, dropped, unanswered, clamped, series, problems
        case idleConnections = "idle_connections"
        case rateOffered = "rate_offered"
        case keyShare = "key_share"
        case brokenConnections = "broken_connections"
        case idleConnectionsClosed = "idle_connections_closed"
        case warmupReplies = "warmup_replies"
        case warmupAllowed = "warmup_allowed"
        case perSecond = "per_second"
        case latency = "latency_ms"
        case sendLag = "send_lag_ms"
    }

    init(_ plan: LoadPlan, _ results: ResultAggregator) {
        target = plan.host.contains(":") ? "[\(plan.host)]:\(plan.port)" : "\(plan.host):\(plan.port)"
        connections = plan.connections
        idleConnections = plan.idleConnections
        threads = plan.threads
        users = plan.users
        distribution = plan.distribution.description
        seed = plan.seed
        let workers = results.results
        switch plan.pace {
        case .closed(let inFlight):
            mode = "closed"
            pipeline = Nullable(inFlight)
            rateOffered = Nullable(nil)
            arrivals = Nullable(nil)
            sendLag = nil
        case .open(let rate, let process):
            mode = "open"
            pipeline = Nullable(nil)
            rateOffered = Nullable(rate)
            arrivals = Nullable(process.rawValue)
            var lag = Latencies.none
            for result in workers { lag.add(result.sendLag) }
            sendLag = Distribution(lag)
        }
        switch plan.request {
        case .verb(let name, let count, let share):
            verb = Nullable(name.rawValue)
            messages = Nullable(count)
            keyShare = Nullable(share)
            command = Nullable(nil)
        case .command(let words):
            verb = Nullable(nil)
            messages = Nullable(nil)
            keyShare = Nullable(nil)
            command = Nullable(words.joined(separator: " "))
        }
        let tally = results.tally
        seconds = ((workers.map(\.seconds).max() ?? 0) * 1e6).rounded() / 1e6
        requests = workers.map(\.requests).reduce(0, +)
        replies = tally.replies
        allowed = tally.allowed
        blocked = tally.blocked
        other = tally.other
        errors = tally.errorsByCode
        dropped = workers.map(\.dropped).reduce(0, +)
        unanswered = requests - replies
        brokenConnections = workers.map(\.brokenConnections).reduce(0, +)
        idleConnectionsClosed = workers.map(\.idleConnectionsClosed).reduce(0, +)
        warmupReplies = workers.map(\.warmup.replies).reduce(0, +)
        warmupAllowed = workers.map(\.warmup.allowed).reduce(0, +)
        perSecond = seconds > 0 ? (Double(replies) / seconds * 10).rounded() / 10 : 0
        var latencies = results.latencies
        for result in workers { latencies.add(result.waits) }
        clamped = latencies.clamped
        latency = Nullable(Distribution(latencies))
        series = results.series
        problems = LoadReport.problems(
            plan,
            dropped: dropped,
            unanswered: unanswered,
            broken: brokenConnections,
            idleClosed: idleConnectionsClosed,
            reason: workers.lazy.compactMap(\.breakReason).first
        )
    }

    private static func problems(
        _ plan: LoadPlan,
        dropped: Int,
        unanswered: Int,
        broken: Int,
        idleClosed: Int,
        reason: String?
    ) -> [String] {
        var problems: [String] = []
        let cause = reason.map { " (the first: \($0))" } ?? ""
        if dropped > 0 {
            problems.append(
                "the load could not be offered: \(dropped) requests were dropped, because \(plan.waitingMaximum) "
                    + "waited for an answer"
            )
        }
        if broken > 0 { problems.append("\(broken) connections broke\(cause)") }
        if idleClosed > 0 { problems.append("\(idleClosed) idle connections were closed\(cause)") }
        if unanswered > 0 {
            problems.append(
                "\(unanswered) requests had no answer, at most \(Int(LoadPlan.replyTimeout)) s after the last was sent"
            )
        }
        return problems
    }

    /// One object on one line.
    public func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(self), as: UTF8.self)
    }
}

extension UInt64 {
    /// Nanoseconds as milliseconds, to the microsecond.
    var milliseconds: Double { (Double(self) / 1e3).rounded() / 1e3 }
}
