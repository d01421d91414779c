#if TLS
import NIOCore
import NIOSSL
import NIOTLS

/// A client's TLS settings. The client always checks that the service's certificate is signed by a trusted CA, and is
/// for the name that it connects to.
public struct ClientTLS: Sendable {
    private let context: NIOSSLContext
    private let serverName: String?

    /// The paths of files in PEM form.
    public struct Files: Sendable, Equatable {
        /// CAs to trust instead of the system's.
        public var ca: String?
        /// The client's own certificate; `key` goes with it.
        public var certificate: String?
        public var key: String?

        public init(ca: String? = nil, certificate: String? = nil, key: String? = nil) {
            self.ca = ca
            self.certificate = certificate
            self.key = key
        }
    }

    /// - Parameter serverName: the name in the certificate, if it is not the host's name. A certificate for the address
    ///   of the connection is accepted, too.
    public init(_ files: Files, serverName: String? = nil) throws(TLSFileError) {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        configuration.shutdownTimeout = .milliseconds(250)
        if let ca = files.ca { configuration.trustRoots = .certificates(try PEMFile(ca).certificates()) }
        guard (files.certificate == nil) == (files.key == nil) else {
            throw TLSFileError("a client's certificate and its key go together; name both files, or neither")
        }
        if let serverName, serverName.isEmpty || ClientTLS.isAddress(serverName) {
            throw TLSFileError("the server name must be a host name, and not an address")
        }
        if let certificate = files.certificate, let key = files.key {
            configuration.certificateChain = try PEMFile(certificate).certificates().map { .certificate($0) }
            configuration.privateKey = .privateKey(try PEMFile(key).privateKey())
        }
        do {
            context = try NIOSSLContext(configuration: configuration)
        } catch {
            throw TLSFileError("the certificate and its key cannot be used: \(TLSFailure(error))")
        }
        self.serverName = serverName
    }

    /// Adds TLS to a pipeline, before the handlers that are added later.
    ///
    /// - Parameter handshake: completed when the handshake succeeds or fails.
    public func add(
        to pipeline: ChannelPipeline.SynchronousOperations,
        host: String,
        handshake: EventLoopPromise<Void>? = nil
    ) throws {
        let name = serverName ?? (ClientTLS.isAddress(host) ? nil : host)
        try pipeline.addHandler(NIOSSLClientHandler(context: context, serverHostname: name))
        try pipeline.addHandler(ClientTLSSession(handshake))
    }

    /// An address is compared with the certificate, but is not sent as the server name.
    private static func isAddress(_ host: String) -> Bool {
        (try? SocketAddress(ipAddress: host, port: 0)) != nil
    }
}

/// Completes the handshake's promise, and replaces errors by readable ones.
private final class ClientTLSSession: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private var handshake: EventLoopPromise<Void>?

    init(_ handshake: EventLoopPromise<Void>?) {
        self.handshake = handshake
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .some(TLSUserEvent.handshakeCompleted) = event as? TLSUserEvent {
            handshake?.succeed()
            handshake = nil
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // `channelInactive` reports the end.
        if case .some(.uncleanShutdown) = error as? NIOSSLError { return }
        fail(TLSFailure(error))
        context.fireErrorCaught(TLSFailure(error))
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail(TLSFailure.closed)
        context.fireChannelInactive()
    }

    private func fail(_ error: any Error) {
        handshake?.fail(error)
        handshake = nil
    }
}
#endif
