#if TLS
import NIOCore
import NIOSSL
import NIOTLS

/// How a client connects with TLS. It always checks that the service's certificate is signed by a CA that it knows, and
/// is for the name that it asked for.
public struct ClientTLS: Sendable {
    private let context: NIOSSLContext
    private let serverName: String?

    /// Files in PEM form.
    public struct Files: Sendable, Equatable {
        /// CAs to know instead of the system's.
        public var ca: String?
        /// What the client presents itself with; both or neither.
        public var certificate: String?
        public var key: String?

        public init(ca: String? = nil, certificate: String? = nil, key: String? = nil) {
            self.ca = ca
            self.certificate = certificate
            self.key = key
        }
    }

    /// - Parameter serverName: the name that the certificate has to be for, where it is not the one connected to. A
    ///   certificate for the address that was connected to is taken as well.
    /// - Throws: which file or name cannot be used, and why.
    public init(_ files: Files, serverName: String? = nil) throws(TLSFileError) {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        configuration.shutdownTimeout = .milliseconds(250)
        if let ca = files.ca { configuration.trustRoots = .certificates(try PEMFile(ca).certificates()) }
        guard (files.certificate == nil) == (files.key == nil) else {
            throw TLSFileError("a client's certificate and its key go together; name both files, or neither")
        }
        if let serverName, serverName.isEmpty || ClientTLS.isAddress(serverName) {
            throw TLSFileError("a server's name is a name; an address is checked where it is what is connected to")
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

    /// Puts TLS in front of what is added to a connection from now on.
    ///
    /// - Parameter handshake: told when the connection can be used, or why not.
    public func add(
        to pipeline: ChannelPipeline.SynchronousOperations,
        host: String,
        handshake: EventLoopPromise<Void>? = nil
    ) throws {
        let name = serverName ?? (ClientTLS.isAddress(host) ? nil : host)
        try pipeline.addHandler(NIOSSLClientHandler(context: context, serverHostname: name))
        try pipeline.addHandler(ClientTLSSession(handshake))
    }

    /// Addresses are looked for in the certificate as they are, and are no name to ask a service for.
    private static func isAddress(_ host: String) -> Bool {
        (try? SocketAddress(ipAddress: host, port: 0)) != nil
    }
}

/// Tells of the handshake's end, and puts errors into words.
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
        // The end is told by the connection itself.
        if case .some(.uncleanShutdown) = error as? NIOSSLError { return }
        fail(TLSFailure(error))
        context.fireErrorCaught(TLSFailure(error))
    }

    func channelInactive(context: ChannelHandlerContext) {
        fail(TLSFailure.ended)
        context.fireChannelInactive()
    }

    private func fail(_ error: any Error) {
        handshake?.fail(error)
        handshake = nil
    }
}
#endif
