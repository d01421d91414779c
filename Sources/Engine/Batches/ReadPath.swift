import Logging
import Postgres
import Usage

/// The read path: answers users from their rows, without a lock and without writing. Also reads what the statements of
/// the other paths do not return.
final class ReadPath {
    private let sender: ExactlyOnceSender
    private let isolation: RowErrorIsolation
    private let laneConnection: LaneConnection
    private let delivery: OutcomeDelivery
    private let metrics: LaneMetrics
    private let invalidValues: InvalidValueLog
    private let unknownUsersPolicy: UnknownUsersPolicy
    private let manageURL: String?

    init(sender: ExactlyOnceSender, isolation: RowErrorIsolation, configuration: EngineConfiguration) {
        self.sender = sender
        self.isolation = isolation
        laneConnection = sender.laneConnection
        delivery = sender.delivery
        metrics = sender.metrics
        invalidValues = isolation.errors.invalidValues
        unknownUsersPolicy = configuration.unknownUsersPolicy
        manageURL = configuration.manageURL
    }

    /// Answers the users who have nothing to count, and leaves users with an allowed message to the slow path.
    func read(_ part: BatchPart, _ users: inout UserCache) -> UnansweredUsers {
        readSnapshots(part, afterEffect: false, &users) { group, read, batch, users, completions in
            guard let refusals = batch.refusals(group, at: read.snapshot, read.parts) else { return false }
            // The slow path writes the limit that denies the message into a stale row: otherwise the next message would
            // undo an operator's UPDATE of it, and a client that reads the table would show the previous limit.
            guard group.consumes == 0 || !read.isStale else { return false }
            var after = read.snapshot
            batch.answer(group, from: &after, parts: read.parts, into: &completions)
            refusals.forEach(metrics.addBlocked)
            users.learn(group.user, after)
            return true
        }
    }

    // MARK: Snapshots

    /// A user as the database has it now.
    struct ReadUser {
        var snapshot: UsageSnapshot
        /// Whether a message, even a denied one, would write the user's row anew.
        var isStale: Bool
        /// The counters of the parts that the requests name; nil if they name none.
        var parts: UserParts?
    }

    /// Answers a user's requests from a snapshot, or returns false.
    typealias AnswerFromSnapshot = (
        _ group: Batch.UserRequests,
        _ read: ReadUser,
        _ batch: Batch,
        _ users: inout UserCache,
        _ completions: inout [Completion]
    ) -> Bool

    /// Reads the snapshot of each user and answers with it. Leaves the users for whom `answer` returns false. Users who
    /// have moved to other buckets since they were grouped are read there.
    ///
    /// - Parameter afterEffect: whether the requests were executed before, so that a failure is answered `unknown`.
    @discardableResult
    func readSnapshots(
        _ part: BatchPart,
        afterEffect: Bool,
        _ users: inout UserCache,
        answer: AnswerFromSnapshot
    ) -> UnansweredUsers {
        let map = laneConnection.buckets
        let receipt = laneConnection.receipt(in: part.bucket)
        var unanswered = UnansweredUsers()
        for (bucket, part) in part.divided(by: map) {
            if afterEffect, laneConnection.receipt(in: part.bucket) != receipt {
                // The receipt was lost while users of another bucket were read.
                delivery.fail(part, .unknown)
            } else {
                unanswered += readSnapshots(part, in: bucket, map, afterEffect: afterEffect, &users, answer)
            }
        }
        return unanswered
    }

    /// - Parameters:
    ///   - bucket: the bucket in which all users are looked for.
    ///   - map: the map by which they are in this bucket.
    private func readSnapshots(
        _ part: BatchPart,
        in bucket: Bucket,
        _ map: BucketMap,
        afterEffect: Bool,
        _ users: inout UserCache,
        _ answer: AnswerFromSnapshot
    ) -> UnansweredUsers {
        let groups = part.groups
        let first = groups.startIndex
        let reply = sender.readBatch(ReadBatchStatement.query, part, afterEffect: afterEffect) {
            ReadBatchStatement.parameters(
                in: bucket,
                count: groups.count,
                unknownUsersPolicy,
                hasDetails: groups.contains(where: \.hasUsage),
                user: { groups[first + $0].user },
                periodLabel: { users.period(of: groups[first + $0].user).label }
            )
        }
        switch reply {
        case .value(let result):
            do throws(PostgresError) {
                let result = try ReadBatchStatement.Result(result)
                var state = MapState.changed
                if try result.bucketsRevision() == map.revision {
                    state = map.isSettled ? .unchanged : self.state(of: map, part, afterEffect: afterEffect)
                }
                switch state {
                case .unchanged:
                    return answerEach(result, part, in: bucket, map, afterEffect: afterEffect, &users, answer)
                case .changed:
                    return readAgain(part, map, afterEffect: afterEffect, &users, answer)
                case .effectLost:
                    delivery.fail(part, .unknown)
                    return UnansweredUsers()
                }
            } catch {
                invalidValues.record(error)
                delivery.fail(part, afterEffect ? .unknown : .invalidValue(error))
                return UnansweredUsers()
            }
        case .allExpired:
            return UnansweredUsers()
        case .rejected where afterEffect, .effectLost:
            delivery.fail(part, .unknown)
            return UnansweredUsers()
        case .rejected(let error):
            return isolation.isolateRead(part, error) {
                readSnapshots($0, afterEffect: afterEffect, &users, answer: answer)
            }
        }
    }

