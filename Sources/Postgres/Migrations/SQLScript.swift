/// Divides a script into its statements, as psql does.
///
/// PostgreSQL executes a whole script that it is sent at once, but Citus passes the text in which it finds a statement
/// on to other machines, which refuse several.
struct SQLScript {
    /// A statement, without its semicolon, and how many characters (code points) of the script come before it.
    struct Statement: Equatable {
        let text: String
        let offset: Int
    }

    private let scalars: [Unicode.Scalar]
    private var statements: [Statement] = []
    /// The position at which the statement begins.
    private var start = 0
    private var words: [String] = []
    /// Whether the statement has anything other than blanks and comments.
    private var hasContent = false
    /// The number of BEGIN and CASE in an SQL function's body that have not ended.
    private var openBlocks = 0

    static func statements(of script: String) -> [Statement] {
        var parser = SQLScript(script)
        parser.parse()
        return parser.statements
    }

    private init(_ script: String) {
        scalars = Array(script.unicodeScalars)
    }

    private mutating func parse() {
        var index = 0
        while index < scalars.count {
            if let end = endOfComment(index) {
                index = end
                continue
            }
            if scalars[index] == ";", openBlocks == 0 {
                endStatement(at: index)
            } else if !scalars[index].properties.isWhitespace {
                hasContent = true
                if let end = endOfQuoted(index) ?? endOfWord(index) {
                    index = end
                    continue
                }
            }
            index += 1
        }
        endStatement(at: scalars.count)
    }

    private mutating func endStatement(at end: Int) {
        if hasContent { statements.append(Statement(text: text(start..<end), offset: start)) }
        start = end + 1
        words = []
        hasContent = false
        openBlocks = 0
    }

    private func text(_ range: Range<Int>) -> String {
        var text = String.UnicodeScalarView()
        text.append(contentsOf: scalars[range])
        return String(text)
    }

    /// Returns the index after the name, keyword or number that begins here; nil if none does.
    private mutating func endOfWord(_ start: Int) -> Int? {
        guard scalars[start].isNamePart else { return nil }
        let end = scalars[start...].firstIndex { !$0.isNamePart && $0 != "$" } ?? scalars.count
        let word = text(start..<end).lowercased()
        if words.count < 4 { words.append(word) }
        // The body of a function that begins with BEGIN ATOMIC has semicolons.
        if words.first == "create", words.contains("function") || words.contains("procedure") {
            switch word {
            case "begin", "case": openBlocks += 1
            case "end": openBlocks = max(0, openBlocks - 1)
            default: break
            }
        }
        return end
    }

    /// Returns the index after the comment that begins here; nil if none does.
    private func endOfComment(_ start: Int) -> Int? {
        if has("--", at: start) { return scalars[start...].firstIndex(of: "\n") ?? scalars.count }
        guard has("/*", at: start) else { return nil }
        var depth = 0
        var index = start
        while index < scalars.count {
            if has("/*", at: index) {
                depth += 1
                index += 2
            } else if has("*/", at: index) {
                depth -= 1
                index += 2
                if depth == 0 { return index }
            } else {
                index += 1
            }
        }
        return index
    }

    /// Returns the index after the string, the quoted name or the dollar-quoted text that begins here; nil if none
    /// does.
    ///
    /// A backslash is an ordinary character: `standard_conforming_strings` is on, and no script has a string with `E`
    /// outside the body of a function.
    private func endOfQuoted(_ start: Int) -> Int? {
        let quote = scalars[start]
        if quote == "'" || quote == "\"" {
            // A doubled quote ends one string and begins the next.
            return scalars[(start + 1)...].firstIndex(of: quote).map { $0 + 1 } ?? scalars.count
        }
        guard quote == "$", let tag = dollarTag(start) else { return nil }
        var index = start + tag.count
        while index < scalars.count {
            if scalars[index] == "$", scalars[index...].starts(with: tag) { return index + tag.count }
            index += 1
        }
        return index
    }

    /// Returns `$$` or `$tag$`; nil for a parameter such as `$1`.
    private func dollarTag(_ start: Int) -> ArraySlice<Unicode.Scalar>? {
        guard let end = scalars[(start + 1)...].firstIndex(where: { !$0.isNamePart }), scalars[end] == "$",
            !scalars[start + 1].isDigit
        else { return nil }
        return scalars[start...end]
    }

    private func has(_ text: String, at index: Int) -> Bool {
        scalars[index...].starts(with: text.unicodeScalars)
    }
}

extension Unicode.Scalar {
    fileprivate var isDigit: Bool { properties.numericType == .decimal }
    fileprivate var isNamePart: Bool { self == "_" || properties.isAlphabetic || isDigit }
}
