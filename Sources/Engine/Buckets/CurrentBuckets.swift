import Postgres
import Synchronization

/// The map of buckets by which all lanes group their requests: the newest one that any of their sessions has read.
final class CurrentBuckets: Sendable {
    private let map = Mutex(BucketMap.undivided)
    /// That of `map`, so that a lane finds out at the price of a load that nothing has changed.
    private let revision = Atomic<Int32>(BucketMap.undivided.revision)
    /// Locked while a session reads the map; `map` is not.
    private let reading = Mutex(())
    private let observer: Mutex<@Sendable (BucketMap) -> Void>

    /// - Parameter observer: is called with each new map, by the thread that has read it.
    init(observer: @escaping @Sendable (BucketMap) -> Void = { _ in }) {
        self.observer = Mutex(observer)
    }

    var current: BucketMap { map.withLock { $0 } }

    func isOutdated(_ other: BucketMap) -> Bool { revision.load(ordering: .acquiring) != other.revision }

    /// Reads the map, unless another session has done so since the caller has seen it. One session reads at a time, so
    /// that a later map never gives way to an earlier one, whichever reader was slower.
    ///
    /// - Parameter seen: the revision that a statement found outdated; nil: read in any case.
    func refresh(
        seen: Int32?,
        over connection: Connection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) {
        let failure = reading.withLock { _ -> PostgresError? in
            if let seen, revision.load(ordering: .acquiring) != seen { return nil }
            do throws(PostgresError) {
                replace(with: try connection.currentBuckets(deadline: deadline))
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
    }

    private func replace(with newest: BucketMap) {
        let isChanged = map.withLock { map in
            defer { map = newest }
            return map != newest
        }
        guard isChanged else { return }
        revision.store(newest.revision, ordering: .releasing)
        observer.withLock { $0 }(newest)
    }
}

extension Connection {
    func currentBuckets(deadline: ContinuousClock.Instant) throws(PostgresError) -> BucketMap {
        try BucketMap(query(EmbeddedSQL.readBuckets, deadline: deadline))
    }
}
