import ArgumentParser
import Billing
import Engine
import HeadroomServer
import OperatorConsole
import Postgres

struct Events: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Look at billing events, and apply them again.",
        discussion: """
            Works on the database, without a service. The database login must be granted headroom_operator or own the \
            schema. Exit status 1 when there is nothing to show, when some events still fail, and when the database \
            refuses; 69 when it cannot be reached.
            """,
        subcommands: [EventsList.self, EventsShow.self, EventsReplay.self]
    )
}

struct EventsList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List what stores sent, in the order in which it happened, with what became of it."
    )

    @Flag(help: "Only what could not be applied.") var failed = false
    @Option(help: "Only what concerns the user with this UUID.") var user: UserArgument?
    @Option(help: "So many at most, those that came last (1 to 100000).") var limit = 1_000
    @Flag(help: "JSON on standard output, an object a line, instead of a table.") var json = false
    @OptionGroup var database: DatabaseOptions

    func validate() throws {
        guard (1...100_000).contains(limit) else { throw ValidationError("--limit must be 1 to 100000") }
    }

    func run() async throws {
        let (failed, user, limit) = (failed, user?.id, limit)
        let entries = try await StoreCommands.run(database) { url in
            try BillingEventRegister(databaseURL: url).list(onlyFailed: failed, of: user, limit: limit)
        }
        let table = NotificationTable(
            entries.map { entry in
                NotificationTable.Notification(
                    source: entry.source,
                    id: entry.id,
                    type: entry.type,
                    at: entry.happenedAt.text,
                    receivedAt: entry.receivedAt.text,
                    user: entry.user,
                    outcome: entry.outcome,
                    problem: entry.problem,
                    attempts: entry.attempts
                )
            }
        )
        guard !table.notifications.isEmpty else {
            throw CommandEnd.noData(failed ? "nothing failed" : "no store has sent anything").exit()
        }
        if json {
            try StandardOutput.print(lines: try table.notifications.map { try $0.jsonLine() })
        } else {
            try StandardOutput.print(table.text)
        }
    }
}

struct EventsShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show all that is kept of an event: what it was taken for, what became of it, the store's own words."
    )

    @Argument(help: ArgumentHelp("\(Stores.names), or a billing system's name.")) var source: String
    @Argument(help: "The store's id of the event.") var id: String
    @Flag(help: "JSON in one line.") var json = false
    @OptionGroup var database: DatabaseOptions

    func run() async throws {
        let name = BillingEventRegister.Name(source: source, id: id)
        let shown = try await StoreCommands.run(database) { url in try BillingEventRegister(databaseURL: url).show(name)
        }
        guard let shown else {
            throw CommandEnd.noData("there is no such event; headroom events list has those that came").exit()
        }
        try StandardOutput.print(json ? shown.compact : NotificationTable.shown(shown.indented))
    }
}

struct EventsReplay: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Read kept events anew and apply them: one, those that failed, or all.",
        discussion: """
            Each in a transaction of its own, the oldest first, beside a running service. What was applied before is \
            replaced by what it is taken for now; where it is taken for the same, nothing changes.
            """
    )

    @Argument(help: ArgumentHelp("\(Stores.names), or a billing system's name.")) var source: String?
    @Argument(help: "The store's id of the event.") var id: String?
    @Flag(help: "All that could not be applied.") var failed = false
    @Flag(help: "All that is kept.") var all = false
    @Flag(help: "JSON on standard output, an object a line.") var json = false
    @OptionGroup var database: DatabaseOptions

    func validate() throws {
        guard (source == nil) == (id == nil), [source != nil, failed, all].count(where: { $0 }) == 1 else {
            throw ValidationError("name one event by its source and id, or give --failed or --all")
        }
    }

    func run() async throws {
        let (failed, json) = (failed, json)
        let name = source.flatMap { source in id.map { BillingEventRegister.Name(source: source, id: $0) } }
        let failures = try await StoreCommands.run(database) { url -> Int? in
            let register = try BillingEventRegister(databaseURL: url)
            let names = try register.names(name, onlyFailed: failed)
            guard name == nil || !names.isEmpty else { return nil }
            var failures = 0
            for name in names {
                let replay = try EventsReplay.replay(name, register)
                if replay.outcome == "failed" { failures += 1 }
                try StandardOutput.print(json ? try replay.jsonLine() : replay.text)
            }
            return failures
        }
        guard let failures else {
            throw CommandEnd.noData("there is no such event; headroom events list has those that came").exit()
        }
        if failures > 0 { throw CommandEnd.noData("\(failures) could not be applied").exit() }
    }

    private static func replay(
        _ name: BillingEventRegister.Name,
        _ register: borrowing BillingEventRegister
    ) throws -> NotificationTable.Replay {
        func ended(_ outcome: String, _ problem: String?) -> NotificationTable.Replay {
            NotificationTable.Replay(source: name.source, id: name.id, outcome: outcome, problem: problem)
        }
        guard let payload = try register.payload(of: name) else {
            return ended("failed", "what was in it is not kept any more")
        }
        do {
            let event = try BillingEvent(source: name.source, payload: Array(payload.utf8))
            guard event.id == name.id else {
                return ended("failed", "its payload is that of another event")
            }
            let replayed = try register.replay(event)
            return ended(replayed.outcome, replayed.problem)
        } catch let error as BillingError {
            return ended("failed", error.description)
        } catch let error as PostgresError where error.sqlState != nil && !error.isTransient {
            // Of this event; the next may be well.
            return ended("failed", error.message)
        }
    }
}
