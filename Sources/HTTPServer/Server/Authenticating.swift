import HTTPTypes
import HeadroomServer
import Hummingbird
import LineProtocol

/// Who asks, by the same tokens as on the line protocol: `Authorization: Bearer headroom_…`. A token counts as one
/// connection of it for as long as the request takes.
struct Authenticating: RouterMiddleware {
    typealias Context = HTTPContext

    let access: AccessControl

    func handle(
        _ request: Request,
        context: HTTPContext,
        next: (Request, HTTPContext) async throws -> Response
    ) async throws -> Response {
        let policy = access.policy
        var context = context
        guard let presented = request.headers[.authorization] else {
            context.permissions = policy.permissionsWithoutToken
            return try await next(request, context)
        }
        guard let token = Authenticating.bearerToken(presented) else {
            throw Problem.noBearerToken
        }
        let credentials = Credentials(name: nil, token: Secret(token))
        let identity: Identity
        switch access.authenticate(credentials, under: policy, replacing: nil) {
        case .success(let found): identity = found
        // Nobody needs one here, and a client that is set up with one is not to fail for it.
        case .failure(let error) where error.code == .badArg:
            context.permissions = policy.permissionsWithoutToken
            return try await next(request, context)
        case .failure(let error): throw Problem(error)
        }
        defer { access.leave(identity) }
        context.identity = identity
        context.permissions = identity.permissions
        return try await next(request, context)
    }

    /// The scheme's name in any case, as RFC 9110 has it.
    static func bearerToken(_ field: String) -> String? {
        let parts = field.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        let token = parts[1].drop { $0 == " " }
        return token.isEmpty ? nil : String(token)
    }
}

extension HTTPContext {
    /// - Throws: 401 or 403 where the request may not do what this verb does.
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
