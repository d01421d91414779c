extension HeadroomClient {
    /// A user's usage: the current one first, then each change, whether an instance, a store, an operator in psql or
    /// the passing of time causes it.
    ///
    /// A slow reader gets the latest usage, not every step to it. After a lost connection the usage is delivered again
    /// if it differs, so the latest one is never missed. The sequence ends when the client shuts down, or when the
    /// service refuses it permanently (a token without the scope `dashboard`, for example); the log has the reason.
    public func changes(of user: UserID) -> UsageChanges {
        UsageChanges(user: user, hubs: changesHubs)
    }
}

/// The usage of a user over time: see ``HeadroomClient/changes(of:)``.
public struct UsageChanges: AsyncSequence, Sendable {
    public typealias Element = UsageStatus
    public typealias Failure = Never

    let user: UserID
    let hubs: ChangesHubs

    public struct AsyncIterator: AsyncIteratorProtocol {
        var iterator: AsyncStream<UsageStatus>.AsyncIterator
        /// Keeps the subscriptions alive when the client itself is released.
        let hubs: ChangesHubs

        public mutating func next() async -> UsageStatus? {
            await iterator.next()
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async -> UsageStatus? {
            await iterator.next(isolation: actor)
        }
    }

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(iterator: hubs.follow(user).makeAsyncIterator(), hubs: hubs)
    }
}
