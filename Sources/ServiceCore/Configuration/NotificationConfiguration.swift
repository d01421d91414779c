import LineProtocol

/// The settings of notifications, before any file is read.
package struct NotificationConfiguration: Sendable {
    package var url: String
    /// Not empty.
    package var secrets: WebhookConfiguration.Secrets
    package var sweepInterval: Duration

    /// nil if none are sent; the other settings are checked all the same.
    init?(_ settings: SettingsReader) throws(InvalidSetting) {
        let url = try settings.value(Settings.notificationsURL)
        secrets = WebhookConfiguration.Secrets(
            values: try settings.value(Settings.notificationsSecret),
            file: try settings.value(Settings.notificationsSecretFile)
        )
        sweepInterval = .seconds(try settings.value(Settings.notificationsSweep))
        guard let url else { return nil }
        guard !secrets.isEmpty else {
            throw InvalidSetting(text: "notifications-url needs notifications-secret or notifications-secret-file")
        }
        self.url = url
    }
}
