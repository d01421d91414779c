import Usage

/// A parsed request. Its values are within their limits and well formed.
public enum Command: Sendable, Equatable {
    /// `messages` is 1 to 1,000,000. Either all of them are counted or none.
    case consume(user: UserID, messages: Int, key: MessageKey? = nil)
    /// `ttlSeconds` is 1 to 86,400.
    case reserve(user: UserID, messages: Int, key: MessageKey, ttlSeconds: Int)
    /// `messages` is 0 to 1,000,000, and at most the number that the key holds; nil means all of them.
    case commit(user: UserID, messages: Int? = nil, key: MessageKey)
    case release(user: UserID, key: MessageKey)
    /// A `consume` that counts nothing.
    case check(user: UserID, messages: Int)
    /// A nil period means the current one.
    case usage(user: UserID, period: BillingPeriod?)
    /// A nil period means the current one.
    case allowances(user: UserID, period: BillingPeriod?)
    /// `months` is 1 to 1,200; a period that is not a month, such as a trial, counts as one.
    case history(user: UserID, months: Int)
    /// A nil period means every period that is open now.
    case report(period: BillingPeriod?)
    /// `count` is 1 to 1,000. A nil period means every period that is open now.
    case top(period: BillingPeriod?, count: Int)
    /// There is at least one channel.
    case subscribe([UsageChannel])
    /// Nil means all subscriptions of the connection.
    case unsubscribe([UsageChannel]?)
    /// It is boxed, because it is rare and by far the largest: otherwise every command would have its size.
    indirect case setPlan(PlanChange)
    /// `messages` is 1 to 1,000,000; `reason` is for the audit log.
    case grant(user: UserID, Grant)
    /// A nil period means the current one.
    case resetUsage(user: UserID, period: BillingPeriod?)
    /// `RESETUSAGE <user> window`.
    case closeWindow(user: UserID)
    case forget(user: UserID)
    case ping(text: EchoedBytes?)
    case echo(text: EchoedBytes)
    /// A nil verb means all of them.
    case help(verb: Verb?)
    case info
    case authenticate(Credentials)
    case quit
    /// `version` is 2 or 3, a version of RESP; nil keeps the connection's. `clientName` has the limits of `CLIENT
    /// SETNAME`.
    case hello(version: Int?, credentials: Credentials? = nil, clientName: String? = nil)
    /// One of the verbs with `model=` and `member=`, about messages of such parts. It is within `withSentences`, and
    /// boxed as that.
    indirect case withParts(Command, MessageParts)
    /// One of the verbs with `lang=` and `tz=`, answered with such sentences. It is boxed, because otherwise every
    /// command would have its size.
    indirect case withSentences(Command, SentenceOptions)
    case client(ClientRequest)
    case command(CommandListRequest)
    /// Selects database 0, the only one.
    case select
}

extension Command {
    public var verb: Verb {
        switch self {
        case .consume: .consume
        case .reserve: .reserve
        case .commit: .commit
        case .release: .release
        case .check: .check
        case .usage: .usage
        case .allowances: .allowances
        case .history: .history
        case .report: .report
        case .top: .top
        case .subscribe: .subscribe
        case .unsubscribe: .unsubscribe
        case .setPlan: .setPlan
        case .grant: .grant
        case .resetUsage, .closeWindow: .resetUsage
        case .forget: .forget
        case .ping: .ping
        case .echo: .echo
        case .help: .help
        case .info: .info
        case .authenticate: .auth
        case .quit: .quit
        case .hello: .hello
        case .client: .client
        case .command: .command
        case .select: .select
        case .withParts(let command, _), .withSentences(let command, _): command.verb
        }
    }

    /// Returns the same request about messages of such parts. Its verb must have the options for them.
    public func inParts(_ parts: MessageParts?) -> Command {
        parts.map { .withParts(self, $0) } ?? self
    }

    /// Returns the same request for an answer with such sentences, if its verb has the options for them.
    public func answered(with sentences: SentenceOptions?) -> Command {
        guard let sentences, sentences != SentenceOptions(), verb.definition.hasSentences else { return self }
        return .withSentences(self, sentences)
    }

    /// The options `lang=` and `tz=`; nil without both.
    public var sentences: SentenceOptions? {
        if case .withSentences(_, let sentences) = self { sentences } else { nil }
    }

    /// The word that stands for the open window in the place of a period.
    static let window = "window"

    /// The arguments as a client sends them: defaults written out, options in the order of the syntax.
    private var arguments: [String] {
        switch self {
        case .consume(let user, let messages, let key): ["\(user)", "\(messages)"] + option(.key, key?.text)
        case .reserve(let user, let messages, let key, let ttlSeconds):
            ["\(user)", "\(messages)"] + option(.key, key.text) + option(.ttl, "\(ttlSeconds)")
        case .commit(let user, let messages, let key):
            ["\(user)"] + optional(messages.map { "\($0)" }) + option(.key, key.text)
        case .release(let user, let key): ["\(user)"] + option(.key, key.text)
        case .check(let user, let messages): ["\(user)", "\(messages)"]
        case .usage(let user, let period), .allowances(let user, let period), .resetUsage(let user, let period):
            ["\(user)"] + optional(period?.label)
        case .closeWindow(let user): ["\(user)", Command.window]
        case .history(let user, let months): ["\(user)", "\(months)"]
        case .report(let period): optional(period?.label)
        case .top(let period, let count): optional(period?.label) + ["\(count)"]
        case .subscribe(let channels): channels.map(\.name)
        case .unsubscribe(let channels): channels?.map(\.name) ?? []
        case .setPlan(let change): arguments(of: change)
        case .grant(let user, let grant):
            ["\(user)", "\(grant.messages)"] + option(.key, grant.key.text) + option(.reason, grant.reason)
                + option(.expires, grant.end.text)
        case .forget(let user): ["\(user)"]
        case .ping(let text): optional(text?.text)
        case .echo(let text): [text.text]
        case .help(let verb): optional(verb?.rawValue)
        case .authenticate(let credentials): optional(credentials.name) + [credentials.token.text]
        case .hello(let version, let credentials, let clientName):
            optional(version.map { "\($0)" })
                + (credentials.map { ["AUTH", $0.name ?? "default", $0.token.text] } ?? [])
                + (clientName.map { ["SETNAME", $0] } ?? [])
        case .client(let request): request.words
        case .command(let request): [request.rawValue]
        case .select: ["0"]
        case .withParts(let command, let parts):
            command.arguments + option(.model, parts.model?.text) + option(.member, parts.member.map { "\($0)" })
        case .withSentences(let command, let sentences):
            command.arguments + option(.lang, sentences.language?.text) + option(.tz, sentences.timeZone?.name)
        case .info, .quit: []
        }
    }

    private func arguments(of change: PlanChange) -> [String] {
        ["\(change.user)", change.plan] + option(.state, change.state?.rawValue)
            + option(.started, change.startedAt?.text) + option(.expires, change.expiresAt?.text)
            + option(.graceUntil, change.graceUntil?.text) + option(.anchor, change.anchorDay.map { "\($0)" })
    }

    private func option(_ name: OptionName, _ value: String?) -> [String] {
        value.map { ["\(name.rawValue)=\($0)"] } ?? []
    }

    private func optional(_ argument: String?) -> [String] {
        argument.map { [$0] } ?? []
    }

    /// The request as a client sends it.
    var tokens: [String] { [verb.rawValue] + arguments }
}
