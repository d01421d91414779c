import LineProtocol

/// What dashboards ask.
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

    /// What a billing period comes to over all users. Reads the whole table, which takes a while for millions.
    ///
    /// - Parameter period: `open` is every period that is open now.
    public func report(
        _ period: BillingPeriod = .open,
        deadline: Duration = .seconds(60)
    ) async throws(HeadroomError) -> PeriodReport {
        try await admitted { () throws(HeadroomError) in
            let reply = try await performAside(.report(period: period), deadline: deadline)
            guard case .line(let line) = reply, let report = PeriodReport(reportLine: line) else {
                throw .unexpected(reply)
            }
            return report
        }
    }

    /// Who sent most in a billing period, most first.
    ///
    /// - Parameters:
    ///   - count: of users, 1 to 1,000.
    ///   - period: `open` is every period that is open now.
    public func top(
        _ count: Int = 10,
        in period: BillingPeriod = .open,
        deadline: Duration = .seconds(60)
    ) async throws(HeadroomError) -> [PeriodUsage] {
        try await admitted { () throws(HeadroomError) in
            try periods(try await performAside(.top(period: period, count: count), deadline: deadline))
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

/// The connection's own.
extension HeadroomClient {
    /// That a service answers.
    public func ping(deadline: Duration? = nil) async throws(HeadroomError) {
        try await admitted { () throws(HeadroomError) in
            let reply = try await perform(.ping(text: nil), .reading, deadline: deadline)
            guard case .line("PONG") = reply else { throw .unexpected(reply) }
        }
    }

    /// Version, connections, database state and counters of the service that answers, by the names of its documentation.
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
