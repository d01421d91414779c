import Postgres

/// An application's `message_usage` may refer to a table of its users, such as Supabase's `auth.users`. A user who is not in it
/// cannot have a row: that is no fault of the service, and asking again helps once the user is there.
extension SQLState {
    /// Ours: takes the place of a foreign key's 23503 once it is known which table lacks the user.
    package static let unknownUser = SQLState(rawValue: "HR008")
}

extension Connection {
    /// Looks up which table lacks the user, where a foreign key of `message_usage` has refused a row for that. Every other error
    /// is returned as it is, and so is this one where it cannot be looked up.
    func explaining(_ error: PostgresError, deadline: ContinuousClock.Instant) -> PostgresError {
        guard case .server(.foreignKeyViolation) = error.kind, error.table == "public.message_usage",
            let constraint = error.constraint, isUsable
        else { return error }
        var parameters = Parameters()
        parameters.append(text: constraint)
        do throws(PostgresError) {
            let found = try query(EmbeddedSQL.readForeignKey, parameters, deadline: deadline)
            guard found.rowCount == 1 else { return error }
            return PostgresError(
                .server(.unknownUser),
                "user is not in \(found.text(0, 0)), which message_usage refers to, so nothing was changed; add the user "
                    + "there, then try again"
            )
        } catch {
            // The next statement on the connection reports what is wrong with it.
            return error
        }
    }
}
