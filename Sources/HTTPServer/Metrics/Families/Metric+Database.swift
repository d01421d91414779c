extension Metric {
    static let engine: [Metric] = [
        Metric("headroom_lanes", .gauge, "Database connections that execute batches.") { $0.engine.lanes },
        Metric("headroom_lanes_connected", .gauge, "Lanes that are connected.") { $0.engine.lanesConnected },
        Metric(
            "headroom_node_lanes_connected",
            .gauge,
            ["node"],
            "Lanes connected to a server of a distributed database; absent in another."
        ) { $0.engine.nodes.map { ([$0.address], $0.lanesConnected) } },
        Metric(
            "headroom_node_buckets",
            .gauge,
            ["node"],
            "Buckets of a server of a distributed database; absent in another."
        ) { $0.engine.nodes.map { ([$0.address], $0.buckets) } },
        Metric("headroom_lane_queue_requests", .gauge, ["lane"], "Requests waiting for a lane now.") {
            $0.lanes.queueDepths.enumerated().map { (["\($0.offset)"], $0.element) }
        },
        Metric(
            "headroom_queue_wait_seconds",
            .histogram,
            "How long the first request of each batch waited for its lane."
        ) { Histogram(.microseconds, $0.lanes.queueWaits) },
        Metric("headroom_batch_requests", .histogram, "Requests per batch.") {
            Histogram(.requests, $0.lanes.batchSizes)
        },
        Metric(
            "headroom_statement_duration_seconds",
            .histogram,
            ["statement"],
            "From sending a batch's statement to its result: count (fast path), perform (slow path), read (changes "
                + "nothing)."
        ) { $0.lanes.statements.map { ([$0.kind.label], Histogram(.microseconds, $0.times)) } },
        Metric("headroom_database_reconnects_total", .counter, "Reconnects of lanes after a lost connection.") {
            $0.engine.reconnects
        },
        Metric(
            "headroom_outcomes_unknown_total",
            .counter,
            "Requests whose outcome was not known in time: answered UNKNOWN."
        ) { $0.lanes.outcomesUnknown },
        Metric(
            "headroom_lock_timeouts_total",
            .counter,
            "Statements of lanes that waited in vain for a lock of another session."
        ) { $0.lanes.lockTimeouts },
        Metric(
            "headroom_messages_counted_total",
            .counter,
            "Messages counted, each once; not reduced when messages are given back."
        ) { $0.lanes.messagesCounted },
        Metric(
            "headroom_requests_blocked_total",
            .counter,
            ["reason"],
            "Requests to count or hold that were answered BLOCKED."
        ) { $0.lanes.requestsBlocked.map { ([$0.reason.rawValue], $0.requests) } },
    ]

    static let database: [Metric] = [
        Metric(
            "headroom_renewals_awaited",
            .gauge,
            "Subscriptions in the database that keep access for renewal-leeway while the event of their renewal is awaited, 100,000 at most."
        ) { $0.database.awaitedRenewals },
        Metric(
            "headroom_database_up",
            .gauge,
            "1 if the database answered the last probe (every two seconds), else 0."
        ) { $0.database.serverVersion != nil },
        Metric(
            "headroom_database_info",
            .gauge,
            ["version"],
            "1; PostgreSQL's version. Absent while the database is away."
        ) { $0.database.serverVersion.map { [([$0], 1)] } ?? [] },
        Metric(
            "headroom_schema_version",
            .gauge,
            "Number of the newest migration; absent while the database is away."
        ) { $0.database.schemaVersion },
        Metric(
            "headroom_database_timeline",
            .gauge,
            "The primary's timeline, which each failover increases; absent while it cannot be reached or does not report it."
        ) { $0.database.timeline },
        Metric(
            "headroom_database_superseded_primaries",
            .gauge,
            "Servers of the connection string that take writes although another one has succeeded them: their writes will be lost."
        ) { $0.service.serverWatch.supersededPrimaries },
        Metric(
            "headroom_replication",
            .gauge,
            ["mode"],
            "1 for the present mode: synchronous, asynchronous, stopped or none, as in INFO."
        ) { $0.database.replication.map { [([$0.rawValue], 1)] } ?? [] },
        Metric(
            "headroom_replication_lag_seconds",
            .gauge,
            "Lag of the slowest standby; absent without standbys, or without the permission to see them."
        ) { $0.database.replicationLagMilliseconds.map { Seconds(microseconds: UInt64(max(0, $0)) * 1_000) } },
    ]

    static let notifications: [Metric] = [
        Metric(
            "headroom_notifications_delivered_total",
            .counter,
            "Notifications that this instance has delivered; absent where none are sent, as the four below."
        ) { $0.service.notificationMetrics?.delivered },
        Metric(
            "headroom_notification_attempts_failed_total",
            .counter,
            "Failed attempts of this instance to deliver a notification."
        ) { $0.service.notificationMetrics?.failedAttempts },
        Metric(
            "headroom_notifications_held_up",
            .gauge,
            "1 while a login that may not send notifications holds the lock of the session that does, else 0."
        ) { $0.service.notificationMetrics?.isHeldUp },
        Metric(
            "headroom_notifications_pending",
            .gauge,
            "Undelivered notifications in the database, of all instances, 100,000 at most."
        ) { $0.backlog?.pending },
        Metric("headroom_notifications_oldest_pending_seconds", .gauge, "Age of the oldest of these; 0 without one.") {
            $0.backlog?.oldestSeconds
        },
    ]
}
