import Billing
import Engine
import HTTPTypes
import HeadroomServer
import Hummingbird
import NIOCore

/// `POST /v1/billing-events`: one event in Headroom's own words, from a billing system without an adapter.
struct BillingRoutes: RouteCollecting {
    private let sessions: SessionPool
    private let bodies: BodyDecoder
    private let access: AccessControl
    private let openPort: OpenPort
    private let requestTimeout: Duration

    init(_ dependencies: HTTPServerDependencies) {
        sessions = dependencies.webhookSessions
        bodies = BodyDecoder(dependencies.configuration)
        access = dependencies.parts.access
        openPort = dependencies.openPort
        requestTimeout = dependencies.configuration.requestTimeout
    }

    func add(to router: Router<HTTPContext>) {
        router.group("v1").add(middleware: Authenticating(access: access)).add(middleware: openPort)
            .post("billing-events", use: apply)
    }

    @Sendable
    private func apply(_ request: Request, _ context: HTTPContext) async throws -> Response {
        // An event sets a plan, so it needs the same scope as SETPLAN.
        try context.require(.setPlan)
        _ = try Query(request)
        let answer = try await context.whilePeerIsHere { try await process(request, context) }
        return Response(
            status: .ok,
            headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: answer))
        )
    }

    /// Cancelled where the peer is gone, so that nothing more is read, parsed or begun for it.
    private func process(_ request: Request, _ context: HTTPContext) async throws -> String {
        let body = try await bodies.read(request, context)
        try Task.checkCancellation()
        let event: BillingEvent
        do {
            event = try DirectEvent.parse(body: Array(body.readableBytesView))
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
