import Usage

/// The verbs that chat backends use for each message. Only the scope `chat` permits those that count: a lost operator's
/// or dashboard's token cannot send messages. `CHECK` only reads.
extension VerbDefinition {
    static let consume = VerbDefinition(
        "CONSUME <user> [n] [key=] [model=] [member=] [lang=] [tz=]",
        "count n messages (default 1) if they all fit, else none",
        .chat
    ) { arguments throws(ReplyError) in
        .consume(user: try arguments.user(), messages: try arguments.messages(), key: try arguments.key())
    }

    static let check = VerbDefinition(
        "CHECK <user> [n] [model=] [member=] [lang=] [tz=]",
        "what CONSUME would answer now; counts nothing, creates nothing",
        [.chat, .dashboard, .operator]
    ) { arguments throws(ReplyError) in
        .check(user: try arguments.user(), messages: try arguments.messages())
    }

    static let reserve = VerbDefinition(
        "RESERVE <user> [n] key= [ttl=] [model=] [member=] [lang=] [tz=]",
        "hold n messages (default 1) for ttl seconds (default 120); they count as used meanwhile",
        .chat
    ) { arguments throws(ReplyError) in
        .reserve(
            user: try arguments.user(),
            messages: try arguments.messages(),
            key: try arguments.requiredKey(of: messageKeyPurpose),
            ttlSeconds: try arguments.number(of: .ttl, in: ttlRangeSeconds) ?? defaultTTLSeconds
        )
    }

    /// The limits of a hold's time. A day is longer than any model takes to answer.
    private static let ttlRangeSeconds = 1...86_400
    private static let defaultTTLSeconds = 120

    static let commit = VerbDefinition(
        "COMMIT <user> [n] key= [lang=] [tz=]",
        "count n of the messages that the key holds (default all), and give back the rest",
        .chat
    ) { arguments throws(ReplyError) in
        .commit(
            user: try arguments.user(),
            messages: try arguments.number(at: 1, named: "n", in: 0...Arguments.messagesMaximum),
            key: try arguments.requiredKey(of: messageKeyPurpose)
        )
    }

    static let release = VerbDefinition(
        "RELEASE <user> key= [lang=] [tz=]",
        "give back what the key holds or has counted, once",
        .chat
    ) { arguments throws(ReplyError) in
        .release(user: try arguments.user(), key: try arguments.requiredKey(of: messageKeyPurpose))
    }

    private static let messageKeyPurpose: StaticString = "message, so that it can be committed or released"
}
