/// Makes a command of a request's tokens, by the definition of its verb.
package enum CommandParser {
    /// A hundred years. `GET /v1/history/{user}` has the same limit.
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
        return try definition.parse(try Arguments(tokens, of: verb, definition, permissions))
    }
}
