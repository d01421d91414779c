import Usage

/// The arguments of one request: the positional ones first, then the options (`name=value`).
///
/// Each accessor parses and validates one argument; its error names the argument and the form that it must have.
struct Arguments {
    private let verb: Verb
    private let tokens: RequestTokens
    /// The number of positional arguments.
    let count: Int
    private let options: OptionNames
    /// The permissions of the peer that sent the request.
    let permissions: Permissions
    /// The namespace of users' names; nil if users are UUIDs only.
    private let namespace: UserNamespace?

    /// - Throws: if there are too few or too many arguments, or an option that is unknown, repeated or not last.
    init(
        _ tokens: RequestTokens,
        of verb: Verb,
        _ definition: VerbDefinition,
        _ permissions: Permissions,
        _ namespace: UserNamespace?
    ) throws(ReplyError) {
        self.verb = verb
        self.namespace = namespace
        self.tokens = tokens
        self.permissions = permissions
        (count, options) =
            definition.arguments == .syntax
            ? try Arguments.classify(tokens, of: definition, namespace) : (tokens.count - 1, [])
        guard definition.positionals.contains(count) else {
            throw .badArgument("wrong number of arguments; the form is \(definition.syntax)")
        }
    }

    /// Counts the positional arguments, and finds and checks the options after them.
    private static func classify(
        _ tokens: RequestTokens,
        of definition: VerbDefinition,
        _ namespace: UserNamespace?
    ) throws(ReplyError) -> (positionals: Int, OptionNames) {
        var count = 0
        var options: OptionNames = []
        for index in 1..<tokens.count {
            let token = tokens[index]
            guard let equals = token.firstPosition(of: UInt8(ascii: "=")),
                !isName(token, equals, at: index, of: definition, namespace)
            else {
                guard count == index - 1 else {
                    throw .badArgument("an argument follows an option; the form is \(definition.syntax)")
                }
                count += 1
                continue
            }
            guard let option = OptionName(UnsafeRawBufferPointer(rebasing: token[..<equals])),
                definition.options.contains(option)
            else {
                throw .badArgument("unknown option; the form is \(definition.syntax)")
            }
            guard options.insert(OptionNames(option)).inserted else {
                throw .badArgument("the option \(option.rawValue)= is given twice; give it once")
            }
        }
        return (count, options)
    }

    /// Whether an argument with an equals sign is a user's name, or the channel of one. An argument that begins like an
    /// option is not: the user was forgotten.
    private static func isName(
        _ token: UnsafeRawBufferPointer,
        _ equals: Int,
        at index: Int,
        of definition: VerbDefinition,
        _ namespace: UserNamespace?
    ) -> Bool {
        guard namespace != nil, index == 1 || definition.repeats, definition.syntaxArguments.first?.isUser == true
        else { return false }
        return OptionName(UnsafeRawBufferPointer(rebasing: token[..<equals])) == nil
    }
}

extension Arguments {
    /// The positional argument at `index`, or nil if there are fewer.
    func positional(_ index: Int) -> UnsafeRawBufferPointer? {
        index < count ? tokens[1 + index] : nil
    }

    /// The bytes after the option's equals sign, or nil if the option is absent.
    func value(of option: OptionName) -> UnsafeRawBufferPointer? {
        guard options.contains(OptionNames(option)) else { return nil }
        let length = option.rawValue.utf8.count
        for index in 1 + count..<tokens.count {
            let token = tokens[index]
            if token.count > length, token[length] == UInt8(ascii: "="),
                OptionName(UnsafeRawBufferPointer(rebasing: token[..<length])) == option
            {
                return UnsafeRawBufferPointer(rebasing: token[(length + 1)...])
            }
        }
        return nil
    }

    func user() throws(ReplyError) -> UserID {
        guard let token = positional(0), let user = UserID(token, in: namespace) else {
            throw .badArgument("\(UserNamespace.rule(namespace)); the form is \(verb.syntax)")
        }
        return user
    }

    /// The number of messages that the request is about: the second argument, 1 by default. The maximum keeps the sum
    /// of some two thousand requests within `message_count`.
    func messages() throws(ReplyError) -> Int {
        try number(at: 1, named: "n", in: 1...Arguments.messagesMaximum) ?? 1
    }

    static let messagesMaximum = 1_000_000

    /// - Parameter name: the argument's name in the syntax.
    func number(
        at index: Int,
        named name: String,
        in range: ClosedRange<Int>
    ) throws(ReplyError) -> Int? {
        guard let token = positional(index) else { return nil }
        return try Arguments.number(token, named: name, in: range)
    }

    func period(at index: Int) throws(ReplyError) -> BillingPeriod? {
        guard let token = positional(index) else { return nil }
        guard let period = BillingPeriod(token.text) else {
            throw .badArgument("period must be \(BillingPeriod.forms)")
        }
        return period
    }

