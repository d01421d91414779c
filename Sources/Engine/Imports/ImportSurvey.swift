import Postgres
import Usage

/// The findings of a reading of the whole file, before anything is imported.
public struct ImportSurvey: Sendable {
    /// The number of rows, good and bad.
    public internal(set) var records = 0
    public internal(set) var problemCount = 0
    /// The first problems.
    public internal(set) var problems: [ImportProblem] = []
    /// The positions of the rows with a problem, from 1.
    public internal(set) var badRecords: Set<Int> = []

    /// The most problems that are kept with their texts.
    private static let problemsMaximum = 20

    mutating func add(_ found: [ImportProblem], inRecord record: Int) {
        guard !found.isEmpty else { return }
        badRecords.insert(record)
        problemCount += found.count
        problems += found.prefix(max(0, ImportSurvey.problemsMaximum - problems.count))
    }
}

/// Reads files to import. The plans and periods are those of the database.
public struct ImportReader {
    private let file: ImportFile
    private let plans: [String: ImportRowDecoder.PlanKind]
    private let namespace: UserNamespace?
    private let periods: PeriodCheck

    /// Reads the plans. It blocks.
    public init(_ file: ImportFile, database: DatabaseTopology) throws(PostgresError) {
        let connection = try DatabaseConnection.connect(.command("import", database))
        let result = try connection.query(EmbeddedSQL.readImportPlans, deadline: .now + .seconds(30))
        var plans: [String: ImportRowDecoder.PlanKind] = [:]
        var namespace: UserNamespace?
        _ = try result.rows { row throws(PostgresError) in
            plans[try row.text("plan")] = ImportRowDecoder.PlanKind(cycle: try row.text("cycle"))
            if try !row.isNull("namespace") { namespace = UserNamespace(try row.user("namespace")) }
        }
        self.file = file
        self.plans = plans
        self.namespace = namespace
        periods = PeriodCheck(connection)
    }

    /// Reads the whole file and finds what is wrong with it. It blocks.
    ///
    /// - Parameter whenRead: called with each piece of the file.
    /// - Throws: `ImportProblem` for a first line that names the wrong columns, `CSVReader.Failure`,
    ///   `ImportFile.Failure` and `PostgresError`.
    public func survey(
        _ whenRead: @escaping (UnsafeRawBufferPointer) -> Void
    ) throws -> ImportSurvey {
        var survey = ImportSurvey()
        var repeated = RepeatedRows()
        try forEachRow(whenRead: whenRead) { record, row, problems in
            survey.records = record
            survey.add(problems, inRecord: record)
            if let row { repeated.add(row) }
        }
        var candidates = repeated.takeCandidates()
        if !candidates.isEmpty {
            try forEachRow { record, row, _ in
                if let problem = row.flatMap({ candidates.problem($0) }) { survey.add([problem], inRecord: record) }
            }
        }
        return survey
    }

    /// Reads the file's first line, and the records with problems, as they are in the file. It blocks.
    public func badLines(_ survey: ImportSurvey, _ body: ([UInt8]) throws -> Void) throws {
        var reader = try file.records()
        if let header = try reader.next() { try body(header.bytes) }
        var record = 0
        while let next = try reader.next() {
            record += 1
            if survey.badRecords.contains(record) { try body(next.bytes) }
        }
    }

    /// - Parameter body: called with the position of each record, from 1, and the row or its problems.
    func forEachRow(
        whenRead: @escaping (UnsafeRawBufferPointer) -> Void = { _ in },
        _ body: (Int, ImportRow?, [ImportProblem]) throws -> Void
    ) throws {
        var reader = try file.records(whenRead)
        let decoder = ImportRowDecoder(
            columns: try ImportColumns(try reader.next()),
            plans: plans,
            namespace: namespace,
            isPeriod: periods.isValid
        )
        var position = 0
        while let record = try reader.next() {
            position += 1
            let (row, problems) = try decoder.row(record)
            try body(position, row, problems)
        }
    }

    /// Asks the database about each period once; files have few.
    private final class PeriodCheck {
        private let connection: DatabaseConnection
        private var known: [String: Bool] = [:]

        init(_ connection: DatabaseConnection) {
            self.connection = connection
        }

        func isValid(_ period: String) throws(PostgresError) -> Bool {
            if let isValid = known[period] { return isValid }
            var parameters = Parameters()
            parameters.append(text: period)
            let result = try connection.query(
                EmbeddedSQL.checkImportPeriod,
                parameters,
                deadline: .now + .seconds(30)
            )
            let isValid = try result.firstRow.boolOrNil("is_valid") ?? false
            known[period] = isValid
            return isValid
        }
    }
}
