import ArgumentParser
import Foundation
import HeadroomClient
import Logging

/// How the chat runs: flags first, then the environment, then defaults.
struct ChatConfiguration: Sendable {
    var listen: HeadroomClient.Endpoint
    /// Beside addresses and localhost.
    var hosts: [String]
    var headroom: [HeadroomClient.Endpoint]
    var credentials: HeadroomClient.Credentials?
    var whenUnreachable: UnreachablePolicy
    var holdTTL: Duration
    var patience = Patience()
    var store: StoreWebhook?
    var people: [Person]
    var model: ModelChoice
    var pageDirectory: String?
    var logLevel: Logger.Level

    /// How long Headroom is waited for: nobody is to notice that it was asked.
    struct Patience: Sendable {
        /// To hold, to count and to give back.
        var answer: Duration = .seconds(2)
        /// For numbers to show.
        var reading: Duration = .seconds(1)
        /// For a sign of life.
        var look: Duration = .milliseconds(800)
    }

    /// What a hold lasts longer than any answer: for holding, for the numbers that are shown first, and for counting.
    private static let holdMargin = Duration.seconds(60)

    enum ModelChoice: Sendable {
        case builtIn(pace: Duration)
        case openAI(OpenAIModel.Configuration)
    }

    /// - Throws: `ValidationError`, which names the setting and what it may be.
    init(_ options: ChatOptions, environment: [String: String]) throws {
        let settings = Settings(environment: environment)
        let listenText = settings.text(options.listen, "LISTEN") ?? "127.0.0.1:8080"
        guard let address = Settings.address(listenText) else {
            throw ValidationError("--listen must be HOST:PORT, as 127.0.0.1:8080")
        }
        listen = address
        hosts = settings.texts(options.host, "HOST") + [address.host]
        headroom = try settings.endpoints(options.headroom)
        credentials = try settings.credentials(tokenFile: options.headroomTokenFile)
        let policy = settings.text(options.whenUnreachable, "WHEN_UNREACHABLE") ?? "allow"
        guard let whenUnreachable = UnreachablePolicy(rawValue: policy) else {
            throw ValidationError("--when-unreachable must be allow or deny")
        }
        self.whenUnreachable = whenUnreachable
        store = try settings.webhook(options.webhook)
        people = try settings.text(options.people, "PEOPLE").map(Person.read(file:)) ?? []
        model = try settings.model(options)
        let holdTTL = try settings.number(options.holdTTL, "HOLD_TTL", "--hold-ttl", 1...86_400)
        self.holdTTL = holdTTL.map { .seconds($0) } ?? Exchange.answerTimeMaximum + ChatConfiguration.holdMargin
        pageDirectory = settings.text(options.pageDirectory, "PAGE_DIRECTORY")
        let level = settings.text(options.logLevel, "LOG_LEVEL") ?? "info"
        guard let logLevel = Logger.Level(rawValue: level) else {
            throw ValidationError("--log-level must be trace, debug, info, notice, warning, error or critical")
        }
        self.logLevel = logLevel
    }
}

/// Looks settings up. An empty one counts as none, as containers have them.
private struct Settings {
    let environment: [String: String]

    func variable(_ name: String) -> String? {
        environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    func text(_ flag: String?, _ name: String) -> String? {
        flag ?? variable("CHAT_\(name)")
    }

    /// - Returns: of a flag that may be repeated; in the environment, with commas between.
    func texts(_ flags: [String], _ name: String) -> [String] {
        guard flags.isEmpty else { return flags }
        return (variable("CHAT_\(name)") ?? "").split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
    }

    func number(_ flag: Int?, _ name: String, _ flagName: String, _ range: ClosedRange<Int>) throws -> Int? {
        guard let text = flag.map(String.init) ?? variable("CHAT_\(name)") else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw ValidationError("\(flagName) must be \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// Unlike the library's own, it names its port, which may be 0.
    static func address(_ text: String) -> HeadroomClient.Endpoint? {
        guard let match = text.wholeMatch(of: /(.+):([0-9]{1,5})/), let port = Int(match.2), port <= 65_535,
            let host = HeadroomClient.Endpoint("\(match.1):1")?.host
        else { return nil }
        return HeadroomClient.Endpoint(host: host, port: port)
    }

    func endpoints(_ flags: [String]) throws -> [HeadroomClient.Endpoint] {
        let named = texts(flags, "HEADROOM")
        return try (named.isEmpty ? ["127.0.0.1"] : named).map { text in
            guard let endpoint = HeadroomClient.Endpoint(text) else {
                throw ValidationError("--headroom must be HOST:PORT, as 127.0.0.1:6747")
            }
            return endpoint
        }
    }

    func credentials(tokenFile: String?) throws -> HeadroomClient.Credentials? {
        if let file = text(tokenFile, "HEADROOM_TOKEN_FILE") {
            guard FileManager.default.isReadableFile(atPath: file) else {
                throw ValidationError("--headroom-token-file names a file that cannot be read")
            }
            return HeadroomClient.Credentials(tokenFile: file)
        }
        return variable("HEADROOM_TOKEN").map { HeadroomClient.Credentials(token: $0) }
    }

    func url(_ text: String, _ flagName: String) throws -> URL {
        guard let url = URL(string: text), let scheme = url.scheme, ["http", "https"].contains(scheme), url.host != nil
        else { throw ValidationError("\(flagName) must be a URL that begins with http:// or https://") }
        return url
    }

    func webhook(_ flag: String?) throws -> StoreWebhook? {
        guard let text = text(flag, "WEBHOOK") else { return nil }
        guard let authorization = variable("CHAT_WEBHOOK_AUTHORIZATION") else {
            throw ValidationError(
                "--webhook needs CHAT_WEBHOOK_AUTHORIZATION in the environment: what the webhook asks for"
            )
        }
        return StoreWebhook(url: try url(text, "--webhook"), authorization: authorization)
    }

    func model(_ options: ChatOptions) throws -> ChatConfiguration.ModelChoice {
        let pace = try number(options.paceMs, "PACE_MS", "--pace-ms", 0...5_000) ?? 40
        let choice = text(options.model, "MODEL") ?? "built-in"
        if choice == "built-in" { return .builtIn(pace: .milliseconds(pace)) }
        guard let name = text(options.modelName, "MODEL_NAME") else {
            throw ValidationError("--model with a URL needs --model-name, as gpt-5-mini")
        }
        let url = try url(choice, "--model")
        return .openAI(OpenAIModel.Configuration(url: url, name: name, key: variable("CHAT_MODEL_KEY")))
    }
}
