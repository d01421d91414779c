import TestSupport
import Testing

@Suite("Free ports of tests")
struct FreePortTests {
    @Test("A port is given once, because a test that ends a service expects that nothing answers there")
    func once() async throws {
        // So many random ones would be the same ones now and then.
        var ports: Set<Int> = []
        for _ in 0..<500 { ports.insert(try await freePort()) }
        #expect(ports.count == 500)
    }
}
