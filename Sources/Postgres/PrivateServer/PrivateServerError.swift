/// An error of the private PostgreSQL. The message says how to correct it.
public struct PrivateServerError: Error, Sendable, Hashable, CustomStringConvertible {
    public enum Code: Sendable, Hashable {
        /// No PostgreSQL server programs were found.
        case programsMissing
        /// The data directory belongs to another major version of PostgreSQL.
        case versionMismatch
        /// The data directory cannot be created, reached or locked, or belongs to another user.
        case directoryUnusable
        /// The data directory has no cluster, and `createsCluster` is false.
        case clusterMissing
        /// initdb failed.
        case initializationFailed
        /// PostgreSQL did not start, or was not ready in time.
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
