import HTTPTypes
import Hummingbird

/// `GET /metrics`, for Prometheus, with the permission of `INFO`.
struct MetricsRoutes: RouteProvider {
    private let dependencies: HTTPServerDependencies

    init(_ dependencies: HTTPServerDependencies) {
        self.dependencies = dependencies
    }

    func add(to router: Router<HTTPContext>) {
        let group = dependencies.requestGuard.group(of: router)
        group.get("metrics") { _, context in
            try context.require(.info)
            return Response(
                status: .ok,
                headers: [.contentType: PrometheusEncoder.contentType, .cacheControl: "no-store"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: text))
            )
        }
    }

    var text: String {
        let snapshot = MetricsSnapshot(dependencies)
        var encoder = PrometheusEncoder()
        for metric in Metric.all { encoder.write(metric, metric.samples(snapshot)) }
        return encoder.text
    }
}
