import LineProtocol

/// Requests of operators. Without a key they are sent again only while the service cannot have applied them.
extension HeadroomClient {
    /// Replaces a user's plan, state and dates.
    public func setPlan(_ change: PlanChange, deadline: Duration? = nil) async throws(HeadroomError) -> UsageStatus {
        try await status(.setPlan(change), .once, deadline: deadline)
    }

    /// Grants messages beyond the plan's allowance. Each call grants more, once even if it is sent again.
    ///
    /// - Parameters:
    ///   - reason: for the audit log, 1 to 1,024 bytes; nil gives none.
    ///   - end: when those that are not used end.
    public func grant(
        _ user: UserID,
        messages: Int,
        reason: String? = nil,
        end: Grant.End = .withPeriod,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> UsageStatus {
        try await grant(user, messages: messages, key: keys.next(), reason: reason, end: end, deadline: deadline)
    }

    /// Grants messages beyond the plan's allowance. Calls with the same key grant once.
    ///
    /// - Parameters:
    ///   - reason: for the audit log, 1 to 1,024 bytes; nil gives none.
    ///   - end: when those that are not used end.
    public func grant(
        _ user: UserID,
        messages: Int,
        key: MessageKey,
        reason: String? = nil,
        end: Grant.End = .withPeriod,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> UsageStatus {
        let command = Command.grant(user: user, Grant(messages, key: key, reason: reason, end: end))
        return try await status(command, .keyed, key: key, deadline: deadline)
    }

    /// Sets the current period's count to 0, also those of models and members; or with one of them, only theirs.
    public func resetUsage(
        of user: UserID,
        model: ModelName? = nil,
        member: UserID? = nil,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> UsageStatus {
        try await status(.resetUsage(user: user, period: nil).about(model, member), .once, deadline: deadline)
    }

    /// Sets a period's count to 0, also those of models and members; or with one of them, only theirs.
    public func resetUsage(
        of user: UserID,
        period: BillingPeriod,
        model: ModelName? = nil,
        member: UserID? = nil,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> UsageStatus {
        try await status(.resetUsage(user: user, period: period).about(model, member), .once, deadline: deadline)
    }

    /// Ends the user's open window, if there is one, so that the next message opens another. The period's count stays.
    /// With a model or a member, it ends only theirs.
    public func closeWindow(
        of user: UserID,
        model: ModelName? = nil,
        member: UserID? = nil,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> UsageStatus {
        try await status(.closeWindow(user: user).about(model, member), .once, deadline: deadline)
    }

    /// Deletes all data of the user except that a trial was started.
    public func forget(_ user: UserID, deadline: Duration? = nil) async throws(HeadroomError) {
        try await admitted { () throws(HeadroomError) in
            let reply = try await perform(.forget(user: user), .once, deadline: deadline)
            guard case .line("OK") = reply else { throw .unexpected(reply) }
        }
    }
}
