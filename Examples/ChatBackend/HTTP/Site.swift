import Foundation
import HeadroomClient
import Hummingbird
import Logging
import NIOCore
import ServiceLifecycle

/// The port that browsers connect to.
struct Site: Service {
    let responder: RouterResponder<ChatContext>
    let address: HeadroomClient.Endpoint
    let whenOpen: @Sendable (HeadroomClient.Endpoint) -> Void
    let logger: Logger

    private static let connectionsMaximum = 1_024
    private static let idleTimeout = TimeAmount.seconds(60)
    /// Answers under way have so long to end; what is left is cut, and given back.
    private static let drainTimeout = Duration.seconds(4)

    func run() async throws {
        let application = application
        do {
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask { try await application.run() }
                tasks.addTask {
                    try await gracefulShutdown()
                    try await Task.sleep(for: Site.drainTimeout)
                }
                try await tasks.next()
                tasks.cancelAll()
            }
        } catch let error as IOError {
            throw CannotListen(address: address, underlying: error)
        }
    }

    private struct CannotListen: Error, CustomStringConvertible {
        var address: HeadroomClient.Endpoint
        var underlying: IOError

        private var reason: String {
            underlying.errnoCode == EADDRINUSE
                ? "another program uses that port" : String(cString: strerror(underlying.errnoCode))
        }

        var description: String {
            "--listen \(address) cannot be opened: \(reason); name another port, or 0 for any"
        }
    }

    private var application: some ApplicationProtocol {
        // The framework tells of each start and of each connection that breaks.
        var quiet = logger
        if quiet.logLevel == .info { quiet.logLevel = .notice }
        let (host, whenOpen) = (address.host, whenOpen)
        return Application(
            responder: responder,
            server: .http1(
                configuration: .init(
                    additionalChannelHandlers: [BrowserWatch()],
                    idleTimeout: Site.idleTimeout,
                    httpDecoderConfiguration: .init(
                        maxHeaderFieldSize: 16_384,
                        maxHeaderListSize: 32_768,
                        maxHeaderFieldCount: 100
                    )
                )
            ),
            configuration: ApplicationConfiguration(
                address: .hostname(host, port: address.port),
                availableConnectionsDelegate: .maximum(Site.connectionsMaximum, logger: quiet)
            ),
            onServerRunning: { channel in
                whenOpen(HeadroomClient.Endpoint(host: host, port: channel.localAddress?.port ?? 0))
            },
            logger: quiet
        )
    }
}
