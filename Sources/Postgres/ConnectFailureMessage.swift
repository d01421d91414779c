import Foundation

/// libpq's message about a connection that could not be opened.
///
/// It may be about several hosts. Errors of servers have the verbose form: `… failed: FATAL:  28P01: password
/// authentication failed`, and a line `LOCATION:  …`.
struct ConnectFailureMessage: Equatable {
    /// The message in libpq's usual form.
    private(set) var text = ""
    /// The code with which a running server refused the session.
    private(set) var refusal: SQLState?

    init(_ message: String) {
        var lines: [Substring] = []
        for line in message.split(separator: "\n", omittingEmptySubsequences: false) {
            // The line names a function and a line of PostgreSQL's source.
            if line.hasPrefix("LOCATION:  ") { continue }
            guard let (state, rest) = ConnectFailureMessage.code(in: line) else {
                lines.append(line)
                continue
            }
            lines.append(line[..<rest.lowerBound] + line[rest.upperBound...])
            if !PostgresError.isAboutReachability(state) { refusal = state }
        }
        text = lines.joined(separator: "\n")
    }

    /// Returns the code, and its place in the line: after the severity, which may be translated, and two spaces.
    private static func code(in line: Substring) -> (SQLState, Range<String.Index>)? {
        guard let severity = line.range(of: ":  "),
            let end = line.index(severity.upperBound, offsetBy: 7, limitedBy: line.endIndex)
        else { return nil }
        let code = line[severity.upperBound..<end]
        let digits = code.utf8.prefix(5)
        guard code.hasSuffix(": "), digits.allSatisfy({ (48...57).contains($0) || (65...90).contains($0) }) else {
            return nil
        }
        return (SQLState(rawValue: String(code.prefix(5))), severity.upperBound..<end)
    }
}
