/// Escapes text for HTML and SVG, in elements and in quoted attributes. Templates call it for every value; charts,
/// which templates insert unescaped, call it themselves.
func escaped(_ text: String) -> String {
    var result = ""
    result.reserveCapacity(text.utf8.count)
    for character in text.unicodeScalars {
        switch character {
        case "&": result += "&amp;"
        case "<": result += "&lt;"
        case ">": result += "&gt;"
        case "\"": result += "&quot;"
        case "'": result += "&#39;"
        default: result.unicodeScalars.append(character)
        }
    }
    return result
}

/// A coordinate with at most one decimal.
func coordinate(_ number: Double) -> String {
    let tenths = Int((number * 10).rounded())
    let (whole, tenth) = (abs(tenths) / 10, abs(tenths) % 10)
    return (tenths < 0 ? "-" : "") + (tenth == 0 ? "\(whole)" : "\(whole).\(tenth)")
}
