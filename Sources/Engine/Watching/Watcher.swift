import Logging
import Postgres
import Synchronization
import Usage

/// Tells connections when a user's snapshot changes, whoever changed it: on a connection and a thread of its own, it asks
/// the database again and again which of the watched users' rows were written since.
///
/// Why it asks instead of listening: docs/decisions/0011-changes-by-polling.md.
public final class Watcher: Sendable {
    /// Users watched at most, over all connections.
    static let usersMaximum = 100_000
    /// Users that one statement asks about. A statement holds a snapshot, so it has to be short.
    static let portion = 512
    /// Pauses are at least so many times as long as the work was: a fifth of a core of the database at most.
    static let restPerWork = 4

    private enum Order: Sendable {
        case watch(WatchRequest)
        case unwatch([UserID], Subscriber)
        case leave(Subscriber)
    }

    private struct Inbox {
        var orders: [Order] = []
        var isClosed = false
    }

    private let inbox = Mutex(Inbox())
    private let wake = WakePipe()
    private let configuration: EngineConfiguration
    private let mailboxes: MailboxRegistry
    private let invalidValues: InvalidValueLog
    private let logger: Logger

    init(
        _ configuration: EngineConfiguration,
        mailboxes: MailboxRegistry,
        invalidValues: InvalidValueLog,
        logger: Logger
    ) {
        self.configuration = configuration
        self.mailboxes = mailboxes
        self.invalidValues = invalidValues
        self.logger = logger
    }

    // MARK: From any thread

    /// The outcome comes through the mailbox; publications may come from then on.
    public func watch(_ request: WatchRequest) { put(.watch(request)) }

    public func unwatch(_ users: [UserID], _ subscriber: Subscriber) { put(.unwatch(users, subscriber)) }

    /// The connection is gone.
    public func leave(_ subscriber: Subscriber) { put(.leave(subscriber)) }

    /// Nobody can ask any more; `run` returns.
    func close() {
        inbox.withLock { $0.isClosed = true }
        wake.wake()
    }

    private func put(_ order: Order) {
        let isFirst = inbox.withLock {
            $0.orders.append(order)
            return $0.orders.count == 1
        }
        if isFirst { wake.wake() }
    }

    // MARK: The watcher's thread

    func run() {
        let session = ReconnectingSession<Void>(
            options: configuration.sessionOptions("watcher", readOnly: true),
            statements: WatchPoll.statements,
            wake: wake,
            logger: logger
        )
        var poll = WatchPoll(session: session, configuration: configuration, invalidValues: invalidValues)
        var list = WatchList(usersMaximum: Watcher.usersMaximum)
        while true {
            let (orders, isClosed) = inbox.withLock { inbox in
                defer { inbox.orders.removeAll() }
                return (inbox.orders, inbox.isClosed)
            }
            mailboxes.deliver(orders.compactMap { Watcher.carryOut($0, &list) })
            mailboxes.deliver(list.expire(at: .now))
            if isClosed { break }
            guard !list.isEmpty else {
                session.close()
                poll.forget()
                _ = wake.sleep(orUntilReadable: -1, until: nil)
                continue
            }
            session.advance()
            guard session.connection != nil else {
                // What changes meanwhile is found when the database is back.
                poll.forget()
                _ = wake.sleep(orUntilReadable: -1, until: earliest(session.retryAt, list.nextDeadline))
                continue
            }
            step(&poll, &list, session)
        }
        mailboxes.deliver(list.refuseAll())
        session.close()
    }

    private static func carryOut(_ order: Order, _ list: inout WatchList) -> Completion? {
        switch order {
        case .watch(let request): return list.watch(request)
        case .unwatch(let users, let subscriber): for user in users { list.unwatch(user, subscriber) }
        case .leave(let subscriber): list.leave(subscriber)
        }
        return nil
    }

    private func step(_ poll: inout WatchPoll, _ list: inout WatchList, _ session: ReconnectingSession<Void>) {
        do throws(PostgresError) {
            switch try poll.step(&list) {
            case .progress(let publications):
                mailboxes.deliver(list.takeConfirmed())
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
