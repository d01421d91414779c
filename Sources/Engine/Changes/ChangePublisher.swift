import Logging
import Postgres
import Synchronization
import Usage

/// Publishes changes of users' snapshots to subscribed connections, wherever a change was made: on a connection and a
/// thread of its own, it polls the database for rows that were written since the last poll.
///
/// docs/decisions/0011-changes-by-polling.md has the reason why it polls and does not listen.
public final class ChangePublisher: Sendable {
    /// The most users with subscribers, over all connections.
    static let usersMaximum = 100_000
    /// The most users in a statement. It holds a database snapshot, so it has to be short.
    static let batchMaximum = 512
    /// A pause is at least this many times as long as the work before it: a fifth of a core of the database at most.
    static let restPerWork = 4

    private enum Command: Sendable {
        case subscribe(SubscribeRequest)
        case unsubscribe([UserID], ChangeSubscriber)
        case disconnect(ChangeSubscriber)
    }

    private struct Inbox {
        var commands: [Command] = []
        var isClosed = false
    }

    private let inbox = Mutex(Inbox())
    private let wake = WakePipe()
    private let configuration: EngineConfiguration
    private let mailboxes: MailboxRegistry
    private let words: CurrentWords
    private let invalidValues: InvalidValueLog
    private let logger: Logger

    init(
        _ configuration: EngineConfiguration,
        mailboxes: MailboxRegistry,
        words: CurrentWords,
        invalidValues: InvalidValueLog,
        logger: Logger
    ) {
        self.configuration = configuration
        self.mailboxes = mailboxes
        self.words = words
        self.invalidValues = invalidValues
        self.logger = logger
    }

    // MARK: From any thread

    /// Subscribes. The outcome is delivered through the mailbox; publications follow it.
    public func subscribe(_ request: SubscribeRequest) { enqueue(.subscribe(request)) }

    public func unsubscribe(_ users: [UserID], _ subscriber: ChangeSubscriber) {
        enqueue(.unsubscribe(users, subscriber))
    }

    /// Ends all subscriptions of a connection that is closed.
    public func disconnect(_ subscriber: ChangeSubscriber) { enqueue(.disconnect(subscriber)) }

    /// Ends `run`. Waiting requests fail.
    func close() {
        inbox.withLock { $0.isClosed = true }
        wake.wake()
    }

    private func enqueue(_ command: Command) {
        let isFirst = inbox.withLock {
            $0.commands.append(command)
            return $0.commands.count == 1
        }
        if isFirst { wake.wake() }
    }

    // MARK: On the publisher's thread

    func run() {
        let session = ReconnectingSession<Void>(
            options: configuration.sessionOptions("changes", readOnly: true),
            statements: ChangePoll.statements,
            wake: wake,
            logger: logger
        )
        var poll = ChangePoll(
            session: session,
            configuration: configuration,
            words: words,
            invalidValues: invalidValues,
            logger: logger
        )
        var list = ChangeSubscriberList(usersMaximum: ChangePublisher.usersMaximum)
        while true {
            let (commands, isClosed) = inbox.withLock { inbox in
                defer { inbox.commands.removeAll() }
                return (inbox.commands, inbox.isClosed)
            }
            mailboxes.deliver(commands.compactMap { ChangePublisher.apply($0, &list) })
            mailboxes.deliver(list.expire(at: .now))
            if isClosed { break }
            guard !list.isEmpty else {
                session.close()
                poll.reset()
                _ = wake.sleep(orUntilReadable: -1, until: nil)
                continue
            }
            session.advance()
            guard session.connection != nil else {
                // The changes that are made meanwhile are found once the database is back.
                poll.reset()
                _ = wake.sleep(orUntilReadable: -1, until: earliest(session.retryAt, list.nextDeadline))
                continue
            }
            step(&poll, &list, session)
        }
        mailboxes.deliver(list.failAll())
        session.close()
    }

    private static func apply(_ command: Command, _ list: inout ChangeSubscriberList) -> Completion? {
        switch command {
        case .subscribe(let request): return list.subscribe(request)
        case .unsubscribe(let users, let subscriber): for user in users { list.unsubscribe(user, subscriber) }
        case .disconnect(let subscriber): list.disconnect(subscriber)
        }
        return nil
    }

    private func step(
        _ poll: inout ChangePoll,
        _ list: inout ChangeSubscriberList,
        _ session: ReconnectingSession<Void>
    ) {
        do throws(PostgresError) {
            switch try poll.step(&list) {
            case .progress(let publications):
                mailboxes.deliver(list.takeCompletions())
                mailboxes.publish(publications)
            case .rest(let until):
                _ = wake.sleep(orUntilReadable: -1, until: earliest(until, list.nextDeadline))
            }
        } catch {
            if !error.isTransient {
                logger.error("changes could not be read", metadata: ["error": "\(error)"])
            }
            session.drop(error)
        }
    }

    private func earliest(_ instants: ContinuousClock.Instant?...) -> ContinuousClock.Instant? {
        instants.compactMap(\.self).min()
    }
}
