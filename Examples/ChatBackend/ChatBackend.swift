import ArgumentParser
import AsyncHTTPClient
import Foundation
import HeadroomClient
import Hummingbird
import Logging
import ServiceLifecycle
import UnixSignals

/// A chat in the browser that uses Headroom for every message.
@main
struct ChatBackend: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "chat-backend",
        abstract: "A chat in the browser that uses Headroom for every message.",
        discussion: """
            Prints `ready chat=http://HOST:PORT` on standard output once the page can be opened. Secrets come from the \
            environment: HEADROOM_TOKEN, CHAT_WEBHOOK_AUTHORIZATION, CHAT_NOTIFICATIONS_SECRET and CHAT_MODEL_KEY.
            """
    )

    @Option(help: "Where browsers connect. Port 0 picks a free one.")
    var listen = HeadroomClient.Endpoint(host: "127.0.0.1", port: 8080)

    @Option(help: "A Headroom service; may be repeated. (default: 127.0.0.1:6747)")
    var headroom: [HeadroomClient.Endpoint] = []

    @Option(help: "What happens to a message while Headroom is unreachable: allow or deny.")
    var whenUnreachable = UnreachablePolicy.allow

    @Option(help: "Headroom's webhook for RevenueCat events. Without it, the page sells nothing.")
    var webhook: String?

    @Option(help: "A JSON file with the users offered on the first page: [{\"user\", \"name\", \"about\"}].")
    var people: String?

    @Option(help: "built-in, or the URL of an API like OpenAI's, such as https://api.openai.com/v1.")
    var model = "built-in"

    @Option(help: "A model's name at that URL and in Headroom: NAME or NAME=LABEL. Repeat it to offer a choice.")
    var modelName: [LabelledModel] = []

    @Option(help: "Milliseconds between the words of the built-in model.")
    var paceMs = 40

    func run() async throws {
        LoggingSystem.bootstrap(StreamLogHandler.standardError)
        let environment = ProcessInfo.processInfo.environment
        let services = try services(environment: environment, logger: Logger(label: "chat")) { port in
            print("ready chat=http://\(HeadroomClient.Endpoint(host: listen.host, port: port))")
            fflush(nil)
        }
        try await services.run()
    }

    /// Everything that runs. The client is first, so it stops last: answers under way give back what they hold before.
    ///
    /// - Parameters:
    ///   - model: used instead of the configured ones.
    ///   - deadline: for Headroom's answers. Users wait for them, so it is short.
    func services(
        environment: [String: String],
        model: (any Model)? = nil,
        deadline: Duration = .seconds(2),
        logger: Logger,
        onReady: @escaping @Sendable (_ port: Int) -> Void
    ) throws -> ServiceGroup {
        var configuration = HeadroomClient.Configuration(
            endpoints: headroom.isEmpty ? [HeadroomClient.Endpoint(host: "127.0.0.1")] : headroom,
            credentials: environment["HEADROOM_TOKEN"].map { HeadroomClient.Credentials(token: $0) }
        )
        configuration.deadline = deadline
        configuration.whenUnreachable = whenUnreachable
        configuration.shutdownTimeout = .seconds(5)
        let client = HeadroomClient(configuration, logger: logger)
        let routes = ChatRoutes(
            headroom: client,
            models: try makeChoices(model, key: environment["CHAT_MODEL_KEY"]),
            store: try webhook.map { try StoreWebhook($0, authorization: environment["CHAT_WEBHOOK_AUTHORIZATION"]) },
            notifications: try environment["CHAT_NOTIFICATIONS_SECRET"].map { try NotificationInbox(secret: $0) },
            people: try people.map(Person.read) ?? [],
            offlineMessage: whenUnreachable.offlineMessage,
            deadline: deadline,
            logger: logger
        )
        let application = Application(
            router: try routes.router(),
            configuration: ApplicationConfiguration(address: .hostname(listen.host, port: listen.port)),
            onServerRunning: { onReady($0.localAddress?.port ?? 0) },
            logger: logger
        )
        return ServiceGroup(
            services: [client, application],
            gracefulShutdownSignals: [.sigterm, .sigint],
            logger: logger
        )
    }

    /// The models that users may choose: one at least.
    ///
    /// - Parameter other: used instead of the configured ones.
    func makeChoices(_ other: (any Model)?, key: String?) throws -> [ModelChoice] {
        if modelName.isEmpty { return [ModelChoice(name: nil, label: "", model: try other ?? makeModel(nil, key))] }
        return try modelName.map {
            ModelChoice(name: $0.name, label: $0.label, model: try other ?? makeModel($0.name, key))
        }
    }

    private func makeModel(_ name: ModelName?, _ key: String?) throws -> any Model {
        if model == "built-in" { return BuiltInModel(pace: .milliseconds(paceMs)) }
        guard let url = URL(string: model), url.host != nil, let name else {
            throw ValidationError("--model must be built-in, or a URL together with --model-name")
        }
        return OpenAIModel(url: url, name: name.text, key: key, client: .shared)
    }
}

extension HeadroomClient.Endpoint: ExpressibleByArgument {
    public init?(argument: String) {
        // Unlike a service's address, one to listen on may have port 0.
        if argument.hasSuffix(":0") {
            self.init(host: String(argument.dropLast(2)), port: 0)
        } else {
            self.init(argument)
        }
    }

    public var defaultValueDescription: String { description }
}

extension UnreachablePolicy: ExpressibleByArgument {
    /// The sentence above the composer while Headroom is unreachable.
    var offlineMessage: String {
        switch self {
        case .allow: "I couldn't check your usage right now — don't worry, you can keep chatting."
        case .deny: "I can't check your usage right now — I'll keep your message and send it as soon as I can."
        }
    }
}
