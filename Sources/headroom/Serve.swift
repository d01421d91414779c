import ArgumentParser
import HeadroomServer
import Logging

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the service.",
        discussion: """
            Prints one line `ready listen=HOST:PORT http=off` on standard output once it can be asked; everything else \
            goes to standard error. SIGTERM and SIGINT drain: every accepted request is answered.
            """
    )

    @OptionGroup var database: DatabaseOptions
    @OptionGroup var options: ServeOptions

    func run() async throws {
        let configuration = try ServerConfiguration(SettingsReader(database.values + options.values))
        let logger = LogSetup.start(level: configuration.logLevel)
        ProcessSetup.raiseDescriptorLimit(connections: configuration.connectionsMaximum, logger: logger)
        // A reader of our output that goes away is no reason to stop.
        signal(SIGPIPE, SIG_IGN)
        try await HeadroomService(configuration, logger: logger).run { ready in
            print("ready listen=\(ready.listen) http=off")
            fflush(nil)
            let example = "CONSUME 7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
            let text = """
                try it:         printf '\(example)\\n' | nc -N \(ready.listen.host) \(ready.listen.port)
                open the data:  \(ready.psqlCommand)

                """
            LogfmtHandler.standardError(text)
        }
    }
}

enum ProcessSetup {
    /// The usual soft limit of 1,024 descriptors is less than the connections that the settings allow.
    static func raiseDescriptorLimit(connections: Int, logger: Logger) {
        // Besides connections: database, logs, pipes, the listening sockets.
        let wanted = rlim_t(connections + 128)
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur < wanted else {
            return
        }
        limit.rlim_cur = min(wanted, limit.rlim_max)
        _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        if limit.rlim_cur < wanted {
            logger.warning(
                "the system allows fewer descriptors than connections-maximum needs; raise the hard limit (ulimit -Hn)",
                metadata: ["descriptors.allowed": "\(limit.rlim_cur)", "descriptors.needed": "\(wanted)"]
            )
        }
    }
}
