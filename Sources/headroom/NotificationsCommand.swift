import ArgumentParser
import Engine
import Foundation
import Notifications
import OperatorConsole
import Postgres
import ServiceCore
import Usage

struct NotificationsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notifications",
        abstract: "Show notifications about users who have reached a tier, and send them again.",
        discussion: """
            list, show and replay connect to the database, not to a service. The database login must be granted \
            headroom_operator or own the schema. Exit status 1 if there is no such notification, or the database refuses; \
            69 if it cannot be reached.
            """,
        subcommands: [
            NotificationsListCommand.self, NotificationsShowCommand.self, NotificationsReplayCommand.self,
            NotificationsTestCommand.self,
        ]
    )

    fileprivate static func run<Value: Sendable>(
        _ database: DatabaseOptions,
        _ work: @escaping @Sendable (_ database: DatabaseTopology) throws -> Value
    ) async throws -> Value {
        try await DatabaseAccess(database).run(onThreadNamed: "headroom.notifications", failingWith: failure, work)
    }

    private static func failure(_ error: PostgresError) -> CommandFailure {
        switch error.sqlState {
        case .insufficientPrivilege:
            .permissionDenied(
                "this role may not read or replay notifications; connect as one that is granted headroom_operator"
            )
        default: CommandFailure(error)
        }
    }

    fileprivate static let notFound = CommandFailure.notFound(
        "there is no such notification; headroom notifications list shows all"
    )
}

struct NotificationsListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List notifications, the oldest first, and whether they are delivered."
    )

    @Flag(help: "Only those that are not tried again.") var failed = false
    @Flag(help: "Only those that are not delivered yet, and are tried again.") var pending = false
    @Option(help: "Only those of the user with this UUID, or with user-namespace another id.") var user: UserArgument?
    @Option(help: "Maximum number; the newest are shown (1 to 100000).") var limit = 1_000
    @Flag(help: "JSON on standard output, an object a line, instead of a table.") var json = false
    @OptionGroup var database: DatabaseOptions

    func validate() throws {
        guard (1...100_000).contains(limit) else { throw ValidationError("--limit must be 1 to 100000") }
        guard !(failed && pending) else { throw ValidationError("give --failed or --pending, not both") }
    }

    func run() async throws {
        let (user, limit) = (user, limit)
        let status: NotificationLog.Status? = failed ? .failed : pending ? .pending : nil
        let entries = try await NotificationsCommand.run(database) { database in
            try NotificationLog(database: database).list(status, of: user?.id(in: database), limit: limit)
        }
        let table = NotificationTable(
            entries.map { entry in
                NotificationTable.Notification(
                    id: entry.id,
                    createdAt: entry.createdAt.text,
                    user: entry.user,
                    period: entry.period,
                    plan: entry.plan,
                    allowance: entry.allowance,
                    part: entry.part,
                    tier: entry.tier,
                    status: entry.status.rawValue,
                    attempts: entry.attempts,
                    nextAttemptAt: entry.nextAttemptAt?.text,
                    deliveredAt: entry.deliveredAt?.text,
                    problem: entry.problem
                )
            }
        )
        try StandardOutput.print(
            list: table.notifications,
            asJSON: json,
            else: table.notifications.isEmpty ? "no notification" : table.text(width: Terminal.size?.width)
        )
    }
}

struct NotificationsShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show a notification: its body, and how its delivery goes."
    )

    @Argument(help: "The notification's id.") var id: String
    @Flag(help: "JSON in one line.") var json = false
    @OptionGroup var database: DatabaseOptions

    func run() async throws {
        let id = id
        let notification = try await NotificationsCommand.run(database) { database in
            try NotificationLog(database: database).show(id)
        }
        guard let notification else { throw NotificationsCommand.notFound.exitCodeAfterPrinting() }
        try StandardOutput.print(
            json ? notification.compact : EventTable.printableLines(notification.indented)
        )
    }
}

struct NotificationsReplayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Send notifications again: some by their ids, or all that have failed.",
        discussion: """
            A service sends them within seconds, with the same id and body as before, and tries as often as at first. \
            Prints their ids.
            """
    )

    @Argument(help: "Ids of notifications.") var ids: [String] = []
    @Flag(help: "All that are not tried again.") var failed = false
    @OptionGroup var database: DatabaseOptions

    func validate() throws {
        guard ids.isEmpty == failed else { throw ValidationError("give ids of notifications, or --failed") }
        for id in ids where UUID(uuidString: id) == nil {
            throw ValidationError("an id is a UUID, as headroom notifications list shows it")
        }
    }

    func run() async throws {
        let ids = failed ? nil : ids
        let replayed = try await NotificationsCommand.run(database) { database in
            try NotificationLog(database: database).replay(ids)
        }
        if !replayed.isEmpty { try StandardOutput.print(replayed.joined(separator: "\n")) }
        guard replayed.count >= Set((ids ?? []).map { $0.lowercased() }).count else {
            throw NotificationsCommand.notFound.exitCodeAfterPrinting()
        }
    }
}

struct NotificationsTestCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test",
        abstract: "Send a signed test to notifications-url, and print whether it was delivered.",
        discussion: "Connects to no service and no database. Its type is test. Exit status 1 if it was not delivered."
    )

    @OptionGroup var options: GroupOptions<NotificationSettings>

    func run() async throws {
        let settings = try ServerConfiguration(SettingsReader([options])).settings.notifications
        guard let url = settings.url else {
            throw CommandFailure.invalidArguments("notifications-url is not set").exitCodeAfterPrinting()
        }
        let logger = LogSetup.start(level: .warning)
        options.warnAboutSecrets(logger)
        let signer = try NotificationSigner(settings)
        let sender = NotificationSender(url: url, signer)
        let now = Instant(microsecondsSince1970: Int64(Date().timeIntervalSince1970 * 1_000_000))
        let problem = await sender.sendTest(
            id: UUID().uuidString.lowercased(),
            now: now.microsecondsSince1970 / 1_000_000,
            at: now.text
        )
        await sender.close()
        if let problem {
            throw CommandFailure.notDelivered("not delivered: \(problem)").exitCodeAfterPrinting()
        }
        try StandardOutput.print("delivered")
    }
}
