import Usage

/// The requests that a lane executes together, sorted by user: every statement of every instance locks rows in this
/// order.
///
/// A pure value. Its answers equal those of executing the requests one after the other, users ascending and each user's
/// requests in the order of arrival.
struct Batch {
    /// All requests of one user.
    struct UserRequests: Equatable {
        var user: UserID
        /// The positions of the user's requests in `requests`.
        var range: Range<Int>
        /// The sum of the messages of all `consume` requests, which the counting statement adds.
        var messages = 0
        /// The number of `consume` requests.
        var consumes = 0
        /// The last request with a key; nil if there is none.
        var keyed: Keyed?
        /// The number of requests with a key.
        var keys = 0
        /// Whether a request is `usage`, whose answer shows more than the counting statement returns.
        var hasUsage = false
        /// Whether a request names parts. `messages` is without the models' weights then, before `charge(to:_:)`.
        var hasParts = false
        /// Whether a `check` or `usage` names parts. The counting statement returns the counts of others.
        var asksForParts = false
    }

    /// A request with a key.
    struct Keyed: Equatable {
        enum Verb: String {
            case consume, reserve, commit, release
        }

        var verb: Verb
        var key: MessageKey
        /// The messages of a `consume`, `reserve` or `commit`; nil for a `release`, and a `commit` of all that is held.
        var messages: Int?
        /// The messages of the user's `consume` requests up to and including this one.
        var messagesSoFar: Int
        /// The seconds for which a `reserve` holds its messages.
        var holdSeconds = 0
    }

    /// The requests, sorted by user, and those of one user by arrival.
    private(set) var requests: [BatchedRequest]
    private(set) var groups: [UserRequests] = []
    /// The requests of users with two keys, from the second key on. They are in no group: another batch executes them
    /// after this one, because the fast path knows one key of a user.
    private(set) var putOff: [BatchedRequest] = []
    /// Whether a request was answered before its execution ended, because its deadline had passed.
    private var isExpired: [Bool]
    private var expiredCount = 0

    init(_ arrived: [BatchedRequest]) {
        // Sorting positions keeps the order of arrival within a user, and moves each large request only once.
        let order = arrived.indices.sorted { lhs, rhs in
            arrived[lhs].user != arrived[rhs].user ? arrived[lhs].user < arrived[rhs].user : lhs < rhs
        }
        requests = order.map { arrived[$0] }
        isExpired = Array(repeating: false, count: requests.count)
        var start = 0
        while start < requests.count {
            var group = UserRequests(user: requests[start].user, range: start..<start)
            var end = start
            var secondKey = start
            while end < requests.count, requests[end].user == group.user {
                if group.keys < 2 { secondKey = end }
                group.add(requests[end])
                end += 1
            }
            group.range = start..<end
            if group.keys == 2 {
                putOff += requests[secondKey..<end]
                group = UserRequests(user: group.user, range: start..<secondKey)
                for request in requests[group.range] { group.add(request) }
            }
            groups.append(group)
            start = end
        }
    }

    // MARK: Answers

    /// Answers the requests of a group that does not need the slow path.
    ///
    /// - Parameters:
    ///   - snapshot: the user's snapshot before the first request, which becomes the one after the last.
    ///   - keyMessages: the messages that the key of a `commit` or a `release` held.
    ///   - parts: the counters of the parts before the first request.
    func answer(
        _ group: UserRequests,
        from snapshot: inout UsageSnapshot,
        keyMessages: Int = 0,
        parts: consuming UserParts? = nil,
        into completions: inout [Completion]
    ) {
        guard !group.hasParts else {
            return answerInParts(group, from: &snapshot, &parts, into: &completions)
        }
        for index in group.range {
            let answer = snapshot.decide(requests[index].operation, keyMessages, of: group.user)
            complete(index, .answer(answer), into: &completions)
        }
    }

    /// Answers a group in which requests name parts. It is apart, because the others would pay for its copies.
    @inline(never)
    private func answerInParts(
        _ group: UserRequests,
        from snapshot: inout UsageSnapshot,
        _ parts: inout UserParts?,
        into completions: inout [Completion]
    ) {
        for index in group.range {
            let answer = snapshot.charging(requests[index].parts, &parts) {
                $0.decide(requests[index].operation, 0, of: group.user)
            }
            complete(index, .answer(answer), into: &completions)
        }
    }

    /// Why each of a group's `consume` requests would be refused; nil if one of them would be allowed. Then nothing has
    /// to be written to answer them.
    func refusals(_ group: UserRequests, at snapshot: UsageSnapshot, _ parts: UserParts?) -> [DenialReason]? {
        var (snapshot, parts) = (snapshot, parts)
        var refusals: [DenialReason] = []
        for request in requests[group.range] {
            guard case .consume(let messages, _) = request.operation else { continue }
            guard let refusal = snapshot.charging(request.parts, &parts, { $0.refusal(of: messages) }) else {
                return nil
            }
            refusals.append(refusal)
        }
        return refusals
    }

