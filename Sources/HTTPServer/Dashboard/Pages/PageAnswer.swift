import HTTPTypes
import Hummingbird
import NIOCore

/// A page that is answered in place of what was asked for.
struct PageAnswer: Error {
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

    /// After a form: the page that follows is fetched anew, so that reloading it sends nothing again.
    static func redirect(to path: String, cookie: Cookie? = nil) -> Response {
        var response = Response(status: .seeOther, headers: [.location: path])
        if let cookie { response.setCookie(cookie) }
        return response
    }
}

/// Answers what goes wrong under /dashboard with a page. It comes after `Authenticating`, so that the page
/// has the navigation of the user who is signed in.
struct ProblemPages: RouterMiddleware {
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

/// What every answer under /dashboard says to the browser.
struct PageHeaders: RouterMiddleware {
    typealias Context = HTTPContext

    /// Nothing from anywhere else, nothing written into a page, and no page of ours within somebody else's.
    static let contentSecurityPolicy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        + "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

    private static let fields: [(HTTPField.Name, String)] = [
        (.contentSecurityPolicy, contentSecurityPolicy),
        (name("Referrer-Policy"), "no-referrer"),
        (name("Permissions-Policy"), "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
        (name("Cross-Origin-Opener-Policy"), "same-origin"),
        (name("Cross-Origin-Resource-Policy"), "same-origin"),
        (name("X-Frame-Options"), "DENY"),
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
        } catch let answer as PageAnswer {
            response = answer.response
        } catch let problem as Problem {
            response = problemPage(problem, request, context)
        }
        for (name, value) in PageHeaders.fields { response.headers[name] = value }
        if response.headers[.cacheControl] == nil { response.headers[.cacheControl] = "no-store" }
        return response
    }

    private static func name(_ text: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(text) else { preconditionFailure("no name of a field: \(text)") }
        return name
    }
}
