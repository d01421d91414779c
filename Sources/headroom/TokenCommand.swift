import ArgumentParser
import Engine
import LineProtocol
import OperatorConsole
import Postgres
import ServiceCore

struct TokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Create, list and revoke the tokens with which clients authenticate.",
        discussion: """
            Connects to the database, not to a service. The database login must be granted headroom_operator or own the \
            schema. A running service applies a change within two seconds, usually at once. Exit status 1 if the \
            database refuses, 69 if it cannot be reached.
            """,
        subcommands: [TokenCreateCommand.self, TokenListCommand.self, TokenRevokeCommand.self]
    )
}

struct TokenCreateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create",
        abstract: "Create a token, and print it on standard output: once, because only its digest is stored.",
        discussion: """
            Several tokens may share a name. To replace one, create a second, give it to the clients, and revoke the first.
            """
    )

    @Argument(help: "The token's name: 1 to 64 characters of a-z, 0-9, _, . and -.") var name: String
    @Option(help: "What the token permits: chat, dashboard or operator. May be given more than once.")
    var scope: [String] = []
    @Option(help: "Days until it expires (1 to 36500; default: never).") var expiresInDays: Int?
    @OptionGroup var database: DatabaseOptions

    func validate() throws {
        let isPlain = name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
            case UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "-"): true
            default: false
            }
        }
        guard isPlain, (1...64).contains(name.utf8.count), name != "default" else {
            throw ValidationError("a token's name is 1 to 64 of a-z, 0-9, _, . and -, and not `default`")
        }
        guard !scope.isEmpty, scope.allSatisfy({ Scope(rawValue: $0) != nil }) else {
            throw ValidationError("--scope must be given, as chat, dashboard or operator")
        }
        if let expiresInDays, !(1...36_500).contains(expiresInDays) {
            throw ValidationError("--expires-in-days must be 1 to 36500")
        }
    }

    func run() async throws {
        let (name, days) = (name, expiresInDays)
        let scopes = Scope.allCases.map(\.rawValue).filter { scope.contains($0) }
        let token = NewToken()
        let (id, isFirst) = try await TokenAccess.run(database) { register in
            try register.create(name: name, scopes: scopes, digest: token.digest, expiresInDays: days)
        }
        do {
            try StandardOutput.print(token.text)
        } catch {
            LogfmtHandler.standardError(
                "the token was not printed and cannot be used: headroom token revoke \(id), then create another\n"
            )
            throw error
        }
        let end = days.map { ", for \($0) days" } ?? ""
        var text = "token \(id) of \(name) (\(scopes.joined(separator: ", "))\(end)): store it, it is not shown again\n"
        if isFirst {
            text += "from now on every connection requires a token, unless the setting authentication is off\n"
        }
        LogfmtHandler.standardError(text)
    }
}

struct TokenListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List all tokens, revoked ones included, the newest first; never the tokens themselves."
    )

    @Flag(help: "JSON on standard output, an object a line, instead of a table.") var json = false
    @OptionGroup var database: DatabaseOptions

    func run() async throws {
        let table = TokenTable(
            try await TokenAccess.run(database) { try $0.list() }.map { entry in
                TokenTable.Token(
                    id: entry.id,
                    name: entry.name,
                    scopes: entry.scopes.split(separator: " ").map(String.init),
                    state: entry.state,
                    createdAt: entry.createdAt?.text,
                    createdBy: entry.createdBy,
                    expiresAt: entry.expiresAt?.text,
                    lastUsedAt: entry.lastUsedAt?.text,
                    revokedAt: entry.revokedAt?.text,
                    revokedBy: entry.revokedBy
                )
            }
        )
        try StandardOutput.print(
            list: table.tokens,
            asJSON: json,
            else: table.tokens.isEmpty
                ? "there are no tokens; create one with headroom token create" : table.text(width: Terminal.size?.width)
        )
    }
}

struct TokenRevokeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Revoke a token and close its connections.",
        discussion: """
            This cannot be undone; create another token instead. After the last token is revoked, connections still \
            require one, unless the setting authentication is off.
            """
    )

    @Argument(help: "The token's id, as in headroom token list.") var id: Int64
    @OptionGroup var database: DatabaseOptions

    func run() async throws {
        let id = id
        let name = try await TokenAccess.run(database) { try $0.revoke(id) }
        try StandardOutput.print("token \(id) of \(name) is revoked")
    }
}

/// Database access of the token commands.
private enum TokenAccess {
    static func run<Value: Sendable>(
        _ database: DatabaseOptions,
        _ work: @escaping @Sendable (TokenRegistry) throws -> Value
    ) async throws -> Value {
        try await DatabaseAccess(database).run(onThreadNamed: "headroom.token", failingWith: failure) { database in
            try work(TokenRegistry(database: database))
        }
    }

    private static func failure(_ error: PostgresError) -> CommandFailure {
        switch error.sqlState {
        case .insufficientPrivilege:
            .permissionDenied("this role may not manage tokens; connect as one that is granted headroom_operator")
        case .noDataFound:
            .notFound("there is no such token; headroom token list shows their ids")
        case .programLimitExceeded:
            .limitReached("there are 1000 live tokens, the maximum; revoke some with headroom token revoke")
        default: CommandFailure(error)
        }
    }
}
