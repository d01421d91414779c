import HTTPTypes
import Hummingbird
import LineProtocol

/// Signing in with a token, and out.
struct SignInForms: Sendable {
    let reception: Reception
    let forms: FormReading
    let pages: PageLibrary

    @Sendable
    func show(_ request: Request, _ context: HTTPContext) -> Response {
        let visitor = reception.visitor(request, context)
        let destination = Destination.checked(request.query["to"])
        if visitor.mayLook { return PageAnswer.redirect(to: destination, cookie: visitor.newCookie) }
        let isForeign = request.headers[.fetchSite].map { $0 == "cross-site" || $0 == "same-site" } ?? false
        return page(visitor, destination: destination, mayBeSignedIn: isForeign)
    }

    /// For who has to sign in before the page that was asked for.
    func lead(to destination: String, _ visitor: Visitor) -> Response {
        let path = destination == Destination.overview ? "" : "?to=\(SignInForms.encoded(destination))"
        return PageAnswer.redirect(to: "/dashboard/sign-in\(path)", cookie: visitor.newCookie)
    }

    @Sendable
    func take(_ request: Request, _ context: HTTPContext) async throws -> Response {
        let visitor = reception.visitor(request, context)
        let fields = try await forms.fields(request, context, visitor)
        let destination = Destination.checked(fields["to"])
        switch reception.identity(ofToken: ActionForm.trimmed(fields["token"] ?? "")) {
        case .failure(let error) where error.code == .badArg:
            // Nobody needs one, and there is none.
            return PageAnswer.redirect(to: destination, cookie: visitor.newCookie)
        case .failure(let error) where error.code == .overloaded || error.code == .unavailable:
            return page(visitor, destination: destination, mistake: error.text.sentence, .serviceUnavailable)
        case .failure:
            return page(visitor, destination: destination, mistake: SignInForms.wrongToken, .unauthorized)
        case .success(let identity) where identity.permissions.isDisjoint(with: Verb.report.permissions):
            return page(visitor, destination: destination, mistake: SignInForms.wrongScope, .forbidden)
        case .success(let identity):
            return PageAnswer.redirect(to: destination, cookie: reception.openSession(identity))
        }
    }

    @Sendable
    func leave(_ request: Request, _ context: HTTPContext) async throws -> Response {
        let visitor = reception.visitor(request, context)
        _ = try await forms.fields(request, context, visitor)
        return PageAnswer.redirect(to: "/dashboard/sign-in", cookie: reception.closeSession(visitor))
    }

    /// The same whatever was wrong.
    private static let wrongToken =
        "No live token is that. See that it was copied whole; headroom token list shows which are live."
    private static let wrongScope =
        "This token is for something else: the dashboard takes one with the scope dashboard or operator."

    private func page(
        _ visitor: Visitor,
        destination: String,
        mistake: String? = nil,
        mayBeSignedIn: Bool = false,
        _ status: HTTPResponse.Status = .ok
    ) -> Response {
        var frame = reception.frame("Sign in", visitor)
        frame.hasNavigation = false
        let page = SignInPage(
            frame: frame,
            mistake: mistake,
            notices: [],
            destination: destination,
            mayBeSignedIn: mayBeSignedIn
        )
        return PageAnswer.page(pages.render(.signIn, page), status, cookie: visitor.newCookie)
    }

    /// As a value in a query; what is checked has visible ASCII only.
    private static func encoded(_ path: String) -> String {
        path.utf8.reduce(into: "") { text, byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                text.unicodeScalars.append(Unicode.Scalar(byte))
            default: text += "%" + RandomName.hexadecimal([byte]).uppercased()
            }
        }
    }
}
