/// Of the HTTP side, checked.
public struct HTTPConfiguration: Sendable {
    package var address: ListenAddress
    /// Nobody asked for this very address: that it is taken is no reason not to count.
    package var isByDefault: Bool
    package var usesTLS: Bool
    package var connectionsMaximum: Int
    package var connectionsPerAddressMaximum: Int
    package var bodyBytesMaximum: Int
    package var requestTimeout: Duration
    package var idleTimeout: Duration
    /// Database sessions that apply billing events.
    package var billingSessions: Int

    /// nil when it is off; what else is said is checked all the same.
    init?(_ settings: SettingsReader) throws(SettingsReader.Invalid) {
        let tls: OnOrOff = try settings.choice(.httpTLS)
        usesTLS = tls == .on
        connectionsMaximum = try settings.number(.httpConnectionsMaximum, 1...65_536)
        connectionsPerAddressMaximum =
            settings.text(.httpConnectionsPerAddress) == nil
            ? .max : try settings.number(.httpConnectionsPerAddress, 1...65_536)
        bodyBytesMaximum = try settings.number(.httpBodyMaximum, 1_024...16_777_216)
        requestTimeout = .milliseconds(try settings.number(.httpRequestTimeout, 100...600_000))
        idleTimeout = .milliseconds(try settings.number(.httpIdleTimeout, 1_000...3_600_000))
        billingSessions = try settings.number(.billingSessions, 1...64)
        guard settings.text(.http) != "off" else { return nil }
        address = try settings.address(.http)
        isByDefault = !settings.isSet(.http)
    }
}

extension HTTPConfiguration {
    /// How many places busy connections leave to those that ask for health or have not asked yet, beyond
    /// `connectionsMaximum` where need be.
    package var newcomersMaximum: Int { max(1, min(64, connectionsMaximum / 4)) }

    public var descriptorsMaximum: Int { connectionsMaximum + newcomersMaximum }

    /// Where the system does not allow as many.
    public mutating func allowDescriptors(atMost maximum: Int) {
        guard maximum < descriptorsMaximum else { return }
        connectionsMaximum = min(connectionsMaximum, max(1, maximum * 4 / 5, maximum - 64))
    }
}

enum OnOrOff: String {
    case on, off
}
