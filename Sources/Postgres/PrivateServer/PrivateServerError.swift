/// Why the private PostgreSQL does not run. The message says what to do; who would rather run their own server gives
/// the service its connection string.
public struct PrivateServerError: Error, Sendable, Hashable, CustomStringConvertible {
    public enum Code: Sendable, Hashable {
        /// No PostgreSQL server programs were found.
        case programsMissing
        /// The data directory belongs to another major version of PostgreSQL.
        case versionMismatch
        /// The data directory cannot be created, reached or locked, or belongs to somebody else.
        case directoryUnusable
        /// The data directory has no cluster, and none is to be made.
        case clusterMissing
        /// initdb failed.
        case initializationFailed
        /// PostgreSQL did not start, or did not get ready in time.
        case startFailed
    }

    public let code: Code
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { message }
}
