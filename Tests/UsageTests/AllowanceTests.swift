import Testing
import Usage

@Suite("An allowance")
struct AllowanceTests {
    @Test("takes messages until none are left, held ones included")
    func fits() {
        let allowance = Allowance(used: 6, held: 3, limit: 10)
        #expect(allowance.taken == 9 && allowance.remaining == 1)
        #expect(allowance.fits(1) && !allowance.fits(2) && !allowance.isUsedUp)
        let usedUp = Allowance(used: 6, held: 4, limit: 10)
        #expect(!usedUp.fits(1) && usedUp.remaining == 0 && usedUp.isUsedUp)
    }

    @Test("has nothing left, and not less, after its limit was lowered")
    func lowered() {
        let lowered = Allowance(used: 8, held: 1, limit: 5)
        #expect(lowered.remaining == 0 && lowered.isUsedUp && !lowered.fits(1))
    }

    @Test("without a limit is never used up")
    func unlimited() {
        let unlimited = Allowance(used: UsageSnapshot.countMaximum, held: 5, limit: nil)
        #expect(unlimited.remaining == nil && unlimited.fits(1_000_000) && !unlimited.isUsedUp)
    }

    @Test("is tighter than another if a larger share of it is taken, exactly")
    func tightest() {
        let largest = UsageSnapshot.countMaximum
        let sorted = [
            Allowance(used: largest, limit: nil), Allowance(used: 0, limit: 10),
            Allowance(used: 99, limit: 300), Allowance(used: 10, held: 23, limit: 99), Allowance(used: 1, limit: 2),
            Allowance(used: largest - 2, limit: largest - 1), Allowance(used: largest - 1, limit: largest),
            Allowance(used: 0, limit: 0), Allowance(used: 2, limit: 1), Allowance(used: largest, limit: 1),
        ]
        for (index, allowance) in sorted.enumerated() {
            for (otherIndex, other) in sorted.enumerated() {
                #expect(allowance.isTighter(than: other) == (index > otherIndex), "\(allowance) and \(other)")
            }
        }
        let usedUp = Allowance(used: 10, limit: 10)
        #expect(!usedUp.isTighter(than: Allowance(used: 0, limit: 0)))
        #expect(!Allowance(used: 0, limit: 0).isTighter(than: usedUp))
    }
}
