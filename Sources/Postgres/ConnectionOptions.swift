/// Where and how to connect.
public struct ConnectionOptions: Sendable {
    /// A libpq connection string or URI. It may name several hosts and `target_session_attrs`. May hold a password:
    /// log only `redacted(conninfo:)`.
    public var conninfo: String
    /// Bounds the whole of `Connection.connect`, over all hosts. With n hosts, one that does not answer has 1/n of it.
    /// Only the resolver is beyond its reach (libpq calls getaddrinfo, which blocks): give addresses, or `hostaddr`,
    /// where that matters.
    public var connectTimeout: Duration
    /// Shown in pg_stat_activity, unless the connection string has its own `application_name`.
    public var applicationName: String
    /// Settings such as `("statement_timeout", "2s")`, made with one statement once connected, after
    /// `Connection.pinnedSettings`.
    public var sessionSettings: [(String, String)]
    /// The role that the session acts as, of which its login must be a member; nil is the login itself.
    public var role: String?
    /// A schema as whose owner a superuser's session acts, if the owner is another role and no superuser: triggers and
    /// defaults of its tables are the owner's, and would run with a superuser's rights. Nil is for sessions with a role.
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
