import Engine
import Hummingbird
import Logging
import ServiceCore

/// Adds a group of routes to the router.
protocol RouteProvider {
    func add(to router: Router<HTTPContext>)
}

/// The dependencies that routes share, and the list of all routes.
struct HTTPServerDependencies: Sendable {
    let service: ServiceDependencies
    let configuration: HTTPConfiguration
    let engine: EngineClient
    /// These sessions apply store events, which change rows.
    let webhookSessions: SessionPool
    /// These sessions are read-only. They run the queries of pages.
    let pageSessions: SessionPool
    let webhookEndpoints: WebhookEndpoints
    let webhookCounters = WebhookCounters()
    let metrics = HTTPMetrics()
    let connectionMetrics = ConnectionMetrics()
    let health: HealthResponder
    let logger: Logger

    init(
        _ service: ServiceDependencies,
        configuration: HTTPConfiguration,
        webhookEndpoints: WebhookEndpoints,
        logger: Logger
    ) {
        self.service = service
        self.configuration = configuration
        self.webhookEndpoints = webhookEndpoints
        self.logger = logger
        health = HealthResponder(metrics: metrics, draining: service.draining) { Readiness(service) }
        engine = EngineClient(service.engine)
        webhookSessions = SessionPool(
            name: "webhooks",
            service.engine.configuration,
            sessions: service.configuration.settings.counting.billingSessions,
            readOnly: false,
            logger: logger
        )
        pageSessions = SessionPool(name: "pages", service.engine.configuration, readOnly: true, logger: logger)
    }

    var pools: [SessionPool] { [webhookSessions, pageSessions] }

    var requestGuard: RequestGuard {
        RequestGuard(
            access: service.access,
            hostCheck: hostCheck,
            otherSite: OtherSiteMiddleware(origins: configuration.settings.origins ?? [])
        )
    }

    var hostCheck: HostCheckMiddleware {
        HostCheckMiddleware(access: service.access, check: HostCheck(configuredHost: configuration.address.host))
    }

    func router() throws -> Router<HTTPContext> {
        let routes = try self.routes()
        // A first router without middleware has the paths that `ProblemMiddleware` needs for 405.
        let paths = Router(context: HTTPContext.self)
        for routes in routes { routes.add(to: paths) }
        let router = Router(context: HTTPContext.self, options: .autoGenerateHeadEndpoints)
        router.add(middleware: RequestCountingMiddleware(metrics: metrics))
        if let tracing = service.tracing {
            router.add(middleware: RequestTracingMiddleware(tracing.tracer, sampledPercent: tracing.sampledPercent))
        }
        let methods = AllowedMethods(paths.routes)
        router.add(middleware: CrossOriginMiddleware(origins: configuration.settings.origins ?? [], methods: methods))
        router.add(middleware: ProblemMiddleware(methods: methods))
        for routes in routes { routes.add(to: router) }
        return router
    }

    private func routes() throws -> [any RouteProvider] {
        [
            HealthRoutes(health: health),
            MetricsRoutes(self),
            UsageRoutes(self),
            CommandRoutes(self),
            BillingRoutes(self),
            WebhookRoutes(self),
            try DashboardRoutes(self),
        ]
    }
}
