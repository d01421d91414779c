import Testing

@testable import Engine

@Suite("Steps of a division")
struct UserDivisionTests {
    @Test("have more parts after a short step, at most twice as many, and fewer after a long one")
    func sizes() {
        #expect(UserDivision.nextSize(after: 1, took: .milliseconds(3)) == 2)
        #expect(UserDivision.nextSize(after: 64, took: .milliseconds(49)) == 128)
        #expect(UserDivision.nextSize(after: 64, took: .milliseconds(51)) == 64)
        #expect(UserDivision.nextSize(after: 64, took: .milliseconds(100)) == 64)
        #expect(UserDivision.nextSize(after: 64, took: .milliseconds(101)) == 32)
        #expect(UserDivision.nextSize(after: 1, took: .seconds(9)) == 1)
        #expect(UserDivision.nextSize(after: 4_096, took: .zero) == UserDivision.partsMaximum)
    }
}
