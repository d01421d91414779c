/// Everything about one verb but what the service does for it: the parser, `HELP`, the permissions,
/// docs/reference/verbs.md and the fuzzers' dictionary follow from it.
///
/// It is a class, because a parser that copied a struct of strings and arrays would count references for each of them.
final class VerbDefinition: Sendable {
    enum ArgumentForm {
        /// The arguments of the syntax: positional ones, then options (`name=value`).
        case syntax
        /// As many arguments as in the syntax, in which an equals sign does not make an option.
        case freeText
        /// As many arguments as for `freeText`, which in an array may be any bytes.
        case bytes
        /// Any number of words.
        case any
    }

    let syntax: String
    let summary: String
    let permissions: Permissions
    let arguments: ArgumentForm
    /// The arguments of the syntax, in its order.
    let syntaxArguments: [SyntaxArgument]
    /// The number of positional arguments in the syntax.
    let positionals: ClosedRange<Int>
    /// Whether there may be any number of the last positional argument.
    var repeats: Bool { positionals.upperBound == .max }
    /// The options of the syntax. They may be sent in any order.
    let options: [OptionName]
    /// Whether the answer has sentences, whose language and time zone the request may name.
    let hasSentences: Bool
    /// Makes a command from arguments whose number and options are checked already.
    let parse: @Sendable (Arguments) throws(ReplyError) -> Command

    /// - Parameters:
    ///   - syntax: the verb and its arguments, separated by spaces: `<…>` is required, `[…]` is optional, `name=` is an
    ///     option, and `...` repeats.
    ///   - summary: what the verb does, in half a sentence.
    ///   - permissions: the permissions of which a peer needs one.
    init(
        _ syntax: String,
        _ summary: String,
        _ permissions: Permissions,
        arguments: ArgumentForm = .syntax,
        parse: @escaping @Sendable (Arguments) throws(ReplyError) -> Command
    ) {
        self.syntax = syntax
        self.summary = summary
        self.permissions = permissions
        self.arguments = arguments
        self.parse = parse
        syntaxArguments = syntax.split(separator: " ").dropFirst().map(SyntaxArgument.init)
        options = syntaxArguments.compactMap(\.option)
        hasSentences = options.contains(.lang)
        let positionals = syntaxArguments.filter { $0.option == nil && !$0.name.hasPrefix("...") }
        let maximum = syntax.contains("...") ? Int.max : positionals.count
        self.positionals = arguments == .any ? 0...Int.max : positionals.count(where: \.isRequired)...maximum
    }
}

/// An argument in the syntax of a verb.
package struct SyntaxArgument: Sendable {
    package let name: String
    /// The option; nil if the argument is positional.
    package let option: OptionName?
    package let isRequired: Bool

    var isUser: Bool { name == "user" || name == "usage:user" }

    fileprivate init(_ word: Substring) {
        name = word.filter { !"<[=]>".contains($0) }
        option = word.contains("=") ? OptionName(rawValue: name) : nil
        isRequired = !word.hasPrefix("[")
    }
}

/// The name of a `name=value` argument.
package enum OptionName: String, CaseIterable {
    case state, started, expires
    case graceUntil = "grace_until"
    case anchor, key, ttl, reason, model, member, lang, tz
}

/// Names of options as bits, so that a look-up of one that was not given costs no search.
struct OptionNames: OptionSet {
    let rawValue: UInt16

    init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    init(_ name: OptionName) {
        let bit: UInt16 =
            switch name {
            case .state: 0
            case .started: 1
            case .expires: 2
            case .graceUntil: 3
            case .anchor: 4
            case .key: 5
            case .ttl: 6
            case .reason: 7
            case .lang: 8
            case .tz: 9
            case .model: 10
            case .member: 11
            }
        rawValue = 1 << bit
    }
}
