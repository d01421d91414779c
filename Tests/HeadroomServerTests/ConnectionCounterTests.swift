import NIOCore
import Testing

@testable import HeadroomServer

@Suite("The census of connections")
struct CensusTests {
    @Test("counts who is there, who came and who was refused")
    func counting() {
        let connectionCounter = ConnectionCounter()
        #expect(connectionCounter.enter(atMost: 2) == .admitted)
        #expect(connectionCounter.enter(atMost: 2) == .admitted)
        #expect(connectionCounter.enter(atMost: 2) == .tooMany)
        connectionCounter.leave()
        #expect(connectionCounter.enter(atMost: 2) == .admitted)
        #expect(connectionCounter.snapshot.current == 2)
        #expect(connectionCounter.snapshot.total == 3)
        #expect(connectionCounter.snapshot.refused == 1)
    }

    private func network(_ address: String) throws -> PeerNetwork {
        try #require(PeerNetwork(SocketAddress(ipAddress: address, port: 1_000)))
    }

    @Test("refuses one address too many connections, and no other address")
    func perAddress() throws {
        let connectionCounter = ConnectionCounter()
        let (one, other) = (try network("192.0.2.1"), try network("192.0.2.2"))
        for _ in 0..<2 { #expect(connectionCounter.enter(from: one, atMost: 9, ofNetworkAtMost: 2) == .admitted) }
        #expect(connectionCounter.enter(from: one, atMost: 9, ofNetworkAtMost: 2) == .tooManyFromNetwork)
        #expect(connectionCounter.enter(from: other, atMost: 9, ofNetworkAtMost: 2) == .admitted)
        #expect(connectionCounter.enter(from: nil, atMost: 9, ofNetworkAtMost: 2) == .admitted)
        #expect(connectionCounter.snapshot.refused == 1)
        connectionCounter.leave(from: other)
        #expect(connectionCounter.enter(from: one, atMost: 9, ofNetworkAtMost: 2) == .tooManyFromNetwork)
        connectionCounter.leave(from: one)
        #expect(connectionCounter.enter(from: one, atMost: 9, ofNetworkAtMost: 2) == .admitted)
        #expect(connectionCounter.enter(from: other, atMost: 4, ofNetworkAtMost: 2) == .admitted)
        #expect(connectionCounter.enter(from: other, atMost: 4, ofNetworkAtMost: 2) == .tooMany)
    }

    @Test("counts an IPv6 address with all of its /64 network, and one that stands for IPv4 as that")
    func networks() throws {
        #expect(try network("2001:db8:1:2::1") == network("2001:db8:1:2:ffff:ffff:ffff:ffff"))
        #expect(try network("2001:db8:1:2::1") != network("2001:db8:1:3::1"))
        #expect(try network("::ffff:192.0.2.1") == network("192.0.2.1"))
        #expect(try network("::ffff:192.0.2.1") != network("::ffff:192.0.2.2"))
        #expect(try network("::1") != network("192.0.2.1"))
        #expect(PeerNetwork(try SocketAddress(unixDomainSocketPath: "/run/headroom")) == nil)
    }

    @Test("waits for nobody when nobody is there")
    func alreadyEmpty() async {
        await ConnectionCounter().emptied(within: .seconds(86_400))
    }

    @Test("waits for the last to leave")
    func emptying() async {
        let connectionCounter = ConnectionCounter()
        for _ in 0..<2 { #expect(connectionCounter.enter(atMost: 9) == .admitted) }
        // No test runs for a day: this ends by the last who leaves.
        async let emptied: Void = connectionCounter.emptied(within: .seconds(86_400))
        connectionCounter.leave()
        #expect(connectionCounter.snapshot.current == 1)
        connectionCounter.leave()
        await emptied
        #expect(connectionCounter.snapshot.current == 0)
    }

    @Test("waits no longer than it was told")
    func outOfTime() async {
        let connectionCounter = ConnectionCounter()
        #expect(connectionCounter.enter(atMost: 9) == .admitted)
        let start = ContinuousClock.now
        await connectionCounter.emptied(within: .milliseconds(50))
        #expect(ContinuousClock.now - start >= .milliseconds(50))
        #expect(connectionCounter.snapshot.current == 1)
        connectionCounter.leave()
    }
}
