import NIOCore
import Usage

extension Command {
    /// Writes the request as a client sends it: as a line where that says it, else as an array, which may hold spaces.
    public func encode(into buffer: inout ByteBuffer) {
        switch self {
        case .consume(let user, let messages, let key):
            write(.consume, user, messages, key, into: &buffer)
        case .check(let user, let messages): write(.check, user, messages, nil, into: &buffer)
        case .commit(let user, let key): write(.commit, user, 1, key, into: &buffer)
        case .release(let user, let key): write(.release, user, 1, key, into: &buffer)
        case .reserve(let user, let messages, let key, let ttlSeconds):
            write(.reserve, user, messages, key, ttlSeconds, into: &buffer)
        default: Command.write(tokens, into: &buffer)
        }
    }

    /// The verbs of each message, without a list of tokens in between.
    private func write(
        _ verb: Verb,
        _ user: UserID,
        _ messages: Int,
        _ key: MessageKey?,
        _ ttlSeconds: Int? = nil,
        into buffer: inout ByteBuffer
    ) {
        // What would end a line, or a token, cannot stand in one.
        guard key.map({ Command.isToken($0.text) }) ?? true else {
            Command.write(tokens, into: &buffer)
            return
        }
        let capacity = 160 + (key?.text.utf8.count ?? 0)
        buffer.writeLine(capacityBytes: capacity) { line in
            line.putName(verb.rawValue)
            line.putLiteral(" ")
            line.put(user)
            if messages != 1 {
                line.putLiteral(" ")
                line.put(messages)
            }
            if let key {
                line.putLiteral(" key=")
                line.putName(key.text)
            }
            if let ttlSeconds {
                line.putLiteral(" ttl=")
                line.put(ttlSeconds)
            }
        }
    }

    /// Printable ASCII without a space.
    private static func isToken(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    private static func write(_ tokens: [String], into buffer: inout ByteBuffer) {
        guard !tokens.allSatisfy(isToken) else {
            buffer.writeString(tokens.joined(separator: " "))
            buffer.writeStaticString("\r\n")
            return
        }
        buffer.writeString("*\(tokens.count)\r\n")
        for token in tokens { buffer.writeString("$\(token.utf8.count)\r\n\(token)\r\n") }
    }

    private var tokens: [String] {
        switch self {
        case .consume(let user, let messages, let key):
            [Verb.consume.rawValue, "\(user)", "\(messages)"] + option(.key, key?.text)
        case .reserve(let user, let messages, let key, let ttlSeconds):
            [Verb.reserve.rawValue, "\(user)", "\(messages)"] + option(.key, key.text)
                + option(.ttl, String(ttlSeconds))
        case .commit(let user, let key): [Verb.commit.rawValue, "\(user)"] + option(.key, key.text)
        case .release(let user, let key): [Verb.release.rawValue, "\(user)"] + option(.key, key.text)
        case .check(let user, let messages): [Verb.check.rawValue, "\(user)", "\(messages)"]
        case .usage(let user, let period): [Verb.usage.rawValue, "\(user)"] + given(period?.label)
        case .history(let user, let months): [Verb.history.rawValue, "\(user)", "\(months)"]
        case .report(let period): [Verb.report.rawValue] + given(period?.label)
        case .top(let period, let count): [Verb.top.rawValue] + given(period?.label) + ["\(count)"]
        case .subscribe(let channels): [Verb.subscribe.rawValue] + channels.map(\.name)
        case .unsubscribe(let channels): [Verb.unsubscribe.rawValue] + (channels ?? []).map(\.name)
        case .setPlan(let change): tokens(of: change)
        case .grant(let user, let messages, let key, let reason):
            [Verb.grant.rawValue, "\(user)", "\(messages)"] + option(.key, key.text) + option(.reason, reason)
        case .resetUsage(let user, let period): [Verb.resetUsage.rawValue, "\(user)"] + given(period?.label)
        case .forget(let user): [Verb.forget.rawValue, "\(user)"]
        case .ping(let text): [Verb.ping.rawValue] + given(text)
        case .echo(let text): [Verb.echo.rawValue, text]
        case .help(let verb): [Verb.help.rawValue] + given(verb?.rawValue)
        case .info: [Verb.info.rawValue]
        case .authenticate(let credentials):
            [Verb.auth.rawValue] + given(credentials.name) + [credentials.token.text]
        case .quit: [Verb.quit.rawValue]
        case .hello(let version, let credentials):
            [Verb.hello.rawValue, "\(version)"]
                + (credentials.map { ["AUTH", $0.name ?? "default", $0.token.text] } ?? [])
        case .client: [Verb.client.rawValue]
        case .command: [Verb.command.rawValue]
        case .select: [Verb.select.rawValue, "0"]
        }
    }

    private func tokens(of change: PlanChange) -> [String] {
        [Verb.setPlan.rawValue, "\(change.user)", change.plan] + option(.state, change.state?.rawValue)
            + option(.started, change.startedAt?.text) + option(.expires, change.expiresAt?.text)
            + option(.graceUntil, change.graceUntil?.text) + option(.anchor, change.anchorDay.map { String($0) })
    }

    private func option(_ name: OptionName, _ value: String?) -> [String] {
        value.map { ["\(name.rawValue)=\($0)"] } ?? []
    }

    private func given(_ argument: String?) -> [String] {
        argument.map { [$0] } ?? []
    }
}
