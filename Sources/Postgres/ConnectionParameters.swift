import CLibPQ

/// A connection string as libpq's keywords and values.
struct ConnectionParameters {
    private(set) var values: [(keyword: String, value: String)] = []

    init(parsing conninfo: String) throws(PostgresError) {
        // libpq's message is not used: it quotes the part that it could not parse, which may belong to the password.
        var message: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(conninfo, &message) else {
            PQfreemem(message)
            throw PostgresError(
                .connectFailed,
                "the connection string cannot be parsed (it is not shown, because it may hold a password)",
                hint: "write host=… port=… dbname=… user=…, or postgresql://user@host:port/dbname with special "
                    + "characters percent-encoded; all keywords: PostgreSQL manual, \"Connection Strings\""
            )
        }
        defer { PQconninfoFree(options) }
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val {
                values.append((String(cString: keyword), String(cString: value)))
            }
            option += 1
        }
    }

    subscript(keyword: String) -> String? {
        get { values.first { $0.keyword == keyword }?.value }
        set {
            values.removeAll { $0.keyword == keyword }
            if let newValue { values.append((keyword, newValue)) }
        }
    }

    mutating func setDefault(_ keyword: String, _ value: String) {
        if self[keyword] == nil { values.append((keyword, value)) }
    }

    /// Adds the defaults of this service, which the connection string overrides.
    mutating func setDefaults(_ options: ConnectionOptions) {
        self["client_encoding"] = "UTF8"  // required: results are decoded as UTF-8
        setDefault("application_name", options.applicationName)
        // The loss of a silent peer (power, cable, firewall) is detected after 10 + 3 × 5 s by probes if the connection
        // is idle, and otherwise after 10 s by unacknowledged data. The kernel's defaults are two hours and a quarter
        // of an hour.
        setDefault("keepalives", "1")
        setDefault("keepalives_idle", "10")
        setDefault("keepalives_interval", "5")
        setDefault("keepalives_count", "3")
        setDefault("tcp_user_timeout", "10000")
    }
}

extension ConnectionParameters {
    /// The parameters of each server by itself, in the order of the connection string.
    var servers: [ConnectionParameters] {
        let hosts = hosts
        guard hosts.count > 1 else { return [self] }
        return hosts.map { host in
            var parameters = self
            parameters.hosts = [host]
            return parameters
        }
    }

    /// Returns the same parameters for other servers.
    func moved(to servers: [ServerAddress]) -> ConnectionParameters {
        var parameters = self
        parameters["hostaddr"] = nil
        parameters["host"] = servers.map(\.host).joined(separator: ",")
        parameters["port"] = servers.map { "\($0.port)" }.joined(separator: ",")
        return parameters
    }

    /// The settings that libpq sends when it connects; a reset session needs them again.
    var sessionSettings: [(String, String)] {
        ["client_encoding", "application_name"].compactMap { name in self[name].map { (name, $0) } }
    }

    var address: ServerAddress? {
        guard hosts.count == 1, !hosts[0].name.hasPrefix("/"), !hosts[0].name.isEmpty else { return nil }
        guard let port = hosts[0].port.isEmpty ? 5_432 : Int32(hosts[0].port) else { return nil }
        return ServerAddress(host: hosts[0].name, port: port)
    }

    /// The only server, as messages name it.
    var serverName: String {
        guard let host = hosts.first else { return "the server of libpq's defaults" }
        return host.port.isEmpty ? host.name : "\(host.name), port \(host.port)"
    }

    /// The only server, as host:port.
    var serverAddress: String {
        guard let host = hosts.first else { return "default" }
        return host.port.isEmpty ? host.name : "\(host.name):\(host.port)"
    }

    /// The parameters without secrets: host, port, database and user.
    var redacted: String {
        let shown = ["host", "hostaddr", "port", "dbname", "user"].compactMap { keyword in
            self[keyword].map { "\(keyword)=\($0)" }
        }
        return shown.isEmpty ? "(libpq's defaults)" : shown.joined(separator: " ")
    }

    /// A host of the parallel lists `host`, `hostaddr` and `port`.
    private struct Host {
        var host: String
        var address: String
        var port: String

        var name: String { host.isEmpty ? address : host }
    }

    private var hosts: [Host] {
        get {
            let names = list("host")
            let addresses = list("hostaddr")
            let ports = list("port")
            return (0..<max(names.count, addresses.count)).map { index in
                Host(
                    host: names.indices.contains(index) ? names[index] : "",
                    address: addresses.indices.contains(index) ? addresses[index] : "",
                    // A single port applies to all hosts.
                    port: ports.count == 1 ? ports[0] : ports.indices.contains(index) ? ports[index] : ""
                )
            }
        }
        set {
            let hadAddresses = self["hostaddr"] != nil
            let hadNames = self["host"] != nil
            let hadPorts = self["port"] != nil
            self["host"] = hadNames ? newValue.map(\.host).joined(separator: ",") : nil
            self["hostaddr"] = hadAddresses ? newValue.map(\.address).joined(separator: ",") : nil
            self["port"] = hadPorts ? newValue.map(\.port).joined(separator: ",") : nil
        }
    }

    private func list(_ keyword: String) -> [String] {
        self[keyword]?.split(separator: ",", omittingEmptySubsequences: false).map(String.init) ?? []
    }
}
