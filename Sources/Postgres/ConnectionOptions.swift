/// The server to connect to, and the settings of the session.
public struct ConnectionOptions: Sendable {
    /// A libpq connection string or URI. It may name several hosts and `target_session_attrs`. May hold a password:
    /// log only `redacted(conninfo:)`.
    public var conninfo: String
    /// Limits the whole of `Connection.connect`, over all hosts: with n hosts, each has 1/n of it. It does not limit
    /// the resolution of names (libpq calls getaddrinfo, which blocks): use addresses, or `hostaddr`, where that
    /// matters.
    public var connectTimeout: Duration
    /// Shown in pg_stat_activity, unless the connection string has its own `application_name`.
    public var applicationName: String
    /// Settings such as `("statement_timeout", "2s")`, set by one statement after `Connection.pinnedSettings`.
    public var sessionSettings: [(String, String)]
    /// The role of the session, of which its login must be a member; nil is the login itself.
    public var role: String?
    /// A schema whose owner becomes the role of a superuser's session, unless the owner is a superuser: otherwise the
    /// owner's triggers and defaults would run with a superuser's rights. nil for sessions with a role.
    public var actsAsOwnerOf: String?

    public init(
        conninfo: String,
        connectTimeout: Duration = .seconds(2),
        applicationName: String = "headroom",
        sessionSettings: [(String, String)] = [],
        role: String? = nil,
        actsAsOwnerOf: String? = nil
    ) {
        self.conninfo = conninfo
        self.connectTimeout = connectTimeout
        self.applicationName = applicationName
        self.sessionSettings = sessionSettings
        self.role = role
        self.actsAsOwnerOf = actsAsOwnerOf
    }
}

/// Host, port, database and user of a connection string, for logs: no password, no other setting.
public func redacted(conninfo: String) -> String {
    guard let parameters = try? ConnectionParameters(parsing: conninfo) else { return "(connection string invalid)" }
    let shown = ["host", "hostaddr", "port", "dbname", "user"].compactMap { keyword in
        parameters[keyword].map { "\(keyword)=\($0)" }
    }
    return shown.isEmpty ? "(libpq's defaults)" : shown.joined(separator: " ")
}

public func holdsPassword(conninfo: String) -> Bool {
    guard let parameters = try? ConnectionParameters(parsing: conninfo) else { return false }
    return parameters["password"] != nil || parameters["sslpassword"] != nil
}

/// Printing or dumping options, also as part of something else, shows no password.
extension ConnectionOptions: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "\(applicationName) at \(redacted(conninfo: conninfo))" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["database": redacted(conninfo: conninfo)]) }
}
