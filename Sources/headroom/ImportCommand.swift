import ArgumentParser
import Crypto
import Engine
import Foundation
import Postgres
import ServiceCore

struct ImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Import users, their plans and counts from another system.",
        discussion: """
            Reads a CSV file whose first line names its columns, in any order: user, and any of plan, used, model, member, \
            period, limit, state, started, expires, grace_until and anchor. The service may count meanwhile. Checks the whole file first; \
            imports nothing if a row is bad. An import that was interrupted continues when it is run again, and each row \
            is imported once. docs/migrate-a-counter.md has the rules.
            """
    )

    @Argument(help: "The file; - is standard input.") var file: String
    @Flag(help: "Only check the file, and show what would be imported.") var check = false
    @Flag(help: "Also import rows of users whom Headroom counts already: add their counts, once.") var add = false
    @Option(help: "Import the good rows, and write the bad ones to this file.") var skipBad: String?
    @OptionGroup var database: DatabaseOptions

    func run() async throws {
        let access = try DatabaseAccess(database)
        let command = self
        do {
            try await access.run(onThreadNamed: "headroom.import", failingWith: ImportCommand.failure) { database in
                try command.work(database)
            }
        } catch let problem as ImportProblem {
            throw CommandFailure.refused("\(problem)").exitCodeAfterPrinting()
        } catch let failure as CSVReader.Failure {
            throw CommandFailure.refused("\(failure)").exitCodeAfterPrinting()
        } catch let failure as ImportFile.Failure {
            throw CommandFailure.refused("\(failure)").exitCodeAfterPrinting()
        } catch let failure as UserImport.Failure {
            throw CommandFailure.refused("\(failure)").exitCodeAfterPrinting()
        }
    }

    private static func failure(_ error: PostgresError) -> CommandFailure {
        switch error.sqlState {
        case .insufficientPrivilege:
            .permissionDenied("this role may not import; connect as one that is granted headroom_operator")
        default: CommandFailure(error)
        }
    }

    private func work(_ database: DatabaseTopology) throws {
        let file = try ImportFile(path: file)
        if let skipBad, file.isAt(skipBad) {
            throw CommandFailure.invalidArguments("--skip-bad must name another file than the imported one")
                .exitCodeAfterPrinting()
        }
        let reader = try ImportReader(file, database: database)
        let (survey, digest) = try survey(file, reader)
        for problem in survey.problems { ImportCommand.note("\(problem)") }
        if survey.problemCount > survey.problems.count {
            ImportCommand.note("… and \(survey.problemCount - survey.problems.count) more problems")
        }
        let bad = survey.badRecords.count
        if bad > 0 {
            guard skipBad != nil else {
                let advice = "correct them, or give --skip-bad FILE, which gets them while the others are imported"
                throw CommandFailure.refused(
                    "\(bad) of \(survey.records) rows are bad, and nothing was imported; \(advice)"
                ).exitCodeAfterPrinting()
            }
            if !check { try writeBadLines(reader, survey) }
        }
        let users = UserImport(
            reader,
            survey,
            database: database,
            name: ImportCommand.nameInAuditLog(file.name),
            digest: digest,
            adds: add
        )
        var display = ProgressDisplay(total: survey.records, firstAfter: .seconds(1))
        let ending = try users.run(checks: check) { display.show($0, of: "rows") }
        display.end()
        let summary = ImportSummary(checks: check, adds: add, records: survey.records, bad: bad, badFile: skipBad)
        for line in summary.lines(ending) { try StandardOutput.print(line) }
    }

    private func survey(_ file: ImportFile, _ reader: ImportReader) throws -> (ImportSurvey, [UInt8]) {
        var hash = SHA256()
        var display = ProgressDisplay(total: file.byteCount, firstAfter: .seconds(1))
        var bytes = 0
        let survey = try reader.survey { piece in
            hash.update(bufferPointer: piece)
            bytes += piece.count
            display.show(bytes, "\(bytes / 1_000_000) MB checked")
        }
        display.end()
        return (survey, Array(hash.finalize()))
    }

    private func writeBadLines(_ reader: ImportReader, _ survey: ImportSurvey) throws {
        guard let skipBad else { return }
        guard let output = fopen(skipBad, "w") else { throw ImportCommand.unwritable(skipBad) }
        defer { fclose(output) }
        try reader.badLines(survey) { line in
            let bytes = line + [UInt8(ascii: "\n")]
            guard fwrite(bytes, 1, bytes.count, output) == bytes.count else { throw ImportCommand.unwritable(skipBad) }
        }
        guard fflush(output) == 0 else { throw ImportCommand.unwritable(skipBad) }
    }

    private static func unwritable(_ path: String) -> ExitCode {
        CommandFailure.invalidArguments("\(path) cannot be written: \(String(cString: strerror(errno)))")
            .exitCodeAfterPrinting()
    }

    /// The file's name without its folders, which say something about this machine.
    private static func nameInAuditLog(_ path: String) -> String {
        String((path.split(separator: "/").last ?? "file").prefix(200))
    }

    private static func note(_ text: String) {
        LogfmtHandler.standardError(LogfmtHandler.escaped(text) + "\n")
    }
}

/// What an import says at its end.
private struct ImportSummary {
    let checks: Bool
    let adds: Bool
    let records: Int
    let bad: Int
    let badFile: String?

    func lines(_ ending: UserImport.Ending) -> [String] {
        switch ending {
        case .wasDone(let instant):
            return ["the file was imported before, until \(instant.text); nothing was changed"]
        case .done(let result): return lines(result)
        }
    }

    private func lines(_ result: ImportResult) -> [String] {
        var lines: [String] = []
        if result.doneBefore > 0 {
            lines.append("continued after row \(result.doneBefore) of \(records), where an earlier run has ended")
        }
        let imported = result.rows[.imported] ?? 0
        lines.append("\(checks ? "would import" : "imported") \(rows(imported)) with \(result.messages) messages")
        if result.unanswered > 0 {
            lines.append("\(rows(result.unanswered)) were done when the connection broke; headroom.imports has the sum")
        }
        let before = (result.rows[.importedBefore] ?? 0) + (result.rows[.nothing] ?? 0)
        if before > 0 { lines.append("\(rows(before)) had nothing new: imported before, or the plan is the same") }
        if let counted = result.rows[.counted] {
            let places = places(counted, result.lines[.counted] ?? [])
            let why = "of users whom Headroom counts already; --add adds their counts"
            lines.append("left \(rows(counted)) \(why): \(places)")
        }
        if let later = result.rows[.later] {
            let places = places(later, result.lines[.later] ?? [])
            lines.append("left \(rows(later)) of a period that has not begun for the user: \(places)")
        }
        if let unlimited = result.rows[.withoutLimit] {
            let places = places(unlimited, result.lines[.withoutLimit] ?? [])
            let why = "whose models or members the users' plans do not limit"
            lines.append("left the counts of \(rows(unlimited)) \(why): \(places)")
        }
        if result.plansKept > 0 {
            let places = places(result.plansKept, result.linesOfPlansKept)
            lines.append("kept the users' other plans in \(rows(result.plansKept)): \(places)")
        }
        if bad > 0 { lines.append("skipped \(rows(bad)) with problems" + (checks ? "" : ", now in \(badFile ?? "")")) }
        return lines
    }

    private func rows(_ count: Int) -> String { count == 1 ? "1 row" : "\(count) rows" }

    private func places(_ count: Int, _ lines: [Int]) -> String {
        (lines.count == 1 ? "line " : "lines ") + lines.sorted().map(String.init).joined(separator: ", ")
            + (count > lines.count ? " …" : "")
    }
}
