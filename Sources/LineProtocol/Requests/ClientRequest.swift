/// The uses of `CLIENT`: client libraries describe themselves, and read what they have described.
public enum ClientRequest: Sendable, Equatable {
    case id
    case name
    /// Sets the connection's name; an empty one removes it.
    case setName(String)
    case setLibraryName(String)
    case setLibraryVersion(String)
    /// `INFO` and `LIST`: a connection sees itself only.
    case info
    case list
    /// `NO-EVICT` and `NO-TOUCH`, which change nothing because there are no keys.
    case accepted
}

extension ClientRequest {
    /// - Throws: for every other subcommand. OK would promise what the service does not do, such as pushing
    ///   invalidations.
    init(_ arguments: Arguments) throws(ReplyError) {
        let request: ClientRequest? =
            switch (arguments.count, arguments.positional(0)) {
            case (1, let word?) where word.isWord("ID"): .id
            case (1, let word?) where word.isWord("GETNAME"): .name
            case (1, let word?) where word.isWord("INFO"): .info
            case (_, let word?) where word.isWord("LIST"): .list
            case (2, let word?) where word.isWord("SETNAME"): .setName(try ClientRequest.name(arguments, at: 1))
            case (2, let word?) where word.isWord("NO-EVICT") || word.isWord("NO-TOUCH"): .accepted
            case (3, let word?) where word.isWord("SETINFO"): try ClientRequest.library(arguments)
            default: nil
            }
        guard let request else { throw .unknownSubcommand(of: .client) }
        self = request
    }

    private static func library(_ arguments: Arguments) throws(ReplyError) -> ClientRequest? {
        let value = try name(arguments, at: 2)
        guard let attribute = arguments.positional(1) else { return nil }
        if attribute.isWord("LIB-NAME") { return .setLibraryName(value) }
        return attribute.isWord("LIB-VER") ? .setLibraryVersion(value) : nil
    }

    /// Reads a name. A space would end it in `CLIENT LIST`, and Redis refuses the same names.
    static func name(_ arguments: Arguments, at index: Int) throws(ReplyError) -> String {
        let name = arguments.positional(index)?.text ?? ""
        guard name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw ReplyError(code: .err, text: "names of clients and libraries are printable ASCII without spaces")
        }
        return name
    }

    /// The words after `CLIENT`.
    var words: [String] {
        switch self {
        case .id: ["ID"]
        case .name: ["GETNAME"]
        case .setName(let name): ["SETNAME", name]
        case .setLibraryName(let name): ["SETINFO", "LIB-NAME", name]
        case .setLibraryVersion(let version): ["SETINFO", "LIB-VER", version]
        case .info: ["INFO"]
        case .list: ["LIST"]
        case .accepted: ["NO-EVICT", "ON"]
        }
    }
}

/// The uses of `COMMAND`. The service describes no command: its verbs are none of Redis's.
public enum CommandListRequest: String, Sendable, Equatable {
    /// `COMMAND`, `COMMAND DOCS` and `COMMAND INFO`, which are answered with an empty list.
    case descriptions = "DOCS"
    case count = "COUNT"
    case names = "LIST"
}

extension CommandListRequest {
    init(_ arguments: Arguments) throws(ReplyError) {
        guard let word = arguments.positional(0), !word.isWord("DOCS"), !word.isWord("INFO") else {
            self = .descriptions
            return
        }
        guard word.isWord("COUNT") || word.isWord("LIST") else { throw .unknownSubcommand(of: .command) }
        self = word.isWord("COUNT") ? .count : .names
    }
}
