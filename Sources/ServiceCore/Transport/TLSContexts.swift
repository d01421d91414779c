import Logging
import NIOSSL
import Synchronization
import TransportSecurity
import Usage

/// The certificate and key of new connections. A reload does not affect open ones.
package final class TLSContexts: Sendable {
    private struct State {
        var context: NIOSSLContext
        var httpContext: NIOSSLContext
        var expires: Instant

        init(_ loaded: TLSFiles.Loaded) {
            context = loaded.context
            httpContext = loaded.httpContext
            expires = loaded.expires
        }
    }

    private let files: TLSFiles
    private let state: Mutex<State>
    private let failures = Atomic<Int>(0)
    private let logger: Logger

    /// - Throws: when a file cannot be used.
    init(_ files: TLSFiles, logger: Logger) throws(TLSFileError) {
        self.files = files
        self.logger = logger
        let loaded = try files.load()
        state = Mutex(State(loaded))
        log(loaded, "TLS certificate read")
        if loaded.isExpired(at: TLSFiles.machineTime) {
            logger.error(
                "the TLS certificate has expired; put a new one in its place and send SIGHUP",
                metadata: ["tls.certificate": "\(files.certificate)", "tls.expired": "\(loaded.expires.text)"]
            )
        }
    }

    package var current: NIOSSLContext { state.withLock { $0.context } }

    /// The same certificate for HTTP, without requiring one of the peer: stores and browsers have no certificate of
    /// tls-client-ca.
    package var currentForHTTP: NIOSSLContext { state.withLock { $0.httpContext } }

    /// Reads the files again. Invalid files change nothing, and an expired certificate does not replace a valid one.
    func reload() {
        do {
            let loaded = try files.load()
            let now = TLSFiles.machineTime
            let isWorse = loaded.isExpired(at: now) && state.withLock { $0.expires > now }
            guard !isWorse else {
                throw TLSFileError(
                    "the certificate in \(files.certificate) expired on \(loaded.expires.text); put a valid one in its "
                        + "place and send SIGHUP"
                )
            }
            state.withLock { $0 = State(loaded) }
            log(loaded, "TLS certificate reloaded")
        } catch {
            logger.error(
                "the TLS files are invalid; the previous ones stay in use",
                metadata: ["error": "\(error)"]
            )
        }
    }

    private func log(_ loaded: TLSFiles.Loaded, _ message: Logger.Message) {
        logger.notice(
            message,
            metadata: [
                "tls.certificate": "\(files.certificate)", "tls.subject": "\(loaded.subject)",
                "tls.expires": "\(loaded.expires.text)", "tls.client_ca": "\(files.clientCA ?? "none")",
            ]
        )
        for warning in loaded.warnings {
            logger.warning("the TLS key is not safe", metadata: ["tls.key": "\(files.key)", "reason": "\(warning)"])
        }
    }

    // MARK: Counts

    /// How many connections have ended before their handshake was complete.
    package var handshakesFailed: Int { failures.load(ordering: .relaxed) }

    package func countFailure() {
        failures.add(1, ordering: .relaxed)
    }
}
