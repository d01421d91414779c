import NIOCore
import NIOSSL
import TransportSecurity
import Usage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The paths of the service's certificate and key.
struct TLSFiles: Sendable, Equatable {
    /// The file with the service's certificate, followed by the intermediate ones.
    var certificate: String
    var key: String
    /// The CAs of which clients must present a certificate; nil if they need none.
    var clientCA: String?

    /// The contents of the files, ready for use.
    struct Loaded {
        /// The context of the line protocol.
        var context: NIOSSLContext
        /// The context of HTTP, which requires no certificate of clients, and offers HTTP/2 (ALPN, RFC 7301).
        var httpContext: NIOSSLContext
        var subject: String
        var expires: Instant
        var warnings: [String]

        func isExpired(at now: Instant) -> Bool { expires <= now }
    }

    /// How long to wait for the peer's close_notify; as long as connections without TLS linger.
    private static let shutdownTimeout = TimeAmount.milliseconds(250)

    /// - Throws: which file is invalid, and why.
    func load() throws(TLSFileError) -> Loaded {
        let chain = try PEMFile(certificate).certificates()
        let keyFile = try PEMFile(key)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) },
            privateKey: .privateKey(try keyFile.privateKey())
        )
        configuration.minimumTLSVersion = .tlsv12
        configuration.shutdownTimeout = TLSFiles.shutdownTimeout
        var httpConfiguration = configuration
        httpConfiguration.applicationProtocols = ["h2", "http/1.1"]
        if let clientCA {
            configuration.trustRoots = .certificates(try PEMFile(clientCA).certificates())
            // The CA alone identifies clients; there is no name to compare.
            configuration.certificateVerification = .noHostnameVerification
            configuration.sendCANameList = true
        }
        let context: NIOSSLContext
        let httpContext: NIOSSLContext
        do {
            context = try NIOSSLContext(configuration: configuration)
            httpContext = try NIOSSLContext(configuration: httpConfiguration)
        } catch {
            // Both files are valid, so the key and the certificate are not a pair.
            let isPair = error as? NIOSSLError != .failedToLoadPrivateKey
            throw TLSFileError(
                isPair
                    ? "\(certificate) and \(key) cannot be used: \(TLSFailure(error))"
                    : "the key in \(key) does not belong to the first certificate in \(certificate); name that "
                        + "certificate's key, and put the service's certificate before the intermediate ones"
            )
        }
        return Loaded(
            context: context,
            httpContext: httpContext,
            subject: TLSFiles.name(of: chain[0]),
            expires: Instant(secondsSince1970: Int64(chain[0].notValidAfter)),
            warnings: keyFile.isReadableByOthers ? ["everybody on this machine may read the key; chmod o-r"] : []
        )
    }

    private static func name(of certificate: NIOSSLCertificate) -> String {
        certificate.subjectName.first { $0.type == .commonName }?.value ?? certificate.subjectName.first?.value ?? ""
    }

    /// This machine's clock. It is used for certificates only, because peers also check them by their machines' clocks.
    static var machineTime: Instant { Instant(secondsSince1970: Int64(time(nil))) }
}
