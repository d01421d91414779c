import Usage

/// The arguments of one request, held against its verb's grammar: which are positional, which are options.
///
/// Values are taken out by name or position and are checked as they are; every refusal names the argument and its form.
struct Arguments {
    private let verb: Verb
    private let tokens: TokenList
    private let positionals: Int

    /// Throws when there are too few or too many arguments, or an option that is unknown, repeated or not last.
    init(of verb: Verb, _ tokens: TokenList) throws(ReplyError) {
        self.verb = verb
        self.tokens = tokens
        let grammar = verb.grammar
        positionals =
            grammar.isFreeText ? tokens.count - 1 : try Arguments.countPositionals(tokens, of: verb, grammar.options)
        guard grammar.positionals.contains(positionals) else {
            throw .badArgument("wrong number of arguments; the form is \(verb.syntax)")
        }
    }

    /// How many positional arguments there are, given that the options after them are as they should be.
    private static func countPositionals(
        _ tokens: TokenList,
        of verb: Verb,
        _ options: [OptionName]
    ) throws(ReplyError) -> Int {
        var count = 0
        for index in 1..<tokens.count {
            let token = tokens[index]
            guard let equals = token.firstPosition(of: UInt8(ascii: "=")) else {
                guard count == index - 1 else {
                    throw .badArgument("an argument stands after an option; the form is \(verb.syntax)")
                }
                count += 1
                continue
            }
            guard let option = OptionName(UnsafeRawBufferPointer(rebasing: token[..<equals])), options.contains(option)
            else {
                let known = options.map { "\($0.rawValue)=" }.joined(separator: ", ")
                throw .badArgument("unknown option; \(verb.rawValue) takes \(known.isEmpty ? "none" : known)")
            }
            guard value(of: option, in: tokens, 1 + count..<index) == nil else {
                throw .badArgument("the option \(option.rawValue)= is given twice; give it once")
            }
        }
        return count
    }

    private static func value(
        of option: OptionName,
        in tokens: TokenList,
        _ indices: Range<Int>
    ) -> UnsafeRawBufferPointer? {
        for index in indices {
            let token = tokens[index]
            guard let equals = token.firstPosition(of: UInt8(ascii: "=")) else { continue }
            if OptionName(UnsafeRawBufferPointer(rebasing: token[..<equals])) == option {
                return UnsafeRawBufferPointer(rebasing: token[(equals + 1)...])
            }
        }
        return nil
    }
}

extension Arguments {
    var count: Int { positionals }

    /// The positional argument at `index`, or nil when there are fewer.
    func positional(_ index: Int) -> UnsafeRawBufferPointer? {
        index < positionals ? tokens[1 + index] : nil
    }

    /// What stands after `option`'s equals sign, or nil when it is not given.
    func value(of option: OptionName) -> UnsafeRawBufferPointer? {
        Arguments.value(of: option, in: tokens, 1 + positionals..<tokens.count)
    }

    func user() throws(ReplyError) -> UserID {
        guard let token = positional(0), let user = UserID(token) else {
            throw .badArgument("user must be a UUID: 8-4-4-4-12 hexadecimal digits; the form is \(verb.syntax)")
        }
        return user
    }

    /// - Parameter name: of the argument, as the syntax has it.
    func number(
        at index: Int,
        named name: String,
        in range: ClosedRange<Int>,
        default standard: Int
    ) throws(ReplyError) -> Int {
        guard let token = positional(index) else { return standard }
        return try Arguments.number(token, named: name, in: range)
    }

    func period(at index: Int) throws(ReplyError) -> BillingPeriod? {
        guard let token = positional(index) else { return nil }
        guard let period = BillingPeriod(token.text) else {
            throw .badArgument("period must be a month as YYYY-MM, or a plan's name such as trial")
        }
        return period
    }

    /// All positional arguments, as channels.
    func channels() throws(ReplyError) -> [UsageChannel] {
        var channels: [UsageChannel] = []
        while let token = positional(channels.count) {
            guard let channel = UsageChannel(token.text) else {
                throw .badArgument("a channel must be usage: and a user's UUID; the form is \(verb.syntax)")
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

    /// Why an operator does it: a line of text. One with spaces needs the array form.
    func reason() throws(ReplyError) -> String? {
        guard let token = value(of: .reason) else { return nil }
        guard Arguments.reasonLengthBytes.contains(token.count) else {
            let range = Arguments.reasonLengthBytes
            throw .badArgument("reason= must have \(range.lowerBound) to \(range.upperBound) bytes")
        }
        return token.text
    }

    /// As `headroom.grant_once` has it.
    private static let reasonLengthBytes = 1...1_024

    func state() throws(ReplyError) -> SubscriptionState? {
        guard let token = value(of: .state) else { return nil }
        guard let state = SubscriptionState(rawValue: token.text) else {
            let states = SubscriptionState.allCases.map(\.rawValue).joined(separator: ", ")
            throw .badArgument("state= must be one of \(states)")
        }
        return state
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
