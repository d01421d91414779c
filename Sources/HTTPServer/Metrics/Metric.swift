/// A family of metrics on `/metrics`. A test compares docs/reference/metrics.md with these.
struct Metric: Sendable, Hashable {
    enum Kind: String, Sendable {
        case counter, gauge, histogram
    }

    let name: String
    let kind: Kind
    /// The label names of each sample, in order.
    let labels: [String]
    /// The text after HELP.
    let meaning: String

    init(_ name: String, _ kind: Kind, _ labels: [String], _ meaning: String) {
        self.name = name
        self.kind = kind
        self.labels = labels
        self.meaning = meaning
    }
}

extension Metric {
    static let all = service + lineProtocol + engine + database + http + notifications + tracing + process

    private static let service = [buildInfo, draining]
    private static let lineProtocol = [
        connections, connectionsAccepted, connectionsRefused, tokenConnections, authentications, tokensAge,
        tokensRefused, handshakesFailed, requests, answers, shadows, errors, answerDuration,
    ]
    private static let engine = [
        lanes, lanesConnected, nodeLanes, nodeBuckets, laneQueue, queueWait, batchRequests, statementDuration,
        reconnects, outcomesUnknown, lockTimeouts,
        messagesCounted, requestsBlocked,
    ]
    private static let database = [
        databaseUp, databaseInfo, schemaVersion, timeline, supersededPrimaries, replication, replicationLag,
        renewalsAwaited,
    ]
    private static let http = [httpRequests, httpDuration, httpConnections, httpRejections, webhookRequests]
    private static let notifications = [
        notificationsDelivered, notificationAttemptsFailed, notificationsHeldUp, notificationsPending,
        oldestNotification,
    ]
    private static let tracing = [spans]
    private static let process = [
        cpuSeconds, residentMemory, virtualMemory, openDescriptors, descriptorsMaximum, threads, startTime,
    ]

    // MARK: Service

    static let buildInfo = Metric("headroom_build_info", .gauge, ["version"], "1; the version of the service.")
    static let draining = Metric("headroom_draining", .gauge, "1 while the service shuts down, else 0.")

    // MARK: Line protocol

    static let connections = Metric("headroom_connections", .gauge, "Connections of the line protocol now.")
    static let connectionsAccepted = Metric(
        "headroom_connections_accepted_total",
        .counter,
        "Connections accepted."
    )
    static let connectionsRefused = Metric(
        "headroom_connections_refused_total",
        .counter,
        "Connections refused because there were too many."
    )
    static let tokenConnections = Metric(
        "headroom_token_connections",
        .gauge,
        ["token"],
        "Connections now by their token's name, 64 names at most."
    )
    static let authentications = Metric(
        "headroom_authentications_total",
        .counter,
        ["outcome"],
        "Authentication attempts: accepted or refused."
    )
    static let tokensAge = Metric(
        "headroom_tokens_age_seconds",
        .gauge,
        "Age of the cached tokens, read every two seconds; rises while they cannot be read."
    )
    static let tokensRefused = Metric(
        "headroom_tokens_refused",
        .gauge,
        "Tokens with an invalid row in headroom.tokens."
    )
    static let handshakesFailed = Metric(
        "headroom_tls_handshakes_failed_total",
        .counter,
        "Connections that ended before their TLS handshake was complete; absent without TLS."
    )
    static let requests = Metric(
        "headroom_requests_total",
        .counter,
        ["verb"],
        "Requests by verb, over both ports; over HTTP those that count or change."
    )
    static let answers = Metric(
        "headroom_answers_total",
        .counter,
        ["status", "tier"],
        "Answers about a user, over both ports, by status and tier."
    )
    static let shadows = Metric(
        "headroom_shadow_answers_total",
        .counter,
        "Answers with shadow=1: messages beyond the limit of a plan that does not enforce it."
    )
    static let errors = Metric(
        "headroom_errors_total",
        .counter,
        ["code"],
        "Errors of these requests, and messages that when-unavailable=allow let through uncounted."
    )
    static let answerDuration = Metric(
        "headroom_answer_duration_seconds",
        .histogram,
        "From receiving a request to writing the engine's answer."
    )

    // MARK: Engine

    static let lanes = Metric("headroom_lanes", .gauge, "Database connections that execute batches.")
    static let lanesConnected = Metric("headroom_lanes_connected", .gauge, "Lanes that are connected.")
    static let nodeLanes = Metric(
        "headroom_node_lanes_connected",
        .gauge,
        ["node"],
        "Lanes connected to a server of a distributed database; absent in another."
    )
    static let nodeBuckets = Metric(
        "headroom_node_buckets",
        .gauge,
        ["node"],
        "Buckets of a server of a distributed database; absent in another."
    )
    static let laneQueue = Metric(
        "headroom_lane_queue_requests",
        .gauge,
        ["lane"],
        "Requests waiting for a lane now."
    )
    static let queueWait = Metric(
        "headroom_queue_wait_seconds",
        .histogram,
        "How long the first request of each batch waited for its lane."
    )
    static let batchRequests = Metric("headroom_batch_requests", .histogram, "Requests per batch.")
    static let statementDuration = Metric(
        "headroom_statement_duration_seconds",
        .histogram,
        ["statement"],
        "From sending a batch's statement to its result: count (fast path), perform (slow path), read (changes "
            + "nothing)."
    )
    static let reconnects = Metric(
        "headroom_database_reconnects_total",
        .counter,
        "Reconnects of lanes after a lost connection."
    )
    static let lockTimeouts = Metric(
        "headroom_lock_timeouts_total",
        .counter,
        "Statements of lanes that waited in vain for a lock of another session."
    )
    static let outcomesUnknown = Metric(
        "headroom_outcomes_unknown_total",
        .counter,
        "Requests whose outcome was not known in time: answered UNKNOWN."
    )
    static let messagesCounted = Metric(
        "headroom_messages_counted_total",
        .counter,
        "Messages counted, each once; not reduced when messages are given back."
    )
    static let requestsBlocked = Metric(
        "headroom_requests_blocked_total",
        .counter,
        ["reason"],
        "Requests to count or hold that were answered BLOCKED."
    )

