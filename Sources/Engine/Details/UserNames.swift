import Postgres
import Usage

/// The namespace of users' names that a database has. Each function blocks; run it on a thread of its own.
extension UserNamespace {
    /// Stores this namespace if the database has none.
    ///
    /// - Throws: if the database has another one.
    package func claim(database: DatabaseTopology) throws(PostgresError) {
        var parameters = Parameters()
        parameters.append(uuid: (id.high, id.low))
        _ = try ConnectionOptions.service("start", database).query(EmbeddedSQL.claimUserNamespace, parameters)
    }

    /// The namespace of the database; nil if no instance has stored one.
    package static func stored(database: DatabaseTopology) throws(PostgresError) -> UserNamespace? {
        let result = try ConnectionOptions.service("start", database).query(EmbeddedSQL.readUserNamespace)
        guard result.rowCount > 0 else { return nil }
        return UserNamespace(try result.firstRow.user("id"))
    }

    /// The user with this name in the namespace of the database.
    ///
    /// - Throws: if the database has no namespace.
    package static func user(named name: String, database: DatabaseTopology) throws(PostgresError) -> UserID {
        var parameters = Parameters()
        parameters.append(text: name)
        let result = try ConnectionOptions.command("user", database).query(EmbeddedSQL.findUser, parameters)
        return try result.firstRow.user("user_id")
    }
}
