import Postgres
import Synchronization

/// The placements of buckets that the coordinator last returned, and how each of their servers is reached.
///
/// With an outdated placement, a message takes longer, but is counted all the same: a server that does not have the
/// bucket passes the statement on to the one that has it. The monitor reads the placements every two seconds, and at
/// once after a lane has lost its server. A lane reads them when it opens a session on the coordinator.
public final class CurrentPlacements: Sendable {
    private struct Worker {
        var servers: Set<ServerAddress>
        var database: DatabaseTopology
    }

    private struct State {
        var placements = BucketPlacements.none
        /// The workers, by their numbers. A worker keeps its object while it has buckets and the same servers,
        /// whichever of these is the primary.
        var workers: [Int32: Worker] = [:]
        var observers: [@Sendable (BucketPlacements) -> Void] = []
        var doubt: @Sendable () -> Void = {}
    }

    /// The database as it is configured: the coordinator, or the only server.
    let database: DatabaseTopology
    private let state = Mutex(State())
    /// A number that changes with `current`. With one load, a lane finds out that nothing has changed.
    private let changes = Atomic<Int>(0)
    /// This is locked while a session reads the placements, so that a later answer never gives way to an earlier one.
    private let reading = Mutex(())

    public init(_ database: DatabaseTopology) {
        self.database = database
    }

    public var current: BucketPlacements { state.withLock { $0.placements } }
    var generation: Int { changes.load(ordering: .acquiring) }

    /// - Parameter observer: called with each new value, by the thread that has read it.
    func observe(_ observer: @escaping @Sendable (BucketPlacements) -> Void) {
        state.withLock { state in
            state.observers.append(observer)
            observer(state.placements)
        }
    }

    /// - Parameter doubt: called when the placements should be read again soon.
    func whenDoubted(_ doubt: @escaping @Sendable () -> Void) {
        state.withLock { $0.doubt = doubt }
    }

    /// Lets the placements be read again, because a server was lost, and its buckets may be elsewhere by now.
    func doubt() {
        state.withLock { $0.doubt }()
    }

    /// The database in which a lane opens its session.
    func home(ofLane lane: Int) -> DatabaseTopology {
        state.withLock { state in
            state.placements.node(ofLane: lane).flatMap { state.workers[$0.number]?.database } ?? database
        }
    }

    /// Reads the placements from the coordinator.
    func refresh(over connection: DatabaseConnection, deadline: ContinuousClock.Instant) throws(PostgresError) {
        let failure = reading.withLock { _ -> PostgresError? in
            do throws(PostgresError) {
                note(try BucketPlacements(connection.query(EmbeddedSQL.readPlacements, deadline: deadline)))
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
    }

    /// Takes over placements under the lock, so that observers see the values in their order.
    func note(_ newest: BucketPlacements) {
        state.withLock { state in
            guard newest != state.placements else { return }
            state.placements = newest
            database.isDistributed = newest.isDistributed
            let known = state.workers
            state.workers = [:]
            for node in newest.nodes where !node.isCoordinator {
                let (servers, former) = (Set(node.servers), known[node.number])
                state.workers[node.number] =
                    if let former, former.servers == servers {
                        former
                    } else {
                        Worker(
                            servers: servers,
                            database: database.worker(at: node.servers, formerly: former?.database)
                        )
                    }
            }
            changes.add(1, ordering: .releasing)
            for observer in state.observers { observer(newest) }
        }
    }
}

/// The error if another release of Citus distributes the database than Headroom can be used with.
struct UnsupportedCitus: Error, CustomStringConvertible {
    var release: String

    var description: String {
        """
        this database is distributed by Citus \(release), and Headroom runs on Citus \(Citus.release) alone: \
        install that release on all servers of the database, and restart them
        """
    }
}

extension CurrentPlacements {
    /// Reads the placements in a session of its own on the coordinator. It blocks.
    ///
    /// - Throws: also if the database is distributed by another release of Citus.
    public func load() throws {
        let connection = try DatabaseConnection.connect(.service("placements", database))
        defer { connection.close() }
        let version = try connection.query(EmbeddedSQL.readCitusVersion, deadline: .now + .seconds(5)).firstRow
        if let release = try version.textOrNil("citus_release"), release != Citus.release {
            throw UnsupportedCitus(release: release)
        }
        try refresh(over: connection, deadline: .now + .seconds(5))
    }
}
