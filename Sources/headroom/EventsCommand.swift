import ArgumentParser
import Billing
import Engine
import OperatorConsole
import Postgres
import ServiceCore
import StoreEvents
import Usage

struct EventsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events",
        abstract: "Show billing events, and apply them again.",
        discussion: """
            Connects to the database, not to a service. The database login must be granted headroom_operator or own the \
            schema. Exit status 1 if there is no such event, some still fail, or the database refuses; 69 if it cannot be \
            reached.
            """,
        subcommands: [EventsListCommand.self, EventsShowCommand.self, EventsReplayCommand.self]
    )
}

struct EventsListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the stores' events in the order in which they happened, with their outcomes."
    )

    @Flag(help: "Only events that could not be applied.") var failed = false
    @Option(help: "Only events of the user with this UUID, or with user-namespace another id.") var user: UserArgument?
    @Option(help: "Maximum number of events; those received last are shown (1 to 100000).") var limit = 1_000
    @Flag(help: "JSON on standard output, an object a line, instead of a table.") var json = false
    @OptionGroup var database: DatabaseOptions

    func validate() throws {
        guard (1...100_000).contains(limit) else { throw ValidationError("--limit must be 1 to 100000") }
    }

    func run() async throws {
        let (failed, user, limit) = (failed, user, limit)
        let entries = try await StoreCommands.run(database) { database in
            try BillingEventLog(database: database).list(onlyFailed: failed, of: user?.id(in: database), limit: limit)
        }
        let table = EventTable(
            entries.map { entry in
                EventTable.Event(
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
        let none =
            failed ? "no event failed" : user == nil ? "no event has arrived" : "no event of this user has arrived"
        try StandardOutput.print(
            list: table.events,
            asJSON: json,
            else: table.events.isEmpty ? none : table.text(width: Terminal.size?.width)
        )
    }
}

struct EventsShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show an event: its meaning, its outcome, and the store's own payload."
    )

    @Argument(help: ArgumentHelp("\(Stores.names), or a billing system's name.")) var source: String
    @Argument(help: "The store's id of the event.") var id: String
    @Flag(help: "JSON in one line.") var json = false
    @OptionGroup var database: DatabaseOptions

    func run() async throws {
        let name = BillingEventLog.Name(source: source, id: id)
        let event = try await StoreCommands.run(database) { database in
            try BillingEventLog(database: database).show(name)
        }
        guard let event else {
            throw CommandFailure.notFound("there is no such event; headroom events list shows all")
                .exitCodeAfterPrinting()
        }
        try StandardOutput.print(json ? event.compact : EventTable.printableLines(event.indented))
    }
}

struct EventsReplayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Decode stored events again and apply them: one, those that failed, or all.",
        discussion: """
            Applies each event in its own transaction, links of customers first, then the oldest. The service may run \
            meanwhile. The new meaning of an event replaces the old one; if both are the same, nothing changes.
            """
    )

    @Argument(help: ArgumentHelp("\(Stores.names), or a billing system's name.")) var source: String?
    @Argument(help: "The store's id of the event.") var id: String?
    @Flag(help: "All events that could not be applied.") var failed = false
    @Flag(help: "All stored events.") var all = false
    @Flag(help: "JSON on standard output, an object a line.") var json = false
    @OptionGroup var database: DatabaseOptions

    func validate() throws {
        guard (source == nil) == (id == nil), [source != nil, failed, all].count(where: { $0 }) == 1 else {
            throw ValidationError("name one event by its source and id, or give --failed or --all")
        }
    }

    func run() async throws {
        let (failed, json) = (failed, json)
        let name = source.flatMap { source in id.map { BillingEventLog.Name(source: source, id: $0) } }
        let failures = try await StoreCommands.run(database) { database -> Int? in
            let register = try BillingEventLog(database: database)
            let names = try register.names(name, onlyFailed: failed)
            guard name == nil || !names.isEmpty else { return nil }
            var failures = 0
            // On a terminal, the lines of the events show how far it is.
            var display = Terminal.size == nil ? ProgressDisplay(total: names.count, firstAfter: .seconds(1)) : nil
            defer { display?.end() }
            for (index, name) in names.enumerated() {
                display?.show(index, of: "events")
                let replay = try EventsReplayCommand.replay(name, register)
                if replay.outcome == "failed" { failures += 1 }
                try StandardOutput.print(json ? try replay.jsonLine() : replay.text)
            }
            return failures
        }
        guard let failures else {
            throw CommandFailure.notFound("there is no such event; headroom events list shows all")
                .exitCodeAfterPrinting()
        }
        if failures > 0 {
            throw CommandFailure.eventsNotApplied("\(failures) could not be applied").exitCodeAfterPrinting()
        }
    }

    private static func replay(
        _ name: BillingEventLog.Name,
        _ register: borrowing BillingEventLog
    ) throws -> EventTable.Replay {
        do throws(PostgresError) {
            let replayed = try register.replay(name, translate: BillingEvent.init(source:payload:))
            return EventTable.Replay(
                source: name.source,
                id: name.id,
                outcome: replayed.outcome,
                problem: replayed.problem
            )
        } catch {
            guard error.sqlState != nil, !error.isTransient else { throw error }
            // An error of this event only; the next may succeed.
            return EventTable.Replay(source: name.source, id: name.id, outcome: "failed", problem: error.message)
        }
    }
}
