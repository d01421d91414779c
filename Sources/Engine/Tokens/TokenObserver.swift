import Postgres

/// Receives the live tokens from a `DatabaseMonitor`, on the monitor's thread.
public protocol TokenObserver: AnyObject, Sendable {
    func update(_ snapshot: TokenSnapshot)
    /// Called if the tokens could not be read. Those of the last snapshot still expire.
    func readFailed(_ error: PostgresError)
    /// Returns the ids of the tokens that were used since the last call.
    func takeUsedTokens() -> [Int64]
}
