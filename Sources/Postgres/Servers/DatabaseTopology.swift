import Synchronization

/// The servers of a database's connection string, one of which is the primary, and what was seen of them.
///
/// A promoted standby begins a new timeline. A primary whose timeline is older than the newest was superseded: what it
/// commits is lost as soon as it follows its successor. Whichever server comes first in the connection string, a
/// connection is opened to the primary of the newest timeline alone. The owner of an open connection calls `successor`
/// before each use.
///
/// Everything in a process that uses the database shares one object, because a newer timeline that one connection finds
/// matters to all.
public final class DatabaseTopology: Sendable {
    private struct State {
        var timelines = NewestTimelines()
        var waitsForStandby = false
        var isDistributed = false
    }

    /// The parameters of the connection string; an error if it cannot be parsed, which connecting then throws.
    let parameters: Result<ConnectionParameters, PostgresError>
    private let state = Mutex(State())
    public let silence = DatabaseSilence()

    /// - Parameter connectionString: a string of libpq's form, or a URI. It may name several hosts, and may hold a
    ///   password.
    public init(_ connectionString: String) {
        parameters = Result { () throws(PostgresError) in try ConnectionParameters(parsing: connectionString) }
    }

    /// The topology of each server by itself, in the order of the connection string; none if it cannot be parsed.
    public var servers: [DatabaseTopology] {
        guard let parameters = try? parameters.get() else { return [] }
        return parameters.servers.map { DatabaseTopology($0) }
    }

    /// Returns a primary and its standbys that are reached in the same way: with the same login, database and TLS
    /// settings.
    ///
    /// - Parameter former: the same database before a server was added or removed. Its timelines are kept.
    public func worker(at servers: [ServerAddress], formerly former: DatabaseTopology?) -> DatabaseTopology {
        let worker = DatabaseTopology(parameters.map { $0.moved(to: servers) })
        if let former { worker.state.withLock { $0.timelines = former.timelines } }
        return worker
    }

    private init(_ parameters: Result<ConnectionParameters, PostgresError>) {
        self.parameters = parameters
    }

    private init(_ parameters: ConnectionParameters) {
        self.parameters = .success(parameters)
    }

    // MARK: Timelines

    /// Remembers a timeline of this database that was seen at one of its servers.
    public func note(_ timeline: Timeline) {
        state.withLock { $0.timelines.note(timeline) }
    }

    /// Returns a newer timeline of the same cluster that was seen: the server of this one was superseded.
    public func successor(of timeline: Timeline) -> Timeline? {
        state.withLock { $0.timelines.successor(of: timeline) }
    }

    var timelines: NewestTimelines { state.withLock { $0.timelines } }

    // MARK: Distribution

    /// Whether Citus has distributed the rows of users, by the coordinator's last answer.
    public var isDistributed: Bool {
        get { state.withLock { $0.isDistributed } }
        set { state.withLock { $0.isDistributed = newValue } }
    }

    // MARK: Replication

    /// Whether commits wait for a standby, as the primary's settings were last read: when a lane connected, or by the
    /// monitor, every two seconds. Only then does a commit prove that the server is still the primary.
    public var waitsForStandby: Bool {
        get { state.withLock { $0.waitsForStandby } }
        set { state.withLock { $0.waitsForStandby = newValue } }
    }
}

/// The description for logs has host, port, database and user, but no password and no other setting.
extension DatabaseTopology: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { (try? parameters.get())?.redacted ?? "(connection string invalid)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["database": description]) }

    public var holdsPassword: Bool {
        guard let parameters = try? parameters.get() else { return false }
        return parameters["password"] != nil || parameters["sslpassword"] != nil
    }
}
