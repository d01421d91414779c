/// Numbers as text for people.
enum NumberText {
    /// With commas between thousands: `1,234,567`.
    static func grouped(_ number: Int) -> String {
        let digits = Array(String(number.magnitude))
        var text = number < 0 ? "-" : ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { text.append(",") }
            text.append(digit)
        }
        return text
    }

    /// Short, for an axis: `950`, `1.5k`, `20M`. Rounded down to one decimal.
    static func compact(_ number: Int) -> String {
        let units: [(size: Int, name: String)] = [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")]
        guard let unit = units.first(where: { number >= $0.size }) else { return String(number) }
        let tenths = number / (unit.size / 10)
        return tenths % 10 == 0 ? "\(tenths / 10)\(unit.name)" : "\(tenths / 10).\(tenths % 10)\(unit.name)"
    }

    /// With one decimal, so that columns align: `12.3 %`, `4.0 %`. A part that is neither nothing nor all never rounds
    /// to 0 % or 100 %.
    static func percent(_ part: Int, of whole: Int) -> String {
        guard whole > 0, part > 0 else { return "0.0 %" }
        let tenths = Int((Double(part) * 1_000 / Double(whole)).rounded())
        if tenths == 0 { return "< 0.1 %" }
        if tenths >= 1_000, part < whole { return "> 99.9 %" }
        return "\(tenths / 10).\(tenths % 10) %"
    }

    /// `1 user`, `2 users`.
    static func count(_ number: Int, _ noun: String, plural: String? = nil) -> String {
        "\(grouped(number)) \(number == 1 ? noun : plural ?? noun + "s")"
    }

    /// The length of a window in its largest whole unit: `3 h`, `90 min`, `7 days`.
    static func duration(_ seconds: Int) -> String {
        if seconds % 86_400 == 0 { return count(seconds / 86_400, "day") }
        if seconds % 3_600 == 0 { return "\(grouped(seconds / 3_600)) h" }
        return seconds % 60 == 0 ? "\(grouped(seconds / 60)) min" : "\(grouped(seconds)) s"
    }

    /// The age of a figure: `just now`, `12 s ago`, `3 min ago`, `2 h ago`.
    static func age(_ age: Duration) -> String {
        let seconds = max(0, age.components.seconds)
        return switch seconds {
        case 0..<2: "just now"
        case 2..<120: "\(seconds) s ago"
        case 120..<7_200: "\(seconds / 60) min ago"
        default: "\(seconds / 3_600) h ago"
        }
    }
}
