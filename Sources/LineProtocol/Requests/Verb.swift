/// The name of a command, the first token of a request. Its `definition` has everything else about it.
///
/// The order is that of `HELP`, of the verbs in `INFO` and metrics, and of docs/reference/verbs.md.
public enum Verb: String, CaseIterable, Sendable {
    case consume = "CONSUME"
    case check = "CHECK"
    case reserve = "RESERVE"
    case commit = "COMMIT"
    case release = "RELEASE"
    case usage = "USAGE"
    case allowances = "ALLOWANCES"
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

    private func makeDefinition() -> VerbDefinition {
        switch self {
        case .consume: .consume
        case .check: .check
        case .reserve: .reserve
        case .commit: .commit
        case .release: .release
        case .usage: .usage
        case .allowances: .allowances
        case .history: .history
        case .report: .report
        case .top: .top
        case .subscribe: .subscribe
        case .unsubscribe: .unsubscribe
        case .setPlan: .setPlan
        case .grant: .grant
        case .resetUsage: .resetUsage
        case .forget: .forget
        case .ping: .ping
        case .echo: .echo
        case .help: .help
        case .info: .info
        case .auth: .auth
        case .quit: .quit
        case .hello: .hello
        case .client: .client
        case .command: .command
        case .select: .select
        }
    }

    private static let definitions = allCases.map { $0.makeDefinition() }

    var definition: VerbDefinition { Verb.definitions[ordinal] }
}

extension Verb {
    /// The request's form: `<…>` is required, `[…]` is optional.
    public var syntax: String { definition.syntax }

    /// The arguments of the syntax, in its order.
    package var arguments: [SyntaxArgument] { definition.syntaxArguments }
    /// What the verb does, in half a sentence.
    public var summary: String { definition.summary }
    /// A peer needs one of these to use the verb.
    public var permissions: Permissions { definition.permissions }
}

extension Reply {
    /// The answer to `HELP`, about one verb or about all.
    public static func help(about verb: Verb?) -> Reply {
        .lines((verb.map { [$0] } ?? Verb.allCases).map { "\($0.syntax) — \($0.summary)" })
    }
}
