import LineProtocol
import NIOCore
import Usage

extension HeadroomClient {
    /// Holds messages, runs a body, and counts the messages; gives them back when the body throws or is cancelled.
    ///
    /// - A hold is not renewed. A body that takes longer than `ttl` is not interrupted, but its messages are not
    ///   counted: the outcome is ``HoldOutcome/expired(_:)``. Choose a `ttl` longer than the model may take.
    /// - The messages are given back before this throws, also in a cancelled task. Without an answer within the
    ///   deadline, the client retries until the hold expires, and ``shutDown()`` waits for it.
    /// - A body that returns in a cancelled task counts as cancelled, because a stream that is cut short ends like a
    ///   complete one.
    /// - With ``UnreachablePolicy/allow`` the body also runs without an answer; its hold and decision are `isDegraded`.
    ///   So it does if the service cannot reach its database and lets messages through uncounted. If only the commit is
    ///   answered so, the decision is `isDegraded`, and the client retries the commit until the hold expires.
    ///
    /// - Parameters:
    ///   - messages: 1 to 1,000,000; all or none are held.
    ///   - ttl: 1 s to 1 day, in whole seconds.
    ///   - model: as that of ``consume(_:messages:model:member:deadline:)``.
    ///   - member: as that of ``consume(_:messages:model:member:deadline:)``.
    ///   - actualMessages: how many messages the result has cost, where that is known only afterwards (tokens, for
    ///     example); the rest is given back. At most what is held is counted, and at least 0. Nil: all.
    /// - Throws: `HeadroomError` when nothing could be held; the error of the body; `CancellationError`.
    public nonisolated(nonsending) func withHold<Result>(
        _ user: UserID,
        messages: Int = 1,
        ttl: Duration = .seconds(120),
        model: ModelName? = nil,
        member: UserID? = nil,
        counting actualMessages: ((Result) -> Int)? = nil,
        _ body: nonisolated(nonsending) (Hold) async throws -> Result
    ) async throws -> HoldOutcome<Result> {
        try enter()
        defer { admission.leave() }
        let key = keys.next()
        let parts = MessageParts(model: model, member: member)
        let decision = try await hold(user, messages: messages, key: key, ttl: ttl, parts)
        if case .blocked(let status, let reason) = decision { return .blocked(status, reason: reason) }
        let hold = Hold(user: user, key: key, messages: messages, ttl: ttl, status: decision.status)
        let end = NIODeadline.now() + TimeAmount(ttl)
        do {
            let result = try await body(hold)
            try Task.checkCancellation()
            if hold.isDegraded { return .completed(result, decision) }
            let actual = actualMessages.map { min(max($0(result), 0), messages) }
            return await commit(hold, actual, until: end, result)
        } catch {
            if !hold.isDegraded { await giveBack(user, key: key, until: end, holdExists: true) }
            throw error
        }
    }

    private nonisolated(nonsending) func hold(
        _ user: UserID,
        messages: Int,
        key: MessageKey,
        ttl: Duration,
        _ parts: MessageParts?
    ) async throws(HeadroomError) -> Decision {
        let seconds = Int(clamping: ttl.components.seconds)
        let command = Command.reserve(user: user, messages: messages, key: key, ttlSeconds: seconds).inParts(parts)
        do {
            return try decision(try await perform(command, .keyed, key: key, deadline: nil), to: command, key)
        } catch {
            if error.mayHaveTakenEffect {
                let end = NIODeadline.now() + TimeAmount(ttl)
                await giveBack(user, key: key, until: end, holdExists: false)
            }
            guard configuration.whenUnreachable == .allow, error.isUnanswered else { throw error }
            return degraded(user, error)
        }
    }

    private nonisolated(nonsending) func commit<Result>(
        _ hold: Hold,
        _ messages: Int?,
        until end: NIODeadline,
        _ result: Result
    ) async -> HoldOutcome<Result> {
        let command = Command.commit(user: hold.user, messages: messages, key: hold.key)
        switch await settle(command, key: hold.key) {
        case .success(let reply):
            guard case .answer(let answer) = reply, answer.status == .allowed else {
                return .uncommitted(result, .unexpected(reply, to: hold.key))
            }
            if reply.isDegraded { settleLater(command, key: hold.key, until: end) }
            return .completed(result, .allowed(answer.usage))
        case .failure(let error):
            if error.code == .expired { return .expired(result) }
            if error.isUnanswered { settleLater(command, key: hold.key, until: end) }
            return .uncommitted(result, error)
        }
    }

    /// - Parameter holdExists: false if that is unknown. `NOTFOUND` is then retried for a while, because the
    ///   reservation may still arrive.
    private nonisolated(nonsending) func giveBack(
        _ user: UserID,
        key: MessageKey,
        until end: NIODeadline,
        holdExists: Bool
    ) async {
        let command = Command.release(user: user, key: key)
        switch await settle(command, key: key) {
        case .success(let reply):
            if reply.isDegraded { settleLater(command, key: key, until: end) }
        case .failure(let error):
            if error.isUnanswered {
                settleLater(command, key: key, until: end)
            } else if error.code == .notFound, !holdExists {
                let latest = NIODeadline.now() + HeadroomClient.lateArrivalTimeout
                settleLater(command, key: key, until: min(end, latest), holdMayArrive: true)
            }
        }
    }

    /// How long a request sent on a lost connection may take to arrive.
    private static let lateArrivalTimeout = TimeAmount.seconds(5)

    /// Sends the request in a detached task, so that a cancellation of the caller does not cancel it.
    private nonisolated(nonsending) func settle(
        _ command: Command,
        key: MessageKey
    ) async -> Swift.Result<ReceivedReply, HeadroomError> {
        admission.enterNested()
        return await Task.detached { [self] in
            defer { admission.leave() }
            do throws(HeadroomError) {
                return .success(try await perform(command, .keyed, key: key, deadline: nil))
            } catch {
                return .failure(error)
            }
        }.value
    }

    /// Retries in the background.
    ///
    /// - Parameter holdMayArrive: whether the hold may still arrive, so that `NOTFOUND` is not final.
    private func settleLater(_ command: Command, key: MessageKey, until end: NIODeadline, holdMayArrive: Bool = false) {
        admission.enterNested()
        Task.detached { [self] in
            defer { admission.leave() }
            var generator = SystemRandomNumberGenerator()
            var failures = 0
            while NIODeadline.now() < end {
                do throws(HeadroomError) {
                    let left = Duration.nanoseconds((end - .now()).nanoseconds)
                    let reply = try await perform(command, .keyed, key: key, deadline: left)
                    if !reply.isDegraded { return }
                } catch {
                    guard error.isUnanswered || holdMayArrive && error.code == .notFound else {
                        return logger.debug("a hold could not be settled", metadata: ["code": "\(error.code)"])
                    }
                }
                let pause = Backoff(range: configuration.backoff).pause(after: failures, using: &generator)
                failures += 1
                try? await Task.sleep(for: pause)
            }
        }
    }
}

extension ReceivedReply {
    /// The service could not reach its database: nothing was counted or given back.
    fileprivate var isDegraded: Bool {
        if case .answer(let answer) = self { answer.usage.isDegraded } else { false }
    }
}
