import Postgres

/// Who wants to know the live tokens. Called on the monitor's thread.
public protocol TokenKeeper: AnyObject, Sendable {
    /// What was read just now.
    func take(_ reading: TokenReading)
    /// The tokens could not be read; those that are known expire all the same.
    func miss(_ error: PostgresError)
    /// Tokens that were used since this was last asked.
    func takeUsed() -> [Int64]
}
