import ArgumentParser
import HeadroomServer
import Postgres
import Usage

struct Migrate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Bring a database to this binary's schema (serve does it too).",
        discussion: "Safe while the service runs and when several start together. Exit status 0 when it is current."
    )

    @OptionGroup var database: DatabaseOptions

    @Flag(help: "Only tell which migrations are applied, and change nothing. Exit status 1 when some are missing.")
    var status = false

    func run() async throws {
        let access = try DatabaseAccess(database)
        try await access.run { url in
            try await work(SchemaSetup(databaseURL: url, patience: .zero, logger: access.logger))
        }
    }

    private func work(_ setup: SchemaSetup) async throws {
        guard status else {
            let applied = try await setup.migrate()
            print(applied.isEmpty ? "the schema is current" : "applied \(applied.joined(separator: ", "))")
            return
        }
        let migrations = try await setup.status()
        for migration in migrations { print(migration.line) }
        if migrations.contains(where: { $0.appliedAt == nil }) { throw ExitCode(1) }
    }
}

extension MigrationStatus {
    /// `0001_message_usage.sql  applied 2026-11-21T09:30:00Z`
    fileprivate var line: String {
        func at(_ microseconds: Int64) -> String { Instant(microsecondsSince1970: microseconds).text }
        return switch state {
        case .applied(let microseconds): "\(fileName)  applied \(at(microseconds))"
        case .pending: "\(fileName)  pending"
        case .changed(let microseconds):
            "\(fileName)  applied \(at(microseconds)), with another text than this binary's"
        case .unknown(let microseconds):
            "\(fileName)  applied \(at(microseconds)), unknown to this binary, which is older"
        }
    }
}
