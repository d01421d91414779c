import HTTPTypes
import HeadroomServer
import Hummingbird
import LineProtocol

/// Who looks at a page, and what for.
struct Visitor: Sendable {
    /// The browser's own cookie, which its forms are sealed for.
    var name: String
    /// Whose token it signed in with, or brought.
    var identity: Identity?
    var permissions: Permissions
    /// For a browser that had none.
    var newCookie: Cookie?
    /// By a session, which signing out ends.
    var hasSession = false

    var mayLook: Bool { !permissions.isDisjoint(with: Verb.report.permissions) }
    var mayChange: Bool { !permissions.isDisjoint(with: Verb.grant.permissions) }

    /// What the audit log names for a change that this visitor makes.
    var actor: String { identity?.actor ?? "dashboard" }
}

/// Knows visitors by their cookies.
struct Reception: Sendable {
    static let sessionCookie = "headroom_session"
    static let formCookie = "headroom_form"

    let access: AccessControl
    /// The service speaks TLS, so its cookies are for TLS alone.
    let isSecure: Bool
    let sessions = SessionTable()
    let seals = FormSeal()

    /// Asked with every request, so that a session ends with its token, and has the scopes that the token has now.
    ///
    /// - Parameter context: with the identity of a bearer token, where one came.
    func visitor(_ request: Request, _ context: HTTPContext) -> Visitor {
        let cookies = request.cookies
        let policy = access.policy
        if context.identity == nil, let name = cookies[Reception.sessionCookie]?.value,
            let tokenID = sessions.tokenID(of: name)
        {
            if let identity = policy.identity(ofToken: tokenID) {
                return Visitor(name: name, identity: identity, permissions: identity.permissions, hasSession: true)
            }
            sessions.close(name)
        }
        if let name = cookies[Reception.formCookie]?.value, RandomName.isOne(name) {
            return Visitor(name: name, identity: context.identity, permissions: context.permissions)
        }
        let name = RandomName.make()
        return Visitor(
            name: name,
            identity: context.identity,
            permissions: context.permissions,
            newCookie: cookie(Reception.formCookie, name)
        )
    }

    /// Whose token that is.
    func identity(ofToken token: String) -> Result<Identity, ReplyError> {
        let credentials = Credentials(name: nil, token: Secret(token))
        let verdict = access.authenticate(credentials, under: access.policy, replacing: nil)
        // A session is no connection: it takes no place among those that the token may have.
        if case .success(let identity) = verdict { access.leave(identity) }
        return verdict
    }

    /// - Returns: what the browser is to keep.
    func openSession(_ identity: Identity) -> Cookie {
        cookie(
            Reception.sessionCookie,
            sessions.open(tokenID: identity.tokenID),
            maxAge: Int(SessionTable.lifetime.components.seconds)
        )
    }

    /// - Returns: what makes the browser forget it.
    func closeSession(_ visitor: Visitor) -> Cookie {
        sessions.close(visitor.name)
        return cookie(Reception.sessionCookie, "", maxAge: 0)
    }

    /// No script reads it, no other site makes the browser send it, and it goes to the dashboard alone.
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
