import HTTPTypes
import Hummingbird

/// Lets pages of the configured origins call the API from a browser
/// (https://fetch.spec.whatwg.org/#http-cors-protocol): answers the browser's question before a request, and lets the
/// page read responses, also errors. Without origins it does nothing.
///
/// Credentials are never allowed: the API has no cookies, and a page sets Authorization itself.
struct CrossOriginMiddleware: RouterMiddleware {
    typealias Context = HTTPContext

    let origins: Set<String>
    let methods: AllowedMethods

    private static let requestHeaders = "Authorization, Content-Type, Idempotency-Key, traceparent, tracestate"
    private static let responseHeaders = "ETag, RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate"
    /// How long a browser remembers the answer. Chrome's maximum.
    private static let maxAgeSeconds = "7200"

    func handle(
        _ request: Request,
        context: HTTPContext,
        next: (Request, HTTPContext) async throws -> Response
    ) async throws -> Response {
        guard !origins.isEmpty, request.uri.path.hasPrefix("/v1/") else { return try await next(request, context) }
        let origin = request.headers[.origin].flatMap { origins.contains($0) ? $0 : nil }
        var response: Response
        if let preflight = preflightResponse(request, origin) {
            response = preflight
        } else {
            response = try await next(request, context)
        }
        // Caches need it: the response to another origin, or to none, is another one.
        response.headers[.vary] = [response.headers[.vary], "Origin"].compactMap(\.self).joined(separator: ", ")
        if let origin {
            response.headers[.accessControlAllowOrigin] = origin
            response.headers[.accessControlExposeHeaders] = CrossOriginMiddleware.responseHeaders
        }
        return response
    }

    /// - Returns: nil unless the request is a browser's question whether a page of an allowed origin may send another.
    private func preflightResponse(_ request: Request, _ origin: String?) -> Response? {
        guard request.method == .options, origin != nil, request.headers[.accessControlRequestMethod] != nil,
            let methods = methods.methods(of: request.uri.path)
        else { return nil }
        return Response(
            status: .noContent,
            headers: [
                .accessControlAllowMethods: methods.joined(separator: ", "),
                .accessControlAllowHeaders: CrossOriginMiddleware.requestHeaders,
                .accessControlMaxAge: CrossOriginMiddleware.maxAgeSeconds,
            ]
        )
    }
}
