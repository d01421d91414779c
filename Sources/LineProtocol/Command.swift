import Usage

/// One request, understood: every value in it is already checked, so whoever answers it need not look again.
public enum Command: Sendable, Equatable {
    /// `messages` is 1 to 1,000,000, and is all or nothing.
    case consume(user: UserID, messages: Int, key: MessageKey? = nil)
    /// `ttlSeconds` is 1 to 86,400.
    case reserve(user: UserID, messages: Int, key: MessageKey, ttlSeconds: Int)
    case commit(user: UserID, key: MessageKey)
    case release(user: UserID, key: MessageKey)
    /// As `consume`, but counts nothing.
    case check(user: UserID, messages: Int)
    /// Without a period: the current one.
    case usage(user: UserID, period: BillingPeriod?)
    /// `months` is 1 to 1,200; a row that is no month, such as a trial's, counts as one.
    case history(user: UserID, months: Int)
    /// Without a period: every period that is open now.
    case report(period: BillingPeriod?)
    /// `count` is 1 to 1,000. Without a period: every period that is open now.
    case top(period: BillingPeriod?, count: Int)
    /// At least one channel.
    case subscribe([UsageChannel])
    /// Nil: all there are.
    case unsubscribe([UsageChannel]?)
    /// Boxed, because it is the rarest and by far the largest: the others would all be moved about at its size.
    indirect case setPlan(PlanChange)
    /// `messages` is 1 to 1,000,000; `reason` is for the audit log.
    case grant(user: UserID, messages: Int, key: MessageKey, reason: String?)
    /// Without a period: the current one.
    case resetUsage(user: UserID, period: BillingPeriod?)
    case forget(user: UserID)
    case ping(text: String?)
    case echo(text: String)
    /// Without a verb: all of them.
    case help(verb: Verb?)
    case info
    case authenticate(Credentials)
    case quit
    /// The RESP version that a client library wants to speak, 2 or 3, and who it is.
    case hello(version: Int, credentials: Credentials? = nil)
    /// What client libraries say about themselves when they connect; answered `+OK`, whatever it says.
    case client
    /// What interactive clients ask to learn the commands; answered with an empty list.
    case command
    /// The choice of database 0; there is no other.
    case select
}
