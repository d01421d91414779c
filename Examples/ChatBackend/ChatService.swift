import AsyncHTTPClient
import HeadroomClient
import Hummingbird
import Logging
import NIOCore
import ServiceLifecycle
import UnixSignals

/// Everything that runs, and in which order it is stopped.
struct ChatService {
    private let configuration: ChatConfiguration
    private let logger: Logger


    init(_ configuration: ChatConfiguration, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
    }

    /// Runs until SIGTERM or SIGINT.
    func run(whenOpen: @escaping @Sendable (HeadroomClient.Endpoint) -> Void) async throws {
        let headroom = HeadroomClient(clientConfiguration, logger: logger)
        let reachability = Reachability(headroom)
        let web = HTTPClient(eventLoopGroupProvider: .singleton)
        let site = site(headroom, reachability, web, whenOpen: whenOpen)
        // Stopped in the reverse order: first the open pages are told to end, last is what all of them ask.
        let group = ServiceGroup(
            services: [headroom, site, reachability],
            gracefulShutdownSignals: [.sigterm, .sigint],
            logger: logger
        )
        do {
            try await group.run()
        } catch {
            try? await web.shutdown()
            throw error
        }
        try await web.shutdown()
    }

    private var clientConfiguration: HeadroomClient.Configuration {
        var client = HeadroomClient.Configuration(
            endpoints: configuration.headroom,
            credentials: configuration.credentials
        )
        client.whenUnreachable = configuration.whenUnreachable
        // With the time that messages under way have: less than the ten seconds in which all is to end.
        client.shutdownTimeout = .seconds(3)
        return client
    }

    private func site(
        _ headroom: HeadroomClient,
        _ reachability: Reachability,
        _ web: HTTPClient,
        whenOpen: @escaping @Sendable (HeadroomClient.Endpoint) -> Void
    ) -> Site {
        let usage = UsageReading(headroom: headroom)
        let conversations = Conversations()
        let words = OfflineWords.text(configuration.whenUnreachable)
        let store = configuration.store.map { Store(webhook: $0, client: web, logger: logger) }
        let exchange = Exchange(
            headroom: headroom,
            model: model,
            usage: usage,
            holdTTL: configuration.holdTTL,
            logger: logger
        )
        let router = Router(context: ChatContext.self, options: .autoGenerateHeadEndpoints)
        router.add(middleware: Guarding())
        PageRoutes(files: PageFiles(directory: configuration.pageDirectory), people: configuration.people).add(to: router)
        UserRoutes(
            people: Dictionary(uniqueKeysWithValues: configuration.people.map { ($0.user, $0) }),
            conversations: conversations,
            usage: usage,
            reachability: reachability,
            offlineWords: words,
            canSubscribe: store != nil
        ).add(to: router)
        ChangeRoutes(PageStates(headroom: headroom, reachability: reachability), offlineWords: words).add(to: router)
        MessageRoutes(conversations: conversations, exchange: exchange).add(to: router)
        SubscriptionRoutes(store: store, usage: usage).add(to: router)
        return Site(responder: router.buildResponder(), address: configuration.listen, whenOpen: whenOpen, logger: logger)
    }

    private var model: any Model {
        switch configuration.model {
        case .builtIn(let pace): BuiltInModel(pace: pace)
        case .openAI(let configuration): OpenAIModel(configuration: configuration)
        }
    }
}
