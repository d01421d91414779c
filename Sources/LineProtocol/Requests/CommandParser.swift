/// Makes a command of a request's tokens, as the definition of its verb says.
package enum CommandParser {
    /// A hundred years. `GET /v1/…/history` takes the same.
    package static let monthsRange = 1...1_200

    /// - Parameters:
    ///   - tokens: at least one.
    ///   - permissions: of the peer. A verb that needs others is refused before its arguments are checked.
    static func parse(
        _ tokens: RequestTokens,
        _ permissions: Permissions = .all
    ) throws(ReplyError) -> Command {
        if let error = tokens.textError { throw error.replyError }
        guard let verb = Verb(tokens[0]) else {
            throw permissions.contains(.authenticated) ? .unknownCommand : .authenticationRequired
        }
        let definition = verb.definition
        guard !permissions.isDisjoint(with: definition.permissions) else {
            throw permissions.contains(.authenticated)
                ? .permissionDenied(requiring: definition.permissions) : .authenticationRequired
        }
        return try definition.parse(try Arguments(tokens, of: definition, permissions))
    }
}
