import LineProtocol
import ServiceCore
import Usage

extension Metric {
    static let service: [Metric] = [
        Metric("headroom_build_info", .gauge, ["version"], "1; the version of the service.") {
            [([$0.service.info.version], 1)]
        },
        Metric("headroom_draining", .gauge, "1 while the service shuts down, else 0.") { $0.service.draining.isSet },
    ]

    static let lineProtocol: [Metric] = [
        Metric("headroom_connections", .gauge, "Connections of the line protocol now.") { $0.connections.current },
        Metric("headroom_connections_accepted_total", .counter, "Connections accepted.") { $0.connections.total },
        Metric("headroom_connections_refused_total", .counter, "Connections refused because there were too many.") {
            $0.connections.refused
        },
        Metric(
            "headroom_token_connections",
            .gauge,
            ["token"],
            "Connections now by their token's name, \(AccessControl.tokenNamesMaximum) names at most."
        ) { $0.service.access.listedConnections.map { ([$0.token], $0.connections) } },
        Metric(
            "headroom_authentications_total",
            .counter,
            ["outcome"],
            "Authentication attempts: accepted or refused."
        ) {
            [
                (["accepted"], $0.service.access.authenticated),
                (["refused"], $0.service.access.authenticationFailures),
            ]
        },
        Metric(
            "headroom_tokens_age_seconds",
            .gauge,
            "Age of the cached tokens, read every two seconds; rises while they cannot be read."
        ) { $0.service.access.tokensAge.components.seconds },
        Metric("headroom_tokens_refused", .gauge, "Tokens with an invalid row in headroom.tokens.") {
            $0.service.access.tokensRefused
        },
        Metric(
            "headroom_tls_handshakes_failed_total",
            .counter,
            "Connections that ended before their TLS handshake was complete; absent without TLS."
        ) { $0.service.tls?.handshakesFailed },
        Metric(
            "headroom_requests_total",
            .counter,
            ["verb"],
            "Requests by verb, over both ports; over HTTP those that count or change."
        ) { snapshot in
            Verb.allCases.map { ([$0.rawValue.lowercased()], snapshot.traffic.requests($0)) }
        },
        Metric(
            "headroom_answers_total",
            .counter,
            ["status", "tier"],
            "Answers about a user, over both ports, by status and tier."
        ) { snapshot in
            LoopMetrics.Status.allCases.flatMap { status in
                Tier.allCases.map { (["\(status)", $0.rawValue], snapshot.traffic.answers(status, $0)) }
            }
        },
        Metric(
            "headroom_shadow_answers_total",
            .counter,
            "Answers with shadow=1: messages beyond the limit of an unenforced plan."
        ) { $0.traffic.shadows },
        Metric(
            "headroom_errors_total",
            .counter,
            ["code"],
            "Errors of these requests, and messages that when-unavailable=allow let through uncounted."
        ) { snapshot in
            ReplyError.Code.allCases.map { ([$0.rawValue.lowercased()], snapshot.traffic.errors($0)) }
        },
        Metric(
            "headroom_answer_duration_seconds",
            .histogram,
            "From receiving a request to writing the engine's answer."
        ) { Histogram(.microseconds, $0.traffic.latencyCounts) },
    ]

    static let http: [Metric] = [
        Metric(
            "headroom_http_requests_total",
            .counter,
            ["route", "method", "status"],
            "HTTP requests by route, method and status class; route none is an unknown path."
        ) {
            $0.http.requests.sorted { $0.key < $1.key }
                .map { ([$0.key.route, $0.key.method, $0.key.status], $0.value) }
        },
        Metric(
            "headroom_http_request_duration_seconds",
            .histogram,
            ["route"],
            "From a request's head to its response's head."
        ) {
            $0.http.durations.sorted { $0.key < $1.key }.map { ([$0.key], Histogram(.microseconds, $0.value.counts)) }
        },
        Metric(
            "headroom_http_connections",
            .gauge,
            ["state"],
            "HTTP connections now: waiting for a request, or busy with one."
        ) { [(["waiting"], $0.httpConnections.idle), (["busy"], $0.httpConnections.busy)] },
        Metric(
            "headroom_http_turned_away_total",
            .counter,
            ["reason"],
            "Connections closed and requests refused to keep HTTP's limits. all, address: an idle connection was closed "
                + "for a new one (limit of all, or of an address); busy: all were busy; head, output: request headers, or "
                + "the reading of a response, took too long."
        ) { snapshot in
            RejectionReason.allCases.map { ([$0.rawValue], snapshot.httpConnections.rejections[$0] ?? 0) }
        },
        Metric(
            "headroom_webhook_requests_total",
            .counter,
            ["source", "type", "outcome"],
            "Requests of stores; type is none if it was not decoded."
        ) { $0.webhooks.map { ([$0.key.source, $0.key.type.lowercased(), $0.key.outcome], $0.requests) } },
    ]
}
