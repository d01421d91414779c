/// Everything about one verb but what the service does for it: the parser, `HELP`, the permissions, docs/reference.md
/// and the fuzzers' dictionary follow from it.
///
/// A class, because a parser that copied a struct of strings and arrays would count references for each of them.
final class VerbDefinition: Sendable {
    let syntax: String
    let summary: String
    let permissions: Permissions
    /// How many positional arguments may follow the verb.
    let positionals: ClosedRange<Int>
    /// The `name=value` arguments that may follow the positional ones, in any order.
    let options: [OptionName]
    /// The arguments are free text, in which an equals sign does not make an option.
    let isFreeText: Bool
    /// Makes a command of arguments whose number and options are checked already.
    let parse: @Sendable (Arguments) throws(ReplyError) -> Command

    init(
        _ syntax: String,
        _ summary: String,
        permissions: Permissions,
        positionals: ClosedRange<Int>,
        options: [OptionName] = [],
        isFreeText: Bool = false,
        parse: @escaping @Sendable (Arguments) throws(ReplyError) -> Command
    ) {
        self.syntax = syntax
        self.summary = summary
        self.permissions = permissions
        self.positionals = positionals
        self.options = options
        self.isFreeText = isFreeText
        self.parse = parse
    }
}

/// The name of a `name=value` argument.
package enum OptionName: String, CaseIterable {
    case state, started, expires
    case graceUntil = "grace_until"
    case anchor, key, ttl, reason
}
