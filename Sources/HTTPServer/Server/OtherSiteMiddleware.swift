import Hummingbird
import LineProtocol
import ServiceCore

/// Refuses changes that a browser sends for a page of another site, if the request has no valid token: where none is
/// required, any page could send what a form can. Pages of the setting http-origins may. Comes after
/// `AuthenticationMiddleware`. The dashboard's forms have a check of their own.
struct OtherSiteMiddleware: RouterMiddleware {
    typealias Context = HTTPContext

    let origins: Set<String>

    func handle(
        _ request: Request,
        context: HTTPContext,
        next: (Request, HTTPContext) async throws -> Response
    ) async throws -> Response {
        if request.method == .get || request.method == .head { return try await next(request, context) }
        let (origin, site) = (request.headers[.origin], request.headers[.fetchSite])
        let isSameOrigin = RequestOrigin.isSameOrigin(origin, fetchSite: site, authority: request.head.authority)
        guard context.identity != nil || isSameOrigin || origin.map(origins.contains) ?? false else {
            throw Problem(
                ReplyError(code: .forbidden, text: "a page of another site sent this without a token; nothing was done")
            )
        }
        return try await next(request, context)
    }
}
