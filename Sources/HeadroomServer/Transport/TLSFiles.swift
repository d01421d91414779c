import NIOCore
import NIOSSL
import TransportSecurity
import Usage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Where the service's certificate and key are.
struct TLSFiles: Sendable, Equatable {
    /// The service's certificate first, then those between it and the CA.
    var certificate: String
    var key: String
    /// Whoever connects has to present a certificate of these.
    var clientCA: String?

    /// What was read from the files, put to use.
    struct Loaded {
        var context: NIOSSLContext
        /// Asks whoever connects for no certificate.
        var contextForAnybody: NIOSSLContext
        var subject: String
        var expires: Instant
        var warnings: [String]

        func isExpired(at now: Instant) -> Bool { expires <= now }
    }

    /// How long an end is waited for that the peer has to confirm; as for connections without TLS.
    private static let shutdownTimeout = TimeAmount.milliseconds(250)

    /// - Throws: which file cannot be used, and why. Nothing is put to use before everything could be read.
    func load() throws(TLSFileError) -> Loaded {
        let chain = try PEMFile(certificate).certificates()
        let keyFile = try PEMFile(key)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) },
            privateKey: .privateKey(try keyFile.privateKey())
        )
        configuration.minimumTLSVersion = .tlsv12
        configuration.shutdownTimeout = TLSFiles.shutdownTimeout
        let configurationForAnybody = configuration
        if let clientCA {
            configuration.trustRoots = .certificates(try PEMFile(clientCA).certificates())
            // There is no name to compare: who connects is known by the CA alone.
            configuration.certificateVerification = .noHostnameVerification
            configuration.sendCANameList = true
        }
        let context: NIOSSLContext
        let contextForAnybody: NIOSSLContext
        do {
            context = try NIOSSLContext(configuration: configuration)
            contextForAnybody = clientCA == nil ? context : try NIOSSLContext(configuration: configurationForAnybody)
        } catch {
            // Both were read and understood: what is left is that they are not of one pair.
            let isPair = error as? NIOSSLError != .failedToLoadPrivateKey
            throw TLSFileError(
                isPair
                    ? "\(certificate) and \(key) cannot be used: \(TLSFailure(error))"
                    : "the key in \(key) does not belong to the first certificate in \(certificate)"
            )
        }
        return Loaded(
            context: context,
            contextForAnybody: contextForAnybody,
            subject: TLSFiles.name(of: chain[0]),
            expires: Instant(secondsSince1970: Int64(chain[0].notValidAfter)),
            warnings: keyFile.isReadableByOthers ? ["everybody on this machine may read the key; chmod o-r"] : []
        )
    }

    private static func name(of certificate: NIOSSLCertificate) -> String {
        certificate.subjectName.first { $0.type == .commonName }?.value ?? certificate.subjectName.first?.value ?? ""
    }

    /// The clock by which peers judge a certificate is their machines', and so is this one; for nothing else.
    static var machineTime: Instant { Instant(secondsSince1970: Int64(time(nil))) }
}
