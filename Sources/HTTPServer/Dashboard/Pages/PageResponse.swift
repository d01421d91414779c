import HTTPTypes
import Hummingbird
import NIOCore

/// A page that is thrown in place of the requested one.
struct PageResponse: Error {
    var response: Response

    static func page(_ html: String, _ status: HTTPResponse.Status = .ok, cookie: Cookie? = nil) -> Response {
        var headers: HTTPFields = [.contentType: "text/html; charset=utf-8"]
        if status == .serviceUnavailable { headers[.retryAfter] = "5" }
        var response = Response(
            status: status,
            headers: headers,
            body: ResponseBody(byteBuffer: ByteBuffer(string: html))
        )
        if let cookie { response.setCookie(cookie) }
        return response
    }

    /// 303, so that reloading the page after a form does not send the form again.
    static func redirect(to path: String, cookie: Cookie? = nil) -> Response {
        var response = Response(status: .seeOther, headers: [.location: path])
        if let cookie { response.setCookie(cookie) }
        return response
    }
}

/// Answers errors under /dashboard with a page. Comes after `AuthenticationMiddleware`, so that the page has the
/// navigation of a viewer with a bearer token.
struct ProblemPageMiddleware: RouterMiddleware {
    typealias Context = HTTPContext

    let page: @Sendable (Problem, Request, HTTPContext) -> Response

    func handle(
        _ request: Request,
        context: HTTPContext,
        next: (Request, HTTPContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let problem as Problem {
            return page(problem, request, context)
        }
    }
}

/// Adds the security headers to every response under /dashboard.
struct PageHeadersMiddleware: RouterMiddleware {
    typealias Context = HTTPContext

    /// Nothing from other sites, nothing inline, and no embedding in other sites.
    static let contentSecurityPolicy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        + "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

    private static let fields: [(HTTPField.Name, String)] = [
        (.contentSecurityPolicy, contentSecurityPolicy),
        (HTTPField.Name("Referrer-Policy")!, "no-referrer"),
        (HTTPField.Name("Permissions-Policy")!, "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
        (HTTPField.Name("Cross-Origin-Opener-Policy")!, "same-origin"),
        (HTTPField.Name("Cross-Origin-Resource-Policy")!, "same-origin"),
        (HTTPField.Name("X-Frame-Options")!, "DENY"),
    ]

    let problemPage: @Sendable (Problem, Request, HTTPContext) -> Response

    func handle(
        _ request: Request,
        context: HTTPContext,
        next: (Request, HTTPContext) async throws -> Response
    ) async throws -> Response {
        var response: Response
        do {
            response = try await next(request, context)
        } catch let page as PageResponse {
            response = page.response
        } catch let problem as Problem {
            response = problemPage(problem, request, context)
        }
        for (name, value) in PageHeadersMiddleware.fields { response.headers[name] = value }
        if response.headers[.cacheControl] == nil { response.headers[.cacheControl] = "no-store" }
        return response
    }
}
