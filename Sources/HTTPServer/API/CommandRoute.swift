import Billing
import HTTPTypes
import Hummingbird
import LineProtocol
import NIOCore
import ServiceCore
import Usage

/// A path that executes a command of the line protocol. The path has the user, the body the arguments under the names
/// of the command's syntax, and the header field Idempotency-Key what is `key=` there.
struct CommandRoute: Sendable {
    enum Key {
        case none, optional, required
    }

    /// An argument in the body.
    struct Argument: Sendable {
        enum Form {
            case number, text
        }

        var name: String
        var form: Form
        /// Nil: it is positional.
        var option: OptionName?
        var isRequired = false

        static func option(_ option: OptionName, _ form: Form) -> Argument {
            Argument(name: option.rawValue, form: form, option: option)
        }
    }

    var method: HTTPRequest.Method
    var path: RouterPath
    var verb: Verb
    var arguments: [Argument] = []
    var key = Key.none

    private static let messages = Argument(name: "n", form: .number)

    static let all = [
        CommandRoute(
            method: .post,
            path: "usage/{user}/consume",
            verb: .consume,
            arguments: [messages],
            key: .optional
        ),
        CommandRoute(method: .post, path: "usage/{user}/check", verb: .check, arguments: [messages]),
        CommandRoute(
            method: .post,
            path: "usage/{user}/reserve",
            verb: .reserve,
            arguments: [messages, .option(.ttl, .number)],
            key: .required
        ),
        CommandRoute(method: .post, path: "usage/{user}/commit", verb: .commit, key: .required),
        CommandRoute(method: .post, path: "usage/{user}/release", verb: .release, key: .required),
        CommandRoute(
            method: .put,
            path: "users/{user}/plan",
            verb: .setPlan,
            arguments: [
                Argument(name: "plan", form: .text, isRequired: true), .option(.state, .text),
                .option(.started, .text), .option(.expires, .text), .option(.graceUntil, .text),
                .option(.anchor, .number),
            ]
        ),
        CommandRoute(
            method: .post,
            path: "users/{user}/grants",
            verb: .grant,
            arguments: [Argument(name: "n", form: .number, isRequired: true), .option(.reason, .text)],
            key: .required
        ),
        CommandRoute(
            method: .post,
            path: "users/{user}/reset",
            verb: .resetUsage,
            arguments: [Argument(name: "period", form: .text)]
        ),
        CommandRoute(method: .delete, path: "users/{user}", verb: .forget),
    ]

    /// - Throws: 400 for what the line protocol refuses with `-BADARG`.
    func command(user: UserID, key: String?, body: ByteBuffer, _ permissions: Permissions) throws(Problem) -> Command {
        let members = try members(body)
        var positionals = [user.description]
        var options = key.map { [(name: OptionName.key, value: $0)] } ?? []
        for argument in arguments {
            guard let value = members[argument.name] else {
                guard !argument.isRequired else { throw .badArgument("\(argument.name) is missing in the body") }
                continue
            }
            let text = try argument.text(value)
            if let option = argument.option {
                options.append((option, text))
            } else {
                positionals.append(text)
            }
        }
        do {
            return try CommandParser.command(verb, positionals, options: options, permissions: permissions)
        } catch {
            throw Problem(error)
        }
    }

    /// - Parameter body: empty, or a JSON object.
    private func members(_ body: ByteBuffer) throws(Problem) -> [String: JSONValue] {
        guard body.readableBytes > 0 else { return [:] }
        let value: JSONValue
        do {
            value = try JSONValue(parsing: Array(body.readableBytesView))
        } catch {
            throw Problem(error)
        }
        guard case .object(let members) = value else { throw .badArgument("the body must be a JSON object") }
        let names = arguments.map(\.name)
        guard members.keys.allSatisfy(names.contains) else {
            let known = names.isEmpty ? "none" : names.joined(separator: ", ")
            throw .badArgument("unknown member in the body; this path takes \(known)")
        }
        return members
    }

    /// The header field of draft-ietf-httpapi-idempotency-key-header: a text with or without the quotes that the draft
    /// demands, because most clients send none.
    func key(of headers: HTTPFields) throws(Problem) -> String? {
        let values = headers[values: .idempotencyKey]
        guard key != .none else {
            guard values.isEmpty else { throw .badArgument("this path takes no Idempotency-Key; nothing was done") }
            return nil
        }
        guard let value = values.first else {
            guard key == .optional else {
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
}

extension CommandRoute.Argument {
    fileprivate func text(_ value: JSONValue) throws(Problem) -> String {
        switch (form, value) {
        case (.number, .integer(let number)): return "\(number)"
        case (.text, .string(let text)): return text
        case (.number, _): throw .badArgument("\(name) must be a whole number")
        case (.text, _): throw .badArgument("\(name) must be a text")
        }
    }
}

extension HTTPField.Name {
    static let idempotencyKey = HTTPField.Name("Idempotency-Key")!
}
