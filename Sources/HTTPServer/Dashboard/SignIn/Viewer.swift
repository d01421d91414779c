import HTTPTypes
import Hummingbird
import LineProtocol
import ServiceCore

/// The browser that sent a request, and its permissions.
struct Viewer: Sendable {
    /// The value of the browser's cookie, for which its forms are signed.
    var cookie: String
    /// Of the token of its session, or of its bearer token.
    var identity: Identity?
    var permissions: Permissions
    /// To be set with the response, for a browser without a cookie.
    var newCookie: Cookie?
    var hasSession = false

    var canView: Bool { !permissions.isDisjoint(with: Verb.report.permissions) }
    var canChange: Bool { !permissions.isDisjoint(with: Verb.grant.permissions) }

    /// - Throws: 403 without the scope operator.
    func requireOperator() throws(Problem) {
        guard canChange else {
            throw Problem(
                ReplyError(code: .forbidden, text: "this needs a token with the scope operator; nothing was done")
            )
        }
    }

    /// The name in the audit log for changes by this viewer.
    var actor: String { identity?.actor ?? "dashboard" }
}

/// Identifies viewers by their cookies, and opens and closes their sessions.
struct ViewerAuthenticator: Sendable {
    static let sessionCookie = "headroom_session"
    static let formCookie = "headroom_form"

    let access: AccessControl
    /// The service has TLS, so its cookies are sent over TLS only.
    let isSecure: Bool
    let sessions = SessionTable()
    let signer = BrowserSigner()

    /// Checks the session's token with each request, so that a session ends with its token and has its present scopes.
    ///
    /// - Parameter context: has the identity of a bearer token, if one was sent.
    func viewer(_ request: Request, _ context: HTTPContext) -> Viewer {
        let cookies = request.cookies
        if context.identity == nil, let cookie = cookies[ViewerAuthenticator.sessionCookie]?.value,
            let tokenID = sessions.tokenID(of: cookie)
        {
            if let identity = access.policy.identity(ofToken: tokenID) {
                return Viewer(cookie: cookie, identity: identity, permissions: identity.permissions, hasSession: true)
            }
            sessions.close(cookie)
        }
        var viewer = Viewer(cookie: "", identity: context.identity, permissions: context.permissions)
        if let cookie = cookies[ViewerAuthenticator.formCookie]?.value, RandomIdentifier.isWellFormed(cookie) {
            viewer.cookie = cookie
        } else {
            viewer.cookie = RandomIdentifier.make()
            viewer.newCookie = cookie(ViewerAuthenticator.formCookie, viewer.cookie)
        }
        return viewer
    }

    func frame(_ title: String, _ viewer: Viewer) -> Frame {
        Frame(
            title: title,
            csrfToken: signer.csrfToken(for: viewer.cookie),
            signedInAs: viewer.hasSession ? viewer.identity?.name : nil
        )
    }

    func authenticate(token: String) -> Result<Identity, ReplyError> {
        let credentials = Credentials(name: nil, token: Secret(token))
        let result = access.authenticate(credentials, under: access.policy, replacing: nil)
        // A session does not count as one of the token's connections.
        if case .success(let identity) = result { access.release(identity) }
        return result
    }

    /// - Returns: the session's cookie, to be set with the response.
    func openSession(_ identity: Identity) -> Cookie {
        cookie(
            ViewerAuthenticator.sessionCookie,
            sessions.open(tokenID: identity.tokenID),
            maxAge: Int(SessionTable.lifetime.components.seconds)
        )
    }

    /// - Returns: a cookie that makes the browser delete the session's.
    func closeSession(_ viewer: Viewer) -> Cookie {
        sessions.close(viewer.cookie)
        return cookie(ViewerAuthenticator.sessionCookie, "", maxAge: 0)
    }

    /// Hidden from scripts, and sent only by this site's own pages and only to the dashboard.
    private func cookie(_ name: String, _ value: String, maxAge: Int? = nil) -> Cookie {
        Cookie(
            name: name,
            value: value,
            maxAge: maxAge,
            path: "/dashboard",
            secure: isSecure,
            httpOnly: true,
            sameSite: .strict
        )
    }
}
