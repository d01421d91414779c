import HTTPTypes
import Hummingbird
import LineProtocol
import ServiceCore

/// Authenticates requests by the tokens of the line protocol: `Authorization: Bearer headroom_…`. Until its
/// response is ready, a request counts as one of the token's connections.
struct AuthenticationMiddleware: RouterMiddleware {
    typealias Context = HTTPContext

    let access: AccessControl

    func handle(
        _ request: Request,
        context: HTTPContext,
        next: (Request, HTTPContext) async throws -> Response
    ) async throws -> Response {
        let policy = access.policy
        var context = context
        guard let authorization = request.headers[.authorization] else {
            context.permissions = policy.permissionsWithoutToken
            return try await next(request, context)
        }
        guard let token = AuthenticationMiddleware.bearerToken(authorization) else {
            throw Problem.noBearerToken
        }
        let credentials = Credentials(name: nil, token: Secret(token))
        let identity: Identity
        switch access.authenticate(credentials, under: policy, replacing: nil) {
        case .success(let found): identity = found
        // No token is required, and none exists. A client that sends one anyway must not fail.
        case .failure(let error) where error.code == .badArg:
            context.permissions = policy.permissionsWithoutToken
            return try await next(request, context)
        case .failure(let error): throw Problem(error)
        }
        defer { access.release(identity) }
        context.identity = identity
        context.permissions = identity.permissions
        return try await next(request, context)
    }

    /// Returns the token of an `Authorization` field, or nil if the field has another form. The scheme's name is
    /// case-insensitive (RFC 9110).
    static func bearerToken(_ field: String) -> String? {
        let parts = field.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        let token = parts[1].drop { $0 == " " }
        return token.isEmpty ? nil : String(token)
    }
}

extension HTTPContext {
    /// - Throws: 401 or 403 unless the request has at least one of the verb's permissions.
    func require(_ verb: Verb) throws(Problem) {
        guard permissions.isDisjoint(with: verb.permissions) else { return }
        guard identity != nil else {
            throw Problem(
                ReplyError(
                    code: .noAuth,
                    text: "a token is required; send Authorization: Bearer <token>, headroom token create makes one"
                )
            )
        }
        let scopes = verb.permissions.scopes.map(\.rawValue).joined(separator: " or ")
        throw Problem(
            ReplyError(code: .forbidden, text: "this needs a token with the scope \(scopes); nothing was done")
        )
    }
}

extension Problem {
    static let noBearerToken = Problem(
        ReplyError(code: .noAuth, text: "the field Authorization must be Bearer and a token")
    )
}
