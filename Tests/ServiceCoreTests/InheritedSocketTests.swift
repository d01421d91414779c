import Testing

@testable import ServiceCore

@Suite("Sockets of the service manager")
struct InheritedSocketTests {
    private func socket(_ address: String, _ name: String = "") throws -> InheritedSocket {
        InheritedSocket(descriptor: 3, name: name, address: try #require(ListenAddress(address)))
    }

    private func configuration(
        _ sockets: [InheritedSocket],
        _ flags: [String: String] = [:]
    ) throws(InvalidSetting) -> ServerConfiguration {
        try ServerConfiguration(SettingsReader(flags: flags, environment: [:]), sockets: sockets)
    }

    private func refusal(_ sockets: [InheritedSocket], _ flags: [String: String] = [:]) -> String {
        do throws(InvalidSetting) {
            _ = try configuration(sockets, flags)
            return ""
        } catch {
            return error.description
        }
    }

    @Test("are for the port that they are named after, whatever their address")
    func byName() throws {
        let sockets = [try socket("0.0.0.0:1", "http"), try socket("[::1]:6748", "line")]
        let configuration = try configuration(sockets)
        #expect(configuration.listen.description == "[::1]:6748")
        #expect(configuration.http?.address.description == "0.0.0.0:1")
    }

    @Test("without such a name are for the port whose number they have")
    func byPort() throws {
        let sockets = [try socket("127.0.0.2:6748", "headroom.socket"), try socket("0.0.0.0:6747", "headroom.socket")]
        let configuration = try configuration(sockets)
        #expect(configuration.listen.description == "0.0.0.0:6747")
        #expect(configuration.http?.address.description == "127.0.0.2:6748")
        let set = try self.configuration([try socket("127.0.0.1:7000")], ["listen": "localhost:7000"])
        #expect(set.listen.description == "127.0.0.1:7000" && set.http?.address.port == 6_748)
    }

    @Test("for no port, or for one that has another, are refused")
    func unknown() throws {
        let stranger = [try socket("127.0.0.1:9", "x")]
        #expect(refusal(stranger).contains("127.0.0.1:9 (x) is neither for listen nor for http"))
        let twice = [try socket("127.0.0.1:6747"), try socket("[::1]:6747")]
        #expect(refusal(twice).contains("a second socket for one port, [::1]:6747"))
    }

    @Test(
        "that contradict a setting are refused",
        arguments: [
            ("listen", "127.0.0.1:6747", "line"), ("listen", "0.0.0.0:1", "line"), ("listen", "localhost:1", "line"),
            ("http", "off", "http"), ("http", "127.0.0.1:6748", "http"),
        ]
    )
    func contradicting(setting: String, value: String, name: String) throws {
        let text = refusal([try socket("0.0.0.0:7000", name)], [setting: value])
        #expect(text.hasPrefix("\(setting)=\(value) contradicts the service manager's socket 0.0.0.0:7000"))
    }

    @Test("cannot be combined with ports that another instance may open")
    func reusePort() throws {
        #expect(refusal([try socket("0.0.0.0:6747")], ["reuse-port": "on"]).hasPrefix("reuse-port=on is for ports"))
    }

    @Test("for another process are ignored")
    func otherProcess() throws {
        #expect(try InheritedSocket.all(in: [:]).isEmpty)
        #expect(try InheritedSocket.all(in: ["LISTEN_PID": "1", "LISTEN_FDS": "1"]).isEmpty)
    }
}
