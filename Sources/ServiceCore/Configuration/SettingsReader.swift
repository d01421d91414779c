import Configuration

/// Reads settings: a flag wins over the environment, the environment over the default.
public struct SettingsReader {
    private let reader: ConfigReader

    /// - Parameters:
    ///   - flags: values given on the command line, by the setting's name.
    ///   - environment: the process's environment.
    public init(flags: [String: String], environment: [String: String]) {
        let secrets = Settings.all.filter(\.isSecret).map(\.name)
        var values: [AbsoluteConfigKey: ConfigValue] = [:]
        for (name, value) in flags {
            values[AbsoluteConfigKey(["headroom", name])] = ConfigValue(
                .string(value),
                isSecret: secrets.contains(name)
            )
        }
        reader = ConfigReader(providers: [
            InMemoryProvider(name: "flags", values: values),
            EnvironmentVariablesProvider(environmentVariables: environment),
        ])
    }

    public func value<Value>(_ setting: Setting<Value>) throws(InvalidSetting) -> Value {
        try setting.value(of: text(setting))
    }

    /// Whether a flag or the environment has a value, so that it is not the default.
    public func isSet(_ setting: some SettingDefinition) -> Bool { text(setting) != nil }

    /// An empty text is none: compose files and unit files have no other way to leave a variable out.
    private func text(_ setting: some SettingDefinition) -> String? {
        text(["headroom", setting.name], isSecret: setting.isSecret)
    }

    private func text(_ key: [String], isSecret: Bool) -> String? {
        reader.string(forKey: ConfigKey(key), isSecret: isSecret).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The name that other services use; `HEADROOM_DATABASE_URL` wins.
    var conventionalDatabaseURL: String? { text(["database", "url"], isSecret: true) }
}
