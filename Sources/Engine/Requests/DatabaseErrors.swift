import Logging
import Postgres
import Usage

/// Translates errors of the database into answers, and logs those that an operator has to act upon.
struct DatabaseErrors {
    let laneConnection: LaneConnection
    let invalidValues: InvalidValueLog
    let logger: Logger

    /// The answer to a request that the database refused.
    func engineError(for refusal: PostgresError) -> EngineError {
        let error = laneConnection.connection?.explaining(refusal, deadline: .now + .milliseconds(250)) ?? refusal
        switch error.kind {
        case .server(.unknownUser):
            return EngineError(.notFound, error.message)
        case .server(.lockNotAvailable), .server(.queryCanceled), .server(.serializationFailure),
            .server(.deadlockDetected):
            return .busy
        case .server(.invalidStoredValue):
            invalidValues.record(error)
            return .invalidValue(error)
        case .server(.discardedRow):
            invalidValues.record(error, as: "the database discards a row that Headroom writes")
            return .discardedRow
        case .server(let state) where state.isClass("53"):
            logger.error("database is out of resources", metadata: ["error": "\(error)"])
            return .outOfResources
        default:
            let reference = String(UInt32.random(in: 0 ... .max), radix: 16)
            logger.error("statement refused", metadata: ["error": "\(error)", "error.reference": "\(reference)"])
            return EngineError(
                .internal,
                "the database refused the request and nothing was counted; see the log for reference \(reference)"
            )
        }
    }

    /// The answer to a change that was made before the error: other answers would say that nothing was changed.
    func engineErrorAfterEffect(for error: PostgresError) -> EngineError {
        let failure = engineError(for: error)
        if error.isAboutInvalidValue { return .invalidValueAfterwards(error) }
        logger.notice("a change was made, and is answered -UNKNOWN", metadata: ["refusal": "\(failure.message)"])
        return .unknown
    }

    /// The answer to a change that the SQL functions refused on purpose. It repeats nothing of the request.
    func engineError(for error: PostgresError, refusing change: OperatorChange) -> EngineError {
        switch (error.sqlState, change) {
        case (SQLState(rawValue: "P0002"), .setPlan):
            EngineError(.notFound, "there is no such plan; select plan from headroom.plans lists them")
        case (SQLState(rawValue: "P0002"), _):
            .noSuchPeriod
        case (SQLState(rawValue: "HR002"), .grant):
            .grantConflict
        case (SQLState(rawValue: "22003"), .grant):
            .grantTooLarge
        case (SQLState(rawValue: "22023"), .grant(let grant)):
            grant.key.text.hasPrefix("store:") ? .reservedGrantKey : .pastGrantEnd
        case (SQLState(rawValue: "22023"), _):
            EngineError(.badArgument, "that state does not fit the plan. " + (error.hint ?? ""))
        default:
            engineError(for: error)
        }
    }
}

extension EngineError {
    /// The answer to a request that waited for a session until its deadline.
    ///
    /// - Parameter failure: the reason why the last session ended, or could not be opened.
    init(withoutSession failure: PostgresError) {
        self =
            if failure.isAboutReachability {
                .unreachable
            } else if failure.kind == .timedOut {
                .late
            } else {
                .sessionRefused
            }
    }
}

/// An application's `message_usage` may refer to a table of its users, such as Supabase's `auth.users`. A user who is
/// missing there cannot have a row; the request succeeds once the user is added.
extension SQLState {
    /// An error of our own, which replaces a foreign key's 23503 once the table that lacks the user is known.
    package static let unknownUser = SQLState(rawValue: "HR008")
}

extension DatabaseConnection {
    /// Explains the refusal of a row by a foreign key of `message_usage`: the returned error names the table without
    /// the user. Every other error is returned as it is, and this one too if the table cannot be looked up.
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
            // The next statement on the connection reports the error.
            return error
        }
    }
}

extension PostgresError {
    /// Whether the request has a refused value, or is about an unknown user. Such an error is not logged, because an
    /// operator can do nothing about it.
    package var isAboutRequest: Bool { sqlState?.isClass("22") == true || sqlState == .unknownUser }
}
