import LineProtocol
import Usage

/// Requests of a chat backend for its messages.
extension HeadroomClient {
    /// Counts messages if they fit, all or none. Each call counts anew.
    ///
    /// The client makes a key, so the call counts once even if the client has to send it again. The error of a call
    /// whose outcome is unknown has that key, for ``consume(_:messages:key:model:member:deadline:)``.
    ///
    /// - Parameters:
    ///   - messages: 1 to 1,000,000.
    ///   - model: the model that answers, if the plan has limits for models. The fallback of a refusal can be it.
    ///   - member: the member of the account `user` who sends, if the plan limits what each of them may send.
    ///   - deadline: the configuration's unless given.
    /// - Returns: `allowed` when it is counted and durable.
    public func consume(
        _ user: UserID,
        messages: Int = 1,
        model: ModelName? = nil,
        member: UserID? = nil,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> Decision {
        try await consume(
            user,
            messages: messages,
            key: keys.next(),
            model: model,
            member: member,
            deadline: deadline
        )
    }

    /// Counts messages if they fit, all or none. Calls with the same key count once.
    ///
    /// - Parameters:
    ///   - messages: 1 to 1,000,000.
    ///   - key: identifies the message among those of the user, to send it again or to release it. The backend chooses
    ///     it: with a key that an app chooses freely, an app could send different messages as one.
    ///   - model: as that of ``consume(_:messages:model:member:deadline:)``.
    ///   - member: as that of ``consume(_:messages:model:member:deadline:)``.
    ///   - deadline: the configuration's unless given.
    /// - Returns: `allowed` when it is counted and durable; `repeated` when an earlier call with the key was allowed.
    /// - Throws: `conflict` when the key was released: a new attempt needs a new key.
    public func consume(
        _ user: UserID,
        messages: Int = 1,
        key: MessageKey,
        model: ModelName? = nil,
        member: UserID? = nil,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> Decision {
        let command = Command.consume(user: user, messages: messages, key: key).about(model, member)
        return try await decide(command, user, .keyed, key, deadline)
    }

    /// The answer that ``consume(_:messages:model:member:deadline:)`` would give now. Counts nothing.
    public func check(
        _ user: UserID,
        messages: Int = 1,
        model: ModelName? = nil,
        member: UserID? = nil,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> Decision {
        let command = Command.check(user: user, messages: messages).about(model, member)
        return try await decide(command, user, .reading, nil, deadline)
    }

    /// Holds messages: they count as used until they are committed or released, or the hold expires.
    ///
    /// ``withHold(_:messages:ttl:model:member:counting:_:)`` also commits or releases the hold.
    ///
    /// - Parameter ttl: 1 s to 1 day, in whole seconds.
    /// - Returns: `allowed` when they are held; `repeated` when an earlier call with the key was allowed, and its hold
    ///   lasts or is committed.
    /// - Throws: `expired` when the key's hold has expired, `conflict` when it was released: a new attempt needs a new
    ///   key.
    public func reserve(
        _ user: UserID,
        messages: Int = 1,
        key: MessageKey,
        ttl: Duration = .seconds(120),
        model: ModelName? = nil,
        member: UserID? = nil,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> Decision {
        let seconds = Int(clamping: ttl.components.seconds)
        let command = Command.reserve(user: user, messages: messages, key: key, ttlSeconds: seconds)
            .about(model, member)
        return try await decide(command, user, .keyed, key, deadline)
    }

    /// Counts messages of a hold, and gives back the rest.
    ///
    /// - Parameter messages: 0 to the number that is held; nil counts all.
    /// - Returns: `allowed`, or `repeated` when an earlier call has counted the same number.
    /// - Throws: `expired` when the hold has expired, `conflict` when it was released or another number was counted,
    ///   `badArgument` when fewer messages are held, `notFound` when there was no hold.
    public func commit(
        _ user: UserID,
        messages: Int? = nil,
        key: MessageKey,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> Decision {
        let command = Command.commit(user: user, messages: messages, key: key)
        return try await admitted { () throws(HeadroomError) in
            try decision(try await perform(command, .keyed, key: key, deadline: deadline), to: command, key)
        }
    }

    /// Gives back the messages that the key holds or has counted, once.
    public func release(
        _ user: UserID,
        key: MessageKey,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> Release {
        try await admitted { () throws(HeadroomError) in
            let reply = try await perform(.release(user: user, key: key), .keyed, key: key, deadline: deadline)
            guard case .answer(let answer) = reply, answer.status == .ok, let released = answer.released else {
                throw .unexpected(reply, to: key)
            }
            return Release(messages: released, status: answer.usage)
        }
    }

    /// The usage in the current period, with the plan's label and a sentence for screen readers.
    ///
    /// - Parameters:
    ///   - model: a model whose messages are reported too.
    ///   - member: a member of the account whose messages are reported too.
    ///   - deadline: the configuration's unless given.
    public func usage(
        of user: UserID,
        model: ModelName? = nil,
        member: UserID? = nil,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> UsageStatus {
        try await status(.usage(user: user, period: nil).about(model, member), .reading, deadline: deadline)
    }

    /// Returns the user's usage at the end of a past period.
    ///
    /// - Throws: `notFound` for a period without usage.
    public func usage(
        of user: UserID,
        period: BillingPeriod,
        model: ModelName? = nil,
        member: UserID? = nil,
        deadline: Duration? = nil
    ) async throws(HeadroomError) -> UsageStatus {
        try await status(.usage(user: user, period: period).about(model, member), .reading, deadline: deadline)
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
                try decision(try await perform(command, repeatability, key: key, deadline: deadline), to: command, key)
            }
        } catch let error where configuration.whenUnreachable == .allow && error.isUnanswered {
            return degraded(user, error)
        }
    }

    /// - Throws: for an answer to another request, such as `OK`: only `ALLOWED`, and of a reservation `HELD`, permits.
    func decision(
        _ reply: ReceivedReply,
        to command: Command,
        _ key: MessageKey?
    ) throws(HeadroomError) -> Decision {
        guard case .answer(let answer) = reply else { throw .unexpected(reply, to: key) }
        switch (command.verb, answer.status) {
        case (.consume, .blocked(let reason)), (.check, .blocked(let reason)), (.reserve, .blocked(let reason)):
            return .blocked(answer.usage, reason: reason)
        case (.consume, .allowed), (.check, .allowed), (.commit, .allowed), (.reserve, .held):
            return answer.usage.isRepeated ? .repeated(answer.usage) : .allowed(answer.usage)
        default: throw .unexpected(reply, to: key)
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
            guard case .answer(let answer) = reply, answer.status == .ok else { throw .unexpected(reply, to: key) }
            return answer.usage
        }
    }

    func degraded(_ user: UserID, _ error: HeadroomError) -> Decision {
        metrics.countDegraded()
        logger.warning("a message was let through uncounted", metadata: ["code": "\(error.code)"])
        return .allowed(.degraded(user, language: language))
    }

    /// - Throws: without running `work`, when the client shuts down or has too many requests.
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

extension Command {
    /// Returns the same request about messages with a model and of a member.
    func about(_ model: ModelName?, _ member: UserID?) -> Command {
        inParts(MessageParts(model: model, member: member))
    }
}

extension HeadroomError {
    /// Returns the error for an unexpected reply to a request, which may have a key.
    static func unexpected(_ reply: ReceivedReply, to key: MessageKey?) -> HeadroomError {
        var error = unexpected(reply)
        error.key = key
        return error
    }

    /// Whether the error is about the service's state and not about this client.
    var isTemporary: Bool { isTransient || code == .internal }

    /// Whether there is no decision about the message.
    var isUnanswered: Bool {
        switch code {
        case .unreachable, .unavailable, .overloaded, .draining, .unknown: true
        default: false
        }
    }
}
