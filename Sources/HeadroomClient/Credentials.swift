import Foundation
import LineProtocol

extension HeadroomClient {
    /// A token, as `headroom token create` prints it. Printing or dumping this value does not reveal it.
    public struct Credentials: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
        private enum Source: Sendable {
            case text(Secret)
            case file(String)
        }

        private let source: Source
        private let name: String?

        /// - Parameter name: the token's name; the service then refuses a token with another name.
        public init(token: String, name: String? = nil) {
            source = .text(Secret(token))
            self.name = name
        }

        /// - Parameter tokenFile: read for each connection, so that the token can be replaced while the client runs.
        public init(tokenFile: String, name: String? = nil) {
            source = .file(tokenFile)
            self.name = name
        }

        /// The token to present now.
        func current() throws(HeadroomError) -> LineProtocol.Credentials {
            let token: Secret
            switch source {
            case .text(let secret): token = secret
            case .file(let path):
                guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
                    throw HeadroomError(
                        code: .notAuthenticated,
                        message:
                            "the token's file \(path) cannot be read; correct its path, or let this account read it"
                    )
                }
                token = Secret(text.trimmingCharacters(in: .whitespacesAndNewlines))
                guard !token.text.isEmpty else {
                    throw HeadroomError(code: .notAuthenticated, message: "the token's file \(path) is empty")
                }
            }
            return LineProtocol.Credentials(name: name, token: token)
        }

        public var description: String { "a token" }
        public var debugDescription: String { description }
        public var customMirror: Mirror { Mirror(self, children: []) }
    }
}
