import Testing

@testable import HTTPServer

@Suite("Host check")
struct HostCheckTests {
    @Test(
        "addresses, this machine's names and names without a dot are local",
        arguments: [
            "127.0.0.1:6748", "10.0.0.7", "[::1]:6748", "localhost", "LOCALHOST:6748", "a.localhost", "headroom",
            "headroom:6748", "Head-room_2", "dash.internal:6748",
        ]
    )
    func local(authority: String) { #expect(HostCheck(configuredHost: "Dash.internal").isLocal(authority)) }

    @Test(
        "public names and malformed names are not local",
        arguments: [
            "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:6748", "dash.internal.evil.example",
            "evil.", "evil。example", "", ":6748", "[::1", "1:2:3", "a b", nil,
        ]
    )
    func foreign(authority: String?) { #expect(!HostCheck(configuredHost: "Dash.internal").isLocal(authority)) }
}
