import Testing

@testable import ServiceCore

@Suite("A listen address")
struct ListenAddressTests {
    @Test(
        "is a host, a colon and a port, and prints as it was written",
        arguments: [
            ("127.0.0.1:6747", "127.0.0.1", 6_747), ("localhost:0", "localhost", 0), ("[::1]:65535", "::1", 65_535),
            ("[fe80::1%eth0]:1", "fe80::1%eth0", 1),
        ]
    )
    func good(text: String, host: String, port: Int) {
        let address = ListenAddress(text)
        #expect(address == ListenAddress(host: host, port: port))
        #expect(address?.description == text)
    }

    @Test(
        "is nothing else",
        arguments: [
            "", ":", "host", "6747", ":6747", "host:", "host:x", "host:65536", "host:-1", "::1:6747", "[]:1", "[::1]",
            "[::1]6747", "host: 1", "host:1 ", "host:0x10",
        ]
    )
    func bad(text: String) { #expect(ListenAddress(text) == nil) }
}
