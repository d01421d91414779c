import LineProtocol
import NIOCore

extension HeadroomClient {
    /// Holds messages, runs a body, and counts them; gives them back when the body throws or is cancelled.
    ///
    /// - The hold is renewed by nothing. A body that takes longer than `ttl` is not interrupted; its messages are not counted
    ///   then, and the outcome is ``HoldOutcome/expired(_:)``. Choose a `ttl` longer than the model may take.
    /// - What was held is given back before this throws, also in a cancelled task. If there is no answer within the
    ///   deadline, the client goes on asking until the hold's time is over, and ``shutDown()`` waits for it.
    /// - A body that returns although its task was cancelled counts as cancelled: a stream that is cut short ends like one that
    ///   is complete.
    /// - With ``UnreachablePolicy/allow`` the body also runs without an answer; its hold and decision are `isDegraded`.
    ///
    /// - Parameters:
    ///   - messages: 1 to 1,000,000; all or none are held.
    ///   - ttl: 1 s to 1 day, in whole seconds.
    /// - Throws: `HeadroomError` when nothing could be held; what the body throws; `CancellationError`.
    public nonisolated(nonsending) func withHold<Result>(
        _ user: UserID,
        messages: Int = 1,
        ttl: Duration = .seconds(120),
        _ body: nonisolated(nonsending) (Hold) async throws -> Result
    ) async throws -> HoldOutcome<Result> {
        try enter()
        defer { admission.leave() }
        let key = keys.next()
        let decision = try await hold(user, messages: messages, key: key, ttl: ttl)
        if case .blocked(let status, let reason) = decision { return .blocked(status, reason: reason) }
        let hold = Hold(user: user, key: key, messages: messages, ttl: ttl, status: decision.status)
        let end = NIODeadline.now() + TimeAmount(ttl)
        do {
            let result = try await body(hold)
            try Task.checkCancellation()
            if hold.isDegraded { return .completed(result, decision) }
            return await commit(hold, until: end, result)
        } catch {
            if !hold.isDegraded { await giveBack(user, key: key, until: end, isCertain: true) }
            throw error
        }
    }

    private nonisolated(nonsending) func hold(
        _ user: UserID,
        messages: Int,
        key: MessageKey,
        ttl: Duration
    ) async throws(HeadroomError) -> Decision {
        let seconds = Int(clamping: ttl.components.seconds)
        let command = Command.reserve(user: user, messages: messages, key: key, ttlSeconds: seconds)
        do {
            return try decision(try await perform(command, .keyed, key: key, deadline: nil), key)
        } catch {
            if error.mayBeDone {
                let end = NIODeadline.now() + TimeAmount(ttl)
                await giveBack(user, key: key, until: end, isCertain: false)
            }
            guard configuration.whenUnreachable == .allow, error.isUnanswered else { throw error }
            return degraded(user, error)
        }
    }

    private nonisolated(nonsending) func commit<Result>(
        _ hold: Hold,
        until end: NIODeadline,
        _ result: Result
    ) async -> HoldOutcome<Result> {
        let command = Command.commit(user: hold.user, key: hold.key)
        switch await settle(command, key: hold.key) {
        case .success(let reply):
            guard case .answer(let answer) = reply else {
                return .uncommitted(result, .unexpected(reply, to: hold.key))
            }
            return .completed(result, .allowed(answer.usage))
        case .failure(let error):
            if error.code == .expired { return .expired(result) }
            if error.isUnanswered { settleLater(command, key: hold.key, until: end) }
            return .uncommitted(result, error)
        }
    }

    /// - Parameter isCertain: that there is something to give back. If not, a service that knows of nothing is asked again:
    ///   what was sent may still be on its way there.
    private nonisolated(nonsending) func giveBack(
        _ user: UserID,
        key: MessageKey,
        until end: NIODeadline,
        isCertain: Bool
    ) async {
        let command = Command.release(user: user, key: key)
        guard case .failure(let error) = await settle(command, key: key) else { return }
        if error.isUnanswered {
            settleLater(command, key: key, until: end)
        } else if error.code == .notFound, !isCertain {
            settleLater(command, key: key, until: min(end, .now() + HeadroomClient.strayTime), isAwaited: true)
        }
    }

    /// How long a request may be on its way on a connection that is lost: longer than a service takes over one.
    private static let strayTime = TimeAmount.seconds(5)

    /// Sends the request in a task of its own, which the caller's cancellation does not reach.
    private nonisolated(nonsending) func settle(
        _ command: Command,
        key: MessageKey
    ) async -> Swift.Result<ReceivedReply, HeadroomError> {
        admission.enterWithin()
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
    /// - Parameter isAwaited: that the service knows of nothing is no answer yet.
    private func settleLater(_ command: Command, key: MessageKey, until end: NIODeadline, isAwaited: Bool = false) {
        admission.enterWithin()
        Task.detached { [self] in
            defer { admission.leave() }
            var generator = SystemRandomNumberGenerator()
            var failures = 0
            while NIODeadline.now() < end {
                do throws(HeadroomError) {
                    let left = Duration.nanoseconds((end - .now()).nanoseconds)
                    _ = try await perform(command, .keyed, key: key, deadline: left)
                    return
                } catch let error where error.isUnanswered || isAwaited && error.code == .notFound {
                    let pause = Backoff(range: configuration.backoff).pause(after: failures, using: &generator)
                    failures += 1
                    try? await Task.sleep(for: pause)
                } catch {
                    return logger.debug("a hold could not be settled", metadata: ["code": "\(error.code)"])
                }
            }
        }
    }
}
