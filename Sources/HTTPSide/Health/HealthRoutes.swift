import HTTPTypes
import HeadroomServer
import Hummingbird

/// For load balancers and orchestrators, who have no token.
struct HealthRoutes: RouteCollecting {
    private let parts: ServiceParts

    init(_ parts: ServiceParts) {
        self.parts = parts
    }

    func add(to router: Router<HTTPContext>) {
        router.get("healthz") { _, _ in "ok\n" }
        let parts = parts
        router.get("readyz") { _, _ in
            let isReady = !parts.draining.isSet && parts.store.snapshot.lanesConnected > 0
            return EditedResponse(
                status: isReady ? .ok : .serviceUnavailable,
                response: isReady ? "ready\n" : "not ready\n"
            )
        }
    }
}
