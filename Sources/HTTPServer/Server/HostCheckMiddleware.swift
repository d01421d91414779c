import HTTPTypes
import Hummingbird
import ServiceCore

/// Refuses requests under a foreign host name if the service requires no tokens: a page of another site could send
/// them. Comes after `AuthenticationMiddleware`: requests with a valid token are exempt, because no other site has it.
struct HostCheckMiddleware: RouterMiddleware {
    typealias Context = HTTPContext

    let access: AccessControl
    let check: HostCheck

    func handle(
        _ request: Request,
        context: HTTPContext,
        next: (Request, HTTPContext) async throws -> Response
    ) async throws -> Response {
        guard access.isRequired || context.identity != nil || check.isLocal(request.head.authority) else {
            throw Problem(
                .misdirectedRequest,
                code: "BADHOST",
                "without tokens, this service answers only under this machine's own names: use its IP address, or "
                    + "make a token (headroom token create)"
            )
        }
        return try await next(request, context)
    }
}
