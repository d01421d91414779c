import ArgumentParser
import ServiceCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Flags that follow from the declarations of settings.
///
/// ArgumentParser finds a type's flags by reflection and decodes their values by key: the mirror and the decoder here
/// have an `Option` for each setting in place of a property.
protocol SettingsOptions: ParsableArguments, CustomReflectable {
    static var settings: [any SettingDefinition] { get }
    /// By the setting's name; without those that were not given.
    var values: [String: String] { get set }
}

private struct SettingKey: CodingKey {
    let stringValue: String
    let intValue: Int? = nil

    init(stringValue: String) {
        self.stringValue = stringValue
    }

    init?(intValue: Int) { nil }
}

extension SettingsOptions {
    init(from decoder: any Decoder) throws {
        self.init()
        let container = try decoder.container(keyedBy: SettingKey.self)
        for setting in Self.settings {
            let option = try container.decode(Option<String?>.self, forKey: SettingKey(stringValue: setting.name))
            values[setting.name] = option.wrappedValue
        }
    }

    var customMirror: Mirror {
        let options = Self.settings.map { setting -> Mirror.Child in (setting.name, Self.option(setting)) }
        return Mirror(self, children: options, displayStyle: .struct)
    }

    private static func option(_ setting: any SettingDefinition) -> Option<String?> {
        let byDefault = setting.defaultText.map { ", default \($0)" } ?? ""
        let help = ArgumentHelp(
            "\(setting.meaning) (\(setting.range)\(byDefault); \(setting.environmentVariable))",
            valueName: "value"
        )
        return Option<String?>(wrappedValue: nil, name: .customLong(setting.name), help: help)
    }
}

/// The settings that every command on the database takes.
struct DatabaseOptions: SettingsOptions {
    static let settings = Settings.ofEveryCommand
    var values: [String: String] = [:]
}

// The settings that only `serve` takes, by subject.

struct LinePortOptions: SettingsOptions {
    static let settings = Settings.ofConnections
    var values: [String: String] = [:]
}

struct ServiceAccessOptions: SettingsOptions {
    static let settings = Settings.ofAccess
    var values: [String: String] = [:]
}

struct CountingOptions: SettingsOptions {
    static let settings = Settings.ofDatabase
    var values: [String: String] = [:]
}

struct HTTPOptions: SettingsOptions {
    static let settings = Settings.ofHTTP
    var values: [String: String] = [:]
}

struct WebhookOptions: SettingsOptions {
    static let settings = Settings.ofWebhooks
    var values: [String: String] = [:]
}

/// `serve` and `notifications test`.
struct NotificationOptions: SettingsOptions {
    static let settings = Settings.ofNotifications
    var values: [String: String] = [:]
}

struct TracingOptions: SettingsOptions {
    static let settings = Settings.ofTracing
    var values: [String: String] = [:]
}

/// The settings that only `prune` takes.
struct PruneOptions: SettingsOptions {
    static let settings: [any SettingDefinition] = [Settings.keysKeepDays]
    var values: [String: String] = [:]
}

extension SettingsReader {
    init(_ options: [any SettingsOptions]) {
        var flags: [String: String] = [:]
        for option in options { flags.merge(option.values) { $1 } }
        self.init(flags: flags, environment: SettingsReader.environment())
    }

    static func environment() -> [String: String] {
        var variables: [String: String] = [:]
        #if canImport(Darwin)
        var entry = _NSGetEnviron().pointee!
        #else
        var entry = environ
        #endif
        while let text = entry.pointee {
            let pair = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if pair.count == 2 { variables[String(pair[0])] = String(pair[1]) }
            entry += 1
        }
        return variables
    }
}
