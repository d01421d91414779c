import ArgumentParser
import Engine
import Postgres
import ServiceCore

struct DistributeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "distribute",
        abstract: "Divide the users into buckets, and distribute these over several PostgreSQL servers with Citus.",
        discussion: """
            Works while messages are counted, and holds them up for about a tenth of a second at a time, and once for \
            about a second. It can be interrupted and started again. docs/scaling.md says when to distribute a \
            database, what each server needs, and what changes.
            """
    )

    @OptionGroup var database: DatabaseOptions

    @Option(help: "Into how many buckets: a power of 2 from 2 to 1024, by default 64. It cannot be changed later.")
    var buckets: Int?

    @Option(
        help: """
            The servers that are to have the rows of users: comma-separated URLs of an empty database on each, as a \
            superuser. Without it, users are only divided into buckets.
            """
    )
    var workers: String?

    @Option(help: "HOST:PORT at which the workers reach the database, if it is not that of database-url.")
    var coordinator: String?

    @Flag(help: "Only show what will be done, and what servers lack.")
    var plan = false

    func validate() throws {
        if let buckets, !(2...1024).contains(buckets) || buckets.nonzeroBitCount != 1 {
            throw ValidationError("--buckets is a power of 2 from 2 to 1024, such as 64")
        }
        if let coordinator {
            guard ServerAddress(coordinator) != nil else { throw ValidationError("--coordinator is HOST:PORT") }
            guard workers != nil else { throw ValidationError("--coordinator goes with --workers") }
        }
    }

    func run() async throws {
        let access = try DatabaseAccess(database)
        let (command, workers) = (self, workers.map(WorkerServers.topologies))
        do {
            try await access.run(onThreadNamed: "headroom.distribute", failingWith: CommandFailure.init) { database in
                let division = UserDivision(database, into: command.buckets)
                let distribution = workers.map { workers in
                    Distribution(database, at: command.coordinator.flatMap { ServerAddress($0) }, workers: workers)
                }
                if command.plan { return try DistributeCommand.show(division.plan(), distribution?.plan()) }
                try distribution?.check()
                try DistributeCommand.run(division)
                if let distribution { try DistributeCommand.run(distribution) }
            }
        } catch let refusal as UserDivision.Refusal {
            throw CommandFailure.invalidArguments("\(refusal)").exitCodeAfterPrinting()
        } catch let refusal as Distribution.Refusal {
            throw CommandFailure.invalidArguments("\(refusal)").exitCodeAfterPrinting()
        } catch let error as MigrationError {
            throw CommandFailure.databaseRefused("\(error)").exitCodeAfterPrinting()
        }
    }

    // MARK: Plan

    private static func show(_ division: UserDivision.Plan, _ distribution: Distribution.Plan?) throws {
        try show(division)
        guard let distribution else { return }
        for server in distribution.servers {
            try StandardOutput.print("\(server.address): \(server.problems.isEmpty ? "ready" : "not ready")")
            for problem in server.problems { try StandardOutput.print("  \(problem)") }
        }
        if distribution.isDone {
            return try StandardOutput.print("nothing more to do: the rows of users are on workers")
        }
        let megabytes = distribution.bytes / 1_000_000
        try StandardOutput.print(
            """
            to do: copy about \(megabytes) MB to \(distribution.servers.count - 1) workers, which takes about \
            \(max(5, distribution.bytes / Distribution.usualBytesPerSecond)) s; before it, counting stops once for \
            about a second, and at its end for less
            """
        )
        if distribution.servers.contains(where: { !$0.problems.isEmpty }) { throw ExitCode(1) }
    }

    private static func show(_ plan: UserDivision.Plan) throws {
        guard !plan.isDone else {
            return try StandardOutput.print("users: they are divided into \(plan.buckets) buckets")
        }
        for table in plan.tables { try StandardOutput.print("\(table.name): about \(table.rows) rows") }
        let left = UserDivision.partsMaximum - plan.parts
        let rows = plan.tables.reduce(0) { $0 + $1.rows } * left / UserDivision.partsMaximum
        try StandardOutput.print(
            """
            to do: move about \(rows) rows to \(plan.buckets) buckets, in steps of about 100 ms, which takes about \
            \(max(1, rows / UserDivision.usualRowsPerSecond)) s; each table gets an index for that time
            """
        )
    }

    // MARK: Run

    private static func run(_ division: UserDivision) throws {
        var display = ProgressDisplay(total: UserDivision.partsMaximum)
        var last: UserDivision.Progress?
        let buckets = try division.run { progress in
            last = progress
            display.show(progress.parts, "\(progress.rows) rows moved")
        }
        display.end()
        guard let last else { return try StandardOutput.print("the database has \(buckets) buckets already") }
        try StandardOutput.print(
            """
            the database has \(buckets) buckets now: \(last.rows) rows moved, the longest step took \
            \(last.longestStep.milliseconds) ms
            """
        )
    }

    private static func run(_ distribution: Distribution) throws {
        var display: ProgressDisplay?
        let summary = try distribution.run { progress in
            guard case .moving(let bytes, let total) = progress else {
                display?.end()
                display = nil
                return StatusLine.show(progress)
            }
            if display == nil { display = ProgressDisplay(total: max(1, total / 1_000_000)) }
            display?.show(min(bytes, total) / 1_000_000, "\(bytes / 1_000_000) MB copied")
        }
        try StandardOutput.print(
            summary.longestPause == .zero
                ? "the rows of users are on the workers already, in \(summary.shards) shards"
                : """
                the rows of users are on the workers now, in \(summary.shards) shards; the longest pause before they \
                were copied was \(summary.longestPause.milliseconds) ms
                """
        )
    }
}

/// What a command is doing now, for steps that are short.
enum StatusLine {
    static func show(_ progress: Distribution.Progress) {
        switch progress {
        case .preparing(let server): show("preparing \(server)")
        case .definingFunctions: show("defining the functions on each server")
        case .convertingTables: show("making the tables tables of Citus")
        case .collectingStatistics: show("collecting statistics for the planner")
        case .moving: break
        }
    }

    private static func show(_ text: String) {
        LogfmtHandler.standardError(text + "\n")
    }
}

/// Servers that are given on the command line.
enum WorkerServers {
    /// - Parameter text: comma-separated URLs.
    static func topologies(_ text: String) -> [DatabaseTopology] {
        text.split(separator: ",").map { DatabaseTopology(String($0)) }
    }
}
