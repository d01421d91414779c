import LineProtocol

/// The declaration of what an operator can set: by the flag `--name`, or by the environment variable `HEADROOM_NAME`.
///
/// Each is a property of a group (`Settings`). Its flag, environment variable, line of `--help`, check, error text and
/// value follow from it. It is a class, so that groups are cheap to copy.
package final class Setting<Value: Sendable>: SettingDeclaration {
    package let definition: SettingDefinition
    private let file: SettingDefinition?
    private let parse: @Sendable (_ text: String?, _ path: String?) -> Value?

    /// - Parameter parse: the value of a text, or of none where nothing is set and there is no default; nil if that is
    ///   not allowed.
    private init(
        _ definition: SettingDefinition,
        file: SettingDefinition? = nil,
        parse: @escaping @Sendable (_ text: String?, _ path: String?) -> Value?
    ) {
        self.definition = definition
        self.file = file
        self.parse = parse
    }

    package var definitions: [SettingDefinition] { [definition] + (file.map { [$0] } ?? []) }

    package func value(in reader: SettingsReader) throws(InvalidSetting) -> Value {
        let text = reader.text(definition) ?? definition.defaultText
        guard let value = parse(text, file.flatMap { reader.text($0) }) else { throw InvalidSetting(definition) }
        return value
    }
}

extension Setting {
    /// - Parameter meaning: a closure, so that it can stand in lines of its own.
    convenience init(
        _ name: String,
        default value: some CustomStringConvertible,
        _ form: SettingForm<Value>,
        meaning: () -> String
    ) {
        self.init(SettingDefinition(name, default: "\(value)", form.range, meaning())) { text, _ in
            text.flatMap(form.value)
        }
    }

    /// The value is nil where nothing is set.
    convenience init<Wrapped>(_ name: String, _ form: SettingForm<Wrapped>, meaning: () -> String)
    where Value == Wrapped? {
        self.init(SettingDefinition(name, form.range, isSecret: Wrapped.self == Secret.self, meaning())) { text, _ in
            text.map { text in form.value(text).map { .some($0) } } ?? .some(nil)
        }
    }
}

extension Setting<SettingFile?> {
    convenience init(file name: String, meaning: () -> String) {
        self.init(name, SettingForm(range: "path") { SettingFile(path: $0, setting: name) }, meaning: meaning)
    }
}

extension Setting<Secrets> {
    /// Secrets, separated by commas; none where nothing is set. The setting `name-file` names a file with more of them.
    ///
    /// - Parameter noun: what they are, in the meaning of that setting.
    convenience init(_ name: String, file noun: String, meaning: () -> String) {
        let file = SettingDefinition("\(name)-file", "path", "file with the \(noun) of \(name), one per line")
        self.init(SettingDefinition(name, "text", isSecret: true, meaning()), file: file) { text, path in
            let values = Secret.split(text ?? "", at: ",")
            // A text of commas alone was meant to be a secret.
            guard text == nil || !values.isEmpty else { return nil }
            return Secrets(values: values, file: path.map { SettingFile(path: $0, setting: file.name) })
        }
    }
}

/// A setting, whatever the type of its value.
package protocol SettingDeclaration: Sendable {
    associatedtype Value: Sendable
    /// The setting's own; for secrets a second one, of the file with more of them.
    var definitions: [SettingDefinition] { get }
    func value(in reader: SettingsReader) throws(InvalidSetting) -> Value
}

/// What `--help`, docs/reference/settings.md and errors say about a setting.
package struct SettingDefinition: Sendable {
    /// `some-name`: the flag is `--some-name`.
    package let name: String
    /// The default as text; nil where there is none.
    package let defaultText: String?
    /// The allowed values: words, or a range with its unit.
    package let range: String
    package let meaning: String
    /// Whether no log and no dump may show the value.
    package let isSecret: Bool

    init(_ name: String, default text: String? = nil, _ range: String, isSecret: Bool = false, _ meaning: String) {
        self.name = name
        defaultText = text
        self.range = range
        self.meaning = meaning
        self.isSecret = isSecret
    }

    /// `HEADROOM_SOME_NAME`
    package var environmentVariable: String { "HEADROOM_" + name.uppercased().replacing("-", with: "_") }
}

/// A setting that cannot be used, and which values can.
public struct InvalidSetting: Error, CustomStringConvertible {
    public let description: String

    init(text: String) {
        description = text
    }

    /// The text does not repeat the value, which may hold a password in the wrong place.
    init(_ setting: SettingDefinition) {
        description = "\(setting.name) (\(setting.environmentVariable)) must be \(setting.range)"
    }
}
