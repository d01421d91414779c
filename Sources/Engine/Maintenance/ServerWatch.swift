import Logging
import Postgres
import Synchronization

/// Looks at every server of the database about once a second, one after the other, if there are several.
///
/// So a promoted standby is found although this process still reaches the old primary, whose sessions are then closed
/// before their next use (`DatabaseTopology.successor`). If a superseded primary takes writes, the watch leaves a note
/// on it for instances that do not reach the successor.
public final class ServerWatch: Sendable {
    private struct State {
        var isClosed = false
        var superseded: Set<String> = []
    }

    private let database: DatabaseTopology
    private let interval: Duration
    private let logger: Logger
    private let wake = WakePipe()
    private let state = Mutex(State())

    public init(_ database: DatabaseTopology, interval: Duration = .seconds(1), logger: Logger) {
        self.database = database
        self.interval = interval
        self.logger = logger
    }

    /// The number of servers that take writes although they were superseded.
    public var supersededPrimaries: Int { state.withLock { $0.superseded.count } }

    /// Runs until `close()` was called.
    public func run() async {
        guard database.servers.count > 1 else { return }
        await runThread(named: "headroom.servers") { self.watchUntilClosed() }
    }

    public func close() {
        state.withLock { $0.isClosed = true }
        wake.wake()
    }

    private func watchUntilClosed() {
        let servers = database.servers
        let sessions = servers.map { server in
            // The note is for this server alone, whose standbys may be gone, so it waits for none of them.
            let settings = [("synchronous_commit", "local")]
            let options = ConnectionOptions.service("watch", server, settings: settings)
            return ReconnectingSession<Void>(options: options, wake: wake, logger: logger)
        }
        while !state.withLock({ $0.isClosed }) {
            for (session, server) in zip(sessions, servers) { look(session, "\(server)") }
            _ = wake.sleep(orUntilReadable: -1, until: .now + interval)
        }
        for session in sessions { session.close() }
    }

    private func look(_ session: ReconnectingSession<Void>, _ server: String) {
        session.advance()
        guard let connection = session.connection else { return report(server, nil, successor: nil) }
        do throws(PostgresError) {
            let found = try connection.serverState(deadline: .now + interval)
            guard let timeline = found.timeline else { return }
            database.note(timeline)
            let successor = found.isStandby ? nil : database.successor(of: timeline)
            report(server, timeline, successor: successor)
            if let successor { try leaveNote(successor, connection) }
        } catch {
            session.drop(error)
        }
    }

    private func leaveNote(_ successor: Timeline, _ connection: DatabaseConnection) throws(PostgresError) {
        var parameters = Parameters()
        parameters.append(int64: successor.systemIdentifier)
        parameters.append(int64: Int64(successor.number))
        do throws(PostgresError) {
            _ = try connection.query(EmbeddedSQL.noteTimeline, parameters, deadline: .now + interval)
        } catch let error where connection.isUsable {
            logger.debug("a superseded server took no note", metadata: ["error": "\(error)"])
        }
    }

    /// - Parameters:
    ///   - timeline: the server's timeline; nil if the server is not reached, and takes no writes of ours.
    ///   - successor: the newer timeline, if the server takes writes although it was superseded; else nil.
    private func report(_ server: String, _ timeline: Timeline?, successor: Timeline?) {
        guard let timeline, let successor else {
            return state.withLock { _ = $0.superseded.remove(server) }
        }
        guard state.withLock({ $0.superseded.insert(server).inserted }) else { return }
        logger.error(
            """
            a superseded server takes writes, which will be lost: stop it, and make it a standby of the new primary \
            (docs/high-availability.md, An old primary)
            """,
            metadata: [
                "server": "\(server)", "timeline": "\(timeline.number)", "timeline.newest": "\(successor.number)",
            ]
        )
    }
}
