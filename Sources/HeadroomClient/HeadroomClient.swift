import LineProtocol
import Logging
import Metrics
import NIOCore
import NIOPosix
import Usage

/// A client of Headroom, which decides before each message whether a user may send it.
///
/// One client serves a whole process, with any number of tasks at once. It connects with the first request, and again
/// whenever a connection is lost. Run it as a `Service`, or call ``shutDown()`` at the end.
public final class HeadroomClient: Sendable {
    let configuration: Configuration
    let logger: Logger
    let metrics: ClientMetrics
    let admission: Admission
    let keys: MessageKeys
    let requester: Requester
    /// It sends the requests that take long: on the main connection, all later replies would wait for theirs.
    let reportRequester: Requester
    let changesHubs: ChangesHubs
    let sentences: SentenceOptions
    /// The language of the sentences in answers; nil is the service's setting.
    public var language: LanguageTag? { sentences.language }
    /// The time zone of the dates in sentences; nil is the plan's, and UTC for a plan without one.
    public var timeZone: CivilTimeZone? { sentences.timeZone }

    /// - Parameters:
    ///   - configuration: with values within the documented ranges.
    ///   - logger: for opened and lost connections; never contains users.
    public convenience init(_ configuration: Configuration, logger: Logger = Logger(label: "headroom.client")) {
        self.init(configuration, logger: logger, metrics: MetricsSystem.factory)
    }

    /// - Parameter factory: the one that the process has bootstrapped, except in tests.
    init(_ configuration: Configuration, logger: Logger, metrics factory: any MetricsFactory) {
        configuration.check()
        let configuration = configuration.ordered
        self.configuration = configuration
        self.logger = logger
        sentences = SentenceOptions()
        keys = MessageKeys()
        let metrics = ClientMetrics(factory: factory)
        self.metrics = metrics
        admission = Admission(maximum: configuration.requestsMaximum)
        let connector = Connector(
            configuration: configuration,
            group: MultiThreadedEventLoopGroup.singletonMultiThreadedEventLoopGroup
        )
        @Sendable func requester(
            _ configuration: Configuration,
            onChange: @escaping @Sendable (UsageStatus) -> Void = { _ in }
        ) -> Requester {
            let pool = ConnectionPool(
                configuration,
                connector: connector,
                metrics: metrics,
                logger: logger,
                onChange: onChange
            )
            return Requester(configuration, pool: pool, metrics: metrics)
        }
        let single = configuration.withOneConnection
        let main = requester(configuration)
        self.requester = main
        reportRequester = requester(single)
        changesHubs = ChangesHubs {
            ChangesHub(reader: main, logger: logger) { onChange in requester(single, onChange: onChange) }
        }
    }

    private init(_ client: HeadroomClient, answeringWith sentences: SentenceOptions) {
        configuration = client.configuration
        logger = client.logger
        metrics = client.metrics
        admission = client.admission
        keys = client.keys
        requester = client.requester
        reportRequester = client.reportRequester
        changesHubs = client.changesHubs
        self.sentences = sentences
    }

    /// This client for a user who reads a language: the sentences in its answers are in it, or in the nearest one that
    /// the service has words in, with the dates of the user's time zone. It shares everything else, so make one for
    /// each request. ``changes(of:)`` and requests of operators are not affected.
    ///
    /// ```swift
    /// let zone = CivilTimeZone("America/Sao_Paulo")
    /// let decision = try await headroom.answering(in: LanguageTag("pt-BR"), timeZone: zone).consume(user)
    /// ```
    ///
    /// - Parameters:
    ///   - language: nil is the service's setting `language`.
    ///   - timeZone: of dates; nil is the plan's, and UTC for a plan without one.
    public func answering(in language: LanguageTag?, timeZone: CivilTimeZone? = nil) -> HeadroomClient {
        HeadroomClient(self, answeringWith: SentenceOptions(language: language, timeZone: timeZone))
    }

    /// Accepts no more requests, waits for the answers to accepted ones for `shutdownTimeout` at most, and closes the
    /// connections.
    public func shutDown() async {
        changesHubs.close()
        await admission.close(within: configuration.shutdownTimeout)
        requester.pool.close()
        reportRequester.pool.close()
    }
}

extension HeadroomClient {
    func perform(
        _ command: Command,
        _ repeatability: Repeatability,
        key: MessageKey? = nil,
        deadline: Duration?
    ) async throws(HeadroomError) -> ReceivedReply {
        try await requester.perform(command.answered(with: sentences), repeatability, key: key, deadline: deadline)
    }

    /// Performs a request that scans a whole table.
    func performReport(_ command: Command, deadline: Duration) async throws(HeadroomError) -> ReceivedReply {
        try await reportRequester.perform(command, .reading, deadline: deadline, attemptTimeout: deadline)
    }
}
