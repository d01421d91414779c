import LineProtocol

/// What a chat backend asks.
extension HeadroomClient {
    /// Counts messages if they fit, all or none. Each call counts anew.
    ///
    /// Sent again when a connection breaks or a service is too busy, with a key that the client makes, so that the call
    /// counts once. The error of a call whose outcome is unknown has that key, for
    /// ``consume(_:messages:key:deadline:)``.
    ///
    /// - Parameters:
    ///   - messages: 1 to 1,000,000.
    ///   - deadline: the configuration's unless given.
    /// - Returns: `allowed` when it is counted and durable.
    public func consume(
        _ user: UserID,
        messages: Int = 1,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> Decision {
        try await consume(user, messages: messages, key: keys.next(), deadline: deadline)
    }

    /// Counts messages if they fit, all or none, and once however often it is called with the same key.
    ///
    /// - Parameters:
    ///   - messages: 1 to 1,000,000.
    ///   - key: the message's name, unique within the user, by which it can be asked for again, or released.
    ///   - deadline: the configuration's unless given.
    /// - Returns: `allowed` when it is counted and durable.
    public func consume(
        _ user: UserID,
        messages: Int = 1,
        key: MessageKey,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> Decision {
        try await decide(.consume(user: user, messages: messages, key: key), user, .keyed, key, deadline)
    }

    /// What ``consume(_:messages:deadline:)`` would say now; counts nothing.
    public func check(
        _ user: UserID,
        messages: Int = 1,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> Decision {
        try await decide(.check(user: user, messages: messages), user, .reading, nil, deadline)
    }

    /// Holds messages: they count as used until they are committed, released, or their time has passed.
    ///
    /// ``withHold(_:messages:ttl:_:)`` does this with all that belongs to it.
    ///
    /// - Parameter ttl: 1 s to 1 day, in whole seconds.
    public func reserve(
        _ user: UserID,
        messages: Int = 1,
        key: MessageKey,
        ttl: Duration = .seconds(120),
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> Decision {
        let seconds = Int(clamping: ttl.components.seconds)
        let command = Command.reserve(user: user, messages: messages, key: key, ttlSeconds: seconds)
        return try await decide(command, user, .keyed, key, deadline)
    }

    /// Counts what the key holds. Again, it says the same again.
    ///
    /// - Throws: `expired` when the hold's time has passed, `conflict` when it was released, `notFound` when there was none.
    public func commit(
        _ user: UserID,
        key: MessageKey,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> Decision {
        try await admitted { () throws(HeadroomError) in
            try decision(try await perform(.commit(user: user, key: key), .keyed, key: key, deadline: deadline), key)
        }
    }

    /// Gives back what the key holds or has counted, once.
    public func release(
        _ user: UserID,
        key: MessageKey,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> Release {
        try await admitted { () throws(HeadroomError) in
            let reply = try await perform(.release(user: user, key: key), .keyed, key: key, deadline: deadline)
            guard case .answer(let answer) = reply, let released = answer.released else {
                throw .unexpected(reply, to: key)
            }
            return Release(messages: released, status: answer.usage)
        }
    }

    /// Where the user stands in the current period, with its label and a sentence for screen readers.
    public func usage(of user: UserID, deadline: Duration? = nil) async throws(HeadroomError) -> UsageStatus {
        try await status(.usage(user: user, period: nil), .reading, deadline: deadline)
    }

    /// Where the user stood at the end of a period of the past.
    ///
    /// - Throws: `notFound` for a period without usage.
    public func usage(
        of user: UserID,
        period: BillingPeriod,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> UsageStatus {
        try await status(.usage(user: user, period: period), .reading, deadline: deadline)
    }
}

extension HeadroomClient {
    private func decide(
        _ command: Command,
        _ user: UserID,
        _ repeatability: Repeatability,
        _ key: MessageKey?,
        _ deadline: Duration?
    ) async throws(HeadroomError) -> Decision {
        do {
            return try await admitted { () throws(HeadroomError) in
                try decision(try await perform(command, repeatability, key: key, deadline: deadline), key)
            }
        } catch let error where configuration.whenUnreachable == .allow && error.isUnanswered {
            return degraded(user, error)
        }
    }

    func decision(_ reply: ReceivedReply, _ key: MessageKey?) throws(HeadroomError) -> Decision {
        guard case .answer(let answer) = reply else { throw .unexpected(reply, to: key) }
        switch answer.status {
        case .blocked(let reason): return .blocked(answer.usage, reason: reason)
        case .allowed, .held, .ok: return .allowed(answer.usage)
        }
    }

    func status(
        _ command: Command,
        _ repeatability: Repeatability,
        key: MessageKey? = nil,
        deadline: Duration?
    ) async throws(HeadroomError) -> UsageStatus {
        try await admitted { () throws(HeadroomError) in
            let reply = try await perform(command, repeatability, key: key, deadline: deadline)
            guard case .answer(let answer) = reply else { throw .unexpected(reply, to: key) }
            return answer.usage
        }
    }

    func degraded(_ user: UserID, _ error: HeadroomError) -> Decision {
        metrics.letThrough()
        logger.warning("a message was let through uncounted", metadata: ["code": "\(error.code)"])
        return .allowed(.degraded(user))
    }

    /// Nothing more begins once the client shuts down, nor when too much waits.
    func admitted<Result: Sendable>(
        _ work: () async throws(HeadroomError) -> Result
    ) async throws(HeadroomError) -> Result {
        try enter()
        defer { admission.leave() }
        return try await work()
    }

    /// Must be followed by `admission.leave`.
    func enter() throws(HeadroomError) {
        do {
            try admission.enter()
        } catch {
            metrics.failed(error)
            throw error
        }
    }
}

extension HeadroomError {
    /// Of a request with this key, if it has one.
    static func unexpected(_ reply: ReceivedReply, to key: MessageKey?) -> HeadroomError {
        var error = unexpected(reply)
        error.key = key
        return error
    }

    /// What a service says that is asked at a bad moment; it says nothing about who asks.
    var isPassing: Bool { isTransient || code == .internal }

    /// Nobody could say whether the message may be sent.
    var isUnanswered: Bool {
        switch code {
        case .unreachable, .unavailable, .overloaded, .draining, .unknown: true
        default: false
        }
    }
}
