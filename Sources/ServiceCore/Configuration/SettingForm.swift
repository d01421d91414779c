import LineProtocol
import Usage

/// The texts that a setting can have, and their values.
struct SettingForm<Value: Sendable>: Sendable {
    /// The allowed values, in the words of `--help` and of errors.
    let range: String
    /// The value of a text; nil if the text is not allowed.
    let value: @Sendable (String) -> Value?

    static func words(_ words: [(String, Value)]) -> Self {
        let names = words.map(\.0)
        return Self(range: names.dropLast().joined(separator: ", ") + " or " + (names.last ?? "")) { text in
            words.first { $0.0 == text }?.1
        }
    }
}

extension SettingForm where Value: RawRepresentable<String> & CaseIterable {
    static var cases: Self { words(Value.allCases.map { ($0.rawValue, $0) }) }
}

extension SettingForm<Int> {
    static func number(_ range: ClosedRange<Int>, _ unit: String = "") -> Self {
        Self(range: "\(range.lowerBound) to \(range.upperBound)" + (unit.isEmpty ? "" : " " + unit)) { text in
            Int(text).flatMap { range.contains($0) ? $0 : nil }
        }
    }
}

extension SettingForm<Duration> {
    static func milliseconds(_ range: ClosedRange<Int>) -> Self {
        let number = SettingForm<Int>.number(range, "ms")
        return Self(range: number.range) { text in number.value(text).map { .milliseconds($0) } }
    }

    /// A number of seconds, or with a unit: `90m`, `1h`, `3d`.
    static func time(daysMaximum: Int) -> Self {
        Self(range: "0 to \(daysMaximum)d, such as 90s, 30m, 1h or 2d; without a unit in seconds") { text in
            let match = text.wholeMatch(of: /([0-9]{1,6})([smhd]?)/)
            let seconds = match.map { (Int($0.1) ?? 0) * (["m": 60, "h": 3_600, "d": 86_400][$0.2] ?? 1) }
            return seconds.flatMap { $0 <= daysMaximum * 86_400 ? .seconds($0) : nil }
        }
    }
}

extension SettingForm<String> {
    static func text(_ range: String) -> Self { Self(range: range) { $0 } }

    /// An address to which the service sends requests.
    static let requestURL = Self(range: "http or https URL") { RequestURL.isValid($0) ? $0 : nil }

    /// An address to which the service sends confidential data. It must be encrypted, or on this machine.
    static let privateURL = Self(range: "https URL, or http URL of this machine") {
        RequestURL.isLocalOrSecure($0) ? $0 : nil
    }

    /// The address of a page, in printable ASCII.
    static let pageURL = Self(range: "http or https URL") { text in
        let isPage = text.utf8.count <= RequestURL.bytesMaximum && text.wholeMatch(of: /https?:\/\/[\x21-\x7E]+/) != nil
        return isPage ? text : nil
    }
}

extension SettingForm<Secret> {
    static func secret(_ range: String) -> Self { Self(range: range) { Secret($0) } }
}

extension SettingForm<Set<String>> {
    /// Origins as a browser sends them.
    static let origins = Self(range: "origins such as https://app.example.com, separated by commas") { text in
        // The scheme, a host in lower case, and a port if it is not the scheme's.
        let pattern = /https?:\/\/([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?/
        let origins = text.split(separator: ",").map { $0.trimmingPrefix(" ") }
        return origins.allSatisfy { $0.wholeMatch(of: pattern) != nil } ? Set(origins.map { String($0) }) : nil
    }
}

extension SettingForm<ListenAddress> {
    static let address = Self(range: "host:port") { ListenAddress($0) }
}

extension SettingForm<ListenAddress?> {
    static let addressOrOff = Self(range: "host:port or off") { text in
        text == "off" ? .some(nil) : ListenAddress(text).map { .some($0) }
    }
}

extension SettingForm<UserNamespace> {
    static let namespace = Self(range: "a UUID") { text in UserID(text).map { UserNamespace($0) } }
}

extension SettingForm<LanguageTag> {
    static let language = Self(range: LanguageTag.form) { LanguageTag($0) }
}
