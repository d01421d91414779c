import Postgres
import Synchronization

/// The map of buckets by which all lanes group their requests: the newest one that any of their sessions has read.
final class CurrentBuckets: Sendable {
    private let map = Mutex(BucketMap.undivided)
    /// The revision of `map`. With one load, a lane finds out that it has not changed.
    private let revision = Atomic<Int32>(BucketMap.undivided.revision)
    /// This is locked while a session reads the map, unlike `map`.
    private let reading = Mutex(())
    private let observer: @Sendable (BucketMap) -> Void

    /// - Parameter observer: called with each new map, by the thread that has read it.
    init(observer: @escaping @Sendable (BucketMap) -> Void = { _ in }) {
        self.observer = observer
    }

    var current: BucketMap { map.withLock { $0 } }

    func isOutdated(_ other: BucketMap) -> Bool { revision.load(ordering: .acquiring) != other.revision }

    /// Takes over the map that a new session has read, unless another has read a later one meanwhile.
    func note(_ newest: BucketMap) {
        replace(with: newest) { newest.revision > $0.revision }
    }

    /// Reads the map, unless another session has done so since the caller has seen it. One session reads at a time, so
    /// that a later map never gives way to an earlier one, whichever reader was slower.
    ///
    /// - Parameter seen: the revision that a statement found outdated.
    func refresh(
        seen: Int32,
        over connection: DatabaseConnection,
        deadline: ContinuousClock.Instant
    ) throws(PostgresError) {
        let failure = reading.withLock { _ -> PostgresError? in
            guard revision.load(ordering: .acquiring) == seen else { return nil }
            do throws(PostgresError) {
                let newest = try connection.currentBuckets(deadline: deadline)
                replace(with: newest) { newest != $0 }
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
    }

    /// Replaces the map under its lock, so that the observer sees the maps in their order.
    private func replace(with newest: BucketMap, where isOther: (BucketMap) -> Bool) {
        map.withLock { map in
            guard isOther(map) else { return }
            map = newest
            revision.store(newest.revision, ordering: .releasing)
            observer(newest)
        }
    }
}

extension DatabaseConnection {
    func currentBuckets(deadline: ContinuousClock.Instant) throws(PostgresError) -> BucketMap {
        try BucketMap(query(EmbeddedSQL.readBuckets, deadline: deadline))
    }
}
