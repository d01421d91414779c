import Usage

/// The verbs that read usage, for chats, dashboards and operators.
extension VerbDefinition {
    static let usage = VerbDefinition(
        "USAGE <user> [period] [model=] [member=] [lang=] [tz=]",
        "the user's usage, with label and accessible",
        [.chat, .dashboard, .operator]
    ) { arguments throws(ReplyError) in
        .usage(user: try arguments.user(), period: try arguments.period(at: 1))
    }

    static let allowances = VerbDefinition(
        "ALLOWANCES <user> [period]",
        "usage by model and by member, of those that the plan limits or counts",
        [.chat, .dashboard, .operator]
    ) { arguments throws(ReplyError) in
        .allowances(user: try arguments.user(), period: try arguments.period(at: 1))
    }

    static let history = VerbDefinition(
        "HISTORY <user> [months]",
        "usage by period, newest first (default 12 months)",
        [.dashboard, .operator]
    ) { arguments throws(ReplyError) in
        .history(
            user: try arguments.user(),
            months: try arguments.number(at: 1, named: "months", in: CommandParser.monthsRange) ?? 12
        )
    }

    static let report = VerbDefinition(
        "REPORT [period]",
        "users, messages and tiers of a billing period (default open: all open ones)",
        [.dashboard, .operator]
    ) { arguments throws(ReplyError) in
        .report(period: try arguments.period(at: 0))
    }

    static let top = VerbDefinition(
        "TOP [period] [n]",
        "the n users (default 10) with the most messages in a billing period (default open)",
        [.dashboard, .operator]
    ) { arguments throws(ReplyError) in
        let countIndex = isCountAlone(arguments) ? 0 : 1
        return .top(
            period: countIndex == 0 ? nil : try arguments.period(at: 0),
            count: try arguments.number(at: countIndex, named: "n", in: 1...1_000) ?? 10
        )
    }

    /// Whether the single argument is n: it begins with a digit and is no month, which has a hyphen.
    private static func isCountAlone(_ arguments: Arguments) -> Bool {
        guard arguments.count == 1, let argument = arguments.positional(0), let first = argument.first else {
            return false
        }
        return (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) && !argument.contains(UInt8(ascii: "-"))
    }

    static let subscribe = VerbDefinition(
        "SUBSCRIBE usage:<user> ...",
        "a message with the fields of USAGE whenever those of one of these users change",
        [.dashboard, .operator]
    ) { arguments throws(ReplyError) in
        .subscribe(try arguments.channels())
    }

    static let unsubscribe = VerbDefinition(
        "UNSUBSCRIBE [usage:<user> ...]",
        "end these subscriptions, or all",
        [.dashboard, .operator]
    ) { arguments throws(ReplyError) in
        .unsubscribe(arguments.count == 0 ? nil : try arguments.channels())
    }
}
