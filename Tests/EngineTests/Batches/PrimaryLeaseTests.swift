import Testing

@testable import Engine

@Suite("The lease of a primary")
struct PrimaryLeaseTests {
    private let start = ContinuousClock.now

    @Test("begins when a commit was sent, and not when it was confirmed")
    func length() {
        var lease = PrimaryLease(length: .seconds(2))
        #expect(!lease.isValid(at: start))
        lease.confirm(sentAt: start)
        #expect(lease.isValid(at: start + .seconds(2)))
        #expect(!lease.isValid(at: start + .milliseconds(2_001)))
    }

    @Test("is not shortened by a commit that was sent earlier, and ends with the connection")
    func order() {
        var lease = PrimaryLease(length: .seconds(2))
        lease.confirm(sentAt: start + .seconds(1))
        lease.confirm(sentAt: start)
        #expect(lease.isValid(at: start + .seconds(3)))
        lease.end()
        #expect(!lease.isValid(at: start + .seconds(1)))
    }
}