    /// Reads anew what statements may have looked for in a bucket that users have left.
    private func readAgain(
        _ part: BatchPart,
        _ map: BucketMap,
        afterEffect: Bool,
        _ users: inout UserCache,
        _ answer: AnswerFromSnapshot
    ) -> UnansweredUsers {
        laneConnection.refreshBuckets(seen: map.revision)
        guard delivery.expire(part, afterEffect ? .unknown : .late) != nil else { return UnansweredUsers() }
        return readSnapshots(part, afterEffect: afterEffect, &users, answer: answer)
    }

    private enum MapState {
        case unchanged
        /// The map has changed, or nobody knows.
        case changed
        /// The lane's receipt is lost; see `ExactlyOnceSender.ReadReply`.
        case effectLost
    }

    /// Finds out whether the map has changed since it was read. A statement sees one map, but the functions that it
    /// calls may have been planned with a newer one (docs/decisions/0040-buckets-and-lanes.md).
    private func state(of map: BucketMap, _ part: BatchPart, afterEffect: Bool) -> MapState {
        let reply = sender.read(part, in: part.bucket, afterEffect: afterEffect) { connection throws(PostgresError) in
            try connection.currentBuckets(deadline: part.nextDeadline?.instant ?? .now)
        }
        switch reply {
        case .value(let newest): return newest.revision == map.revision ? .unchanged : .changed
        case .allExpired, .rejected: return .changed
        case .effectLost: return .effectLost
        }
    }

    private func answerEach(
        _ result: ReadBatchStatement.Result,
        _ part: BatchPart,
        in bucket: Bucket,
        _ map: BucketMap,
        afterEffect: Bool,
        _ users: inout UserCache,
        _ answer: AnswerFromSnapshot
    ) -> UnansweredUsers {
        laneConnection.refreshCatalog(ifOlderThan: result.snapshots.planRevision)
        laneConnection.noteWords(result.wordsRevision)
        let groups = part.groups
        var completions: [Completion] = []
        var read: [(group: Batch.UserRequests, user: ReadUser)] = []
        read.reserveCapacity(groups.count)
        for row in result.rows {
            let group = groups[groups.startIndex + result.snapshots.index(row)]
            do throws(PostgresError) {
                let snapshot = try result.snapshots.snapshot(row, laneConnection.catalog)
                read.append((group, ReadUser(snapshot: snapshot, isStale: try result.isStale(row))))
            } catch {
                invalidValues.record(error)
                let error: EngineError = afterEffect ? .invalidValueAfterwards(error) : .invalidValue(error)
                part.batch.fail(CollectionOfOne(group), error, into: &completions)
            }
        }
        if groups.contains(where: \.hasParts) {
            delivery.deliver(consume completions)
            completions = []
            let rest = part.part(read.map(\.group))
            switch readParts(of: &read, rest, in: bucket, map, afterEffect: afterEffect) {
            case .value(map.revision): break
            case .value: return readAgain(rest, map, afterEffect: afterEffect, &users, answer)
            case .rejected(let error) where !afterEffect:
                return isolation.isolateRead(rest, error) {
                    readSnapshots($0, afterEffect: afterEffect, &users, answer: answer)
                }
            case .rejected, .effectLost:
                delivery.fail(rest, .unknown)
                return UnansweredUsers()
            case .allExpired: return UnansweredUsers()
            }
        }
        let batch = part.batch
        var unanswered = UnansweredUsers()
        for (group, user) in read where !answer(group, user, batch, &users, &completions) {
            unanswered.forNextPath.append(group)
        }
        delivery.deliver(consume completions)
        return unanswered
    }

