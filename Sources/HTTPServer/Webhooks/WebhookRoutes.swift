import Billing
import Engine
import Foundation
import Hummingbird
import Logging
import NIOCore
import ServiceCore
import StoreEvents
import Usage

/// `POST /webhooks/<source>`, for each store in `WebhookEndpoints.types`.
///
/// A request is rejected as early as possible: before the body is read if the store has no settings or the head cannot
/// be the store's, and before anything is parsed if the signature is wrong.
///
/// 200 means that the event is stored, even if it could not be applied, so the store stops sending it. With any other
/// status the store sends it again, which helps after 503, and after 500 if the fault is mended meanwhile.
struct WebhookRoutes: RouteProvider {
    private let endpoints: WebhookEndpoints
    private let sessions: SessionPool
    private let bodies: BodyDecoder
    private let requestTimeout: Duration
    private let recorder: WebhookRecorder

    init(_ dependencies: HTTPServerDependencies) {
        endpoints = dependencies.webhookEndpoints
        sessions = dependencies.webhookSessions
        bodies = BodyDecoder(dependencies.configuration)
        requestTimeout = dependencies.configuration.settings.requestTimeout
        // It is the service's own logger, which has the configured level.
        recorder = WebhookRecorder(counters: dependencies.webhookCounters, logger: dependencies.service.logger)
    }

    func add(to router: Router<HTTPContext>) {
        for store in WebhookEndpoints.types {
            router.post(RouterPath("webhooks/\(store.source.rawValue)")) { request, context in
                try await handle(store, request, context)
            }
        }
    }

    private func handle(
        _ store: any WebhookEndpoint.Type,
        _ request: Request,
        _ context: HTTPContext
    ) async throws -> Response {
        guard let endpoint = endpoints.endpoint(of: store.source) else {
            throw Problem(
                .notFound,
                code: "NOTFOUND",
                "\(store.events) are not accepted: set \(store.settings)"
            )
        }
        let answer: String
        do {
            answer = try await context.cancellingOnPeerClose { try await process(request, context, endpoint) }
        } catch let problem as Problem where problem == .peerClosed {
            recorder.rejected(store.source, outcome: "gone", problem.detail)
            throw problem
        }
        return Response(
            status: .ok,
            headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: answer))
        )
    }

    /// Cancelled when the peer closes the connection.
    private func process(
        _ request: Request,
        _ context: HTTPContext,
        _ endpoint: any WebhookEndpoint
    ) async throws -> String {
        let source = type(of: endpoint).source
        let event: BillingEvent
        do {
            try endpoint.checkHead(request.headers)
            let body = try await bodies.read(request, context)
            try Task.checkCancellation()
            event = try await endpoint.event(
                WebhookRequest(
                    headers: request.headers,
                    body: Array(body.readableBytesView),
                    now: Instant(secondsSince1970: Int64(Date().timeIntervalSince1970))
                )
            )
        } catch let problem as Problem {
            let outcome = problem.status == .contentTooLarge ? "too_large" : "malformed"
            recorder.rejected(source, outcome: outcome, problem.detail)
            throw problem
        } catch let error as BillingError {
            recorder.rejected(source, outcome: error.kind.outcome, error.description)
            throw Problem(error)
        }
        try Task.checkCancellation()
        let answer = try await store(event)
        recorder.stored(event, answer: answer)
        return answer
    }

    private func store(_ event: BillingEvent) async throws -> String {
        do {
            return try await sessions.apply(event, by: .now + requestTimeout)
        } catch {
            let type = event.typeClass
            switch error {
            case .cancelled: throw CancellationError()
            // The event's own text is refused here: an effect that the database refuses is stored as failed.
            case .database(let error) where error.sqlState?.isClass("22") == true:
                // The database's message names a field but does not repeat its value.
                recorder.rejected(event.source, type: type, outcome: "malformed", error.message)
                throw Problem(.badRequest, code: "BADREQUEST", "the event cannot be stored: \(error.message)")
            case .database(let error) where !error.isTransient:
                recorder.failed(event, error.description)
            default:
                recorder.rejected(event.source, type: type, outcome: "unavailable", "\(error)")
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
