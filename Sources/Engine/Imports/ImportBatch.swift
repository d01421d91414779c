import Postgres

/// The rows that one transaction imports.
struct ImportBatch {
    /// The most rows in a transaction. Few messages wait for it: it leaves rows alone in which messages are counted.
    static let rowsMaximum = 1_000
    /// The most rows with `--add`. It changes rows in which messages are counted, and these messages wait for it.
    static let addedRowsMaximum = 100

    /// The number of records of the file before the first one of the batch.
    var from: Int
    var through: Int
    var rows: [ImportRow] = []

    /// The parameters of `import_batch`.
    func parameters(digest: [UInt8], adds: Bool, checks: Bool) -> Parameters {
        let count = rows.count
        var parameters = Parameters(capacity: 1_024 + count * 160)
        parameters.append(bytes: digest)
        parameters.append(bool: adds)
        parameters.append(int64: Int64(from))
        parameters.append(int64: Int64(through))
        parameters.append(bool: checks)
        parameters.appendUUIDs(count: count) { (rows[$0].user.high, rows[$0].user.low) }
        parameters.appendTexts(count: count) { rows[$0].plan }
        parameters.appendTexts(count: count) { rows[$0].state }
        parameters.appendTimestamps(count: count) { rows[$0].started }
        parameters.appendTimestamps(count: count) { rows[$0].expires }
        parameters.appendTimestamps(count: count) { rows[$0].graceUntil }
        parameters.appendNullableInt32s(count: count) { rows[$0].anchorDay }
        parameters.appendTexts(count: count) { rows[$0].period }
        parameters.appendInt32s(count: count) { rows[$0].used }
        parameters.appendBools(count: count) { rows[$0].limit != .ofPlan }
        parameters.appendNullableInt32s(count: count) { index in
            if case .set(let limit) = rows[index].limit { limit } else { nil }
        }
        parameters.appendTexts(count: count) { rows[$0].part?.kind.rawValue }
        parameters.appendTexts(count: count) { rows[$0].part?.name }
        return parameters
    }
}

/// The results of the rows of a file.
public struct ImportResult: Sendable {
    /// The result of a row, from `headroom.judge_import`.
    public enum Outcome: String, Sendable, CaseIterable {
        case imported
        case importedBefore = "imported_before"
        case counted
        case later
        case nothing
        case withoutLimit = "without_limit"
    }

    /// The number of rows with each outcome.
    public internal(set) var rows: [Outcome: Int] = [:]
    /// The first lines with each outcome.
    public internal(set) var lines: [Outcome: [Int]] = [:]
    /// The number of rows whose users have kept another plan.
    public internal(set) var plansKept = 0
    public internal(set) var linesOfPlansKept: [Int] = []
    /// The messages in the imported rows.
    public internal(set) var messages = 0
    /// The rows that were committed without an answer, because the connection broke. They count in no other number.
    public internal(set) var unanswered = 0
    /// The rows of the file that an earlier run had done.
    public internal(set) var doneBefore = 0

    private static let linesMaximum = 10

    /// - Parameter result: the result of `import_batch`.
    mutating func add(_ result: QueryResult, _ batch: ImportBatch) throws(PostgresError) {
        let (ordinals, outcomes) = (try result.column("ordinal"), try result.column("outcome"))
        let keepsPlan = try result.column("keeps_plan")
        for index in 0..<result.rowCount {
            let row = batch.rows[result.ordinal(index, ordinals)]
            let outcome = Outcome(rawValue: result.text(index, outcomes)) ?? .nothing
            rows[outcome, default: 0] += 1
            ImportResult.add(row.line, to: &lines[outcome, default: []])
            if outcome == .imported { messages += Int(row.used) }
            if try result.bool(index, keepsPlan) {
                plansKept += 1
                ImportResult.add(row.line, to: &linesOfPlansKept)
            }
        }
    }

    private static func add(_ line: Int, to lines: inout [Int]) {
        if lines.count < linesMaximum { lines.append(line) }
    }
}
