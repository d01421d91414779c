import LineProtocol
import NIOCore
import NIOPosix
import TransportSecurity

/// Opens connections: TCP, TLS and authentication.
struct Connector: Sendable {
    let configuration: HeadroomClient.Configuration
    let group: any EventLoopGroup

    /// - Parameters:
    ///   - mustAnswer: whether the service must answer a request on it first.
    ///   - notify: called for each event of the connection, also while it is being opened.
    /// - Returns: an authenticated connection.
    /// - Throws: within `connectTimeout`; `HeadroomError` when the service refuses the token, or cannot take it now.
    func connect(
        to endpoint: HeadroomClient.Endpoint,
        mustAnswer: Bool,
        notify: @escaping @Sendable (PipelinedConnection.Event) -> Void
    ) async throws -> PipelinedConnection {
        let deadline = NIODeadline.now() + TimeAmount(configuration.connectTimeout)
        let connection = try await open(endpoint, until: deadline, notify: notify)
        do {
            if let credentials = try configuration.credentials?.current() {
                try await exchange(.authenticate(credentials), on: connection, until: deadline)
            }
            if mustAnswer { try await exchange(.ping(text: nil), on: connection, until: deadline) }
            return connection
        } catch {
            connection.close(because: error)
            throw error
        }
    }

    private func open(
        _ endpoint: HeadroomClient.Endpoint,
        until deadline: NIODeadline,
        notify: @escaping @Sendable (PipelinedConnection.Event) -> Void
    ) async throws -> PipelinedConnection {
        let loop = group.next()
        let opened = loop.makePromise(of: PipelinedConnection.self)
        let timer = loop.scheduleTask(deadline: deadline) { opened.fail(ConnectTimeout()) }
        defer { timer.cancel() }
        let secured = loop.makePromise(of: Void.self)
        opened.futureResult.whenFailure { secured.fail($0) }
        let bootstrap = ClientBootstrap(group: loop)
            .connectTimeout(deadline - .now())
            .channelOption(.socketOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try secure(channel.pipeline.syncOperations, host: endpoint.host, handshake: secured)
                    try channel.pipeline.syncOperations.addHandler(PipelinedConnectionHandler(notify: notify))
                }
            }
        // An IP address needs no name lookup, which would take a thread of a pool that the process may have exhausted.
        let address = try? SocketAddress(ipAddress: endpoint.host, port: endpoint.port)
        let connected =
            address.map { bootstrap.connect(to: $0) } ?? bootstrap.connect(host: endpoint.host, port: endpoint.port)
        connected
            .flatMapErrorThrowing { throw ConnectFailure($0, address: "\(endpoint)") }
            .flatMapThrowing { channel in
                // Closes a connection that opens after the deadline.
                opened.futureResult.whenFailure { _ in channel.close(promise: nil) }
                let handler = try channel.pipeline.syncOperations.handler(type: PipelinedConnectionHandler.self)
                guard let connection = handler.connection else { throw ChannelError.ioOnClosedChannel }
                return connection
            }
            .flatMap { connection in secured.futureResult.map { connection } }
            .cascade(to: opened)
        return try await opened.futureResult.get()
    }

    /// Adds TLS to a connection if the configuration has it.
    ///
    /// - Parameter handshake: succeeds when the connection can be used; in plain text at once.
    private func secure(
        _ pipeline: ChannelPipeline.SynchronousOperations,
        host: String,
        handshake: EventLoopPromise<Void>
    ) throws {
        #if TLS
        if let tls = configuration.tls?.client { return try tls.add(to: pipeline, host: host, handshake: handshake) }
        #endif
        handshake.succeed()
    }

    private func exchange(
        _ command: Command,
        on connection: PipelinedConnection,
        until deadline: NIODeadline
    ) async throws {
        switch await connection.exchange(command, id: 0, deadline: deadline) {
        case .reply(.error(let error)):
            // The service requires no token. If BADARG means something else, the first request fails with the reason.
            if error.code == ReplyError.Code.badArg.rawValue { return }
            throw HeadroomError(error, key: nil)
        case .reply: return
        case .lost(_, let cause): throw cause ?? ChannelError.eof
        case .timedOut, .unreachable, .cancelled: throw ConnectTimeout()
        case .refused(let error): throw error
        }
    }
}

struct ConnectTimeout: Error, CustomStringConvertible {
    let description = "no answer came in time"
}
