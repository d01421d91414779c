import Postgres

/// The database role of the service's sessions. Migrations run as the login itself, with the rights of headroom_owner.
/// docs/decisions/0010-roles.md has the reasons.
public enum ServiceRole {
    public static let name = "headroom_service"
}

/// The rights of a connection's login in this database.
struct LoginRights: Sendable {
    var login: String
    /// The owner of the schema; nil while there is no schema yet.
    var owner: String?
    /// Whether the login has the rights of the schema's owner or may give them to itself, or there is no schema yet.
    var mayMigrate: Bool
    /// Whether the login may act as the service's role.
    var mayServe: Bool

    init(of connection: DatabaseConnection) throws(PostgresError) {
        var parameters = Parameters()
        parameters.append(text: ServiceRole.name)
        let result = try connection.query(
            EmbeddedSQL.readLoginRights,
            parameters,
            deadline: .now + .seconds(30)
        )
        login = result.text(0, 0)
        owner = result.isNull(0, 1) ? nil : result.text(0, 1)
        mayMigrate = try result.bool(0, 2)
        mayServe = try result.bool(0, 3)
    }
}

/// The reason why a login cannot serve a database.
public struct LoginError: Error, Sendable, CustomStringConvertible {
    public let description: String

    static func mayNotServe(_ rights: LoginRights) -> LoginError {
        let grant = "grant \(ServiceRole.name) to \(quoted(rights.login))"
        guard !rights.mayMigrate, let owner = rights.owner else {
            return LoginError(
                description: "\(rights.login) may not act as \(ServiceRole.name); have an administrator run: \(grant)"
            )
        }
        return LoginError(
            description: """
                \(rights.login) may neither migrate this database nor act as \(ServiceRole.name); have a superuser, or a \
                login that may act as \(owner), run `headroom migrate`, and an administrator: \(grant)
                """
        )
    }

    private static func quoted(_ name: String) -> String {
        "\"" + name.replacing("\"", with: "\"\"") + "\""
    }
}
