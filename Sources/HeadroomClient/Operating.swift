import LineProtocol

/// What operators change. Other than what counts, these are sent again only while nothing can have been done.
extension HeadroomClient {
    /// Says all about a user's subscription.
    public func setPlan(_ change: PlanChange, deadline: Duration? = nil) async throws(HeadroomError) -> UsageStatus {
        try await status(.setPlan(change), .once, deadline: deadline)
    }

    /// Raises this period's limit. Each call grants anew; it is sent again with a key that the client makes.
    ///
    /// - Parameter reason: for the audit log, 1 to 1,024 bytes; nil gives none.
    public func grant(
        _ user: UserID,
        messages: Int,
        reason: String? = nil,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> UsageStatus {
        try await grant(user, messages: messages, key: keys.next(), reason: reason, deadline: deadline)
    }

    /// Raises this period's limit, once however often it is called with the same key.
    ///
    /// - Parameter reason: for the audit log, 1 to 1,024 bytes; nil gives none.
    public func grant(
        _ user: UserID,
        messages: Int,
        key: MessageKey,
        reason: String? = nil,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> UsageStatus {
        let command = Command.grant(user: user, messages: messages, key: key, reason: reason)
        return try await status(command, .keyed, key: key, deadline: deadline)
    }

    /// Sets the current period's count to 0.
    public func resetUsage(of user: UserID, deadline: Duration? = nil) async throws(HeadroomError) -> UsageStatus {
        try await status(.resetUsage(user: user, period: nil), .once, deadline: deadline)
    }

    /// Sets a period's count to 0.
    public func resetUsage(
        of user: UserID,
        period: BillingPeriod,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> UsageStatus {
        try await status(.resetUsage(user: user, period: period), .once, deadline: deadline)
    }

    /// Deletes all that is known of the user; a trial that was started stays so.
    public func forget(_ user: UserID, deadline: Duration? = nil) async throws(HeadroomError) {
        try await admitted { () throws(HeadroomError) in
            _ = try await perform(.forget(user: user), .once, deadline: deadline)
        }
    }
}
