import ArgumentParser
import Engine
import HeadroomServer
import OperatorConsole
import Postgres

struct Audit: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tell a user's story: each reset, grant, change of plan or state, and change by hand.",
        discussion: """
            Reads the view audit_trail in the database; no service need be running. Exit status 1 when nothing is on \
            record about the user, 69 when the database cannot be reached.
            """
    )

    @Argument(help: "The user's UUID.") var user: UserArgument
    @Option(help: "So many events at most, the newest (1 to 100000).") var limit = 1_000
    @Flag(help: "JSON on standard output, an object a line, instead of a table.") var json = false
    @OptionGroup var database: DatabaseOptions

    func validate() throws {
        guard (1...100_000).contains(limit) else { throw ValidationError("--limit must be 1 to 100000") }
    }

    func run() async throws {
        let (user, limit) = (user.id, limit)
        let access = try DatabaseAccess(database)
        let events = try await access.run(onThreadNamed: "headroom.audit", endingWith: Audit.end) { url in
            try AuditTrailReader(databaseURL: url).events(of: user, limit: limit).map { event in
                AuditTrail.Event(
                    at: event.at.text,
                    what: event.what,
                    detail: event.detail,
                    actor: event.actor,
                    reason: event.reason
                )
            }
        }
        guard !events.isEmpty else {
            throw CommandEnd.noData("nothing is on record about this user").exit()
        }
        let story = AuditTrail(events)
        if json {
            try StandardOutput.print(lines: try story.events.map { try $0.jsonLine() })
        } else {
            try StandardOutput.print(story.text)
        }
    }

    private static func end(_ error: PostgresError) -> CommandEnd {
        switch error.sqlState {
        case SQLState(rawValue: "42P01"), SQLState(rawValue: "42703"), SQLState(rawValue: "3F000"):
            .schemaIsMissing
        case SQLState(rawValue: "42501"):
            .noData("this role may not read audit_trail; connect as one that may (docs/operations.md, Hand out roles)")
        default: CommandEnd(error)
        }
    }
}
