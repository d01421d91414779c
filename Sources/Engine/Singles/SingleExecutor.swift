import Postgres
import Usage

/// Requests that go alone: an operator's changes (`LaneChanges`), and readings of the past.
extension BatchExecutor {
    mutating func carry(_ request: Request) -> Completion {
        guard case .attributed(let change, let actor, let reason) = request.operation else {
            return Completion(returnAddress: request.returnAddress, outcome: outcome(of: request, by: nil))
        }
        var request = request
        request.operation = change
        let author = Author(actor: actor, reason: reason)
        return Completion(returnAddress: request.returnAddress, outcome: outcome(of: request, by: author))
    }

    /// - Parameter author: whom the audit log is to name; nil names the service's role.
    private func outcome(of request: Request, by author: Author?) -> Outcome {
        let isChange = request.operation.isChange
        var number = isChange ? link.nextNumber() : nil
        var lane = link.lane
        var losses = 0
        var isDone = false
        while ContinuousClock.now < request.deadline {
            link.advance()
            guard let connection = link.connection else {
                trips.waitForLink(until: request.deadline)
                continue
            }
            if link.lane != lane {
                // As in ExactlyOnce.run: the receipt was lost, and with it what became of an earlier attempt.
                guard losses == 0 else { return unknown }
                lane = link.lane
                if isChange { number = link.nextNumber() }
            }
            do throws(PostgresError) {
                var isReplay = false
                if let number {
                    isReplay = try change(request, author, number: number, isRepeated: losses > 0, on: connection)
                    isDone = true
                }
                return try read(request, isReplay: isReplay, on: connection)
            } catch {
                switch trips.verdict(on: error) {
                case .lost:
                    losses += 1
                    link.drop(error)
                case .movedAway, .receiptLost:
                    link.drop(error)
                case .rolledBack:
                    rollBack(connection)
                case .refused:
                    rollBack(connection)
                    // The change is committed under its number; what was refused is the reading after it.
                    if isDone { return .failure(failureAfterwards(for: error)) }
                    if losses > 0 {
                        // The lost transaction still holds the receipt, most likely; it is no use to ask at once.
                        trips.waitForLink(until: min(request.deadline, .now + .milliseconds(50)))
                        break
                    }
                    if let number { link.takeBack(number) }
                    return .failure(refusal(of: request.operation, error))
                }
            }
        }
        guard isChange, losses > 0 else {
            if let number, link.lane == lane { link.takeBack(number) }
            return .failure(.unavailable)
        }
        link.abandon()
        return unknown
    }

    private var unknown: Outcome {
        metrics.countFailures(1, .unknown)
        return .failure(.unknown)
    }

    private func rollBack(_ connection: Connection) {
        guard connection.isUsable else { return }
        do throws(PostgresError) {
            try connection.execute("rollback", deadline: .now + .seconds(1))
        } catch {
            link.drop(error)
        }
    }

    /// - Parameter isReplay: the change was made before, under its key, and not now.
    private func read(
        _ request: Request,
        isReplay: Bool,
        on connection: Connection
    ) throws(PostgresError) -> Outcome {
        switch request.operation {
        case .forget:
            return .done
        case .history(let count):
            return .history(try history(of: request.user, count, on: connection, deadline: request.deadline))
        case .usageInPeriod(let period):
            let row = try usage(of: request.user, in: period, on: connection, deadline: request.deadline)
            guard case .answer = row else { return row }
            let now = try snapshot(of: request.user, on: connection, deadline: request.deadline)
            if let now, now.period == period { return .answer(now.usage(of: request.user)) }
            return row
        case .resetUsage(let period?):
            let now = try snapshot(of: request.user, on: connection, deadline: request.deadline)
            guard let now, now.period != period else { fallthrough }
            guard
                case .answer(var answer) = try usage(
                    of: request.user,
                    in: period,
                    on: connection,
                    deadline: request.deadline
                )
            else { return .failure(BatchExecutor.noSuchPeriod) }
            answer.isDetailed = false
            return .answer(answer)
        case .setPlan, .grant, .resetUsage, .consume, .reserve, .commit, .release, .check, .usage, .attributed:
            guard let now = try snapshot(of: request.user, on: connection, deadline: request.deadline) else {
                throw PostgresError(.connectionLost, "a standing was not found")
            }
            return .answer(Answer(user: request.user, status: .ok, snapshot: now, isReplay: isReplay))
        }
    }

    private func snapshot(
        of user: UserID,
        on connection: Connection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> UsageSnapshot? {
        var parameters = Parameters()
        parameters.appendUUIDs(count: 1) { _ in (user.high, user.low) }
        // No hint: the row is looked up by what the user's entitlement are now.
        parameters.appendTexts(count: 1) { _ in "" }
        parameters.append(text: configuration.unknownUsers.rawValue)
        let result = try connection.query(EmbeddedSQL.readBatch, parameters, deadline: deadline)
        guard result.rowCount == 1 else { return nil }
        let row = UsageSnapshotRow(result, row: 0)
        refreshCatalog(row.planRevision)
        return try row.standingWithRenewal(link.catalog)
    }

    private func usage(
        of user: UserID,
        in period: BillingPeriod,
        on connection: Connection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> Outcome {
        var parameters = Parameters()
        parameters.append(uuid: (user.high, user.low))
        parameters.append(text: period.label)
        let result = try connection.query(EmbeddedSQL.readPeriod, parameters, deadline: deadline)
        guard result.rowCount == 1 else { return .failure(BatchExecutor.noSuchPeriod) }
        let row = UsageSnapshotRow(result, row: 0, hasOrdinal: false)
        refreshCatalog(row.planRevision)
        return .answer(try row.snapshot(link.catalog, period: period).usage(of: user))
    }

    private func history(
        of user: UserID,
        _ count: Int,
        on connection: Connection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) -> [PeriodUsage] {
        var parameters = Parameters()
        parameters.append(uuid: (user.high, user.low))
        parameters.append(int32: Int32(count))
        let result = try connection.query(EmbeddedSQL.readHistory, parameters, deadline: deadline)
        return try (0..<result.rowCount).map { row throws(PostgresError) in
            PeriodUsage(
                user: user,
                period: BillingPeriod(storedLabel: result.text(row, 0)),
                used: try result.count(row, 1, of: .messageCount),
                limit: try result.countOrNil(row, 2, of: .limit),
                tier: Tier(rawValue: result.text(row, 3)) ?? .silent
            )
        }
    }
}
