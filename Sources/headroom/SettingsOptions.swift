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
    static var settings: [SettingDefinition] { get }
    /// The texts that were given, by the setting's name.
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

    private static func option(_ setting: SettingDefinition) -> Option<String?> {
        let byDefault = setting.defaultText.map { ", default \($0)" } ?? ""
        let help = ArgumentHelp(
            "\(setting.meaning) (\(setting.range)\(byDefault); \(setting.environmentVariable))",
            valueName: "value"
        )
        return Option<String?>(wrappedValue: nil, name: .customLong(setting.name), help: help)
    }
}

/// The settings of one subject.
struct GroupOptions<Group: SettingGroup>: SettingsOptions {
    static var settings: [SettingDefinition] { Settings.all(in: Group.self) }
    var values: [String: String] = [:]
}

typealias DatabaseOptions = GroupOptions<DatabaseSettings>

/// The settings that only `prune` takes.
struct PruneOptions: SettingsOptions {
    static let settings = [Settings.table.counting.keysKeepDays.definition]
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
