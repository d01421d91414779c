import Configuration

/// Reads settings: the flag wins over the environment, the environment over the default.
public struct SettingsReader {
    /// A setting that cannot be used, and what to say instead.
    public struct Invalid: Error, CustomStringConvertible {
        public let description: String

        init(text: String) {
            description = text
        }

        init(_ setting: Setting) {
            // The value is not repeated: it may hold a password in the wrong place.
            description = "\(setting.name) (\(setting.environmentName)) must be \(setting.range)"
        }
    }

    private let reader: ConfigReader

    /// - Parameters:
    ///   - flags: values given on the command line, by the setting's name.
    ///   - environment: the process's environment.
    public init(flags: [String: String], environment: [String: String]) {
        var values: [AbsoluteConfigKey: ConfigValue] = [:]
        for (name, value) in flags {
            values[SettingsReader.key(name)] = ConfigValue(.string(value), isSecret: Setting.secretNames.contains(name))
        }
        reader = ConfigReader(providers: [
            InMemoryProvider(name: "flags", values: values),
            EnvironmentVariablesProvider(environmentVariables: environment),
        ])
    }

    private static func key(_ name: String) -> AbsoluteConfigKey {
        AbsoluteConfigKey(["headroom", name])
    }

    /// The value as text; nil where nothing was said and there is no default. An empty one is none: compose files and
    /// unit files have no other way to leave a variable out.
    func text(_ setting: Setting) -> String? {
        said(setting) ?? setting.defaultValue
    }

    private func said(_ setting: Setting) -> String? {
        let value = reader.string(
            forKey: ConfigKey(["headroom", setting.name]),
            isSecret: setting.isSecret
        )
        return value.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Whether somebody said it, so that it is not the default's.
    package func isSet(_ setting: Setting) -> Bool { said(setting) != nil }

    /// What tools for other services call it; ours wins.
    var conventionalDatabaseURL: String? {
        reader.string(forKey: ConfigKey(["database", "url"]), isSecret: true).flatMap { $0.isEmpty ? nil : $0 }
    }

    func number(_ setting: Setting, _ range: ClosedRange<Int>) throws(Invalid) -> Int {
        guard let text = text(setting), let number = Int(text), range.contains(number) else { throw Invalid(setting) }
        return number
    }

    /// A number that is another setting's where nothing was said: its default is that setting's name.
    func number(_ setting: Setting, _ range: ClosedRange<Int>, like other: Setting) throws(Invalid) -> Int {
        try text(setting) == other.name ? number(other, range) : number(setting, range)
    }

    func choice<Value: RawRepresentable<String>>(_ setting: Setting) throws(Invalid) -> Value {
        guard let text = text(setting), let value = Value(rawValue: text) else { throw Invalid(setting) }
        return value
    }

    func address(_ setting: Setting) throws(Invalid) -> ListenAddress {
        guard let text = text(setting), let address = ListenAddress(text) else { throw Invalid(setting) }
        return address
    }
}
