/// The settings of the service. The files beside this one declare them by subject.
public enum Settings {
    /// In the order of `--help` and of docs/reference/settings.md.
    public static let all: [any SettingDefinition] =
        ofEveryCommand + ofConnections + ofAccess + ofDatabase + ofHTTP + ofWebhooks
        + ofNotifications + ofTracing
}
