/// What is wrong with a place of a file, and what to do about it.
public struct ImportProblem: Error, Equatable, Sendable, CustomStringConvertible {
    /// The number of the line, from 1.
    public var line: Int
    /// The column; nil if the whole line is meant.
    public var column: String?
    public var text: String

    public init(line: Int, column: String? = nil, _ text: String) {
        self.line = line
        self.column = column
        self.text = text
    }

    public var description: String {
        "line \(line)" + (column.map { ", column \($0)" } ?? "") + ": \(text)"
    }
}

/// A column of an imported file.
enum ImportColumn: String, CaseIterable {
    case user, plan, model, member, used, period, limit, state, started, expires
    case graceUntil = "grace_until"
    case anchor

    /// The columns that say how a plan is set, as the options of SETPLAN do.
    static let ofPlan: [ImportColumn] = [.state, .started, .expires, .graceUntil, .anchor]
}

/// The position of each column in a file.
struct ImportColumns {
    let count: Int
    private let positions: [ImportColumn: Int]

    /// - Parameter header: the first record of the file.
    init(_ header: CSVReader.Record?) throws(ImportProblem) {
        let known = ImportColumn.allCases.map(\.rawValue).joined(separator: ", ")
        guard let header else {
            throw ImportProblem(line: 1, "the file is empty; its first line must name the columns: \(known)")
        }
        if let problem = header.problem { throw ImportProblem(line: header.line, problem) }
        var positions: [ImportColumn: Int] = [:]
        for (position, name) in header.fields.enumerated() {
            guard let column = ImportColumn(rawValue: name.lowercased()) else {
                throw ImportProblem(
                    line: header.line,
                    column: name,
                    "there is no such column; the first line must name the columns, separated by commas: \(known)"
                )
            }
            guard positions.updateValue(position, forKey: column) == nil else {
                throw ImportProblem(line: header.line, column: name, "the column is named twice; remove one of them")
            }
        }
        guard positions[.user] != nil else {
            throw ImportProblem(line: header.line, "the column user is missing; add it, with the id of each user")
        }
        guard positions[.plan] != nil || positions[.used] != nil || positions[.limit] != nil else {
            throw ImportProblem(line: header.line, "there is nothing to import; add the column plan, used or limit")
        }
        count = header.fields.count
        self.positions = positions
    }

    /// The value of a column; nil if the file has no such column, or the field is empty.
    func value(_ column: ImportColumn, _ record: CSVReader.Record) -> String? {
        guard let position = positions[column], !record.fields[position].isEmpty else { return nil }
        return record.fields[position]
    }
}
