import CLibPQ

extension DatabaseConnection {
    /// Stops waiting for the current statement. The connection can be used again after `settle` has succeeded.
    ///
    /// - Returns: whether there is such a statement.
    @discardableResult
    public func giveUp() -> Bool {
        if state == .busy { state = .late }
        return state == .late
    }

    /// Discards what a late statement has left: its result, and its transaction unless it was committed. It never
    /// waits; call it again when the socket is readable, and from time to time.
    ///
    /// - Returns: the statement's warnings, once the connection can be used again; nil before.
    /// - Throws: `.connectionLost` if the connection breaks.
    public func settle() throws(PostgresError) -> [Warning]? {
        guard state == .late else { throw misuse("settle without a late statement") }
        do throws(PostgresError) {
            if isExecuting, try awaitResults(until: .now) == nil { return nil }
        } catch {
            // An error of the statement itself is discarded, too.
            guard state == .late else { throw PostgresError(.connectionLost, error.message) }
        }
        // A cancel request that is still being sent could cancel the next statement.
        if let cancellation, !cancellation.hasEnded(within: .zero) { return nil }
        cancellation = nil
        guard !isInTransaction else {
            try sent(PQsendQuery(handle, "ROLLBACK"))
            state = .late
            return try settle()
        }
        state = .idle
        return notices.warnings
    }

    /// Whether results of a statement are still to be read.
    private var isExecuting: Bool { PQtransactionStatus(handle) == PQTRANS_ACTIVE }
}
