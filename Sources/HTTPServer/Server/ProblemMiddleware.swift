import HTTPTypes
import Hummingbird

/// Answers errors as `application/problem+json`, and adds the headers that every response has. Only the counting of
/// requests is outside of it.
struct ProblemMiddleware: RouterMiddleware {
    typealias Context = HTTPContext

    let methods: AllowedMethods

    func handle(
        _ request: Request,
        context: HTTPContext,
        next: (Request, HTTPContext) async throws -> Response
    ) async throws -> Response {
        var response: Response
        do {
            response = try await next(request, context)
            // Only routes for GET read no body. An unread one that arrives slowly would occupy the connection for ever.
            if request.method == .get || request.method == .head { closeIfRequestHasBody(request, context, &response) }
        } catch {
            response = problem(error, request, context).response(from: request, context: context)
            closeIfRequestHasBody(request, context, &response)
        }
        // Browsers must not guess a body's type.
        response.headers[.xContentTypeOptions] = "nosniff"
        // This applies to errors too: a client would take the body for the next response.
        return request.method == .head ? response.createHeadResponse() : response
    }

    private func closeIfRequestHasBody(_ request: Request, _ context: HTTPContext, _ response: inout Response) {
        guard request.hasBody else { return }
        response.headers[.connection] = "close"
        BodyDecoder.close(context)
    }

    private func problem(_ error: any Error, _ request: Request, _ context: HTTPContext) -> Problem {
        switch error {
        case let problem as Problem: return problem
        case let error as HTTPError where error.status == .notFound:
            return methods.methods(of: request.uri.path).map { .methodNotAllowed($0) } ?? .notFound
        case let error as HTTPError:
            return Problem(error.status, code: "BADREQUEST", error.body ?? error.status.reasonPhrase)
        case is CancellationError:
            return Problem(.serviceUnavailable, code: "DRAINING", "this instance is shutting down; ask another one")
        default:
            context.logger.error("a request failed", metadata: ["error.type": "\(type(of: error))"])
            return Problem(.internalServerError, code: "INTERNAL", "a bug; the service's log says more")
        }
    }
}

extension Request {
    /// Whether the head announces a body.
    var hasBody: Bool {
        let length = headers[.contentLength]
        return headers[.transferEncoding] != nil || (length != nil && length != "0")
    }
}

extension HTTPField.Name {
    static let xContentTypeOptions = HTTPField.Name("X-Content-Type-Options")!
    static let retryAfter = HTTPField.Name("Retry-After")!
}
