import Engine
import HTTPTypes
import Hummingbird
import Synchronization

/// Counts the HTTP server's requests by route. A route is a path's pattern, so that requests cannot add new ones.
final class HTTPMetrics: Sendable {
    struct Kind: Hashable, Comparable {
        var route: String
        var method: String
        /// `2xx`
        var status: String

        static func < (one: Kind, other: Kind) -> Bool {
            (one.route, one.method, one.status) < (other.route, other.method, other.status)
        }
    }

    struct Snapshot {
        var requests: [Kind: UInt64] = [:]
        /// The durations of requests, by route.
        var durations: [String: DoublingHistogram] = [:]
    }

    private let state = Mutex(Snapshot())

    /// Callable from any thread.
    func count(_ kind: Kind, _ duration: Duration) {
        state.withLock { state in
            state.requests[kind, default: 0] += 1
            let histogram = state.durations[kind.route] ?? DoublingHistogram()
            histogram.record(duration)
            state.durations[kind.route] = histogram
        }
    }

    var snapshot: Snapshot { state.withLock { $0 } }
}

/// Counts each request with its status. The outermost middleware, so that it sees the responses of all others.
struct RequestCountingMiddleware: RouterMiddleware {
    typealias Context = HTTPContext

    let metrics: HTTPMetrics

    func handle(
        _ request: Request,
        context: HTTPContext,
        next: (Request, HTTPContext) async throws -> Response
    ) async throws -> Response {
        let began = ContinuousClock.now
        let response = try await next(request, context)
        metrics.count(
            HTTPMetrics.Kind(
                route: context.route ?? "none",
                method: request.knownMethod ?? "other",
                status: "\(response.status.code / 100)xx"
            ),
            .now - began
        )
        return response
    }
}

extension HTTPContext {
    /// The pattern of the path, such as `/v1/usage/{user}`; nil for an unknown path.
    var route: String? {
        guard let path = endpointPath, path.hasPrefix("/") else { return nil }
        return path
    }
}

extension Request {
    private static let methods: Set<HTTPRequest.Method> = [
        .get, .head, .post, .put, .delete, .patch, .options, .trace,
    ]

    /// The method's name. It is nil for an unknown method, because a peer can send any text as one.
    var knownMethod: String? { Request.methods.contains(method) ? method.rawValue : nil }
}
