import ArgumentParser
import HeadroomServer
import UsageStore

struct Prune: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Forget old keys, and what was in stores' old events, now (serve does it in the background).",
        discussion: "Works in small portions beside a running service. Prints how much was forgotten."
    )

    @OptionGroup var database: DatabaseOptions
    @Option(help: Setting.keysKeepDays.help) var keysKeepDays: String?

    func run() async throws {
        let access = try DatabaseAccess(database, [(.keysKeepDays, keysKeepDays)])
        try await access.run { url in
            let forgotten = try await Housekeeper(
                databaseURL: url,
                keepDays: access.configuration.keysKeepDays,
                logger: access.logger
            ).prune()
            try StandardOutput.print("forgot \(forgotten.keys) keys")
            if forgotten.notifications > 0 {
                try StandardOutput.print("forgot what was in \(forgotten.notifications) events of stores")
            }
        }
    }
}
