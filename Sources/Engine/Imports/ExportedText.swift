import Usage

/// Parses values as other programs export them.
enum ExportedText {
    /// Words for a missing value, in lower case: of PostgreSQL's COPY and of MySQL, SQL, Python and R.
    static let missing: Set<String> = ["\\n", "null", "none", "nan", "<na>", "na", "n/a"]

    /// Parses digits. `412.0` counts too: pandas writes whole numbers so if one of the column is missing.
    static func number(_ text: String) -> Int32? {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = parts.first, whole.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains),
            parts.count == 1 || !parts[1].isEmpty && parts[1].allSatisfy({ $0 == UInt8(ascii: "0") })
        else { return nil }
        return Int32(Substring(whole))
    }

    /// Parses the forms of `Instant`, and those of PostgreSQL and BigQuery: a blank for the `T`, and the offsets `+01`,
    /// `+0100` and ` UTC`.
    static func instant(_ text: String) -> Instant? {
        var text = Array(text.utf8)
        if text.count > 10, text[10] == UInt8(ascii: " ") { text[10] = UInt8(ascii: "T") }
        if text.suffix(4).elementsEqual(" UTC".utf8) {
            text.replaceSubrange((text.count - 4)..., with: "Z".utf8)
        } else if text.count > 19, let sign = text[19...].firstIndex(where: { "+-".utf8.contains($0) }) {
            // The digits after the sign are hours, or hours and minutes.
            switch text.count - sign - 1 {
            case 2: text += ":00".utf8
            case 4: text.insert(UInt8(ascii: ":"), at: sign + 3)
            default: break
            }
        }
        return text.withUnsafeBytes { Instant($0) }
    }
}
