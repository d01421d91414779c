import NIOCore
import Testing

@testable import ServiceCore

@Suite("The connection counter")
struct ConnectionCounterTests {
    @Test("counts current, total and refused connections")
    func counting() {
        let counter = ConnectionCounter()
        #expect(counter.add(atMost: 2) == .admitted)
        #expect(counter.add(atMost: 2) == .admitted)
        #expect(counter.add(atMost: 2) == .tooMany)
        counter.remove()
        #expect(counter.add(atMost: 2) == .admitted)
        #expect(counter.snapshot.current == 2)
        #expect(counter.snapshot.total == 3)
        #expect(counter.snapshot.refused == 1)
    }

    private func network(_ address: String) throws -> PeerNetwork {
        try #require(PeerNetwork(SocketAddress(ipAddress: address, port: 1_000)))
    }

    @Test("refuses one address too many connections, and no other address")
    func perAddress() throws {
        let counter = ConnectionCounter()
        let (one, other) = (try network("192.0.2.1"), try network("192.0.2.2"))
        for _ in 0..<2 { #expect(counter.add(from: one, atMost: 9, ofNetworkAtMost: 2) == .admitted) }
        #expect(counter.add(from: one, atMost: 9, ofNetworkAtMost: 2) == .tooManyFromNetwork)
        #expect(counter.add(from: other, atMost: 9, ofNetworkAtMost: 2) == .admitted)
        #expect(counter.add(from: nil, atMost: 9, ofNetworkAtMost: 2) == .admitted)
        #expect(counter.snapshot.refused == 1)
        counter.remove(from: other)
        #expect(counter.add(from: one, atMost: 9, ofNetworkAtMost: 2) == .tooManyFromNetwork)
        counter.remove(from: one)
        #expect(counter.add(from: one, atMost: 9, ofNetworkAtMost: 2) == .admitted)
        #expect(counter.add(from: other, atMost: 4, ofNetworkAtMost: 2) == .admitted)
        #expect(counter.add(from: other, atMost: 4, ofNetworkAtMost: 2) == .tooMany)
    }

    @Test("counts an IPv6 address with its /64 network, and a mapped IPv4 address as IPv4")
    func networks() throws {
        #expect(try network("2001:db8:1:2::1") == network("2001:db8:1:2:ffff:ffff:ffff:ffff"))
        #expect(try network("2001:db8:1:2::1") != network("2001:db8:1:3::1"))
        #expect(try network("::ffff:192.0.2.1") == network("192.0.2.1"))
        #expect(try network("::ffff:192.0.2.1") != network("::ffff:192.0.2.2"))
        #expect(try network("::1") != network("192.0.2.1"))
        #expect(PeerNetwork(try SocketAddress(unixDomainSocketPath: "/run/headroom")) == nil)
    }

    @Test("does not wait when there are no connections")
    func alreadyEmpty() async { await ConnectionCounter().waitUntilEmpty(timeout: .seconds(86_400)) }

    @Test("waits until the last connection is closed")
    func emptying() async {
        let counter = ConnectionCounter()
        for _ in 0..<2 { #expect(counter.add(atMost: 9) == .admitted) }
        // Ends with the last connection: no test runs for a day.
        async let emptied: Void = counter.waitUntilEmpty(timeout: .seconds(86_400))
        counter.remove()
        #expect(counter.snapshot.current == 1)
        counter.remove()
        await emptied
        #expect(counter.snapshot.current == 0)
    }

    @Test("waits no longer than the timeout")
    func outOfTime() async {
        let counter = ConnectionCounter()
        #expect(counter.add(atMost: 9) == .admitted)
        let start = ContinuousClock.now
        await counter.waitUntilEmpty(timeout: .milliseconds(50))
        #expect(ContinuousClock.now - start >= .milliseconds(50))
        #expect(counter.snapshot.current == 1)
        counter.remove()
    }
}