    /// Adds the outcome of the request at `index`, unless it has expired.
    ///
    /// - Parameter outcome: a consumed argument, because a copy costs as much as the answer itself.
    func complete(_ index: Int, _ outcome: consuming Outcome, into completions: inout [Completion]) {
        guard !isExpired[index] else { return }
        completions.append(Completion(returnAddress: requests[index].returnAddress, outcome: outcome))
    }

    func fail(_ groups: some Sequence<UserRequests>, _ error: EngineError, into completions: inout [Completion]) {
        for group in groups {
            for index in group.range { complete(index, .failure(error), into: &completions) }
        }
    }

    // MARK: Deadlines

    /// Fails the requests whose deadline has passed, each once.
    mutating func expire(
        _ groups: some Sequence<UserRequests>,
        at now: Deadline,
        _ error: EngineError,
        into completions: inout [Completion]
    ) {
        for group in groups {
            for index in group.range where !isExpired[index] && requests[index].deadline <= now {
                complete(index, .failure(error), into: &completions)
                isExpired[index] = true
                expiredCount += 1
            }
        }
    }

    /// Whether a request of these groups has expired. It was answered "nothing was counted", so its statement must not
    /// be sent any more.
    func hasExpired(_ groups: some Sequence<UserRequests>) -> Bool {
        guard expiredCount > 0 else { return false }
        return groups.contains { $0.range.contains { isExpired[$0] } }
    }

    /// The requests of these groups that have not expired.
    func unexpired(_ groups: some Sequence<UserRequests>) -> [BatchedRequest] {
        groups.flatMap { $0.range.filter { !isExpired[$0] }.map { requests[$0] } }
    }

    /// The earliest deadline among the requests of these groups that have not expired; nil when all have.
    func nextDeadline(_ groups: some Sequence<UserRequests>) -> Deadline? {
        var next: Deadline?
        for group in groups {
            for index in group.range where !isExpired[index] {
                next = min(next ?? requests[index].deadline, requests[index].deadline)
            }
        }
        return next
    }
}

extension UsageSnapshot {
    /// Answers one request without parts.
    ///
    /// - Parameter keyMessages: the messages that the key of a `commit` or a `release` held.
    @inline(__always)
    fileprivate mutating func decide(_ operation: BatchedOperation, _ keyMessages: Int, of user: UserID) -> Answer {
        switch operation {
        case .consume(let messages, _): consume(messages, of: user)
        case .check(let messages): check(messages, of: user)
        case .usage: usage(of: user)
        case .reserve(let messages, _, _): reserve(messages, of: user)
        case .commit(let messages, _): commit(messages ?? keyMessages, ofHeld: keyMessages, of: user)
        case .release: release(keyMessages, of: user)
        }
    }
}

extension Batch.UserRequests {
    fileprivate mutating func add(_ request: BatchedRequest) {
        if request.parts != nil {
            hasParts = true
            if !request.operation.countsOrHolds { asksForParts = true }
        }
        switch request.operation {
        case .consume(let messages, let key):
            self.messages += messages
            consumes += 1
            if let key { add(.consume, key, messages: messages) }
        case .reserve(let messages, let key, let seconds):
            add(.reserve, key, messages: messages, holdSeconds: seconds)
        case .commit(let messages, let key): add(.commit, key, messages: messages)
        case .release(let key): add(.release, key)
        case .usage: hasUsage = true
        case .check: break
        }
    }

    private mutating func add(_ verb: Batch.Keyed.Verb, _ key: MessageKey, messages: Int? = nil, holdSeconds: Int = 0) {
        keys += 1
        keyed = Batch.Keyed(
            verb: verb,
            key: key,
            messages: messages,
            messagesSoFar: self.messages,
            holdSeconds: holdSeconds
        )
    }

    /// Whether only the slow path executes the group. It executes all keys of a user at once, and takes longer than the
    /// second batch of a user with two. Of requests with a key and parts, the fast path knows a `consume` alone.
    var needsSlowPath: Bool {
        keys > 1 || hasParts && keys > 0 && (consumes == 0 || range.count > 1) || asksForParts && changesUsage
    }

    /// Whether a request counts, holds or gives back messages.
    var changesUsage: Bool { consumes > 0 || keyed != nil }

    /// Whether only a `commit` or a `release` changes the usage. A user without messages left may send these too.
    var onlySettlesHolds: Bool {
        guard consumes == 0, let keyed else { return false }
        return keyed.verb == .commit || keyed.verb == .release
    }
}
