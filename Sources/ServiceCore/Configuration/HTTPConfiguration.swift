/// The HTTP server's settings, checked.
public struct HTTPConfiguration: Sendable {
    package var address: ListenAddress
    /// How the port of `address` is opened.
    package var port: ListeningPort
    /// The address is the default: if its port is in use, the service runs without HTTP.
    package var isByDefault: Bool
    package var usesTLS: Bool
    /// Of web pages that may call the API from a browser.
    package var origins: Set<String>
    package var connectionsMaximum: Int
    package var connectionsPerAddressMaximum: Int
    package var bodyBytesMaximum: Int
    package var requestTimeout: Duration
    package var idleTimeout: Duration
    /// Database sessions that apply billing events.
    package var billingSessions: Int

    /// nil if HTTP is off; the other settings are checked all the same.
    init?(_ settings: SettingsReader, inherited: InheritedSocket?, reusesPort: Bool) throws(InvalidSetting) {
        usesTLS = try settings.value(Settings.httpTLS)
        origins = try settings.value(Settings.httpOrigins)
        connectionsMaximum = try settings.value(Settings.httpConnectionsMaximum)
        connectionsPerAddressMaximum = try settings.value(Settings.httpConnectionsPerAddressMaximum) ?? .max
        bodyBytesMaximum = try settings.value(Settings.httpBodyBytesMaximum)
        requestTimeout = try settings.value(Settings.httpRequestTimeout)
        idleTimeout = try settings.value(Settings.httpIdleTimeout)
        billingSessions = try settings.value(Settings.billingSessions)
        isByDefault = !settings.isSet(Settings.http)
        let set = try settings.value(Settings.http)
        guard let address = inherited?.address ?? set else { return nil }
        self.address = address
        port = ListeningPort(address, inherited: inherited, isReusable: reusesPort)
    }
}

extension HTTPConfiguration {
    /// Connections beyond the busy ones, for health checks and for connections without a request yet; they may exceed
    /// `connectionsMaximum`.
    package var newcomersMaximum: Int { max(1, min(64, connectionsMaximum / 4)) }

    public var descriptorsMaximum: Int { connectionsMaximum + newcomersMaximum }

    /// Lowers the limit to the descriptors that the system allows.
    public mutating func allowDescriptors(atMost maximum: Int) {
        guard maximum < descriptorsMaximum else { return }
        connectionsMaximum = min(connectionsMaximum, max(1, maximum * 4 / 5, maximum - 64))
    }
}
