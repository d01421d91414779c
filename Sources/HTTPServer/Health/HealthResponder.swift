import Foundation
import HTTPTypes
import NIOCore
import NIOHTTP1
import ServiceCore

/// The checks of load balancers and orchestrators, which need no token.
enum HealthCheck: String, CaseIterable {
    case liveness = "/healthz"
    case readiness = "/readyz"

    /// - Returns: nil for another request, and for one with a body, which could be slow to arrive.
    init?(_ head: HTTPRequestHead) {
        let hasBody =
            head.headers.contains(name: "Transfer-Encoding")
            || !head.headers["Content-Length"].allSatisfy { $0 == "0" }
        self.init(method: head.method.rawValue, path: head.uri, hasBody: hasBody)
    }

    /// - Parameter head: of a request of HTTP/2 without a body.
    init?(_ head: HTTPRequest) {
        let hasBody = head.headerFields[.contentLength] != nil
        self.init(method: head.method.rawValue, path: head.path ?? "", hasBody: hasBody)
    }

    private init?(method: String, path: String, hasBody: Bool) {
        guard method == "GET" || method == "HEAD", !hasBody else { return nil }
        self.init(rawValue: String(path.prefix { $0 != "?" }))
    }
}

/// Answers health checks, on the port's event loop and without Hummingbird's tasks, so that they do not wait for other
/// requests.
struct HealthResponder: Sendable {
    struct Reply {
        var status: HTTPResponse.Status
        var fields: HTTPFields
        var body: ByteBuffer
    }

    let date = DateField()
    private let metrics: HTTPMetrics
    private let draining: DrainingFlag
    private let readiness: @Sendable () -> Readiness

    init(metrics: HTTPMetrics, draining: DrainingFlag, readiness: @escaping @Sendable () -> Readiness) {
        self.metrics = metrics
        self.draining = draining
        self.readiness = readiness
    }

    /// The service is shutting down, so no connection should be used for a further request.
    var isDraining: Bool { draining.isSet }

    func reply(to check: HealthCheck) -> Reply {
        switch check {
        case .liveness: return reply(.ok, "text/plain; charset=utf-8", ByteBuffer(string: "ok\n"))
        case .readiness:
            let readiness = readiness()
            let status: HTTPResponse.Status = readiness.ready ? .ok : .serviceUnavailable
            return reply(status, "application/json", ByteBuffer(json: readiness))
        }
    }

    private func reply(_ status: HTTPResponse.Status, _ type: String, _ body: ByteBuffer) -> Reply {
        let fields: HTTPFields = [
            .contentType: type, .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
        ]
        return Reply(status: status, fields: fields, body: body)
    }

    /// Counts a check that did not reach `RequestCountingMiddleware`.
    func count(_ check: HealthCheck, _ method: String, _ reply: Reply, _ duration: Duration) {
        let status = "\(reply.status.code / 100)xx"
        metrics.count(HTTPMetrics.Kind(route: check.rawValue, method: method, status: status), duration)
    }
}
