import Usage

/// Makes a command from a request's tokens, by the definition of its verb.
package enum CommandParser {
    /// The limits of a history: a hundred years. `GET /v1/history/{user}` has the same ones.
    package static let monthsRange = 1...1_200

    /// Makes a command from arguments in another form than a line, such as JSON, and checks them like those of a line.
    ///
    /// - Parameters:
    ///   - positionals: the arguments in the order of the verb's syntax.
    ///   - permissions: the permissions of the peer, which has one of the verb's.
    ///   - namespace: the namespace of users' names; nil if users are UUIDs only.
    package static func command(
        _ verb: Verb,
        _ positionals: [String],
        options: [(name: OptionName, value: String)],
        permissions: Permissions,
        namespace: UserNamespace?
    ) throws(ReplyError) -> Command {
        let words = [verb.rawValue] + positionals + options.map { "\($0.name.rawValue)=\($0.value)" }
        var bytes: [UInt8] = []
        var ranges: [Range<Int>] = []
        for word in words {
            let start = bytes.count
            bytes.append(contentsOf: word.utf8)
            ranges.append(start..<bytes.count)
        }
        let result = bytes.withUnsafeBytes { buffer in
            Result { () throws(ReplyError) in
                try parse(RequestTokens(bytes: buffer, ranges: ranges), permissions, namespace, isArray: true)
            }
        }
        return try result.get()
    }

    /// - Parameters:
    ///   - tokens: the request's tokens, of which there is at least one.
    ///   - permissions: the permissions of the peer. A verb that needs others is refused before its arguments are
    ///     checked.
    ///   - namespace: the namespace of users' names; nil if users are UUIDs only.
    ///   - isArray: whether the request was an array, whose elements may be any bytes.
    static func parse(
        _ tokens: RequestTokens,
        _ permissions: Permissions,
        _ namespace: UserNamespace?,
        isArray: Bool
    ) throws(ReplyError) -> Command {
        let named = Verb(tokens[0])
        let mayBeBinary = isArray && named?.definition.arguments == .bytes
        if !mayBeBinary, let error = tokens.textError { throw error.replyError }
        guard let verb = named else {
            throw permissions.contains(.authenticated) ? .unknownCommand : .authenticationRequired
        }
        let definition = verb.definition
        guard !permissions.isDisjoint(with: definition.permissions) else {
            throw permissions.contains(.authenticated)
                ? .permissionDenied(requiring: definition.permissions) : .authenticationRequired
        }
        let arguments = try Arguments(tokens, of: verb, definition, permissions, namespace)
        let command = try definition.parse(arguments).inParts(try arguments.parts())
        guard definition.hasSentences, let sentences = try arguments.sentences() else { return command }
        return .withSentences(command, sentences)
    }
}
