import Postgres

/// Rows that are imported in one transaction.
struct ImportBatch {
    /// Rows in a transaction. It delays few messages, because it leaves rows alone in which messages are counted.
    static let rowsMaximum = 1_000
    /// With `--add`. It changes rows in which messages are counted, and these messages wait for the transaction.
    static let addedRowsMaximum = 100

    /// Records of the file before the first one of the batch, and up to the last one.
    var from: Int
    var through: Int
    var rows: [ImportRow] = []

    /// Parameters of `import_batch`.
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
        return parameters
    }
}

/// What became of the rows of a file.
public struct ImportResult: Sendable {
    /// What became of a row: `headroom.judge_import`.
    public enum Outcome: String, Sendable, CaseIterable {
        case imported
        case importedBefore = "imported_before"
        case counted
        case later
        case nothing
    }

    /// Rows of each outcome.
    public internal(set) var rows: [Outcome: Int] = [:]
    /// The first lines of each outcome.
    public internal(set) var lines: [Outcome: [Int]] = [:]
    /// Rows whose users have kept another plan.
    public internal(set) var plansKept = 0
    public internal(set) var linesOfPlansKept: [Int] = []
    /// In the imported rows.
    public internal(set) var messages = 0
    /// Rows that were committed without an answer, because the connection broke; they are in none of the others.
    public internal(set) var unanswered = 0
    /// Rows of the file that an earlier run had done.
    public internal(set) var doneBefore = 0

    private static let linesMaximum = 10

    /// - Parameter result: of `import_batch`.
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
