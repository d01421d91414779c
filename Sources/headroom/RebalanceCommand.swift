import ArgumentParser
import Engine
import Postgres
import ServiceCore

struct RebalanceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rebalance",
        abstract: "Add workers to a distributed database, remove one, and give each about as many users.",
        discussion: """
            Moves the users of one bucket at a time to another worker, while messages are counted. It can be \
            interrupted and started again. docs/scaling.md says what each worker needs.
            """
    )

    @OptionGroup var database: DatabaseOptions

    @Option(help: "Workers to add: comma-separated URLs of an empty database on each, as a superuser.")
    var workers: String?

    @Option(help: "HOST:PORT of a worker to remove, after its users have been moved to the others.")
    var remove: String?

    @Flag(help: "Only show what will be done.")
    var plan = false

    func validate() throws {
        guard let remove else { return }
        guard ServerAddress(remove) != nil else { throw ValidationError("--remove is HOST:PORT") }
        guard workers == nil else { throw ValidationError("give --workers or --remove, not both") }
    }

    func run() async throws {
        let access = try DatabaseAccess(database)
        let (command, workers) = (self, workers.map(WorkerServers.topologies) ?? [])
        do {
            try await access.run(onThreadNamed: "headroom.rebalance", failingWith: CommandFailure.init) { database in
                let rebalancing = Rebalancing(
                    database,
                    adding: workers,
                    removing: command.remove.flatMap { ServerAddress($0) }
                )
                if command.plan { return try RebalanceCommand.show(rebalancing.plan()) }
                try RebalanceCommand.run(rebalancing)
            }
        } catch let lost as Rebalancing.LostServer {
            throw CommandFailure.databaseUnreachable("\(lost)").exitCodeAfterPrinting()
        } catch let refusal as Rebalancing.Refusal {
            throw CommandFailure.invalidArguments("\(refusal)").exitCodeAfterPrinting()
        } catch let refusal as Distribution.Refusal {
            throw CommandFailure.invalidArguments("\(refusal)").exitCodeAfterPrinting()
        }
    }

    private static func show(_ plan: Rebalancing.Plan) throws {
        for server in plan.servers where !server.problems.isEmpty {
            try StandardOutput.print("\(server.address): not ready")
            for problem in server.problems { try StandardOutput.print("  \(problem)") }
        }
        if let moves = plan.moves {
            for move in moves { try StandardOutput.print("move a bucket from \(move.source) to \(move.target)") }
            if moves.isEmpty { try StandardOutput.print("nothing to do: each worker has about as many buckets") }
        } else {
            try StandardOutput.print("to do: change the workers, then move buckets until each has about as many")
        }
        if plan.servers.contains(where: { !$0.problems.isEmpty }) { throw ExitCode(1) }
    }

    private static func run(_ rebalancing: Rebalancing) throws {
        var display: ProgressDisplay?
        let moved = try rebalancing.run { progress in
            if display == nil { display = ProgressDisplay(total: progress.moves) }
            display?.show(progress.moved, "\(progress.moved) of \(progress.moves) buckets moved")
        }
        display?.end()
        try StandardOutput.print(
            moved == 0 ? "nothing to move: each worker has about as many buckets" : "\(moved) buckets moved"
        )
    }
}
