import ArgumentParser
import Postgres
import ServiceCore
import Usage

struct MigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Migrate a database to this binary's schema (serve does it too).",
        discussion:
            "Safe while the service runs, and when several start at once. Exit status 0 when the schema is current."
    )

    @OptionGroup var database: DatabaseOptions

    @Flag(help: "Only show whether the schema is current, and what differs. Exit status 1 when something does.")
    var status = false

    @Flag(help: "With --status: list all files of the schema with the times of their application.")
    var verbose = false

    @Flag(help: "Only show the changes, and why. Exit status 1 when there are any.")
    var plan = false

    func validate() throws {
        if verbose, !status { throw ValidationError("--verbose goes with --status") }
        if status, plan { throw ValidationError("give --status or --plan, not both") }
    }

    func run() async throws {
        let access = try DatabaseAccess(database)
        try await access.run { database in
            try await work(SchemaSetup(database: database, retryLimit: .zero, logger: access.logger))
        }
    }

    private func work(_ setup: SchemaSetup) async throws {
        if status { return try await showStatus(setup) }
        if plan { return try await showPlan(setup) }
        let progress = SteppedProgress()
        let applied = try await progress.show { try await setup.migrate { progress.begin("applying \($0)") } }
        for change in applied.changes {
            if case .apply(let file) = change { try StandardOutput.print("applied \(file)") }
            if case .drop(let object) = change { try StandardOutput.print("dropped \(object)") }
            if case .restore(let object) = change { try StandardOutput.print("restored \(object)") }
            if case .grant(let role) = change { try StandardOutput.print("granted \(role) its rights") }
        }
        try StandardOutput.print(
            applied.isEmpty ? "the schema is current" : "the schema is now current: \(applied.summary)"
        )
    }

    private func showPlan(_ setup: SchemaSetup) async throws {
        let plan = try await setup.plan()
        for change in plan.changes { try StandardOutput.print(change.line) }
        try StandardOutput.print(
            plan.isEmpty ? "nothing to do: the schema is current" : "to do, in one transaction: \(plan.summary)"
        )
        if !plan.isEmpty { throw ExitCode(1) }
    }

    private func showStatus(_ setup: SchemaSetup) async throws {
        let files = try await setup.status()
        let altered = try await setup.alteredObjects()
        let roles = try await setup.newRoles()
        let different = files.filter { !$0.isApplied }
        let verdict =
            if different.isEmpty, altered.isEmpty, roles.isEmpty {
                "the schema is current: \(files.count) files are applied"
            } else if files.allSatisfy(\.isPending) {
                "there is no schema yet: headroom migrate creates it"
            } else {
                """
                the schema is not current: \(different.count) of \(files.count) files differ; \
                headroom migrate --plan shows what would change
                """
            }
        try StandardOutput.print(verdict)
        let listed = verbose ? files : files.allSatisfy(\.isPending) ? [] : different
        for file in listed { try StandardOutput.print(file.line) }
        for object in altered { try StandardOutput.print("not as it was installed: \(object)") }
        for role in roles { try StandardOutput.print("created after the last migration, without rights: \(role)") }
        if !different.isEmpty || !altered.isEmpty || !roles.isEmpty { throw ExitCode(1) }
    }
}

extension MigrationPlan.Change {
    fileprivate var line: String {
        switch self {
        case .apply(let file): "apply \(file): not applied yet"
        case .create(let file): "apply \(file): not in the database yet"
        case .replace(let file): "apply \(file): the database has another version"
        case .restore(let object): "restore \(object)"
        case .grant(let role): "grant \(role) its rights: it was created after the last migration"
        case .drop(let object): "drop the objects of \(object): this release does not have the file"
        }
    }
}

extension MigrationStatus {
    fileprivate var isApplied: Bool {
        if case .applied = state { true } else { false }
    }

    fileprivate var isPending: Bool {
        if case .pending = state { true } else { false }
    }

    /// `applied 2026-11-21T09:30:00Z  tables/0002_message_usage.sql`; the file comes last, so that columns are aligned.
    fileprivate var line: String {
        func columns(_ word: String, _ microseconds: Int64?, _ remark: String = "") -> String {
            let word = word + String(repeating: " ", count: "applied".count - word.count)
            let at = microseconds.map { Instant(microsecondsSince1970: $0).text }
            return "\(word) \(at ?? "-                   ")  \(file)\(remark)"
        }
        return switch state {
        case .applied(let microseconds): columns("applied", microseconds)
        case .pending: columns("pending", nil)
        case .changed(let microseconds): columns("changed", microseconds, ": another version than this binary's")
        case .unknown(let microseconds): columns("unknown", microseconds, ": this binary does not have it")
        }
    }
}
