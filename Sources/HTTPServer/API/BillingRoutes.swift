import Billing
import Engine
import HTTPTypes
import Hummingbird
import NIOCore
import ServiceCore
import StoreEvents
import Usage

/// `POST /v1/billing-events`: one event in Headroom's own format, for a billing system without an endpoint of its own.
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
        requestTimeout = dependencies.configuration.requestTimeout
        namespace = dependencies.parts.configuration.userNamespace
    }

    func add(to router: Router<HTTPContext>) {
        requestGuard.group("v1", of: router)
            .post("billing-events", use: apply)
    }

    @Sendable
    private func apply(_ request: Request, _ context: HTTPContext) async throws -> Response {
        // An event sets a plan, so it needs the same scope as SETPLAN.
        try context.require(.setPlan)
        _ = try QueryParameters(request)
        let answer = try await context.cancellingOnPeerClose { try await process(request, context) }
        return Response(
            status: .ok,
            headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: answer))
        )
    }

    /// Cancelled when the peer closes the connection.
    private func process(_ request: Request, _ context: HTTPContext) async throws -> String {
        let body = try await bodies.read(request, context)
        try Task.checkCancellation()
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
}
