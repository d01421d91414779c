/// Text in columns, for a terminal.
struct TextTable {
    enum Alignment {
        case left, right
    }

    private let alignments: [Alignment]
    private var rows: [[String]] = []

    init(_ alignments: [Alignment]) {
        self.alignments = alignments
    }

    mutating func add(_ cells: String...) {
        rows.append(cells)
    }

    mutating func add(row cells: [String]) {
        rows.append(cells)
    }

    /// The width of the widest line.
    var width: Int { lines.map(\.count).max() ?? 0 }

    /// The rows, with columns two spaces apart, and nothing at a line's end.
    var lines: [String] {
        let widths = alignments.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            let cells = alignments.indices.map { column in
                let padding = String(repeating: " ", count: widths[column] - row[column].count)
                return alignments[column] == .left ? row[column] + padding : padding + row[column]
            }
            let line = cells.joined(separator: "  ")
            return String(line.reversed().drop { $0 == " " }.reversed())
        }
    }
}

extension TextTable {
    /// A table of names and values, whose values are wrapped where a line would be wider.
    ///
    /// - Parameter width: of the terminal; nil: none, so each row is a line.
    func fields(width: Int?) -> String {
        guard let width, self.width > width else { return lines.joined(separator: "\n") }
        let indent = (rows.map { $0[0].count }.max() ?? 0) + 2
        return rows.flatMap { row in
            let value = row[1].isEmpty ? [""] : wrapped(row[1], max(1, width - indent))
            return value.enumerated().map { index, line in
                (index == 0 ? row[0] : "").padding(to: indent) + line
            }
        }
        .joined(separator: "\n")
    }

    /// A table whose first row has the columns' names. If it is too wide, each of the other rows becomes a list of
    /// names and values, without those that are absent.
    func records(width: Int?) -> String {
        guard let width, self.width > width, let names = rows.first else { return lines.joined(separator: "\n") }
        return rows.dropFirst().map { row in
            var fields = TextTable([.left, .left])
            for (name, value) in zip(names, row) where value != "-" { fields.add(name, value) }
            return fields.fields(width: width)
        }
        .joined(separator: "\n\n")
    }
}

extension String {
    fileprivate func padding(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}

/// Foreign text as one line that no terminal takes for a command: a value in a database may hold line ends and escapes.
public func printable(_ text: String) -> String {
    String(
        String.UnicodeScalarView(
            text.unicodeScalars.map { controlsTerminal($0) ? " " : $0 }
        )
    )
}

func controlsTerminal(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
}

/// The number with a comma between thousands.
func grouped(_ number: Int) -> String {
    let digits = Array(String(number.magnitude))
    var text = ""
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index) % 3 == 0 { text.append(",") }
        text.append(digit)
    }
    return number < 0 ? "-" + text : text
}

/// A share in percent, with one decimal; a dash if the whole is 0.
func percentage(_ part: Int, of whole: Int) -> String {
    guard whole > 0 else { return "-" }
    let tenths = (part * 1_000 + whole / 2) / whole
    return "\(tenths / 10).\(tenths % 10) %"
}
