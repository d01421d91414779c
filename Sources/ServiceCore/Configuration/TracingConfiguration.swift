import LineProtocol

/// The settings of traces, before any file is read.
package struct TracingConfiguration: Sendable {
    package var url: String
    /// Each `name=value`.
    package var headers: WebhookConfiguration.Secrets
    package var sampledPercent: Int
    /// nil: no request is recorded for being slow.
    package var slowTime: Duration?

    /// nil if nothing is traced; the other settings are checked all the same.
    init?(_ settings: SettingsReader) throws(InvalidSetting) {
        let url = try settings.value(Settings.tracingURL)
        headers = WebhookConfiguration.Secrets(
            values: try settings.value(Settings.tracingHeaders),
            file: try settings.value(Settings.tracingHeadersFile)
        )
        sampledPercent = try settings.value(Settings.tracingSampled)
        let slowTime = try settings.value(Settings.tracingSlow)
        self.slowTime = slowTime == .zero ? nil : slowTime
        guard let url else { return nil }
        guard headers.isEmpty || RequestURL.isLocalOrSecure(url) else {
            throw InvalidSetting(
                text: """
                    tracing-headers are secret: with them, tracing-url must be an https URL, or an http URL of this machine
                    """
            )
        }
        self.url = url
    }
}
