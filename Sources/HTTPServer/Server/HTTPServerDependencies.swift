import Engine
import HeadroomServer
import Hummingbird
import Logging

/// Adds the routes of one concern.
protocol RouteCollecting {
    func add(to router: Router<HTTPContext>)
}

/// What the routes share, and their list.
struct HTTPServerDependencies: Sendable {
    let parts: ServiceParts
    let configuration: HTTPConfiguration
    let store: StoreGateway
    /// For what changes something: the events of stores.
    let webhookSessions: SessionPool
    /// For what pages and answers read besides the store.
    let pageSessions: SessionPool
    let senders: StoreSenders
    let webhookCounters = WebhookCounters()
    let metrics = HTTPMetrics()
    let connections = ConnectionFigures()
    let health: Health
    let logger: Logger

    init(_ parts: ServiceParts, configuration: HTTPConfiguration, senders: StoreSenders, logger: Logger) {
        self.parts = parts
        self.configuration = configuration
        self.senders = senders
        self.logger = logger
        health = Health(metrics: metrics) { Readiness(parts) }
        store = StoreGateway(parts.engine)
        webhookSessions = SessionPool(
            name: "webhooks",
            parts.engine.configuration,
            sessions: configuration.billingSessions,
            readOnly: false,
            logger: logger
        )
        pageSessions = SessionPool(name: "pages", parts.engine.configuration, readOnly: true, logger: logger)
    }

    var pools: [SessionPool] { [webhookSessions, pageSessions] }

    var openPort: OpenPort {
        OpenPort(access: parts.access, check: HostCheck(configuredHost: configuration.address.host))
    }

    /// By when a request that came just now is answered.
    var deadline: ContinuousClock.Instant { .now + configuration.requestTimeout }

    func router() -> Router<HTTPContext> {
        let routes = routes
        // Once without anything else, because what is answered depends on which paths there are.
        let paths = Router(context: HTTPContext.self)
        for routes in routes { routes.add(to: paths) }
        let router = Router(context: HTTPContext.self, options: .autoGenerateHeadEndpoints)
        router.add(middleware: CountingRequests(metrics: metrics))
        router.add(middleware: Answering(methods: PathMethods(paths.routes)))
        for routes in routes { routes.add(to: router) }
        return router
    }

    private var routes: [any RouteCollecting] {
        [
            HealthRoutes(health: health),
            MetricsRoutes(
                parts,
                http: metrics,
                connections: connections,
                webhooks: webhookCounters,
                openPort: openPort
            ),
            UsageRoutes(
                store,
                access: parts.access,
                openPort: openPort,
                requestTimeout: configuration.requestTimeout
            ),
            BillingRoutes(self),
            WebhookRoutes(self),
            DashboardRoutes(self),
        ]
    }
}
