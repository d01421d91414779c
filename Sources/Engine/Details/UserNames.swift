import Postgres
import Usage

extension UserNamespace {
    /// The user with this name in the namespace of the database. Blocks.
    ///
    /// - Throws: if the database has no namespace.
    package static func user(named name: String, databaseURL: String) throws(PostgresError) -> UserID {
        var parameters = Parameters()
        parameters.append(text: name)
        let result = try ConnectionOptions.command("user", databaseURL).query(EmbeddedSQL.findUser, parameters)
        return try result.firstRow.user("user_id")
    }
}
