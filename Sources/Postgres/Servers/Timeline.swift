/// A line of a database's history, which begins when a standby is promoted or a backup is restored.
public struct Timeline: Sendable, Hashable {
    /// The cluster's identifier, which initdb chose: a primary and its standbys have the same.
    public var systemIdentifier: Int64
    /// The number of the timeline: 1 after initdb, and greater after each promotion.
    public var number: UInt32

    public init(systemIdentifier: Int64, number: UInt32) {
        self.systemIdentifier = systemIdentifier
        self.number = number
    }
}

/// What a server reported about itself when a connection to it was opened.
public struct ServerState: Sendable, Equatable {
    public var isStandby: Bool
    /// The server's timeline. A standby reports that of its last restart point, which may be older than its primary's.
    /// It is nil if the server does not report one, as some services with a storage of their own.
    public var timeline: Timeline?

    public init(isStandby: Bool, timeline: Timeline?) {
        self.isStandby = isStandby
        self.timeline = timeline
    }
}

extension ServerState {
    /// Reads the values of `ServerState`, by any login. A primary's timeline is that of the WAL which it writes; the
    /// control file has that of the last checkpoint, which a new primary has yet to make. It uses no operators, because
    /// a new session has no search_path of ours yet.
    static let question = """
        SELECT pg_catalog.pg_is_in_recovery(), (pg_catalog.pg_control_system()).system_identifier,
            CASE WHEN pg_catalog.pg_is_in_recovery() THEN NULL
                ELSE pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()) END,
            (pg_catalog.pg_control_checkpoint()).timeline_id, (pg_catalog.pg_control_recovery()).min_recovery_end_timeline
        """

    /// - Parameters:
    ///   - walFile: the name of the file that a primary writes; it begins with eight digits of the timeline.
    ///   - recorded: the timelines in the control file.
    init(isStandby: Bool, systemIdentifier: Int64?, walFile: String?, recorded: [UInt32]) {
        let number = walFile.flatMap { UInt32($0.prefix(8), radix: 16) } ?? recorded.max()
        self.isStandby = isStandby
        timeline = systemIdentifier.flatMap { system in
            number.map { Timeline(systemIdentifier: system, number: $0) }
        }
    }
}

extension DatabaseConnection {
    /// Reads the state of the server. A standby may have been promoted since the connection was opened.
    public func serverState(deadline: ContinuousClock.Instant) throws(PostgresError) -> ServerState {
        let result = try query(ServerState.question, deadline: deadline)
        return ServerState(
            isStandby: try result.bool(0, 0),
            systemIdentifier: try result.int64(0, 1),
            walFile: result.isNull(0, 2) ? nil : result.text(0, 2),
            recorded: try [3, 4].map { column throws(PostgresError) in UInt32(clamping: try result.int32(0, column)) }
        )
    }
}

/// The newest timeline that was seen of each cluster. Timelines of different clusters cannot be compared.
struct NewestTimelines: Equatable {
    private var numbers: [Int64: UInt32] = [:]

    mutating func note(_ timeline: Timeline) {
        numbers[timeline.systemIdentifier] = max(timeline.number, numbers[timeline.systemIdentifier] ?? 0)
    }

    /// The newest timeline of the same cluster, if it is newer.
    func successor(of timeline: Timeline) -> Timeline? {
        guard let newest = numbers[timeline.systemIdentifier], newest > timeline.number else { return nil }
        return Timeline(systemIdentifier: timeline.systemIdentifier, number: newest)
    }

    /// Whether a timeline of the same cluster was seen.
    func hasCluster(of timeline: Timeline) -> Bool { numbers[timeline.systemIdentifier] != nil }

    func isNewest(_ timeline: Timeline) -> Bool { numbers[timeline.systemIdentifier] == timeline.number }
}
