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
}
