import LineProtocol
import Usage

/// A setting, whatever the type of its value.
public protocol SettingDefinition: Sendable {
    /// `some-name`: the flag is `--some-name`.
    var name: String { get }
    /// As text; nil where there is none.
    var defaultText: String? { get }
    /// The allowed values: words, or a range with its unit.
    var range: String { get }
    var meaning: String { get }
    /// Whether no log and no dump may show the value.
    var isSecret: Bool { get }
}

extension SettingDefinition {
    /// `HEADROOM_SOME_NAME`
    public var environmentVariable: String {
        "HEADROOM_" + name.uppercased().replacing("-", with: "_")
    }
}

/// What an operator can set: by the flag `--name`, or by the environment variable `HEADROOM_NAME`.
///
/// Each is declared once, in `Settings`. Its flag, environment variable, line of `--help`, range check and error text
/// follow from the declaration, and a test compares docs/reference/settings.md with it.
public struct Setting<Value: Sendable>: SettingDefinition {
    public let name: String
    public let defaultText: String?
    public let range: String
    public let meaning: String
    public let isSecret: Bool
    private let parse: @Sendable (String?) -> Value?

    /// - Parameter parse: the value of a text, or of no text where nothing is set and there is no default; nil if that
    ///   is not allowed.
    private init(
        _ name: String,
        defaultText: String? = nil,
        range: String,
        meaning: String,
        isSecret: Bool = false,
        parse: @escaping @Sendable (String?) -> Value?
    ) {
        self.name = name
        self.defaultText = defaultText
        self.range = range
        self.meaning = meaning
        self.isSecret = isSecret
        self.parse = parse
    }

    /// - Parameter text: nil: not set.
    func value(of text: String?) throws(InvalidSetting) -> Value {
        guard let value = parse(text ?? defaultText) else { throw InvalidSetting(self) }
        return value
    }
}

/// A setting that cannot be used, and which values can.
public struct InvalidSetting: Error, CustomStringConvertible {
    public let description: String

    init(text: String) {
        description = text
    }

    /// Does not repeat the value: it may hold a password in the wrong place.
    init(_ setting: some SettingDefinition) {
        description = "\(setting.name) (\(setting.environmentVariable)) must be \(setting.range)"
    }
}

// MARK: Types of values

extension Setting<Int> {
    init(_ name: String, default number: Int, _ range: ClosedRange<Int>, unit: String = "", _ meaning: String) {
        self.init(name, defaultText: String(number), range: range.text(unit: unit), meaning: meaning) {
            range.number($0)
        }
    }
}

extension Setting<Int?> {
    /// Not set: nil.
    init(_ name: String, _ range: ClosedRange<Int>, _ meaning: String) {
        self.init(name, range: range.text(unit: ""), meaning: meaning) { text in
            text == nil ? .some(nil) : range.number(text).map { .some($0) }
        }
    }
}

extension Setting<UserNamespace?> {
    /// Not set: nil.
    init(_ name: String, _ meaning: String) {
        self.init(name, range: "a UUID", meaning: meaning) { text in
            guard let text else { return .some(nil) }
            return UserID(text).map { .some(UserNamespace($0)) }
        }
    }
}

extension Setting<LanguageTag> {
    init(_ name: String, default language: LanguageTag, _ meaning: String) {
        self.init(name, defaultText: language.text, range: LanguageTag.form, meaning: meaning) { text in
            text.flatMap { LanguageTag($0) }
        }
    }
}

