/// A family of figures on `/metrics`: its name, what kind it is, and what it means. docs/reference.md is held against these.
struct Metric: Sendable, Hashable {
    enum Kind: String, Sendable {
        case counter, gauge, histogram
    }

    let name: String
    let kind: Kind
    /// Names of the labels that each of its samples has, in their order.
    let labels: [String]
    /// What stands behind HELP.
    let meaning: String

    init(_ name: String, _ kind: Kind, _ labels: [String], _ meaning: String) {
        self.name = name
        self.kind = kind
        self.labels = labels
        self.meaning = meaning
    }
}

extension Metric {
    static let all = service + lineProtocol + store + database + http + process

    private static let service = [buildInfo, draining]
    private static let lineProtocol = [
        connections, connectionsAccepted, connectionsRefused, tokenConnections, authentications, tokensAge,
        tokensRefused, handshakesFailed, requests, answers, errors, answerDuration,
    ]
    private static let store = [
        lanes, lanesConnected, laneQueue, queueWait, batchRequests, statementDuration, reconnects, outcomesUnknown,
        messagesCounted, requestsBlocked,
    ]
    private static let database = [databaseUp, databaseInfo, schemaVersion, replicationLag]
    private static let http = [httpRequests, httpDuration, httpConnections, httpTurnedAway, webhookRequests]
    private static let process = [
        cpuSeconds, residentMemory, virtualMemory, openDescriptors, descriptorsMaximum, threads, startTime,
    ]

    // MARK: Service

    static let buildInfo = Metric("headroom_build_info", .gauge, ["version"], "1; the version of the service.")
    static let draining = Metric("headroom_draining", .gauge, "1 once the service shuts down, else 0.")

    // MARK: Line protocol

    static let connections = Metric("headroom_connections", .gauge, "Connections of the line protocol now.")
    static let connectionsAccepted = Metric(
        "headroom_connections_accepted_total",
        .counter,
        "Connections that were accepted."
    )
    static let connectionsRefused = Metric(
        "headroom_connections_refused_total",
        .counter,
        "Connections that were refused because there were too many."
    )
    static let tokenConnections = Metric(
        "headroom_token_connections",
        .gauge,
        ["token"],
        "Connections now by the name of their token, of 64 names at most."
    )
    static let authentications = Metric(
        "headroom_authentications_total",
        .counter,
        ["outcome"],
        "Tokens that were presented, by whether they were accepted or refused."
    )
    static let tokensAge = Metric(
        "headroom_tokens_age_seconds",
        .gauge,
        "How long ago the live tokens were read, which happens every two seconds; rises while they cannot be read."
    )
    static let tokensRefused = Metric(
        "headroom_tokens_refused",
        .gauge,
        "Tokens that are refused for what is in their row of headroom.tokens, each logged once."
    )
    static let handshakesFailed = Metric(
        "headroom_tls_handshakes_failed_total",
        .counter,
        "Connections that ended before their TLS handshake was done; absent without TLS."
    )
    static let requests = Metric(
        "headroom_requests_total",
        .counter,
        ["verb"],
        "Requests of the line protocol by verb."
    )
    static let answers = Metric(
        "headroom_answers_total",
        .counter,
        ["status", "tier"],
        "Answers of the line protocol about a user, by status and by the user's tier."
    )
    static let errors = Metric(
        "headroom_errors_total",
        .counter,
        ["code"],
        "Error replies of the line protocol by code, and messages that when-unavailable let through uncounted."
    )
    static let answerDuration = Metric(
        "headroom_answer_duration_seconds",
        .histogram,
        "From taking a request in to writing its answer, of those that the store answered."
    )

    // MARK: Store

    static let lanes = Metric("headroom_lanes", .gauge, "Database connections that carry batches.")
    static let lanesConnected = Metric("headroom_lanes_connected", .gauge, "Those of them that are connected.")
    static let laneQueue = Metric(
        "headroom_lane_queue_requests",
        .gauge,
        ["lane"],
        "Requests that wait for a lane now."
    )
    static let queueWait = Metric(
        "headroom_queue_wait_seconds",
        .histogram,
        "How long the first request of each batch waited for its lane."
    )
    static let batchRequests = Metric("headroom_batch_requests", .histogram, "Requests that went together, per batch.")
    static let statementDuration = Metric(
        "headroom_statement_duration_seconds",
        .histogram,
        ["statement"],
        "From sending a batch's statement to having its result: count is the fast path, perform the slow path, read changes "
            + "nothing."
    )
    static let reconnects = Metric(
        "headroom_database_reconnects_total",
        .counter,
        "Lanes that lost their connection and have it back."
    )
    static let outcomesUnknown = Metric(
        "headroom_outcomes_unknown_total",
        .counter,
        "Requests whose outcome was not known in time: answered UNKNOWN."
    )
    static let messagesCounted = Metric(
        "headroom_messages_counted_total",
        .counter,
        "Messages counted, each once; what is given back later stays."
    )
    static let requestsBlocked = Metric(
        "headroom_requests_blocked_total",
        .counter,
        "Requests to count or to hold that were answered BLOCKED."
    )

    // MARK: Database

    static let databaseUp = Metric(
        "headroom_database_up",
        .gauge,
        "1 when the database answered at the last look, which is every two seconds, else 0."
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
        "Number of the newest migration in the database; absent while it is away."
    )
    static let replicationLag = Metric(
        "headroom_replication_lag_seconds",
        .gauge,
        "By how much the slowest standby is behind; absent where there is none, or where the service may not see it."
    )

    // MARK: HTTP

    static let httpRequests = Metric(
        "headroom_http_requests_total",
        .counter,
        ["route", "method", "status"],
        "Requests of the HTTP side by route, method and class of status; route none is a path that there is not."
    )
    static let httpDuration = Metric(
        "headroom_http_request_duration_seconds",
        .histogram,
        ["route"],
        "From having a request's head to having its answer's."
    )
    static let httpConnections = Metric(
        "headroom_http_connections",
        .gauge,
        ["state"],
        "Connections of the HTTP side now: waiting for a request, or busy with one."
    )
    static let httpTurnedAway = Metric(
        "headroom_http_turned_away_total",
        .counter,
        ["reason"],
        "Connections of the HTTP side that were closed, or requests that were refused, to keep its limits. They waited when "
            + "another one came: all, address by the limit; all were busy: busy; in time there was no complete head: "
            + "head; answers were not read in time: output."
    )

    static let webhookRequests = Metric(
        "headroom_webhook_requests_total",
        .counter,
        ["source", "type", "outcome"],
        "Requests of stores by store, type of event and what became of it; type is none where it was not read."
    )

    // MARK: Process

    static let cpuSeconds = Metric(
        "process_cpu_seconds_total",
        .counter,
        "Processor time of the service, user and system."
    )
    static let residentMemory = Metric("process_resident_memory_bytes", .gauge, "Memory that is in RAM.")
    static let virtualMemory = Metric("process_virtual_memory_bytes", .gauge, "Memory that has addresses.")
    static let openDescriptors = Metric("process_open_fds", .gauge, "Open file descriptors.")
    static let descriptorsMaximum = Metric("process_max_fds", .gauge, "File descriptors that may be open.")
    static let threads = Metric("process_threads", .gauge, "Threads.")
    static let startTime = Metric(
        "process_start_time_seconds",
        .gauge,
        "When the service started, in seconds since 1970."
    )
}

extension Metric {
    private init(_ name: String, _ kind: Kind, _ meaning: String) {
        self.init(name, kind, [], meaning)
    }
}
