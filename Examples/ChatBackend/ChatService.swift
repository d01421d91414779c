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
    private let headroom: HeadroomClient
    private let store: Store?
    private let model: any Model
    /// Shut down when all else is.
    private let clients: [HTTPClient]

    /// - Parameter model: instead of the configured one.
    init(_ configuration: ChatConfiguration, model: (any Model)? = nil, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
        headroom = HeadroomClient(ChatService.client(configuration), logger: logger)
        var clients: [HTTPClient] = []
        store = configuration.store.map { webhook in
            clients.append(Store.makeClient())
            return Store(webhook: webhook, client: clients[clients.count - 1], logger: logger)
        }
        switch (model, configuration.model) {
        case (let model?, _): self.model = model
        case (nil, .builtIn(let pace)): self.model = BuiltInModel(pace: pace)
        case (nil, .openAI(let settings)):
            clients.append(OpenAIModel.client(for: settings))
            self.model = OpenAIModel(settings, client: clients[clients.count - 1])
        }
        self.clients = clients
    }

    /// Runs until SIGTERM or SIGINT.
    func run(whenOpen: @escaping @Sendable (HeadroomClient.Endpoint) -> Void) async throws {
        try await run(stoppedBy: [.sigterm, .sigint], whenOpen: whenOpen)
    }

    /// Runs until one of the signals, or until the service that this is a part of is shut down gracefully.
    func run(
        stoppedBy signals: [UnixSignal],
        whenOpen: @escaping @Sendable (HeadroomClient.Endpoint) -> Void
    ) async throws {
        let reachability = Reachability(headroom, deadline: configuration.patience.look)
        let site = site(reachability, whenOpen: whenOpen)
        // Stopped in the reverse order: first the open pages are told to end, last is what all of them ask.
        let group = ServiceGroup(
            services: [headroom, site, reachability],
            gracefulShutdownSignals: signals,
            logger: logger
        )
        do {
            try await group.run()
        } catch {
            await shutDownClients()
            throw error
        }
        await shutDownClients()
    }

    private func shutDownClients() async {
        for client in clients { try? await client.shutdown() }
    }

    private static func client(_ configuration: ChatConfiguration) -> HeadroomClient.Configuration {
        var client = HeadroomClient.Configuration(
            endpoints: configuration.headroom,
            credentials: configuration.credentials
        )
        client.deadline = configuration.patience.answer
        client.whenUnreachable = configuration.whenUnreachable
        // With the time that messages under way have: less than the ten seconds in which all is to end.
        client.shutdownTimeout = .seconds(3)
        return client
    }

    private func site(
        _ reachability: Reachability,
        whenOpen: @escaping @Sendable (HeadroomClient.Endpoint) -> Void
    ) -> Site {
        let usage = UsageReading(headroom: headroom, deadline: configuration.patience.reading)
        let conversations = Conversations()
        let words = OfflineWords.text(configuration.whenUnreachable)
        let exchange = Exchange(
            headroom: headroom,
            model: model,
            usage: usage,
            holdTTL: configuration.holdTTL,
            logger: logger
        )
        let router = Router(context: ChatContext.self, options: .autoGenerateHeadEndpoints)
        router.add(middleware: Guarding(hosts: HostCheck(names: configuration.hosts)))
        PageRoutes(files: PageFiles(directory: configuration.pageDirectory), people: configuration.people)
            .add(to: router)
        UserRoutes(
            people: configuration.people,
            conversations: conversations,
            usage: usage,
            reachability: reachability,
            offlineWords: words,
            canSubscribe: store != nil
        ).add(to: router)
        ChangeRoutes(
            states: PageStates(headroom: headroom, reachability: reachability),
            offlineWords: words
        ).add(to: router)
        MessageRoutes(conversations: conversations, exchange: exchange).add(to: router)
        SubscriptionRoutes(store: store, usage: usage).add(to: router)
        return Site(
            responder: router.buildResponder(),
            address: configuration.listen,
            whenOpen: whenOpen,
            logger: logger
        )
    }
}