extension Setting<Set<String>> {
    /// Origins as a browser sends them, separated by commas. Not set: none.
    init(origins name: String, _ meaning: String) {
        let range = "origins such as https://app.example.com, separated by commas"
        self.init(name, range: range, meaning: meaning) { text in
            // The scheme, a host in lower case, and a port if it is not the scheme's.
            let pattern = /https?:\/\/([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?/
            let origins = (text ?? "").split(separator: ",").map { $0.trimmingPrefix(" ") }
            guard origins.allSatisfy({ $0.wholeMatch(of: pattern) != nil }) else { return nil }
            return Set(origins.map { String($0) })
        }
    }
}

extension Setting<Duration> {
    init(_ name: String, default milliseconds: Int, _ range: ClosedRange<Int>, _ meaning: String) {
        self.init(name, defaultText: String(milliseconds), range: range.text(unit: "ms"), meaning: meaning) { text in
            range.number(text).map { .milliseconds($0) }
        }
    }
}

extension Setting<Duration> {
    /// A number of seconds, or with a unit: `90m`, `1h`, `3d`.
    init(_ name: String, default text: String, daysMaximum: Int, _ meaning: String) {
        let range = "0 to \(daysMaximum)d, such as 90s, 30m, 1h or 2d; without a unit in seconds"
        self.init(name, defaultText: text, range: range, meaning: meaning) { text in
            guard let match = text?.wholeMatch(of: /([0-9]{1,6})([smhd]?)/), let number = Int(match.1) else {
                return nil
            }
            let seconds = number * (["m": 60, "h": 3_600, "d": 86_400][match.2] ?? 1)
            return seconds <= daysMaximum * 86_400 ? .seconds(seconds) : nil
        }
    }
}

extension Setting<Bool> {
    /// - Parameter words: the default first.
    init(_ name: String, _ words: (Bool, String), _ others: (Bool, String), _ meaning: String) {
        self.init(name, defaultText: words.1, range: "\(words.1) or \(others.1)", meaning: meaning) { text in
            text == words.1 ? words.0 : text == others.1 ? others.0 : nil
        }
    }
}

extension Setting where Value: RawRepresentable<String> & CaseIterable {
    init(_ name: String, default value: Value, _ meaning: String) {
        let words = Value.allCases.map(\.rawValue)
        let range = words.dropLast().joined(separator: ", ") + words.suffix(1).map { " or " + $0 }.joined()
        self.init(name, defaultText: value.rawValue, range: range, meaning: meaning) { text in
            text.flatMap { Value(rawValue: $0) }
        }
    }
}

extension Setting<ListenAddress> {
    init(_ name: String, default address: String, _ meaning: String) {
        self.init(name, defaultText: address, range: "host:port", meaning: meaning) { $0.flatMap(ListenAddress.init) }
    }
}

extension Setting<ListenAddress?> {
    /// `off`: nil.
    init(_ name: String, default address: String, _ meaning: String) {
        self.init(name, defaultText: address, range: "host:port or off", meaning: meaning) { text in
            text == "off" ? .some(nil) : text.flatMap(ListenAddress.init).map { .some($0) }
        }
    }
}

extension Setting<String> {
    init(_ name: String, default text: String, _ range: String, _ meaning: String) {
        self.init(name, defaultText: text, range: range, meaning: meaning) { $0 }
    }
}

extension Setting<String?> {
    /// Not set: nil.
    init(_ name: String, _ range: String, isSecret: Bool = false, _ meaning: String) {
        self.init(name, range: range, meaning: meaning, isSecret: isSecret) { .some($0) }
    }

    /// The address of a page, in printable ASCII. Not set: nil.
    init(url name: String, _ meaning: String) {
        self.init(name, range: "http or https URL", meaning: meaning) { text in
            guard let text else { return .some(nil) }
            let isAddress = ["https://", "http://"].contains { text.hasPrefix($0) && text.utf8.count > $0.utf8.count }
            let isPrintable = text.utf8.count <= 1_024 && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
            return isAddress && isPrintable ? .some(text) : nil
        }
    }
}

extension Setting<String?> {
    /// An address to which requests are sent, over https, or over http to this machine. Not set: nil.
    init(localOrSecureURL name: String, _ meaning: String) {
        self.init(name, range: "https URL, or http URL of this machine", meaning: meaning) { text in
            guard let text else { return .some(nil) }
            return RequestURL.isLocalOrSecure(text) ? .some(text) : nil
        }
    }

    /// An address to which requests are sent. Not set: nil.
    init(requestURL name: String, _ meaning: String) {
        self.init(name, range: "http or https URL", meaning: meaning) { text in
            guard let text else { return .some(nil) }
            return RequestURL.isValid(text) ? .some(text) : nil
        }
    }
}

extension Setting<[Secret]> {
    /// Separated by commas; not set: none.
    init(_ name: String, _ meaning: String) {
        self.init(name, range: "text", meaning: meaning, isSecret: true) { text in
            let secrets = Secret.split(text ?? "", at: ",")
            // A text of commas alone was meant to be a secret.
            return text != nil && secrets.isEmpty ? nil : secrets
        }
    }
}

extension ClosedRange<Int> {
    fileprivate func text(unit: String) -> String {
        "\(lowerBound) to \(upperBound)" + (unit.isEmpty ? "" : " " + unit)
    }

    fileprivate func number(_ text: String?) -> Int? {
        text.flatMap { Int($0) }.flatMap { contains($0) ? $0 : nil }
    }
}
