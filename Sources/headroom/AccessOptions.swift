import ArgumentParser
import Foundation
import LineClient
import ServiceCore
import TransportSecurity

/// TLS and the token with which a command connects to a running service.
struct AccessOptions: ParsableArguments {
    @Flag(help: "Connect with TLS; any other --tls option implies it.") var tls = false
    @Option(help: ArgumentHelp("PEM file with the CAs to trust, instead of the system's.", valueName: "file"))
    var tlsCa: String?
    @Option(help: ArgumentHelp("PEM file with the certificate to present, with --tls-key.", valueName: "file"))
    var tlsCertificate: String?
    @Option(help: ArgumentHelp("PEM file with that certificate's key.", valueName: "file")) var tlsKey: String?
    @Option(help: ArgumentHelp("The name in the service's certificate, if it is not the host name.", valueName: "name"))
    var tlsServerName: String?
    @Option(
        help: ArgumentHelp(
            "File with the token to authenticate with (default: the token in the environment variable HEADROOM_TOKEN).",
            valueName: "file"
        )
    )
    var tokenFile: String?

    /// A file, or the token in the environment, cannot be used. Nothing was sent yet.
    struct Unusable: Error, CustomStringConvertible {
        let description: String
    }

    func validate() throws {
        guard (tlsCertificate == nil) == (tlsKey == nil) else {
            throw ValidationError("--tls-certificate and --tls-key go together")
        }
        let looksLikeAddress = tlsServerName?.wholeMatch(of: /[0-9.]+|.*:.*/) != nil
        guard tlsServerName?.isEmpty != true, !looksLikeAddress else {
            throw ValidationError("--tls-server-name must be a host name")
        }
    }

    /// - Throws: `Unusable`.
    func access() throws -> ClientAccess {
        do {
            return ClientAccess(tls: try clientTLS(), token: try token())
        } catch {
            throw Unusable(description: "\(error)")
        }
    }

    private func clientTLS() throws(TLSFileError) -> ClientTLS? {
        guard tls || [tlsCa, tlsCertificate, tlsServerName].contains(where: { $0 != nil }) else { return nil }
        return try ClientTLS(
            ClientTLS.Files(ca: tlsCa, certificate: tlsCertificate, key: tlsKey),
            serverName: tlsServerName
        )
    }

    /// The token comes from a file or the environment, never from a flag: every user of the machine can read command
    /// lines.
    private func token() throws -> ClientToken? {
        if let tokenFile {
            guard let text = try? String(contentsOf: URL(filePath: tokenFile), encoding: .utf8) else {
                throw Unusable(
                    description: """
                        the token file \(tokenFile) cannot be read: \(unreadableReason(tokenFile)); correct --token-file, or \
                        the file
                        """
                )
            }
            do {
                return try ClientToken(text)
            } catch {
                throw Unusable(description: "the token file \(tokenFile) (--token-file) holds no token: \(error)")
            }
        }
        guard let text = ProcessInfo.processInfo.environment["HEADROOM_TOKEN"], !text.isEmpty else { return nil }
        do {
            return try ClientToken(text)
        } catch {
            throw Unusable(description: "HEADROOM_TOKEN holds no token: \(error)")
        }
    }
}

private func unreadableReason(_ path: String) -> String {
    access(path, R_OK) == 0 ? "it is not a text file" : String(cString: strerror(errno))
}
