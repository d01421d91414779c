/// The verbs about the connection itself, most of them Redis's.
extension VerbDefinition {
    static let ping = VerbDefinition(
        "PING [text]",
        "PONG, or the text",
        .authenticated,
        arguments: .bytes
    ) { .ping(text: $0.positional(0).map { EchoedBytes($0) }) }

    static let echo = VerbDefinition(
        "ECHO <text>",
        "the text",
        .authenticated,
        arguments: .bytes
    ) { .echo(text: EchoedBytes($0.positional(0) ?? UnsafeRawBufferPointer(start: nil, count: 0))) }

    static let help = VerbDefinition(
        "HELP [verb]",
        "the verbs, or one of them",
        .authenticated
    ) { arguments throws(ReplyError) in
        guard let token = arguments.positional(0) else { return .help(verb: nil) }
        guard let verb = Verb(token) else {
            throw .badArgument("there is no such verb; HELP alone lists them all")
        }
        return .help(verb: verb)
    }

    static let info = VerbDefinition(
        "INFO [section]",
        "version, uptime, connections, queue, database state, counters, whatever the section",
        .authenticated,
        arguments: .any
    ) { _ in .info }

    static let auth = VerbDefinition(
        "AUTH [name] <token>",
        "authenticate the connection, where a token is required",
        .anonymous,
        arguments: .freeText
    ) { arguments in
        .authenticate(
            Credentials(
                name: arguments.count == 2 ? arguments.positional(0)?.text : nil,
                token: Secret(arguments.positional(arguments.count - 1)?.text ?? "")
            )
        )
    }

    static let quit = VerbDefinition(
        "QUIT",
        "OK, then the connection closes",
        .anonymous
    ) { _ in .quit }

    /// A peer without a token is permitted only a `HELLO` with `AUTH` in it.
    static let hello = VerbDefinition(
        "HELLO [2|3] [AUTH name token] [SETNAME name]",
        "the handshake of client libraries, with a RESP version; AUTH as the verb",
        .anonymous,
        arguments: .any
    ) { arguments throws(ReplyError) in
        var version: Int?
        if let token = arguments.positional(0) {
            guard let number = token.plainNumber else {
                throw .badArgument("HELLO takes the RESP version 2 or 3; the form is \(Verb.hello.syntax)")
            }
            guard (2...3).contains(number) else { throw .unsupportedVersion }
            version = number
        }
        let (credentials, clientName) = try helloOptions(arguments)
        // Redis answers so, too: a library learns at once that it needs a password.
        guard credentials != nil || arguments.permissions.contains(.authenticated) else { throw .helloWithoutToken }
        return .hello(version: version, credentials: credentials, clientName: clientName)
    }

    /// `AUTH` and `SETNAME` are words followed by values here, not `name=value`.
    private static func helloOptions(_ arguments: Arguments) throws(ReplyError) -> (Credentials?, clientName: String?) {
        var credentials: Credentials?
        var clientName: String?
        var index = 1
        while let option = arguments.positional(index) {
            if option.isWord("AUTH"), credentials == nil, let name = arguments.positional(index + 1),
                let token = arguments.positional(index + 2)
            {
                credentials = Credentials(name: name.text, token: Secret(token.text))
                index += 3
            } else if option.isWord("SETNAME"), arguments.positional(index + 1) != nil {
                clientName = try ClientRequest.name(arguments, at: index + 1)
                index += 2
            } else {
                throw .badArgument("after the version HELLO takes AUTH and SETNAME; the form is \(Verb.hello.syntax)")
            }
        }
        return (credentials, clientName)
    }

    static let client = VerbDefinition(
        "CLIENT <subcommand>",
        "for client libraries: ID, SETNAME, GETNAME, SETINFO, INFO, LIST, NO-EVICT, NO-TOUCH",
        .authenticated,
        arguments: .any
    ) { arguments throws(ReplyError) in .client(try ClientRequest(arguments)) }

    static let command = VerbDefinition(
        "COMMAND [subcommand]",
        "for client libraries: COUNT, LIST, or an empty list of descriptions",
        .authenticated,
        arguments: .any
    ) { arguments throws(ReplyError) in .command(try CommandListRequest(arguments)) }

    static let select = VerbDefinition(
        "SELECT 0",
        "accepted for client libraries, does nothing",
        .authenticated
    ) { arguments throws(ReplyError) in
        guard arguments.positional(0)?.plainNumber == 0 else {
            throw .badArgument("there is one database, number 0; send SELECT 0 or nothing")
        }
        return .select
    }
}
