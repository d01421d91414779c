import Billing
import Engine
import HTTPTypes
import Hummingbird
import JSON
import LineProtocol
import NIOCore
import Postgres
import ServiceCore
import StoreEvents
import Usage

/// What other billing systems and operators say about subscriptions, outside the stores' webhooks.
///
/// - `POST /v1/billing-events`: one event in Headroom's own format, for a system without an endpoint of its own.
/// - `POST /v1/users/{user}/links`: a transaction, or a customer of a store, is this user's.
struct BillingRoutes: RouteProvider {
    private let sessions: SessionPool
    private let bodies: BodyDecoder
    private let requestGuard: RequestGuard
    private let requestTimeout: Duration
    private let namespace: UserNamespace?

    init(_ dependencies: HTTPServerDependencies) {
        sessions = dependencies.webhookSessions
        bodies = BodyDecoder(dependencies.configuration)
        requestGuard = dependencies.requestGuard
        requestTimeout = dependencies.configuration.settings.requestTimeout
        namespace = dependencies.service.configuration.settings.counting.userNamespace
    }

    func add(to router: Router<HTTPContext>) {
        let group = requestGuard.group("v1", of: router)
        group.post("billing-events") { request, context in try await answer(request, context, apply) }
        group.post("users/{user}/links") { request, context in try await answer(request, context, link) }
    }

    /// - Parameter work: returns JSON. Cancelled when the peer closes the connection.
    private func answer(
        _ request: Request,
        _ context: HTTPContext,
        _ work: @escaping @Sendable (ByteBuffer, HTTPContext) async throws -> String
    ) async throws -> Response {
        // Both set plans, so they need the same scope as SETPLAN.
        try context.require(.setPlan)
        _ = try QueryParameters(request)
        let answer = try await context.cancellingOnPeerClose {
            let body = try await bodies.read(request, context)
            try Task.checkCancellation()
            return try await work(body, context)
        }
        return Response(
            status: .ok,
            headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: answer))
        )
    }

    @Sendable
    private func apply(_ body: ByteBuffer, _ context: HTTPContext) async throws -> String {
        let event: BillingEvent
        do {
            event = try DirectEvent.parse(body: Array(body.readableBytesView), in: namespace)
        } catch {
            throw Problem(error)
        }
        do {
            return try await sessions.apply(event, by: .now + requestTimeout)
        } catch .cancelled {
            throw CancellationError()
        } catch {
            throw Problem(error)
        }
    }

    @Sendable
    private func link(_ body: ByteBuffer, _ context: HTTPContext) async throws -> String {
        let user = try context.user(in: namespace)
        let request = try LinkRequest(body)
        let author = ChangeAuthor(actor: context.identity?.actor ?? "", reason: request.reason)
        let deadline = ContinuousClock.now + requestTimeout
        let result: CustomerLinkResult
        do {
            result = try await sessions.perform(by: deadline) { connection throws(PostgresError) in
                try BillingLedger(connection, deadline: deadline, author: author)
                    .link(request.source, request.name, to: user)
            }
        } catch .cancelled {
            throw CancellationError()
        } catch {
            throw Problem(error)
        }
        switch result {
        case .done(let answer): return answer.jsonText
        case .notFound(let problem): throw Problem(ReplyError(code: .notFound, text: problem))
        case .invalid(let problem): throw Problem.badArgument(problem)
        case .refused(let problem): throw Problem(ReplyError(code: .conflict, text: problem))
        }
    }
}
