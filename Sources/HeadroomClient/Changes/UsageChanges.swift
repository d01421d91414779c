extension HeadroomClient {
    /// Where a user stands: first now, then whenever that changes, through any instance, a store, an operator in psql, or by
    /// time alone.
    ///
    /// Who reads slowly gets the newest state, not every step to it. After a lost connection the state is told again if it
    /// differs, so the last one is never missed. It ends when the client shuts down, or when the service refuses for good, a
    /// token without the scope `dashboard`, say, which is logged.
    public func changes(of user: UserID) -> UsageChanges {
        UsageChanges(user: user, hubs: changesHubs)
    }
}

/// The states of a user: see ``HeadroomClient/changes(of:)``.
public struct UsageChanges: AsyncSequence, Sendable {
    public typealias Element = UsageStatus
    public typealias Failure = Never

    let user: UserID
    let hubs: ChangesHubs

    public struct AsyncIterator: AsyncIteratorProtocol {
        var iterator: AsyncStream<UsageStatus>.AsyncIterator
        /// Who is followed is heard of, also where nobody holds the client any more.
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
