import HTTPTypes
import HeadroomServer
import Hummingbird

/// Where no token is needed, who reaches the port is who may ask; a page of another site must not be taken for one.
/// Stands after `Authenticating`: who brought a good token is known by it, and no other site has it.
struct OpenPort: RouterMiddleware {
    typealias Context = HTTPContext

    let access: AccessControl
    let check: HostCheck

    func handle(
        _ request: Request,
        context: HTTPContext,
        next: (Request, HTTPContext) async throws -> Response
    ) async throws -> Response {
        guard access.isRequired || context.identity != nil || check.isOurs(request.head.authority) else {
            throw Problem(
                .misdirectedRequest,
                code: "BADHOST",
                "no token is needed here, so this is shown under this machine's own names only: open it by its address, "
                    + "or make a token (headroom token create)"
            )
        }
        return try await next(request, context)
    }
}
