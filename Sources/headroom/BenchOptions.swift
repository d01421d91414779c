import ArgumentParser
import LoadGenerator
import ServiceCore

struct BenchOptions: ParsableArguments {
    @Option(help: "host:port of the service.") var target = Settings.listen.defaultText ?? ""
    @Option(help: "Connections (1 to 20000).") var connections = 64
    @Option(help: "Closed loop: requests in flight on each connection (1 to 1024, default 1).") var pipeline: Int?
    @Option(help: "Open loop: requests due each second in all, independent of the answers. Without it: closed loop.")
    var rate: Double?
    @Option(help: "Open loop: gaps between requests, poisson (exponential, the default) or even.") var arrivals: String?
    @Option(help: "Seconds to measure (default 10).") var duration: Double?
    @Option(help: "Requests to measure, instead of a duration.") var requests: Int?
    @Option(help: "Seconds of load before the measurement, which are not recorded.") var warmup = 1.0
    @Option(help: "Users (1 to 10000000).") var users = 100_000
    @Option(help: "The first 24 characters of each user; twelve decimal digits follow.")
    var userPrefix = "00000000-0000-4000-8000-"
    @Option(help: "Distribution of requests over users: uniform, zipf, zipf:EXPONENT or one.") var distribution =
        "uniform"
    @Option(help: "consume, check, usage, or reserve (RESERVE and COMMIT in turn); default consume.") var verb: String?
    @Option(help: "Messages per request (1 to 1000000, default 1).") var messages: Int?
    @Option(help: "The share of CONSUMEs with a key, each a new one (0 to 1).") var keyShare: Double?
    @Option(
        help: ArgumentHelp(
            "Any request to any server that speaks RESP, instead of a verb; {user} and {key} are replaced.",
            valueName: "words"
        )
    )
    var command: String?
    @Option(help: "Further connections without requests (0 to 20000).") var idleConnections = 0
    @Option(help: "Event loops (1 to 64).") var threads = 1
    @Option(help: "Seed of the random users and gaps (default: random, and printed).") var seed: UInt64?
    @OptionGroup(title: "Access") var accessOptions: AccessOptions
    @Flag(help: "One JSON object on standard output instead of a table.") var json = false
    @Flag(help: "Print only problems on standard error.") var quiet = false

    /// The seed is drawn once, although the plan is made twice: in `validate` and in `run`.
    private static let randomSeed = UInt64.random(in: 0...999_999_999)

    func plan() throws -> LoadPlan {
        var plan = LoadPlan(seed: seed ?? BenchOptions.randomSeed)
        guard let address = ListenAddress(target), address.port > 0 else {
            throw ValidationError("--target must be host:port")
        }
        plan.host = address.host
        plan.port = address.port
        plan.connections = try within(1...20_000, connections, "--connections")
        plan.idleConnections = try within(0...20_000, idleConnections, "--idle-connections")
        plan.threads = try within(1...64, threads, "--threads")
        plan.users = try within(1...10_000_000, users, "--users")
        plan.warmup = try within(0...3_600, warmup, "--warmup")
        plan.pace = try pace()
        plan.extent = try extent()
        plan.request = try request()
        plan.userPrefix = try prefix()
        guard let drawn = Distribution(distribution) else {
            throw ValidationError("--distribution must be uniform, zipf, zipf:EXPONENT (0 to 10) or one")
        }
        plan.distribution = drawn
        guard plan.threads <= plan.connections else {
            throw ValidationError("--threads must not be more than --connections")
        }
        return plan
    }

    private func within<Number: Comparable>(
        _ range: ClosedRange<Number>,
        _ number: Number,
        _ name: String
    ) throws -> Number {
        guard range.contains(number) else {
            throw ValidationError("\(name) must be \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    private func pace() throws -> LoadPlan.Pace {
        guard let rate else {
            guard arrivals == nil else { throw ValidationError("--arrivals is for an open loop: add --rate") }
            return .closed(pipeline: try within(1...1_024, pipeline ?? 1, "--pipeline"))
        }
        guard pipeline == nil else {
            throw ValidationError("--pipeline is for a closed loop: with --rate, requests are sent when they are due")
        }
        guard let process = Arrivals(rawValue: arrivals ?? "poisson") else {
            throw ValidationError("--arrivals must be poisson or even")
        }
        return .open(rate: try within(0.1...10_000_000, rate, "--rate"), process)
    }

    private func extent() throws -> LoadPlan.Extent {
        guard let requests else {
            return .seconds(try within(0.1...604_800, duration ?? 10, "--duration"))
        }
        guard duration == nil else { throw ValidationError("give --duration or --requests, not both") }
        return .requests(try within(1...1_000_000_000_000, requests, "--requests"))
    }

    private func request() throws -> LoadRequest {
        if let command {
            guard verb == nil, messages == nil, keyShare == nil else {
                throw ValidationError("--command replaces --verb, --messages and --key-share")
            }
            let words = command.split(separator: " ").map(String.init)
            guard !words.isEmpty else { throw ValidationError("--command has no words") }
            return .command(words)
        }
        guard let verb = LoadRequest.Verb(rawValue: (verb ?? "consume").lowercased()) else {
            throw ValidationError("--verb must be consume, check, usage or reserve")
        }
        guard keyShare == nil || verb == .consume else {
            throw ValidationError("--key-share is for --verb consume; a reserve always has a key")
        }
        guard messages == nil || verb != .usage else { throw ValidationError("--messages is not for --verb usage") }
        return .verb(
            verb,
            messages: try within(1...1_000_000, messages ?? 1, "--messages"),
            keyShare: try within(0...1, keyShare ?? 0, "--key-share")
        )
    }

    private func prefix() throws -> String {
        guard userPrefix.wholeMatch(of: /[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-/) != nil else {
            throw ValidationError("--user-prefix must be the first 24 characters of a UUID, with its four dashes")
        }
        return userPrefix
    }
}
