import Configuration
import LineProtocol

/// Reads the texts of settings: a flag wins over the environment.
package struct SettingsReader: Sendable {
    private let reader: ConfigReader

    /// - Parameters:
    ///   - flags: values given on the command line, by the setting's name.
    ///   - environment: the process's environment.
    package init(flags: [String: String], environment: [String: String]) {
        let values = flags.map { name, value in
            (AbsoluteConfigKey(["headroom", name]), ConfigValue(.string(value), isSecret: true))
        }
        reader = ConfigReader(providers: [
            InMemoryProvider(name: "flags", values: Dictionary(uniqueKeysWithValues: values)),
            EnvironmentVariablesProvider(environmentVariables: environment),
        ])
    }

    /// - Returns: nil if nothing is set. An empty text is none: compose files and unit files have no other way to leave
    ///   a variable out.
    func text(_ setting: SettingDefinition) -> String? {
        text(["headroom", setting.name], isSecret: setting.isSecret)
    }

    private func text(_ key: [String], isSecret: Bool) -> String? {
        reader.string(forKey: ConfigKey(key), isSecret: isSecret).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The name that other services use; `HEADROOM_DATABASE_URL` wins.
    var conventionalDatabaseURL: Secret? { text(["database", "url"], isSecret: true).map { Secret($0) } }
}
