import Billing
import Foundation
import HTTPTypes
import HeadroomServer
import Hummingbird
import Logging
import NIOCore
import Usage
import UsageStore

/// `POST /webhooks/revenuecat` and `POST /webhooks/appstore`.
///
/// 200 says that the event is kept, whatever became of it, so that the store stops sending it. Everything else says that
/// nothing is kept: 4xx where sending it again would not help, 503 where it does.
struct WebhookRoutes: RouteCollecting {
    private let senders: StoreSenders
    private let sessions: SessionPool
    private let bodies: BodyReading
    private let requestTimeout: Duration
    private let log: WebhookLog

    init(_ surroundings: HTTPSurroundings) {
        senders = surroundings.senders
        sessions = surroundings.webhookSessions
        bodies = BodyReading(surroundings.configuration)
        requestTimeout = surroundings.configuration.requestTimeout
        // The one of the service: what became of an event is told at the level of the setting.
        log = WebhookLog(counters: surroundings.webhookCounters, logger: surroundings.parts.logger)
    }

    func add(to router: Router<HTTPContext>) {
        router.post("webhooks/revenuecat") { request, context in
            try await take(.revenuecat, request, context) { body throws(BillingError) in
                guard let sender = senders.revenueCat else { return nil }
                return try await revenueCat(sender, request, body)
            }
        }
        router.post("webhooks/appstore") { request, context in
            try await take(.appstore, request, context) { body throws(BillingError) in
                guard let verifier = senders.appStore else { return nil }
                let kept = try await AppStoreNotification.sanitized(body: body, verifier: verifier)
                return try AppStoreNotification.translate(payload: kept)
            }
        }
    }

    private func revenueCat(
        _ sender: RevenueCatSender,
        _ request: Request,
        _ body: [UInt8]
    ) async throws(BillingError) -> BillingEvent {
        try sender.verify(
            authorization: request.headers[.authorization],
            signature: HTTPField.Name(RevenueCatSender.signatureHeader).flatMap { request.headers[$0] },
            body: body,
            now: Instant(secondsSince1970: Int64(Date().timeIntervalSince1970))
        )
        let notification = try RevenueCatEvent.translate(payload: try RevenueCatEvent.sanitized(body: body))
        // The dashboard's test is told as the sandbox's, and does nothing.
        // Where an event names no environment it can concern either.
        if notification.typeClass != "TEST", notification.payload["event"]?["environment"] != nil {
            try senders.environments.check(notification.environment)
        }
        return notification
    }

    /// - Parameter read: verifies and translates; nil where the store is not set up.
    private func take(
        _ source: BillingEvent.Source,
        _ request: Request,
        _ context: HTTPContext,
        _ read: ([UInt8]) async throws(BillingError) -> BillingEvent?
    ) async throws -> Response {
        let body: ByteBuffer
        do {
            body = try await bodies.read(request, context)
        } catch let problem as Problem {
            log.refused(source, outcome: problem.status == .contentTooLarge ? "too_large" : "malformed", problem.detail)
            throw problem
        }
        let notification: BillingEvent
        do {
            guard let understood = try await read(Array(body.readableBytesView)) else {
                throw WebhookRoutes.notConfigured(source)
            }
            notification = understood
        } catch let error as BillingError {
            log.refused(source, outcome: error.kind.outcome, error.description)
            throw Problem(error)
        }
        let answer = try await keep(notification)
        log.kept(notification, answer: answer)
        return Response(
            status: .ok,
            headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: answer))
        )
    }

    private func keep(_ notification: BillingEvent) async throws(Problem) -> String {
        do {
            return try await sessions.takeStoreNotification(notification.jsonText, by: .now + requestTimeout)
        } catch {
            let type = notification.typeClass
            switch error {
            case .database(let refusal) where refusal.sqlState?.isClass("22") == true:
                // The database's words name a field and repeat nothing of it.
                log.refused(notification.source, type: type, outcome: "malformed", refusal.message)
                throw Problem(.badRequest, code: "BADREQUEST", "the event cannot be taken: \(refusal.message)")
            case .database(let refusal) where !refusal.isTransient:
                log.failed(notification, refusal.description)
            default:
                log.refused(notification.source, type: type, outcome: "unavailable", "\(error)")
            }
            throw Problem(error)
        }
    }

    private static func notConfigured(_ source: BillingEvent.Source) -> Problem {
        let (name, settings) =
            switch source {
            case .revenuecat: ("RevenueCat's events", "revenuecat-authorization or revenuecat-signing-secret")
            case .appstore: ("App Store notifications", "appstore-bundle-id and appstore-root-certificate")
            }
        return Problem(.notFound, code: "NOTFOUND", "\(name) are not taken here: set \(settings)")
    }
}

extension BillingError.Kind {
    var outcome: String {
        switch self {
        case .malformed: "malformed"
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
        case .tooLarge: self.init(.contentTooLarge, code: "TOOLONG", error.description)
        case .unverified:
            self.init(.unauthorized, code: "NOAUTH", error.description)
            headers[.wwwAuthenticate] = "Bearer realm=\"headroom webhooks\""
        case .elsewhere: self.init(.forbidden, code: "FORBIDDEN", error.description)
        }
    }
}