    // MARK: Database

    static let databaseUp = Metric(
        "headroom_database_up",
        .gauge,
        "1 if the database answered the last probe (every two seconds), else 0."
    )
    static let databaseInfo = Metric(
        "headroom_database_info",
        .gauge,
        ["version"],
        "1; PostgreSQL's version. Absent while the database is away."
    )
    static let schemaVersion = Metric(
        "headroom_schema_version",
        .gauge,
        "Number of the newest migration; absent while the database is away."
    )
    static let timeline = Metric(
        "headroom_database_timeline",
        .gauge,
        "The primary's timeline, which each failover increases; absent while it cannot be reached or does not report it."
    )
    static let supersededPrimaries = Metric(
        "headroom_database_superseded_primaries",
        .gauge,
        "Servers of the connection string that take writes although another one has succeeded them: their writes will be lost."
    )
    static let replication = Metric(
        "headroom_replication",
        .gauge,
        ["mode"],
        "1 for the present mode: synchronous, asynchronous, stopped or none, as in INFO."
    )
    static let replicationLag = Metric(
        "headroom_replication_lag_seconds",
        .gauge,
        "Lag of the slowest standby; absent without standbys, or without the permission to see them."
    )

    static let renewalsAwaited = Metric(
        "headroom_renewals_awaited",
        .gauge,
        "Subscriptions in the database that keep access for renewal-leeway while the event of their renewal is awaited, 100,000 at most."
    )

    // MARK: HTTP

    static let httpRequests = Metric(
        "headroom_http_requests_total",
        .counter,
        ["route", "method", "status"],
        "HTTP requests by route, method and status class; route none is an unknown path."
    )
    static let httpDuration = Metric(
        "headroom_http_request_duration_seconds",
        .histogram,
        ["route"],
        "From a request's head to its response's head."
    )
    static let httpConnections = Metric(
        "headroom_http_connections",
        .gauge,
        ["state"],
        "HTTP connections now: waiting for a request, or busy with one."
    )
    static let httpRejections = Metric(
        "headroom_http_turned_away_total",
        .counter,
        ["reason"],
        "Connections closed and requests refused to keep HTTP's limits. all, address: an idle connection was closed "
            + "for a new one (limit of all, or of an address); busy: all were busy; head, output: request headers, or "
            + "the reading of a response, took too long."
    )

    static let webhookRequests = Metric(
        "headroom_webhook_requests_total",
        .counter,
        ["source", "type", "outcome"],
        "Requests of stores; type is none if it was not decoded."
    )

    // MARK: Notifications

    static let notificationsDelivered = Metric(
        "headroom_notifications_delivered_total",
        .counter,
        "Notifications that this instance has delivered; absent where none are sent, as the four below."
    )
    static let notificationAttemptsFailed = Metric(
        "headroom_notification_attempts_failed_total",
        .counter,
        "Failed attempts of this instance to deliver a notification."
    )
    static let notificationsHeldUp = Metric(
        "headroom_notifications_held_up",
        .gauge,
        "1 while a login that may not send notifications holds the lock of the session that does, else 0."
    )
    static let notificationsPending = Metric(
        "headroom_notifications_pending",
        .gauge,
        "Undelivered notifications in the database, of all instances, 100,000 at most."
    )
    static let oldestNotification = Metric(
        "headroom_notifications_oldest_pending_seconds",
        .gauge,
        "Age of the oldest of these; 0 without one."
    )

    // MARK: Tracing

    static let spans = Metric(
        "headroom_spans_total",
        .counter,
        ["outcome"],
        "Spans of traces: exported to the collector; dropped, because too many waited; or failed, because the collector "
            + "refused them or could not be reached. Absent where nothing is traced."
    )

    // MARK: Process

    static let cpuSeconds = Metric(
        "process_cpu_seconds_total",
        .counter,
        "Processor time of the service, user and system."
    )
    static let residentMemory = Metric("process_resident_memory_bytes", .gauge, "Resident memory.")
    static let virtualMemory = Metric("process_virtual_memory_bytes", .gauge, "Virtual memory.")
    static let openDescriptors = Metric("process_open_fds", .gauge, "Open file descriptors.")
    static let descriptorsMaximum = Metric("process_max_fds", .gauge, "Maximum number of open file descriptors.")
    static let threads = Metric("process_threads", .gauge, "Threads.")
    static let startTime = Metric(
        "process_start_time_seconds",
        .gauge,
        "Start time of the service, in seconds since 1970."
    )
}

extension Metric {
    private init(_ name: String, _ kind: Kind, _ meaning: String) {
        self.init(name, kind, [], meaning)
    }
}
