import ArgumentParser
import HeadroomServer
import Postgres
import Usage

struct MigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Migrate a database to this binary's schema (serve does it too).",
        discussion:
            "Safe while the service runs, and when several start at once. Exit status 0 when the schema is current."
    )

    @OptionGroup var database: DatabaseOptions

    @Flag(help: "Only show which files are applied. Exit status 1 when some are missing or different.")
    var status = false

    @Flag(help: "Only show the changes, and why. Exit status 1 when there are any.")
    var plan = false

    func validate() throws {
        if status, plan { throw ValidationError("give --status or --plan, not both") }
    }

    func run() async throws {
        let access = try DatabaseAccess(database)
        try await access.run { url in
            try await work(SchemaSetup(databaseURL: url, retryLimit: .zero, logger: access.logger))
        }
    }

    private func work(_ setup: SchemaSetup) async throws {
        if status { return try await showStatus(setup) }
        if plan { return try await showPlan(setup) }
        let applied = try await setup.migrate()
        for change in applied.changes {
            if case .apply(let file) = change { try StandardOutput.print("applied \(file)") }
            if case .drop(let object) = change { try StandardOutput.print("dropped \(object)") }
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
        for file in files { try StandardOutput.print(file.line) }
        let isCurrent = files.allSatisfy { if case .applied = $0.state { true } else { false } }
        if !isCurrent { throw ExitCode(1) }
    }
}

extension MigrationPlan.Change {
    fileprivate var line: String {
        switch self {
        case .apply(let file): "apply \(file): not applied yet"
        case .create(let file): "apply \(file): not in the database yet"
        case .replace(let file): "apply \(file): the database has another version"
        case .drop(let object): "drop the objects of \(object): this release does not have the file"
        }
    }
}

extension MigrationStatus {
    /// `tables/0001_message_usage.sql  applied 2026-11-21T09:30:00Z`
    fileprivate var line: String {
        func at(_ microseconds: Int64) -> String { Instant(microsecondsSince1970: microseconds).text }
        return switch state {
        case .applied(let microseconds): "\(file)  applied \(at(microseconds))"
        case .pending: "\(file)  pending"
        case .changed(let microseconds): "\(file)  applied \(at(microseconds)), as another version than this binary's"
        case .unknown(let microseconds): "\(file)  applied \(at(microseconds)), unknown to this binary"
        }
    }
}