    /// Reads all positional arguments as channels.
    func channels() throws(ReplyError) -> [UsageChannel] {
        var channels: [UsageChannel] = []
        while let token = positional(channels.count) {
            guard let channel = UsageChannel(token.text, in: namespace) else {
                let rule = UserNamespace.rule(namespace)
                throw .badArgument("a channel must be usage: and a user; \(rule); the form is \(verb.syntax)")
            }
            channels.append(channel)
        }
        return channels
    }

    func number(of option: OptionName, in range: ClosedRange<Int>) throws(ReplyError) -> Int? {
        guard let token = value(of: option) else { return nil }
        return try Arguments.number(token, named: "\(option.rawValue)=", in: range)
    }

    func instant(of option: OptionName) throws(ReplyError) -> Instant? {
        guard let token = value(of: option) else { return nil }
        guard let instant = Instant(token.text) else {
            throw .badArgument(
                "\(option.rawValue)= must be an ISO 8601 date or instant in the years 2000 to 9999: 2026-11-24 or "
                    + "2026-11-24T09:30:00Z"
            )
        }
        return instant
    }

    func key() throws(ReplyError) -> MessageKey? {
        guard let token = value(of: .key) else { return nil }
        do throws(InvalidMessageKey) {
            return try MessageKey(token.text)
        } catch {
            let range = MessageKey.lengthBytes
            throw .badArgument("key= must have \(range.lowerBound) to \(range.upperBound) bytes")
        }
    }

    /// - Parameter purpose: what the key names, and why it is required. It ends the error's text.
    func requiredKey(of purpose: StaticString) throws(ReplyError) -> MessageKey {
        guard let key = try key() else { throw .badArgument("key= is missing; it names the \(purpose)") }
        return key
    }

    /// Reads an operator's reason for a change. One with spaces needs the array form.
    func reason() throws(ReplyError) -> String? {
        guard let token = value(of: .reason) else { return nil }
        guard Arguments.reasonLengthBytes.contains(token.count) else {
            let range = Arguments.reasonLengthBytes
            throw .badArgument("reason= must have \(range.lowerBound) to \(range.upperBound) bytes")
        }
        return token.text
    }

    /// Reads when granted messages end: `expires=`, an instant or `never`.
    func grantEnd() throws(ReplyError) -> Grant.End {
        guard let token = value(of: .expires) else { return .withPeriod }
        if token.text == Grant.End.never.text { return .never }
        guard let instant = Instant(token.text) else {
            throw .badArgument("expires= must be an ISO 8601 date or instant in the years 2000 to 9999, or never")
        }
        return .at(instant)
    }

    /// The bytes of a reason, as `headroom.grant_once` limits them.
    private static let reasonLengthBytes = 1...1_024

    func state() throws(ReplyError) -> SubscriptionState? {
        guard let token = value(of: .state) else { return nil }
        guard let state = SubscriptionState(rawValue: token.text) else {
            let states = SubscriptionState.allCases.map(\.rawValue).joined(separator: ", ")
            throw .badArgument("state= must be one of \(states)")
        }
        return state
    }

    /// Reads the parts to which the messages belong; nil if the request names none.
    func parts() throws(ReplyError) -> MessageParts? {
        guard !options.isDisjoint(with: [OptionNames(.model), OptionNames(.member)]) else { return nil }
        return MessageParts(model: try model(), member: try member())
    }

    private func model() throws(ReplyError) -> ModelName? {
        guard let token = value(of: .model) else { return nil }
        guard let model = ModelName(token.text) else { throw .badArgument("model= must be \(ModelName.form)") }
        return model
    }

    private func member() throws(ReplyError) -> UserID? {
        guard let token = value(of: .member) else { return nil }
        guard let member = UserID(token, in: namespace) else {
            throw .badArgument(UserNamespace.rule(namespace, of: "member="))
        }
        return member
    }

    /// Reads how the answer's sentences shall be; nil if the request says nothing about them.
    func sentences() throws(ReplyError) -> SentenceOptions? {
        guard !options.isDisjoint(with: [OptionNames(.lang), OptionNames(.tz)]) else { return nil }
        return SentenceOptions(language: try language(), timeZone: try timeZone())
    }

    private func language() throws(ReplyError) -> LanguageTag? {
        guard let token = value(of: .lang) else { return nil }
        guard let language = LanguageTag(token.text) else { throw .badArgument("lang= must be \(LanguageTag.form)") }
        return language
    }

    private func timeZone() throws(ReplyError) -> CivilTimeZone? {
        guard let token = value(of: .tz) else { return nil }
        guard let zone = CivilTimeZone(token.text) else { throw .badArgument("tz= must be \(CivilTimeZone.form)") }
        return zone
    }

    private static func number(
        _ token: UnsafeRawBufferPointer,
        named name: @autoclosure () -> String,
        in range: ClosedRange<Int>
    ) throws(ReplyError) -> Int {
        guard let number = token.plainNumber, range.contains(number) else {
            throw .badArgument(
                "\(name()) must be a whole number from \(range.lowerBound) to \(range.upperBound), in plain digits"
            )
        }
        return number
    }
}
