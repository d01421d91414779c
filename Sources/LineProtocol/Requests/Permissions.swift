/// The scopes of tokens. `headroom.tokens` has the same words.
public enum Scope: String, CaseIterable, Sendable {
    case chat, dashboard, `operator`

    var permission: Permissions {
        switch self {
        case .chat: .chat
        case .dashboard: .dashboard
        case .operator: .operator
        }
    }
}

/// The permissions of a peer, or those of which a verb needs one.
public struct Permissions: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// A permission that every peer has.
    public static let anonymous = Permissions(rawValue: 1)
    /// A permission that every peer with a valid token has.
    public static let authenticated = Permissions(rawValue: 2)
    public static let chat = Permissions(rawValue: 4)
    public static let dashboard = Permissions(rawValue: 8)
    public static let `operator` = Permissions(rawValue: 16)

    /// The permissions of a peer if no token is required.
    public static let all: Permissions = [.anonymous, .authenticated, .chat, .dashboard, .operator]

    /// The permissions of a token with these scopes.
    public init(_ scopes: some Sequence<Scope>) {
        self = scopes.reduce([.anonymous, .authenticated]) { $0.union($1.permission) }
    }

    public var scopes: [Scope] { Scope.allCases.filter { contains($0.permission) } }
}

extension ReplyError {
    public static let authenticationRequired = ReplyError(
        code: .noAuth,
        text: "a token is required; send AUTH <token> first, headroom token create makes one"
    )

    /// The text names HELLO and AUTH, because client libraries look for them.
    static let helloWithoutToken = ReplyError(
        code: .noAuth,
        text: "a token is required; send HELLO <version> AUTH default <token>, or AUTH <token> before HELLO"
    )

    /// - Parameter permissions: the permissions of which the peer needs one.
    static func permissionDenied(requiring permissions: Permissions) -> ReplyError {
        let scopes = permissions.scopes.map(\.rawValue).joined(separator: " or ")
        return ReplyError(code: .forbidden, text: "this needs a token with the scope \(scopes); nothing was done")
    }
}
