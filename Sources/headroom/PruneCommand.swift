import ArgumentParser
import Engine
import ServiceCore

struct PruneCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "prune",
        abstract: "Delete old keys, payloads of billing events and notifications (serve does it in the background).",
        discussion: "Works in small batches; the service may run meanwhile. Prints how much was deleted."
    )

    @OptionGroup var database: DatabaseOptions
    @OptionGroup var options: PruneOptions

    func run() async throws {
        let access = try DatabaseAccess(database, options)
        try await access.run { database in
            let housekeeper = Housekeeper(
                database: database,
                keepDays: access.configuration.settings.counting.keysKeepDays,
                logger: access.logger
            )
            var failure: (any Error)?
            for task in Housekeeper.MaintenanceTask.allCases {
                do {
                    var display = ProgressDisplay(total: nil, firstAfter: .seconds(1))
                    defer { display.end() }
                    let deleted = try await housekeeper.perform(task) { display.show($0, of: task.progressUnits) }
                    display.end()
                    try PruneCommand.report(deleted, task)
                } catch {
                    // A failure of one task does not stop the others.
                    failure = failure ?? error
                }
            }
            if let failure { throw failure }
        }
    }

    private static func report(_ deleted: Int, _ task: Housekeeper.MaintenanceTask) throws {
        switch task {
        case .pruneKeys: try StandardOutput.print("deleted \(deleted) keys")
        case .prunePayloads where deleted > 0:
            try StandardOutput.print("deleted the payloads of \(deleted) billing events")
        case .pruneNotifications where deleted > 0: try StandardOutput.print("deleted \(deleted) notifications")
        case .prunePayloads, .pruneNotifications: break
        }
    }
}

extension Housekeeper.MaintenanceTask {
    fileprivate var progressUnits: String {
        switch self {
        case .pruneKeys: "keys deleted"
        case .prunePayloads: "payloads of billing events deleted"
        case .pruneNotifications: "notifications deleted"
        }
    }
}
