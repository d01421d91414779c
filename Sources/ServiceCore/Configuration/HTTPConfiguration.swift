/// The HTTP server's settings, and how its port is opened.
package struct HTTPConfiguration: Sendable {
    package let settings: SettingValues<HTTPSettings>
    package let address: ListenAddress
    /// How the port of `address` is opened.
    package let port: ListeningPort
    /// The address is the default: if its port is in use, the service runs without HTTP.
    package let isByDefault: Bool
    package private(set) var connectionsMaximum: Int

    init(_ settings: SettingValues<HTTPSettings>, _ address: ListenAddress, _ port: ListeningPort) {
        self.settings = settings
        self.address = address
        self.port = port
        isByDefault = !settings.isSet(\.address)
        connectionsMaximum = settings.connectionsMaximum
    }

    /// Connections beyond the busy ones, for health checks and for connections without a request yet; they may exceed
    /// `connectionsMaximum`.
    package var newcomersMaximum: Int { max(1, min(64, connectionsMaximum / 4)) }

    package var descriptorsMaximum: Int { connectionsMaximum + newcomersMaximum }

    /// Lowers the limit to the descriptors that the system allows.
    package mutating func allowDescriptors(atMost maximum: Int) {
        guard maximum < descriptorsMaximum else { return }
        connectionsMaximum = min(connectionsMaximum, max(1, maximum * 4 / 5, maximum - 64))
    }
}
