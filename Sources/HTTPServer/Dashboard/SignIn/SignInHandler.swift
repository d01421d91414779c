import HTTPTypes
import Hummingbird
import LineProtocol

/// Signing in with a token, and signing out.
struct SignInHandler: Sendable {
    static let path = "/dashboard/sign-in"

    let authenticator: ViewerAuthenticator
    let forms: FormDecoder
    let pages: PageLibrary

    @Sendable
    func show(_ request: Request, _ context: HTTPContext) -> Response {
        let viewer = authenticator.viewer(request, context)
        let returnPath = ReturnPath.validated(request.query["to"])
        if viewer.canView { return PageResponse.redirect(to: returnPath, cookie: viewer.newCookie) }
        let isForeign = request.headers[.fetchSite].map { $0 == "cross-site" || $0 == "same-site" } ?? false
        return page(viewer, returnPath, mayBeSignedIn: isForeign)
    }

    /// Redirects a viewer that has to sign in before it may see a page.
    func redirect(returningTo returnPath: String, _ viewer: Viewer) -> Response {
        let query = returnPath == ReturnPath.overview ? "" : "?to=\(FormFields.encoded(returnPath))"
        return PageResponse.redirect(to: SignInHandler.path + query, cookie: viewer.newCookie)
    }

    @Sendable
    func signIn(_ request: Request, _ context: HTTPContext) async throws -> Response {
        let viewer = authenticator.viewer(request, context)
        let fields = try await forms.fields(request, context, viewer)
        let returnPath = ReturnPath.validated(fields["to"])
        switch authenticator.authenticate(token: ActionForm.trimmed(fields["token"] ?? "")) {
        case .failure(let error) where error.code == .badArg:
            // The service requires no tokens.
            return PageResponse.redirect(to: returnPath, cookie: viewer.newCookie)
        case .failure(let error) where error.code == .overloaded || error.code == .unavailable:
            return page(viewer, returnPath, error: error.text.sentence, .serviceUnavailable)
        case .failure:
            return page(viewer, returnPath, error: SignInHandler.invalidToken, .unauthorized)
        case .success(let identity) where identity.permissions.isDisjoint(with: Verb.report.permissions):
            return page(viewer, returnPath, error: SignInHandler.wrongScope, .forbidden)
        case .success(let identity):
            return PageResponse.redirect(to: returnPath, cookie: authenticator.openSession(identity))
        }
    }

    @Sendable
    func signOut(_ request: Request, _ context: HTTPContext) async throws -> Response {
        let viewer = authenticator.viewer(request, context)
        _ = try await forms.fields(request, context, viewer)
        return PageResponse.redirect(to: SignInHandler.path, cookie: authenticator.closeSession(viewer))
    }

    /// The same text for every cause, so that it reveals nothing about a token.
    private static let invalidToken =
        "This token is not valid. Check that you copied all of it; headroom token list shows the valid tokens."
    private static let wrongScope = "This token does not open the dashboard: it needs the scope dashboard or operator."

    private func page(
        _ viewer: Viewer,
        _ returnPath: String,
        error: String? = nil,
        mayBeSignedIn: Bool = false,
        _ status: HTTPResponse.Status = .ok
    ) -> Response {
        var frame = authenticator.frame("Sign in", viewer)
        frame.hasNavigation = false
        let page = SignInPage(frame: frame, error: error, returnPath: returnPath, mayBeSignedIn: mayBeSignedIn)
        return PageResponse.page(pages.render(.signIn, page), status, cookie: viewer.newCookie)
    }
}
