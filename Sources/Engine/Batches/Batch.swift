import Usage

/// The requests that one lane carries together, sorted by user: every statement locks its rows in that order, in every
/// instance.
///
/// A pure value: it knows which users a statement should ask for and, given what the database said about a user, what
/// each of that user's requests is told. Answers equal those of carrying the requests one after the other, users
/// ascending and each user's requests in the order in which they came.
struct Batch {
    /// All requests of one user.
    struct Group: Equatable {
        var user: UserID
        /// The user's requests, as positions in `requests`.
        var range: Range<Int>
        /// Messages of all `consume` requests together; what the counting statement adds at once.
        var messages: Int
        /// How many of the requests are `consume`.
        var consumes: Int
        /// The request with a key, where there is one.
        var keyed: Keyed?
        /// Holds, or several keys, which only the slow path can execute.
        var needsSlowPath = false
        /// One of the requests is `usage`, which shows more than the counting statements return.
        var asksForUsage = false
    }

    /// A `consume` with a key.
    struct Keyed: Equatable {
        var key: MessageKey
        var messages: Int
        /// Messages of the user's requests up to and including this one.
        var messagesSoFar: Int
    }

    /// Sorted by user, and by arrival within a user.
    private(set) var requests: [Request]
    private(set) var groups: [Group] = []
    /// Already told that the outcome is unknown, because their deadline passed while the database was silent.
    private var isAnswered: [Bool]
    private var answeredCount = 0

    init(_ arrived: [Request]) {
        // Sorting positions keeps arrival order within a user without a stable sort of the larger requests.
        let order = arrived.indices.sorted { lhs, rhs in
            arrived[lhs].user != arrived[rhs].user ? arrived[lhs].user < arrived[rhs].user : lhs < rhs
        }
        requests = order.map { arrived[$0] }
        isAnswered = Array(repeating: false, count: requests.count)
        var start = 0
        while start < requests.count {
            var group = Group(user: requests[start].user, range: start..<start, messages: 0, consumes: 0)
            var end = start
            while end < requests.count, requests[end].user == group.user {
                group.add(requests[end].operation)
                end += 1
            }
            group.range = start..<end
            groups.append(group)
            start = end
        }
    }

    /// What each request of a group is told, given the snapshot before the first of them; and the snapshot after the
    /// last. Skips requests that have been answered already.
    func settle(_ group: Group, from before: UsageSnapshot, into completions: inout [Completion]) -> UsageSnapshot {
        var snapshot = before
        for index in group.range {
            let request = requests[index]
            let answer: Answer
            switch request.operation {
            case .consume(let messages, _): answer = snapshot.consume(messages, of: group.user)
            case .check(let messages): answer = snapshot.check(messages, of: group.user)
            case .usage: answer = snapshot.usage(of: group.user)
            case .reserve, .commit, .release:
                preconditionFailure("a group with holds takes the slow path; Group.needsSlowPath says so")
            case .usageInPeriod, .history, .setPlan, .grant, .resetUsage, .forget, .attributed:
                preconditionFailure("such a request goes alone; LaneQueue.take sees to it")
            }
            guard !isAnswered[index] else { continue }
            completions.append(Completion(returnAddress: request.returnAddress, outcome: .answer(answer)))
        }
        return snapshot
    }

    /// Answers the request at `index` with the result of the slow path.
    func settle(_ index: Int, _ performed: Performed, into completions: inout [Completion]) {
        guard !isAnswered[index] else { return }
        let request = requests[index]
        let outcome = performed.outcome(of: request.operation, user: request.user)
        completions.append(Completion(returnAddress: request.returnAddress, outcome: outcome))
    }

    /// Answers the request at `index`.
    func settle(_ index: Int, with answer: Answer, into completions: inout [Completion]) {
        guard !isAnswered[index] else { return }
        completions.append(Completion(returnAddress: requests[index].returnAddress, outcome: .answer(answer)))
    }

    /// Tells the request at `index` that it failed.
    func fail(_ index: Int, _ error: EngineError, into completions: inout [Completion]) {
        guard !isAnswered[index] else { return }
        completions.append(Completion(returnAddress: requests[index].returnAddress, outcome: .failure(error)))
    }

    /// Whether not one of a group's `consume` requests would be allowed at that snapshot, so that nothing has to be
    /// written to answer them.
    func isRefusedThroughout(_ group: Group, at snapshot: UsageSnapshot) -> Bool {
        requests[group.range].allSatisfy {
            if case .consume(let messages, _) = $0.operation { snapshot.refusal(of: messages) != nil } else { true }
        }
    }

    /// Tells every request of some groups that it failed.
    func fail(_ groups: some Sequence<Group>, _ error: EngineError, into completions: inout [Completion]) {
        for group in groups {
            for index in group.range where !isAnswered[index] {
                completions.append(
                    Completion(returnAddress: requests[index].returnAddress, outcome: .failure(error))
                )
            }
        }
    }

    /// Tells the requests whose deadline has passed that they failed, once.
    mutating func expire(
        _ groups: some Sequence<Group>,
        at now: ContinuousClock.Instant,
        _ error: EngineError,
        into completions: inout [Completion]
    ) {
        for group in groups {
            for index in group.range where !isAnswered[index] && requests[index].deadline <= now {
                isAnswered[index] = true
                answeredCount += 1
                completions.append(
                    Completion(returnAddress: requests[index].returnAddress, outcome: .failure(error))
                )
            }
        }
    }

    /// Whether somebody among these groups has been answered already. What was told "nothing was counted" must not be
    /// sent any more.
    func hasAnswered(_ groups: some Sequence<Group>) -> Bool {
        guard answeredCount > 0 else { return false }
        return groups.contains { $0.range.contains { isAnswered[$0] } }
    }

    /// The requests of these groups that nobody has answered.
    func unanswered(_ groups: some Sequence<Group>) -> [Request] {
        groups.flatMap { $0.range.filter { !isAnswered[$0] }.map { requests[$0] } }
    }

    /// The next deadline among requests of these groups that nobody has answered, or nil when all are answered.
    func nextDeadline(_ groups: some Sequence<Group>) -> ContinuousClock.Instant? {
        var next: ContinuousClock.Instant?
        for group in groups {
            for index in group.range where !isAnswered[index] {
                next = min(next ?? requests[index].deadline, requests[index].deadline)
            }
        }
        return next
    }
}

extension Batch.Group {
    fileprivate mutating func add(_ operation: EngineOperation) {
        switch operation {
        case .consume(let messages, let key):
            self.messages += messages
            consumes += 1
            guard let key else { return }
            if keyed != nil { needsSlowPath = true }
            keyed = Batch.Keyed(key: key, messages: messages, messagesSoFar: self.messages)
        case .reserve, .commit, .release:
            needsSlowPath = true
        case .usage:
            asksForUsage = true
        case .check, .usageInPeriod, .history, .setPlan, .grant, .resetUsage, .forget, .attributed:
            break
        }
    }
}
