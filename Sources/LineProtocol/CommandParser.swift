import Usage

/// Makes a command of a request's tokens. To add a verb: a case in `Verb`, its row in each of `Verb`'s tables, and
/// its case here.
package enum CommandParser {
    /// More would not fit `message_count` after some two thousand requests.
    static let messagesRange = 1...1_000_000
    /// A day: longer than any model takes to answer.
    static let ttlRangeSeconds = 1...86_400
    static let defaultTTLSeconds = 120
    /// A hundred years.
    package static let monthsRange = 1...1_200
    static let topRange = 1...1_000

    /// - Parameters:
    ///   - tokens: at least one.
    ///   - permissions: of the peer. What it may not ask is refused before its arguments are looked at.
    static func parse(
        _ tokens: TokenList,
        _ permissions: Permissions = .everything
    ) throws(ReplyError) -> Command {
        if let fault = tokens.textFault { throw fault.error }
        guard let verb = Verb(tokens[0]) else {
            throw permissions.contains(.token) ? .unknownCommand : .authenticationRequired
        }
        guard !permissions.isDisjoint(with: verb.permissions) else {
            throw permissions.contains(.token) ? .lacking(verb.permissions) : .authenticationRequired
        }
        let arguments = try Arguments(of: verb, tokens)
        switch verb {
        case .consume:
            return .consume(
                user: try arguments.user(),
                messages: try messages(arguments),
                key: try arguments.key()
            )
        case .reserve:
            return .reserve(
                user: try arguments.user(),
                messages: try messages(arguments),
                key: try key(arguments),
                ttlSeconds: try arguments.number(of: .ttl, in: ttlRangeSeconds) ?? defaultTTLSeconds
            )
        case .commit: return .commit(user: try arguments.user(), key: try key(arguments))
        case .release: return .release(user: try arguments.user(), key: try key(arguments))
        case .check: return .check(user: try arguments.user(), messages: try messages(arguments))
        case .usage: return .usage(user: try arguments.user(), period: try arguments.period(at: 1))
        case .history: return .history(user: try arguments.user(), months: try months(arguments))
        case .report: return .report(period: try arguments.period(at: 0))
        case .top: return try top(arguments)
        case .subscribe: return .subscribe(try arguments.channels())
        case .unsubscribe: return .unsubscribe(arguments.count == 0 ? nil : try arguments.channels())
        case .setPlan: return .setPlan(try planChange(arguments))
        case .grant:
            return .grant(
                user: try arguments.user(),
                messages: try messages(arguments),
                key: try key(arguments, of: "grant, so that it is granted once"),
                reason: try arguments.reason()
            )
        case .resetUsage: return .resetUsage(user: try arguments.user(), period: try arguments.period(at: 1))
        case .forget: return .forget(user: try arguments.user())
        case .ping: return .ping(text: arguments.positional(0)?.text)
        case .echo: return .echo(text: arguments.positional(0)?.text ?? "")
        case .help: return .help(verb: try helpTopic(arguments))
        case .info: return .info
        case .auth: return .authenticate(authentication(arguments))
        case .quit: return .quit
        case .hello: return try hello(arguments, permissions)
        case .client: return .client
        case .command: return .command
        case .select: return try select(arguments)
        }
    }

    private static func messages(_ arguments: Arguments) throws(ReplyError) -> Int {
        try arguments.number(at: 1, named: "n", in: messagesRange, default: 1)
    }

    /// Of a verb that is nothing without its key.
    private static func key(
        _ arguments: Arguments,
        of what: StaticString = "message, so that it can be committed or released"
    ) throws(ReplyError) -> MessageKey {
        guard let key = try arguments.key() else {
            throw .badArgument("key= is missing; it names the \(what)")
        }
        return key
    }

    private static func months(_ arguments: Arguments) throws(ReplyError) -> Int {
        try arguments.number(at: 1, named: "months", in: monthsRange, default: 12)
    }

    /// A number alone is n: no period is one.
    private static func top(_ arguments: Arguments) throws(ReplyError) -> Command {
        let isCountAlone = arguments.count == 1 && arguments.positional(0)?.first.map(isDigit) == true
        if isCountAlone, arguments.positional(0)?.firstPosition(of: UInt8(ascii: "-")) == nil {
            return .top(period: nil, count: try arguments.number(at: 0, named: "n", in: topRange, default: 10))
        }
        return .top(
            period: try arguments.period(at: 0),
            count: try arguments.number(at: 1, named: "n", in: topRange, default: 10)
        )
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private static func planChange(_ arguments: Arguments) throws(ReplyError) -> PlanChange {
        let user = try arguments.user()
        guard let plan = arguments.positional(1)?.text, Plan.isName(plan) else {
            throw .badArgument("plan must be a plan's name: 1 to 32 of a-z, 0-9 and _, a letter first")
        }
        return PlanChange(
            user: user,
            plan: plan,
            state: try arguments.state(),
            startedAt: try arguments.instant(of: .started),
            expiresAt: try arguments.instant(of: .expires),
            graceUntil: try arguments.instant(of: .graceUntil),
            anchorDay: try arguments.number(of: .anchor, in: 1...31)
        )
    }

    private static func helpTopic(_ arguments: Arguments) throws(ReplyError) -> Verb? {
        guard let token = arguments.positional(0) else { return nil }
        guard let verb = Verb(token) else {
            throw .badArgument("there is no such verb; HELP alone lists them all")
        }
        return verb
    }

    private static func authentication(_ arguments: Arguments) -> Credentials {
        Credentials(
            name: arguments.count == 2 ? arguments.positional(0)?.text : nil,
            token: Secret(arguments.positional(arguments.count - 1)?.text ?? "")
        )
    }

    /// `HELLO [version [AUTH name token] [SETNAME name]]`, as client libraries send it: words, not `name=value`.
    private static func hello(_ arguments: Arguments, _ permissions: Permissions) throws(ReplyError) -> Command {
        var version = 2
        if let token = arguments.positional(0) {
            guard let number = token.plainNumber, (2...3).contains(number) else {
                throw .badArgument("HELLO takes the RESP version 2 or 3; the form is \(Verb.hello.syntax)")
            }
            version = number
        }
        let credentials = try helloCredentials(arguments)
        // As Redis has it, so that a library learns at once that it needs a password.
        guard credentials != nil || permissions.contains(.token) else { throw .helloWithoutToken }
        return .hello(version: version, credentials: credentials)
    }

    private static func helloCredentials(_ arguments: Arguments) throws(ReplyError) -> Credentials? {
        var credentials: Credentials?
        var index = 1
        while let option = arguments.positional(index) {
            if option.isWord("AUTH"), credentials == nil, let name = arguments.positional(index + 1),
                let token = arguments.positional(index + 2)
            {
                credentials = Credentials(name: name.text, token: Secret(token.text))
                index += 3
            } else if option.isWord("SETNAME"), arguments.positional(index + 1) != nil {
                index += 2
            } else {
                throw .badArgument("after the version HELLO takes AUTH and SETNAME; the form is \(Verb.hello.syntax)")
            }
        }
        return credentials
    }

    private static func select(_ arguments: Arguments) throws(ReplyError) -> Command {
        guard arguments.positional(0)?.plainNumber == 0 else {
            throw .badArgument("there is one database, number 0; send SELECT 0 or nothing")
        }
        return .select
    }
}
