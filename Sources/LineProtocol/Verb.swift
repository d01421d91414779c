/// The first token of a request. All that is to be known about a verb stands here, once: what `HELP` and the
/// documentation show, and which arguments the parser lets through to `CommandParser`.
public enum Verb: String, CaseIterable, Sendable {
    case consume = "CONSUME"
    case check = "CHECK"
    case reserve = "RESERVE"
    case commit = "COMMIT"
    case release = "RELEASE"
    case usage = "USAGE"
    case history = "HISTORY"
    case report = "REPORT"
    case top = "TOP"
    case subscribe = "SUBSCRIBE"
    case unsubscribe = "UNSUBSCRIBE"
    case setPlan = "SETPLAN"
    case grant = "GRANT"
    case resetUsage = "RESETUSAGE"
    case forget = "FORGET"
    case ping = "PING"
    case echo = "ECHO"
    case help = "HELP"
    case info = "INFO"
    case auth = "AUTH"
    case quit = "QUIT"
    case hello = "HELLO"
    case client = "CLIENT"
    case command = "COMMAND"
    case select = "SELECT"

    /// The request's form: `<…>` must be given, `[…]` may be.
    public var syntax: String {
        switch self {
        case .consume: "CONSUME <user> [n] [key=]"
        case .reserve: "RESERVE <user> [n] key= [ttl=]"
        case .commit: "COMMIT <user> key="
        case .release: "RELEASE <user> key="
        case .check: "CHECK <user> [n]"
        case .usage: "USAGE <user> [period]"
        case .history: "HISTORY <user> [months]"
        case .report: "REPORT [period]"
        case .top: "TOP [period] [n]"
        case .subscribe: "SUBSCRIBE usage:<user> ..."
        case .unsubscribe: "UNSUBSCRIBE [usage:<user> ...]"
        case .setPlan: "SETPLAN <user> <plan> [state=] [started=] [expires=] [grace_until=] [anchor=]"
        case .grant: "GRANT <user> <n> key= [reason=]"
        case .resetUsage: "RESETUSAGE <user> [period]"
        case .forget: "FORGET <user>"
        case .ping: "PING [text]"
        case .echo: "ECHO <text>"
        case .help: "HELP [verb]"
        case .info: "INFO"
        case .auth: "AUTH [name] <token>"
        case .quit: "QUIT"
        case .hello: "HELLO [2|3] [AUTH name token] [SETNAME name]"
        case .client: "CLIENT [anything]"
        case .command: "COMMAND [anything]"
        case .select: "SELECT 0"
        }
    }

    /// What the verb does, in half a sentence.
    public var summary: String {
        switch self {
        case .consume: "count n messages (default 1) if they fit: ALLOWED counted and durable, BLOCKED nothing counted"
        case .reserve: "hold n messages (default 1) for ttl seconds (default 120); they count as used meanwhile"
        case .commit: "count what the key holds"
        case .release: "give back what the key holds or has counted, once"
        case .check: "what CONSUME would answer now; counts nothing, creates nothing"
        case .usage: "where the user stands, with label and accessible"
        case .history: "usage by period, newest first (default 12 months)"
        case .report: "users, messages and tiers of a billing period (default open: every one that is open now)"
        case .top: "the n users (default 10) with the most messages in a billing period (default open), most first"
        case .subscribe: "a message with the fields of USAGE whenever one of these users' usage, plan or state changes"
        case .unsubscribe: "no more messages about these users, or about any"
        case .setPlan: "set the user's plan, state and dates"
        case .grant: "raise this period's limit by n messages, once per key"
        case .resetUsage: "set the period's count to 0"
        case .forget: "delete all that is known of the user; a trial that was started stays so"
        case .ping: "PONG, or the text"
        case .echo: "the text"
        case .help: "the verbs, or one of them"
        case .info: "version, uptime, connections, queue, database state, counters"
        case .auth: "say who is asking, where a token is required"
        case .quit: "OK, then the connection closes"
        case .hello: "the handshake of client libraries; 2 and 3 are the RESP versions, AUTH as the verb"
        case .client: "accepted for client libraries, does nothing"
        case .command: "accepted for client libraries, an empty list"
        case .select: "accepted for client libraries, does nothing"
        }
    }

    /// One of these a peer must have to use the verb.
    public var permissions: Permissions {
        switch self {
        // What counts is for chat backends alone: an operator's or a dashboard's token that is lost sends no messages.
        case .consume, .check, .reserve, .commit, .release: .chat
        case .usage: [.chat, .dashboard, .operator]
        case .history, .report, .top, .subscribe, .unsubscribe: [.dashboard, .operator]
        case .setPlan, .grant, .resetUsage, .forget: .operator
        case .ping, .echo, .help, .info, .client, .command, .select: .token
        // HELLO authenticates by the way; without that the parser asks for a token.
        case .auth, .quit, .hello: .nothing
        }
    }

    var grammar: Grammar {
        switch self {
        case .check, .usage, .history, .resetUsage: Grammar(positionals: 1...2)
        case .consume: Grammar(positionals: 1...2, options: [.key])
        case .reserve: Grammar(positionals: 1...2, options: [.key, .ttl])
        case .commit, .release: Grammar(positionals: 1...1, options: [.key])
        case .grant: Grammar(positionals: 2...2, options: [.key, .reason])
        case .forget: Grammar(positionals: 1...1)
        case .setPlan: Grammar(positionals: 2...2, options: [.state, .started, .expires, .graceUntil, .anchor])
        case .ping: Grammar(positionals: 0...1, isFreeText: true)
        case .echo: Grammar(positionals: 1...1, isFreeText: true)
        case .report, .help: Grammar(positionals: 0...1)
        case .top: Grammar(positionals: 0...2)
        case .subscribe: Grammar(positionals: 1...Int.max)
        case .unsubscribe: Grammar(positionals: 0...Int.max)
        case .auth: Grammar(positionals: 1...2, isFreeText: true)
        case .info, .quit: Grammar(positionals: 0...0)
        case .hello, .client, .command: Grammar(positionals: 0...Int.max, isFreeText: true)
        case .select: Grammar(positionals: 1...1)
        }
    }
}

/// Which arguments a verb takes.
struct Grammar {
    /// How many positional arguments follow the verb.
    var positionals: ClosedRange<Int>
    var options: [OptionName] = []
    /// The arguments are somebody's own text, so that an equals sign in them makes no option.
    var isFreeText = false
}

/// The name of a `name=value` token.
enum OptionName: String, CaseIterable {
    case state, started, expires
    case graceUntil = "grace_until"
    case anchor, key, ttl, reason
}

extension Reply {
    /// The answer to `HELP`, about one verb or about all.
    public static func help(about verb: Verb?) -> Reply {
        .lines((verb.map { [$0] } ?? Verb.allCases).map { "\($0.syntax) — \($0.summary)" })
    }
}
