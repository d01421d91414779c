import HTTPTypes
import Hummingbird

/// Outermost: errors become problems, other sites' pages change nothing here, and every answer says what browsers may do
/// with it.
struct Guarding: RouterMiddleware {
    typealias Context = ChatContext

    let hosts: HostCheck

    static let contentSecurityPolicy = [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:",
        "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'",
    ].joined(separator: "; ")

    func handle(
        _ request: Request,
        context: ChatContext,
        next: (Request, ChatContext) async throws -> Response
    ) async throws -> Response {
        var response: Response
        do {
            try refuseForeign(request)
            response = try await next(request, context)
        } catch {
            let problem = self.problem(error, context)
            response =
                request.isOfAPerson
                ? ProblemPage(problem: problem).response : problem.response(from: request, context: context)
        }
        response.headers[.xContentTypeOptions] = "nosniff"
        response.headers[.referrerPolicy] = "no-referrer"
        response.headers[.contentSecurityPolicy] = Guarding.contentSecurityPolicy
        return request.method == .head ? response.createHeadResponse() : response
    }

    /// A form of another site can post, but neither with this type nor, in browsers of today, as the same origin.
    private func refuseForeign(_ request: Request) throws {
        guard hosts.isOurs(request.head.authority) else {
            throw Problem(
                status: .misdirectedRequest,
                code: "BADHOST",
                message: "open the chat by its address, or start it with --host and the name that you use"
            )
        }
        guard request.method == .post else { return }
        let type = request.headers[.contentType]?.split(separator: ";").first.map { $0.lowercased() }
        guard type == "application/json" else {
            throw Problem(
                status: .unsupportedMediaType,
                code: "BADTYPE",
                message: "Content-Type must be application/json"
            )
        }
        if let site = request.headers[.secFetchSite], site != "same-origin" {
            throw Problem(status: .forbidden, code: "FORBIDDEN", message: "only the chat's own page may do this")
        }
    }

    private func problem(_ error: any Error, _ context: ChatContext) -> Problem {
        switch error {
        case let problem as Problem: return problem
        case let error as HTTPError where error.status == .notFound: return .notFound
        case let error as HTTPError:
            return Problem(status: error.status, code: "BADREQUEST", message: error.body ?? error.status.reasonPhrase)
        case is CancellationError:
            return Problem(
                status: .serviceUnavailable,
                code: "DRAINING",
                message: "the chat shuts down; try again soon"
            )
        default:
            context.logger.error("a request failed", metadata: ["error.type": "\(type(of: error))"])
            return Problem(status: .internalServerError, code: "INTERNAL", message: "a bug; the log says more")
        }
    }
}

extension Request {
    /// A browser opens an address that somebody typed or followed; scripts and programs do not ask for HTML.
    fileprivate var isOfAPerson: Bool {
        (method == .get || method == .head) && headers[.accept]?.contains("text/html") == true
    }
}
