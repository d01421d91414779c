import ArgumentParser
import HTTPServer
import LineServer
import Logging
import Notifications
import ServiceCore
import TraceExport

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the service.",
        discussion: """
            Prints one line `ready listen=HOST:PORT http=HOST:PORT` on standard output once it accepts requests; all other \
            output goes to standard error. SIGTERM and SIGINT drain: every accepted request is answered.
            """
    )

    // A group for each subject, in the order of docs/reference/settings.md.
    @OptionGroup(title: "Database and log") var database: DatabaseOptions
    @OptionGroup(title: "Connections") var connections: GroupOptions<ConnectionSettings>
    @OptionGroup(title: "Access") var access: GroupOptions<AccessSettings>
    @OptionGroup(title: "Counting") var counting: GroupOptions<CountingSettings>
    @OptionGroup(title: "HTTP") var http: GroupOptions<HTTPSettings>
    @OptionGroup(title: "Webhooks of stores") var webhooks: GroupOptions<WebhookSettings>
    @OptionGroup(title: "Notifications") var notifications: GroupOptions<NotificationSettings>
    @OptionGroup(title: "Tracing") var tracing: GroupOptions<TracingSettings>

    private var options: [any SettingsOptions] {
        [database, connections, access, counting, http, webhooks, notifications, tracing]
    }

    func run() async throws {
        let environment = SettingsReader.environment()
        let sockets = try InheritedSocket.all(in: environment)
        var configuration = try ServerConfiguration(SettingsReader(options), sockets: sockets)
        let settings = configuration.settings
        let logger = LogSetup.start(level: settings.database.logLevel)
        ProcessSetup.preventCoreFiles()
        ProcessSetup.keepMemoryOutOfCrashReports()
        ProcessSetup.keepFromChildren(sockets)
        let allowed = ProcessSetup.raiseDescriptorLimit(
            connections: configuration.connectionsMaximum,
            httpConnections: configuration.http?.descriptorsMaximum ?? 0,
            logger: logger
        )
        configuration.allowConnections(atMost: allowed.line)
        configuration.http?.allowDescriptors(atMost: allowed.http)
        database.warnAboutPassword(logger)
        for each in options { each.warnAboutSecrets(logger) }
        let webhookEndpoints = try WebhookEndpoints(settings)
        let notifier = try NotificationService.maker(settings.notifications)
        let tracing = try TraceExporter.tracing(settings.tracing, logger: logger)
        // The service continues when the reader of its output ends.
        signal(SIGPIPE, SIG_IGN)
        let httpServer = HTTPServerService.maker(webhookEndpoints: webhookEndpoints)
        let httpHasTLS = configuration.httpHasTLS
        let service = HeadroomService(
            configuration,
            lineServer: { LineServer($0) },
            httpServer: httpServer,
            notifier: notifier,
            tracing: tracing,
            manager: ServiceManager(environment: environment),
            logger: logger
        )
        try await service.run { ready in
            print("ready listen=\(ready.listen) http=\(ready.http.map(\.description) ?? "off")")
            fflush(nil)
            let example = "CONSUME 7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
            let command = ready.listen.askCommand(example, speaksTLS: ready.speaksTLS)
            let dashboard = ready.http.map { "dashboard:      \($0.dashboard(overTLS: httpHasTLS))\n" } ?? ""
            let text = """
                try it:         \(command)
                \(dashboard)open the data:  \(ready.psqlCommand)

                """
            LogfmtHandler.standardError(text)
        }
    }
}

extension ListenAddress {
    /// The dashboard's address for a browser on this machine.
    fileprivate func dashboard(overTLS: Bool) -> String {
        "\(overTLS ? "https" : "http")://\(onThisMachine)/dashboard"
    }
}

enum ProcessSetup {
    /// Descriptors besides connections: database, logs, pipes, listening sockets.
    private static let furtherDescriptors = 128

    /// - Returns: the connections that each port may have.
    static func raiseDescriptorLimit(
        connections: Int,
        httpConnections: Int,
        logger: Logger
    ) -> (line: Int, http: Int) {
        let (allowed, needed) = raiseDescriptorLimit(connections: connections + httpConnections)
        if allowed < needed {
            logger.warning(
                """
                the system allows fewer descriptors than connections-maximum needs, so fewer connections are accepted; raise \
                the hard limit (ulimit -Hn)
                """,
                metadata: ["descriptors.allowed": "\(allowed)", "descriptors.needed": "\(needed)"]
            )
        }
        // With too few descriptors, HTTP gets an eighth and the line protocol the rest.
        let left = Int(allowed) - furtherDescriptors
        let http = allowed < needed ? min(httpConnections, max(1, left / 8)) : httpConnections
        return (min(connections, left - http), http)
    }

    /// Swift's crash report shows the memory that registers point to, which may hold a password or a token. It reads
    /// its settings when a process starts, so this executes the program again in the same process.
    static func keepMemoryOutOfCrashReports() {
        let name = "SWIFT_BACKTRACE"
        let settings = getenv(name).map { String(cString: $0) } ?? ""
        guard !settings.contains("registers=") else { return }
        setenv(name, settings.isEmpty ? "registers=none" : settings + ",registers=none", 1)
        // The program is executed by its own path: as /proc/self/exe, it would be "exe" in ps and killall. On macOS
        // that file does not exist, and crash reports stay full.
        guard let path = realpath("/proc/self/exe", nil) else { return }
        defer { free(path) }
        execv(path, CommandLine.unsafeArgv)
        // If this fails, the process continues with full crash reports.
    }

    /// A private PostgreSQL would keep the sockets open, and report its own state to the service manager.
    static func keepFromChildren(_ sockets: [InheritedSocket]) {
        for socket in sockets { socket.closeOnExecute() }
        for name in ServiceManager.variables { unsetenv(name) }
    }

    /// A core file would put the database's password, and all else in memory, on disk.
    static func preventCoreFiles() {
        var limit = rlimit()
        guard getrlimit(LimitedResource.coreFile, &limit) == 0 else { return }
        limit.rlim_cur = 0
        _ = setrlimit(LimitedResource.coreFile, &limit)
    }

    /// The usual soft limit of 1,024 descriptors is less than the connections that the settings allow.
    static func raiseDescriptorLimit(connections: Int) -> (allowed: UInt64, needed: UInt64) {
        let needed = rlim_t(connections + furtherDescriptors)
        var limit = rlimit()
        guard getrlimit(LimitedResource.descriptors, &limit) == 0, limit.rlim_cur < needed else {
            return (UInt64(needed), UInt64(needed))
        }
        let before = limit.rlim_cur
        limit.rlim_cur = min(needed, limit.rlim_max)
        // macOS refuses numbers that its hard limit allows.
        guard setrlimit(LimitedResource.descriptors, &limit) == 0 else { return (UInt64(before), UInt64(needed)) }
        return (UInt64(limit.rlim_cur), UInt64(needed))
    }
}
