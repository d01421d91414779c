import Billing
import Engine
import Foundation
import HeadroomServer
import Hummingbird
import Logging
import NIOCore
import Usage

/// `POST /webhooks/<source>`, for each store in `StoreSenders.all`.
///
/// A request is refused as early as can be: where the store is not set up or the head cannot be the store's, before the
/// body is read; for its signature, before anything is parsed.
///
/// 200 means that the event is stored, even if it could not be applied, so the store stops sending it. Any other status means
/// that it is not stored: 4xx if sending it again would not help, 503 if it would. 404 if the user is missing from the
/// application's own table of users: stores send again for days, and the user may exist by then.
struct WebhookRoutes: RouteCollecting {
    private let senders: StoreSenders
    private let sessions: SessionPool
    private let bodies: BodyDecoder
    private let requestTimeout: Duration
    private let log: WebhookLog

    init(_ dependencies: HTTPServerDependencies) {
        senders = dependencies.senders
        sessions = dependencies.webhookSessions
        bodies = BodyDecoder(dependencies.configuration)
        requestTimeout = dependencies.configuration.requestTimeout
        // The one of the service: what became of an event is told at the level of the setting.
        log = WebhookLog(counters: dependencies.webhookCounters, logger: dependencies.parts.logger)
    }

    func add(to router: Router<HTTPContext>) {
        for store in StoreSenders.all {
            router.post(RouterPath("webhooks/\(store.source.rawValue)")) { request, context in
                try await take(store, request, context)
            }
        }
    }

    private func take(
        _ store: any WebhookEndpoint.Type,
        _ request: Request,
        _ context: HTTPContext
    ) async throws -> Response {
        guard let endpoint = senders.endpoint(of: store.source) else {
            throw Problem(
                .notFound,
                code: "NOTFOUND",
                "\(store.events) are not taken here: set \(store.settings)"
            )
        }
        let answer: String
        do {
            answer = try await context.whilePeerIsHere { try await process(request, context, endpoint) }
        } catch let problem as Problem where problem == .peerIsGone {
            log.refused(store.source, outcome: "gone", problem.detail)
            throw problem
        }
        return Response(
            status: .ok,
            headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: answer))
        )
    }

    /// Cancelled where the peer is gone, so that nothing more is read, parsed or begun for it.
    private func process(
        _ request: Request,
        _ context: HTTPContext,
        _ endpoint: any WebhookEndpoint
    ) async throws -> String {
        let source = type(of: endpoint).source
        let notification: BillingEvent
        do {
            try endpoint.checkHead(request.headers)
            let body = try await bodies.read(request, context)
            try Task.checkCancellation()
            notification = try await endpoint.event(
                WebhookRequest(
                    headers: request.headers,
                    body: Array(body.readableBytesView),
                    now: Instant(secondsSince1970: Int64(Date().timeIntervalSince1970))
                )
            )
        } catch let problem as Problem {
            let outcome = problem.status == .contentTooLarge ? "too_large" : "malformed"
            log.refused(source, outcome: outcome, problem.detail)
            throw problem
        } catch let error as BillingError {
            log.refused(source, outcome: error.kind.outcome, error.description)
            throw Problem(error)
        }
        try Task.checkCancellation()
        let answer = try await keep(notification)
        log.kept(notification, answer: answer)
        return answer
    }

    private func keep(_ notification: BillingEvent) async throws -> String {
        do {
            return try await sessions.apply(notification, by: .now + requestTimeout)
        } catch {
            let type = notification.typeClass
            switch error {
            case .cancelled: throw CancellationError()
            case .database(let refusal) where refusal.sqlState?.isClass("22") == true:
                // The database's words name a field and repeat nothing of it.
                log.refused(notification.source, type: type, outcome: "malformed", refusal.message)
                throw Problem(.badRequest, code: "BADREQUEST", "the event cannot be taken: \(refusal.message)")
            case .database(let refusal) where refusal.sqlState == .unknownUser:
                log.refused(notification.source, type: type, outcome: "unknown_user", refusal.message)
            case .database(let refusal) where !refusal.isTransient:
                log.failed(notification, refusal.description)
            default:
                log.refused(notification.source, type: type, outcome: "unavailable", "\(error)")
            }
            throw Problem(error)
        }
    }
}

extension BillingError.Kind {
    var outcome: String {
        switch self {
        case .malformed, .encoding: "malformed"
        case .tooLarge: "too_large"
        case .unverified: "unverified"
        case .elsewhere: "elsewhere"
        }
    }
}

extension Problem {
    init(_ error: BillingError) {
        switch error.kind {
        case .malformed: self.init(.badRequest, code: "BADREQUEST", error.description)
        case .encoding: self.init(.unsupportedMediaType, code: "BADENCODING", error.description)
        case .tooLarge: self.init(.contentTooLarge, code: "TOOLONG", error.description)
        case .unverified:
            self.init(.unauthorized, code: "NOAUTH", error.description)
            headers[.wwwAuthenticate] = "Bearer realm=\"headroom webhooks\""
        case .elsewhere: self.init(.forbidden, code: "FORBIDDEN", error.description)
        }
    }
}