    /// Reads the counters of the parts that the requests name, and of the models to offer instead.
    ///
    /// - Returns: the revision of the map by which the users are in the bucket.
    private func readParts(
        of read: inout [(group: Batch.UserRequests, user: ReadUser)],
        _ part: BatchPart,
        in bucket: Bucket,
        _ map: BucketMap,
        afterEffect: Bool
    ) -> ExactlyOnceSender.ReadReply<Int32?> {
        let batch = part.batch
        let wanted = read.flatMap { group, user in
            batch.requests[group.range].partIDs(user.snapshot.plan).map { id in
                (user: group.user, key: PartKey(period: user.snapshot.period, id: id))
            }
        }
        var parts: [UserID: [PartKey: StoredPart]] = [:]
        var revision: Int32? = map.revision
        if !wanted.isEmpty {
            let reply = sender.readBatch(ReadPartsStatement.query, part, afterEffect: afterEffect) {
                ReadPartsStatement.parameters(wanted, in: bucket)
            }
            switch reply {
            case .value(let result):
                do throws(PostgresError) {
                    parts = try ReadPartsStatement.parts(result, of: wanted)
                    revision = try result.bucketsRevision()
                } catch {
                    return .rejected(error)
                }
            case .allExpired: return .allExpired
            case .effectLost: return .effectLost
            case .rejected(let error): return .rejected(error)
            }
        }
        for index in read.indices where read[index].group.hasParts {
            let (user, period) = (read[index].group.user, read[index].user.snapshot.period)
            read[index].user.parts = UserParts(parts[user] ?? [:], in: period)
        }
        return .value(revision)
    }

    // MARK: Keys

    /// Reads what the first use of each key returned, for answers to requests that were executed before.
    ///
    /// - Returns: nothing for users without a key, or whose deadlines have passed; nil if the keys cannot be read.
    func readKeys(_ part: BatchPart) -> [UserID: UsedKey]? {
        let keyed = part.part(part.groups.filter { $0.keyed != nil })
        guard !keyed.groups.isEmpty else { return [:] }
        let map = laneConnection.buckets
        var keys: [UserID: UsedKey] = [:]
        for (bucket, part) in keyed.divided(by: map) {
            guard let read = readKeys(part, in: bucket) else { return nil }
            keys.merge(read) { $1 }
        }
        // The statement does not return by which map it has found the keys.
        switch state(of: map, keyed, afterEffect: true) {
        case .unchanged:
            return keys
        case .changed:
            laneConnection.refreshBuckets(seen: map.revision)
            return keyed.nextDeadline == nil ? [:] : readKeys(part)
        case .effectLost:
            return nil
        }
    }

    /// Reads the keys of users who are all in one bucket, each with a key; otherwise as `readKeys(_:)`.
    private func readKeys(_ part: BatchPart, in bucket: Bucket) -> [UserID: UsedKey]? {
        let keyed = part.groups
        let first = keyed.startIndex
        let reply = sender.readBatch(LockUsersStatement.keys, part, afterEffect: true) {
            var parameters = Parameters(capacity: 128 + keyed.count * 48)
            parameters.append(int16: bucket)
            parameters.append(usersOf: keyed)
            parameters.appendTexts(count: keyed.count) { keyed[first + $0].keyed?.key.text }
            return parameters
        }
        switch reply {
        case .value(let result):
            var values: [UserID: UsedKey] = [:]
            for row in result.rows {
                do throws(PostgresError) {
                    values[keyed[first + (try row.int32("ordinal")) - 1].user] = try UsedKey(row)
                } catch {
                    // The answer has the values of the usage row instead.
                    invalidValues.record(error)
                }
            }
            return values
        case .allExpired:
            return [:]
        case .effectLost:
            return nil
        case .rejected(let error):
            sender.logger.warning("keys could not be read after a lost reply", metadata: ["error": "\(error)"])
            return nil
        }
    }

    // MARK: Details of subscriptions

    /// Delivers the completions of a path whose statement returns no renewals, prices and addresses. `USAGE` shows
    /// them, so a second statement reads them for answers about the subscription of a store. Others are not delayed.
    ///
    /// Details may be newer than the rest of their answer, never older.
    func deliverWithDetails(_ completions: [Completion], of part: BatchPart, _ users: inout UserCache) {
        var waiting: [ReturnAddress: Answer] = [:]
        var others: [Completion] = []
        for var completion in completions {
            guard case .answer(var answer) = completion.outcome, answer.isDetailed else {
                others.append(completion)
                continue
            }
            if answer.snapshot.renews != nil {
                waiting[completion.returnAddress] = answer
            } else {
                answer.snapshot.details = manageURL.map { SubscriptionDetails(manage: $0) }
                completion.outcome = .answer(answer)
                others.append(completion)
            }
        }
        delivery.deliver(others)
        guard !waiting.isEmpty else { return }
        let usages = Batch(part.batch.requests.filter { waiting[$0.returnAddress] != nil })
        let usagesPart = part.pending(usages)
        // The messages are counted already; the requests of this part count nothing.
        readSnapshots(usagesPart, afterEffect: false, &users) { group, now, usages, _, completions in
            for index in group.range {
                guard var answer = waiting[usages.requests[index].returnAddress] else { continue }
                answer.snapshot.renewsAt = now.snapshot.renewsAt
                answer.snapshot.details = now.snapshot.details
                usages.complete(index, .answer(answer), into: &completions)
            }
            return true
        }
    }
}
