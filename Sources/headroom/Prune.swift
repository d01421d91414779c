import ArgumentParser
import Engine
import HeadroomServer

struct Prune: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Forget old keys, and what was in stores' old events, now (serve does it in the background).",
        discussion: "Works in small portions beside a running service. Prints how much was forgotten."
    )

    @OptionGroup var database: DatabaseOptions
    @OptionGroup var options: PruneOptions

    func run() async throws {
        let access = try DatabaseAccess(database, options)
        try await access.run { url in
            let housekeeper = Housekeeper(
                databaseURL: url,
                keepDays: access.configuration.keysKeepDays,
                logger: access.logger
            )
            var failure: (any Error)?
            for chore in Housekeeper.Chore.allCases {
                do {
                    try Prune.report(try await housekeeper.prune(chore), chore)
                } catch {
                    // The others are done all the same.
                    failure = failure ?? error
                }
            }
            if let failure { throw failure }
        }
    }

    private static func report(_ forgotten: Int, _ chore: Housekeeper.Chore) throws {
        switch chore {
        case .keys: try StandardOutput.print("forgot \(forgotten) keys")
        case .notifications where forgotten > 0:
            try StandardOutput.print("forgot what was in \(forgotten) events of stores")
        case .notifications: break
        }
    }
}
