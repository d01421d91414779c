import Foundation
import HTTPTypes
import HeadroomServer
import NIOCore
import NIOHTTP1

/// What load balancers and orchestrators ask, who have no token. Answered on the port's event loop, without the
/// framework's tasks, so that it does not wait for other requests.
struct Health: Sendable {
    enum Question: String {
        case alive = "/healthz"
        case ready = "/readyz"

        /// Nil where a request asks for something else, or has a body, which could be long in coming.
        init?(_ head: HTTPRequestHead) {
            guard head.method == .GET || head.method == .HEAD, !head.headers.contains(name: "Transfer-Encoding"),
                head.headers["Content-Length"].allSatisfy({ $0 == "0" })
            else { return nil }
            self.init(rawValue: String(head.uri.prefix { $0 != "?" }))
        }
    }

    struct Answer {
        var status: HTTPResponse.Status
        var fields: HTTPFields
        var body: ByteBuffer
    }

    let date = DateField()
    private let metrics: HTTPMetrics
    private let readiness: @Sendable () -> Readiness

    init(metrics: HTTPMetrics, readiness: @escaping @Sendable () -> Readiness) {
        self.metrics = metrics
        self.readiness = readiness
    }

    func answer(_ question: Question) -> Answer {
        switch question {
        case .alive: return answer(.ok, "text/plain; charset=utf-8", Data("ok\n".utf8))
        case .ready:
            let readiness = readiness()
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys]
            // Booleans and texts: nothing in it can fail to be encoded.
            let body = (try? encoder.encode(readiness)) ?? Data()
            return answer(readiness.ready ? .ok : .serviceUnavailable, "application/json", body)
        }
    }

    private func answer(_ status: HTTPResponse.Status, _ type: String, _ body: Data) -> Answer {
        // What is true now and may not be in a moment.
        let fields: HTTPFields = [
            .contentType: type, .cacheControl: "no-store", .xContentTypeOptions: "nosniff", .date: date.now,
        ]
        return Answer(status: status, fields: fields, body: ByteBuffer(bytes: body))
    }

    /// As the framework's requests are counted.
    func count(_ question: Question, _ method: String, _ answer: Answer, _ duration: Duration) {
        metrics.count(
            HTTPMetrics.Kind(route: question.rawValue, method: method, status: "\(answer.status.code / 100)xx"),
            duration
        )
    }
}
