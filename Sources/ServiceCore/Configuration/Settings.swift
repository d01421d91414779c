/// The one table of the service's settings: each is declared once, as a property of the group of its subject.
package struct Settings: Sendable {
    package let database = DatabaseSettings()
    package let connections = ConnectionSettings()
    package let access = AccessSettings()
    package let counting = CountingSettings()
    package let http = HTTPSettings()
    package let webhooks = WebhookSettings()
    package let notifications = NotificationSettings()
    package let tracing = TracingSettings()

    package static let table = Settings()
    package static let listen = table.connections.listen.definition
    package static let http = table.http.address.definition
    fileprivate static let groups = Mirror(reflecting: table).children.compactMap { $0.value as? any SettingGroup }
    /// All definitions, in the order of `--help` and of docs/reference/settings.md.
    package static let all = groups.flatMap(\.definitions)

    package static func all<Group: SettingGroup>(in _: Group.Type) -> [SettingDefinition] {
        groups.first { $0 is Group }?.definitions ?? []
    }
}

/// The settings of one subject. Each stored property is a `Setting`, in the order of `--help` and of
/// docs/reference/settings.md.
package protocol SettingGroup: Sendable {
    /// - Throws: if values contradict one another; each by itself is valid.
    static func check(_ values: SettingValues<Self>) throws(InvalidSetting)
}

extension SettingGroup {
    package static func check(_ values: SettingValues<Self>) throws(InvalidSetting) {}

    private var settings: [any SettingDeclaration] {
        Mirror(reflecting: self).children.compactMap { $0.value as? any SettingDeclaration }
    }

    fileprivate var definitions: [SettingDefinition] { settings.flatMap(\.definitions) }

    fileprivate func check(_ reader: SettingsReader) throws(InvalidSetting) {
        for setting in settings { _ = try setting.value(in: reader) }
        try Self.check(SettingValues(declarations: self, reader: reader))
    }
}

/// The values of declared settings: `values.http.idleTimeout` is what was given for this setting, or its default.
/// Printing or dumping them shows nothing, because some are secret.
@dynamicMemberLookup
package struct SettingValues<Declarations: Sendable>: Sendable, CustomReflectable {
    fileprivate let declarations: Declarations
    fileprivate let reader: SettingsReader

    package subscript<Group: SettingGroup>(dynamicMember group: KeyPath<Declarations, Group>) -> SettingValues<Group> {
        SettingValues<Group>(declarations: declarations[keyPath: group], reader: reader)
    }

    package subscript<Value>(dynamicMember setting: KeyPath<Declarations, Setting<Value>>) -> Value {
        do {
            return try declarations[keyPath: setting].value(in: reader)
        } catch {
            preconditionFailure("the initializer has checked every value: \(error)")
        }
    }

    /// Whether a flag or the environment has a value, so that it is not the default.
    package func isSet<Value>(_ setting: KeyPath<Declarations, Setting<Value>>) -> Bool {
        reader.text(declarations[keyPath: setting].definition) != nil
    }

    package var customMirror: Mirror { Mirror(self, children: []) }
}

extension SettingValues<Settings> {
    /// Checks the value of every setting.
    package init(_ reader: SettingsReader) throws(InvalidSetting) {
        self.init(declarations: .table, reader: reader)
        for group in Settings.groups { try group.check(reader) }
    }
}
