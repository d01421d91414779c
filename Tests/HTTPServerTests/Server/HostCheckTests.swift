import Testing

@testable import HTTPServer

@Suite("An open port")
struct HostCheckTests {
    @Test(
        "is known by addresses, this machine's names and names without a dot",
        arguments: [
            "127.0.0.1:6748", "10.0.0.7", "[::1]:6748", "localhost", "LOCALHOST:6748", "a.localhost", "headroom",
            "headroom:6748", "Head-room_2", "dash.internal:6748",
        ]
    )
    func own(authority: String) {
        #expect(HostCheck(configuredHost: "Dash.internal").isOurs(authority))
    }

    @Test(
        "is not known by names that somebody may own, and what is no name",
        arguments: [
            "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:6748", "dash.internal.evil.example",
            "evil.", "evil。example", "", ":6748", "[::1", "1:2:3", "a b", nil,
        ]
    )
    func others(authority: String?) {
        #expect(!HostCheck(configuredHost: "Dash.internal").isOurs(authority))
    }
}
