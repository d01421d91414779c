import LineProtocol
import Logging
import Metrics
import NIOCore
import NIOPosix

/// Asks Headroom before each message whether a user may send it.
///
/// One client serves a whole process: any number of tasks may ask at once. It connects when it is first asked, and again
/// whenever a connection is lost. Run it as a `Service`, or call ``shutDown()`` at the end.
public final class HeadroomClient: Sendable {
    let configuration: Configuration
    let logger: Logger
    let metrics: ClientMetrics
    let admission: Admission
    let keys = MessageKeys()
    let requester: Requester
    /// For what takes long: on the same connection, all replies after it would wait.
    let asideRequester: Requester
    let changesHubs: ChangesHubs

    /// - Parameters:
    ///   - configuration: must be within the ranges that its properties name.
    ///   - logger: for new and lost connections; messages never contain users.
    public convenience init(_ configuration: Configuration, logger: Logger = Logger(label: "headroom.client")) {
        self.init(configuration, logger: logger, metrics: MetricsSystem.factory)
    }

    /// - Parameter factory: the one that the process has bootstrapped, but in tests.
    init(_ configuration: Configuration, logger: Logger, metrics factory: any MetricsFactory) {
        configuration.check()
        self.configuration = configuration
        self.logger = logger
        let metrics = ClientMetrics(factory: factory)
        self.metrics = metrics
        admission = Admission(maximum: configuration.requestsMaximum)
        let connector = Connector(
            configuration: configuration,
            group: MultiThreadedEventLoopGroup.singletonMultiThreadedEventLoopGroup
        )
        @Sendable func requester(
            _ configuration: Configuration,
            told: @escaping @Sendable (UsageStatus) -> Void = { _ in }
        ) -> Requester {
            let pool = ConnectionPool(configuration, connector: connector, metrics: metrics, logger: logger, told: told)
            return Requester(configuration, pool: pool, metrics: metrics)
        }
        let single = configuration.withOneConnection
        let main = requester(configuration)
        self.requester = main
        asideRequester = requester(single)
        changesHubs = ChangesHubs {
            ChangesHub(reader: main, logger: logger) { told in requester(single, told: told) }
        }
    }

    /// Takes nothing more, waits for the answers to what was taken, `shutdownTimeout` at most, and closes the connections.
    public func shutDown() async {
        changesHubs.close()
        await admission.close(within: configuration.shutdownTimeout)
        requester.pool.close()
        asideRequester.pool.close()
    }
}

extension HeadroomClient {
    func perform(
        _ command: Command,
        _ repeatability: Repeatability,
        key: MessageKey? = nil,
        deadline: Duration?
    ) async throws(HeadroomError) -> ReceivedReply {
        try await requester.perform(command, repeatability, key: key, deadline: deadline)
    }

    /// For what reads a whole table.
    func performAside(_ command: Command, deadline: Duration) async throws(HeadroomError) -> ReceivedReply {
        try await asideRequester.perform(command, .reading, deadline: deadline, attemptTimeout: deadline)
    }
}
