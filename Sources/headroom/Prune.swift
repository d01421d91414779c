import ArgumentParser
import HeadroomServer
import Logging
import UsageStore

struct Prune: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Forget old keys now (serve does it in the background).",
        discussion: "Works in small portions beside a running service. Prints how many keys were forgotten."
    )

    @OptionGroup var database: DatabaseOptions
    @Option(help: Setting.keysKeepDays.help) var keysKeepDays: String?

    func run() async throws {
        let settings = SettingsReader(database.values + [(.keysKeepDays, keysKeepDays)])
        let configuration = try ServerConfiguration(settings)
        let logger = LogSetup.start(level: configuration.logLevel)
        database.warnOfPassword(logger)
        try await DatabaseAccess(configuration, logger: logger).run { url in
            let count = try await Housekeeper(
                databaseURL: url,
                keepDays: configuration.keysKeepDays,
                logger: logger
            ).prune()
            print("forgot \(count) keys")
        }
    }
}
