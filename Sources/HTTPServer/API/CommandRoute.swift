import HTTPTypes
import Hummingbird
import JSON
import LineProtocol
import NIOCore
import ServiceCore
import Usage

/// A path that executes a command of the line protocol. The path has the user, the body the arguments under the names
/// of the command's syntax, and the header field Idempotency-Key what is `key=` there.
struct CommandRoute: Sendable {
    let method: HTTPRequest.Method
    let path: RouterPath
    let verb: Verb
    /// Those of the verb's syntax that the body has.
    private let arguments: [SyntaxArgument]
    /// The argument for the key; nil if the verb takes none.
    private let key: SyntaxArgument?

    /// - Parameter verb: its first argument is the user.
    private init(_ method: HTTPRequest.Method, _ path: RouterPath, _ verb: Verb) {
        self.method = method
        self.path = path
        self.verb = verb
        let afterUser = verb.arguments.dropFirst()
        key = afterUser.first { $0.option == .key }
        arguments = afterUser.filter { $0.option != .key }
    }

    static let all = [
        CommandRoute(.post, "usage/{user}/consume", .consume),
        CommandRoute(.post, "usage/{user}/check", .check),
        CommandRoute(.post, "usage/{user}/reserve", .reserve),
        CommandRoute(.post, "usage/{user}/commit", .commit),
        CommandRoute(.post, "usage/{user}/release", .release),
        CommandRoute(.put, "users/{user}/plan", .setPlan),
        CommandRoute(.post, "users/{user}/grants", .grant),
        CommandRoute(.post, "users/{user}/reset", .resetUsage),
        CommandRoute(.delete, "users/{user}", .forget),
    ]

    /// - Parameter namespace: of users' names; nil where users are UUIDs only.
    /// - Throws: 400 for what the line protocol refuses with `-BADARG`.
    func command(
        user: UserID,
        key: String?,
        body: ByteBuffer,
        _ permissions: Permissions,
        _ namespace: UserNamespace?
    ) throws(Problem) -> Command {
        let members = try members(body)
        var positionals = [user.description]
        var options = key.map { [(name: OptionName.key, value: $0)] } ?? []
        for argument in arguments {
            guard let value = members[argument.name] else {
                guard !argument.isRequired else { throw .badArgument("\(argument.name) is missing in the body") }
                continue
            }
            let text = try CommandRoute.text(value, of: argument.name)
            if let option = argument.option {
                options.append((option, text))
            } else {
                positionals.append(text)
            }
        }
        do {
            return try CommandParser.command(
                verb,
                positionals,
                options: options,
                permissions: permissions,
                namespace: namespace
            )
        } catch {
            throw Problem(error)
        }
    }

    /// - Parameter body: empty, or a JSON object.
    private func members(_ body: ByteBuffer) throws(Problem) -> [String: JSONValue] {
        guard body.readableBytes > 0 else { return [:] }
        return try JSONValue.members(of: body, named: arguments.map(\.name))
    }

    /// The header field of draft-ietf-httpapi-idempotency-key-header: a text with or without the quotes that the draft
    /// demands, because most clients send none.
    func key(of headers: HTTPFields) throws(Problem) -> String? {
        let values = headers[values: .idempotencyKey]
        guard let argument = key else {
            guard values.isEmpty else { throw .badArgument("this path takes no Idempotency-Key; nothing was done") }
            return nil
        }
        guard let value = values.first else {
            guard !argument.isRequired else {
                throw .badArgument("the header Idempotency-Key is missing; it names the message or the grant")
            }
            return nil
        }
        guard values.count == 1 else { throw .badArgument("Idempotency-Key is given twice; give it once") }
        let isQuoted = value.utf8.count >= 2 && value.hasPrefix("\"") && value.hasSuffix("\"")
        let key = isQuoted ? String(value.dropFirst().dropLast()) : value
        // Other bytes may be changed on the way: two keys would become one.
        guard key.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") }) else {
            throw .badArgument("Idempotency-Key must be visible ASCII characters without spaces, quoted or not")
        }
        return key
    }

    /// Other arguments are texts.
    private static let numbers: Set = ["n", "ttl", "anchor"]

    private static func text(_ value: JSONValue, of name: String) throws(Problem) -> String {
        switch (numbers.contains(name), value) {
        case (true, .integer(let number)): return "\(number)"
        case (false, .string(let text)): return text
        case (true, _): throw .badArgument("\(name) must be a whole number")
        case (false, _): throw .badArgument("\(name) must be a text")
        }
    }
}

extension HTTPField.Name {
    static let idempotencyKey = HTTPField.Name("Idempotency-Key")!
}
