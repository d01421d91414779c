import HTTPTypes
import Hummingbird
import Tracing

/// Makes a span of a request: of those that their caller traces (`traceparent`), and of a share of the others to the
/// API and of webhooks. Probes, scrapes and pages would hide these.
///
/// Hummingbird's own middleware records paths and queries, which have users' names. This one records the path's
/// pattern.
struct RequestTracingMiddleware: RouterMiddleware {
    typealias Context = HTTPContext

    private let tracer: any Tracer
    private let sampledPercent: Int

    /// - Parameter sampledPercent: of requests without `traceparent`.
    init(_ tracer: any Tracer, sampledPercent: Int) {
        self.tracer = tracer
        self.sampledPercent = sampledPercent
    }

    func handle(
        _ request: Request,
        context: HTTPContext,
        next: (Request, HTTPContext) async throws -> Response
    ) async throws -> Response {
        var trace = InstrumentationContext.topLevel
        tracer.extract(request.headers, into: &trace, using: FieldExtractor())
        guard !trace.isEmpty || isSampled(request) else { return try await next(request, context) }
        let span = tracer.startSpan("request", context: trace, ofKind: .server)
        guard span.isRecording else { return try await next(request, context) }
        defer { span.end() }
        // Errors are responses here: only the counting of requests is outside of this.
        let response = try await InstrumentationContext.$current.withValue(span.context) {
            try await next(request, context)
        }
        describe(span, request, context, response)
        return response
    }

    private func isSampled(_ request: Request) -> Bool {
        let path = request.uri.path
        guard path.hasPrefix("/v1/") || path.hasPrefix("/webhooks/") else { return false }
        return Int.random(in: 0..<100) < sampledPercent
    }

    /// The names of OpenTelemetry's semantic conventions.
    private func describe(_ span: any Span, _ request: Request, _ context: HTTPContext, _ response: Response) {
        let method = request.knownMethod
        span.operationName = [method ?? "HTTP", context.route].compactMap(\.self).joined(separator: " ")
        span.updateAttributes { attributes in
            attributes["http.request.method"] = method ?? "_OTHER"
            attributes["http.response.status_code"] = Int(response.status.code)
            if let route = context.route { attributes["http.route"] = route }
        }
        guard response.status.code >= 500 else { return }
        span.updateAttributes { $0["error.type"] = "\(response.status.code)" }
        span.setStatus(SpanStatus(code: .error))
    }

    private struct FieldExtractor: Extractor {
        func extract(key: String, from fields: HTTPFields) -> String? {
            HTTPField.Name(key).flatMap { fields[$0] }
        }
    }
}
