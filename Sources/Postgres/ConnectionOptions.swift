/// The server to connect to, and the settings of the session.
public struct ConnectionOptions: Sendable {
    public var database: DatabaseTopology
    /// Limits the whole of `DatabaseConnection.connect`, over all servers, which are asked at the same time. It does
    /// not limit the resolution of names (libpq calls getaddrinfo, which blocks): use addresses, or `hostaddr`, where
    /// that matters.
    public var connectTimeout: Duration
    /// The name that pg_stat_activity shows, unless the connection string has its own `application_name`.
    public var applicationName: String
    /// Settings such as `("statement_timeout", "2s")`, set by one statement after `DatabaseConnection.pinnedSettings`.
    public var sessionSettings: [(String, String)]
    /// Settings that follow these if the database has the extension Citus.
    public var settingsWithCitus: [(String, String)] = []
    /// The role of the session, of which its login must be a member; nil is the login itself.
    public var role: String?
    /// A schema whose owner becomes the role of a superuser's session, unless the owner is a superuser: otherwise the
    /// owner's triggers and defaults would run with a superuser's rights. It is nil for sessions with a role.
    public var actsAsOwnerOf: String?

    public init(
        database: DatabaseTopology,
        connectTimeout: Duration = .seconds(2),
        applicationName: String = "headroom",
        sessionSettings: [(String, String)] = [],
        role: String? = nil,
        actsAsOwnerOf: String? = nil
    ) {
        self.database = database
        self.connectTimeout = connectTimeout
        self.applicationName = applicationName
        self.sessionSettings = sessionSettings
        self.role = role
        self.actsAsOwnerOf = actsAsOwnerOf
    }
}

/// Printing or dumping options, also as part of something else, shows no password.
extension ConnectionOptions: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "\(applicationName) at \(database)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["database": "\(database)"]) }
}
