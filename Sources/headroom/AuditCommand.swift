import ArgumentParser
import Engine
import OperatorConsole
import Postgres
import ServiceCore

struct AuditCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit",
        abstract: "Show a user's audit trail: each reset, grant, change of plan or state, and manual change.",
        discussion: """
            Reads the view audit_trail in the database; no service needs to run. Exit status 1 if there is no record \
            of the user, 69 if the database cannot be reached.
            """
    )

    @Argument(help: UserArgument.help) var user: UserArgument
    @Option(help: "Maximum number of events; the newest are shown (1 to 100000).") var limit = 1_000
    @Flag(help: "JSON on standard output, an object a line, instead of a table.") var json = false
    @OptionGroup var database: DatabaseOptions

    func validate() throws {
        guard (1...100_000).contains(limit) else { throw ValidationError("--limit must be 1 to 100000") }
    }

    func run() async throws {
        let (user, limit) = (user, limit)
        let access = try DatabaseAccess(database)
        let events = try await access.run(onThreadNamed: "headroom.audit", failingWith: AuditCommand.failure) {
            database in
            try AuditTrailReader(database: database).events(of: user.id(in: database), limit: limit).map { event in
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
            throw CommandFailure.notFound("there is no record of this user").exitCodeAfterPrinting()
        }
        let trail = AuditTrail(events)
        try StandardOutput.print(list: trail.events, asJSON: json, else: trail.text(width: Terminal.size?.width))
    }

    private static func failure(_ error: PostgresError) -> CommandFailure {
        switch error.sqlState {
        case .insufficientPrivilege:
            .permissionDenied(
                "this role may not read audit_trail; connect as one that may (docs/database.md, Hand out roles)"
            )
        default: CommandFailure(error)
        }
    }
}
