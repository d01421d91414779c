import ArgumentParser
import Engine
import Postgres
import ServiceCore

struct DistributeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "distribute",
        abstract: "Divide the users of the database into buckets, so that several machines can share them.",
        discussion: """
            Works while messages are counted, and holds them up for about a tenth of a second at a time. It can be \
            interrupted and started again. docs/scaling.md says when to divide a database, and what comes after it.
            """
    )

    @OptionGroup var database: DatabaseOptions

    @Option(help: "Into how many buckets: a power of 2 from 2 to 1024. It cannot be changed later.")
    var buckets = 64

    @Flag(help: "Only show what will be done.")
    var plan = false

    func validate() throws {
        guard (2...1024).contains(buckets), buckets.nonzeroBitCount == 1 else {
            throw ValidationError("--buckets is a power of 2 from 2 to 1024, such as 64")
        }
    }

    func run() async throws {
        let access = try DatabaseAccess(database)
        let (buckets, showsPlan) = (buckets, plan)
        do {
            try await access.run(onThreadNamed: "headroom.distribute", failingWith: CommandFailure.init) { database in
                let division = UserDivision(database, into: buckets)
                if showsPlan { return try DistributeCommand.show(try division.plan(), buckets) }
                try DistributeCommand.run(division, buckets)
            }
        } catch UserDivision.Refusal.hasOtherBuckets(let count) {
            throw CommandFailure.invalidArguments(
                "the database has \(count) buckets, and their number cannot be changed"
            ).exitCodeAfterPrinting()
        }
    }

    private static func show(_ plan: UserDivision.Plan, _ buckets: Int) throws {
        guard plan.buckets != buckets || plan.parts < UserDivision.partsMaximum else {
            return try StandardOutput.print("nothing to do: the database has \(buckets) buckets")
        }
        for table in plan.tables { try StandardOutput.print("\(table.name): about \(table.rows) rows") }
        let left = UserDivision.partsMaximum - plan.parts
        let rows = plan.tables.reduce(0) { $0 + $1.rows } * left / UserDivision.partsMaximum
        try StandardOutput.print(
            """
            to do: move about \(rows) rows to \(buckets) buckets, in steps of about 100 ms, which takes about \
            \(max(1, rows / UserDivision.usualRowsPerSecond)) s; each table gets an index for that time
            """
        )
    }

    private static func run(_ division: UserDivision, _ buckets: Int) throws {
        var display = ProgressDisplay(total: UserDivision.partsMaximum)
        var last: UserDivision.Progress?
        try division.run { progress in
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
}
