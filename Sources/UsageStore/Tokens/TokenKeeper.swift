/// Who wants to know the live tokens. Called on the monitor's thread.
public protocol TokenKeeper: AnyObject, Sendable {
    /// What was read just now.
    func take(_ reading: TokenReading)
    /// The database could not be asked; tokens expire all the same.
    func takeTime()
    /// Tokens that were used since this was last asked.
    func takeUsed() -> [Int64]
}
