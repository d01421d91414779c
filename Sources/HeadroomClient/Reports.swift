import LineProtocol

/// Requests of dashboards.
extension HeadroomClient {
    /// Usage by period, newest first.
    ///
    /// - Parameter months: 1 to 1,200; a trial counts as one.
    public func history(
        of user: UserID,
        months: Int = 12,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> [PeriodUsage] {
        try await admitted { () throws(HeadroomError) in
            let reply = try await perform(.history(user: user, months: months), .reading, deadline: deadline)
            return try periods(reply)
        }
    }

    /// The totals of a billing period over all users. Scans the whole table, which takes long with millions of users.
    ///
    /// - Parameter period: `open` means all periods that are open now. `2026-03` includes `2026-03.2` and so on.
    public func report(
        _ period: BillingPeriod = .open,
        deadline: Duration = .seconds(60)
    ) async throws(HeadroomError) -> PeriodReport {
        try await admitted { () throws(HeadroomError) in
            let reply = try await performReport(.report(period: period), deadline: deadline)
            guard case .line(let line) = reply, let report = PeriodReport(reportLine: line) else {
                throw .unexpected(reply)
            }
            return report
        }
    }

    /// The users with the most messages in a billing period, in descending order.
    ///
    /// - Parameters:
    ///   - count: how many users, 1 to 1,000.
    ///   - period: `open` means all periods that are open now. `2026-03` includes `2026-03.2` and so on: each has its
    ///     own line, also of one user.
    public func top(
        _ count: Int = 10,
        in period: BillingPeriod = .open,
        deadline: Duration = .seconds(60)
    ) async throws(HeadroomError) -> [PeriodUsage] {
        try await admitted { () throws(HeadroomError) in
            try periods(try await performReport(.top(period: period, count: count), deadline: deadline))
        }
    }

    private func periods(_ reply: ReceivedReply) throws(HeadroomError) -> [PeriodUsage] {
        guard case .list(let lines) = reply else { throw .unexpected(reply) }
        var periods: [PeriodUsage] = []
        for line in lines {
            guard let period = PeriodUsage(periodLine: line) else { throw .unexpected(reply) }
            periods.append(period)
        }
        return periods
    }
}

/// Requests about the service itself.
extension HeadroomClient {
    /// Succeeds when a service answers.
    public func ping(deadline: Duration? = nil) async throws(HeadroomError) {
        try await admitted { () throws(HeadroomError) in
            let reply = try await perform(.ping(text: nil), .reading, deadline: deadline)
            guard case .line("PONG") = reply else { throw .unexpected(reply) }
        }
    }

    /// Version, connections, database state and counters of the answering service, by the names in its reference.
    public func info(deadline: Duration? = nil) async throws(HeadroomError) -> [String: String] {
        try await admitted { () throws(HeadroomError) in
            let reply = try await perform(.info, .reading, deadline: deadline)
            guard case .list(let lines) = reply else { throw .unexpected(reply) }
            let pairs = lines.map { $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false) }
            return Dictionary(
                pairs.map { (String($0[0]), $0.count > 1 ? String($0[1]) : "") },
                uniquingKeysWith: { first, _ in first }
            )
        }
    }
}
