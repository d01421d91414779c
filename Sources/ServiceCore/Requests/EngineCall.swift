import Engine
import LineProtocol
import Usage

/// The call of the engine by which a port answers a command.
package enum EngineCall: Equatable, Sendable {
    /// An operation in the user's lane.
    case operation(UserID, EngineOperation, FallbackReply)
    case report(ReportQuery)

    /// - Parameter identity: that of the peer's token. The audit log has an operator's change under the token's name,
    ///   not the service's role.
    /// - Returns: nil for a command that the port answers itself, and for subscriptions.
    package init?(_ command: Command, by identity: Identity?) {
        switch command {
        case .withSentences(let command, _): self.init(command, by: identity)
        case .withParts(let command, let parts): self.init(command, parts, by: identity)
        case .consume(let user, let messages, let key):
            self = .operation(user, .batched(.consume(messages, key: key)), .sending(user))
        case .check(let user, let messages): self = .operation(user, .check(messages), .sending(user))
        case .reserve(let user, let messages, let key, let ttlSeconds):
            self = .operation(user, .reserve(messages, key: key, ttlSeconds: ttlSeconds), .reserving(user))
        case .commit(let user, let messages, let key):
            self = .operation(user, .commit(messages, key: key), .committing(user))
        case .release(let user, let key): self = .operation(user, .release(key), .releasing(user))
        case .usage(let user, nil): self = .operation(user, .usage, .reading)
        case .usage(let user, let period?): self = EngineCall(user, period, nil)
        case .allowances(let user, let period): self = .operation(user, .allowances(period), .other)
        case .history(let user, let months): self = .operation(user, .history(months), .other)
        case .setPlan(let change): self = EngineCall(.setPlan(change), of: change.user, by: identity)
        case .grant(let user, let grant):
            self = EngineCall(.grant(grant), of: user, by: identity)
        case .resetUsage(let user, let period):
            self = EngineCall(.resetUsage(period, parts: nil), of: user, by: identity)
        case .closeWindow(let user): self = EngineCall(.closeWindow(parts: nil), of: user, by: identity)
        case .forget(let user): self = EngineCall(.forget, of: user, by: identity)
        case .report(let period): self = .report(.report(period ?? .open))
        case .top(let period, let count): self = .report(.top(period ?? .open, count: count))
        case .subscribe, .unsubscribe, .ping, .echo, .help, .info, .authenticate, .hello, .client, .command, .select,
            .quit:
            return nil
        }
    }

    /// - Parameter parts: those that the command names.
    private init?(_ command: Command, _ parts: MessageParts, by identity: Identity?) {
        switch command {
        case .usage(let user, let period?): self.init(user, period, parts)
        case .resetUsage(let user, let period): self.init(.resetUsage(period, parts: parts), of: user, by: identity)
        case .closeWindow(let user): self.init(.closeWindow(parts: parts), of: user, by: identity)
        default:
            guard case .operation(let user, let operation, let fallback)? = EngineCall(command, by: identity) else {
                return nil
            }
            self = .operation(user, operation.inParts(parts), fallback)
        }
    }

    private init(_ user: UserID, _ period: BillingPeriod, _ parts: MessageParts?) {
        self = .operation(user, .unbatched(.usageInPeriod(period, parts: parts)), .reading)
    }

    private init(_ change: OperatorChange, of user: UserID, by identity: Identity?) {
        self = .operation(user, .change(change, by: identity.map { ChangeAuthor(actor: $0.actor) }), .other)
    }
}
