import Foundation
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
        router.get("healthz") { _, _ in
            HealthRoutes.response(.ok, "text/plain; charset=utf-8", Data("ok\n".utf8))
        }
        let parts = parts
        router.get("readyz") { _, _ in
            let readiness = Readiness(parts)
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys]
            return HealthRoutes.response(
                readiness.ready ? .ok : .serviceUnavailable,
                "application/json",
                try encoder.encode(readiness)
            )
        }
    }

    /// What is true now and may not be in a moment.
    private static func response(_ status: HTTPResponse.Status, _ type: String, _ body: Data) -> Response {
        Response(
            status: status,
            headers: [.contentType: type, .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: body))
        )
    }
}
