import Testing

@testable import Engine

@Suite("Steps of a division")
struct UserDivisionTests {
    /// Divides all users, where a step takes `fixed` and `part` for each part.
    ///
    /// - Returns: the sizes of the steps.
    private func steps(fixed: Duration, part: Duration) -> [Int] {
        var (size, moved, sizes) = (UserDivision.StepSize(), 0, [Int]())
        while moved < UserDivision.partsMaximum, sizes.count < 10_000 {
            sizes.append(size.parts)
            moved += size.parts
            size.adapt(to: fixed + part * size.parts)
        }
        return sizes
    }

    @Test("double while they are short")
    func growing() {
        #expect(steps(fixed: .milliseconds(2), part: .microseconds(100)).prefix(8) == [1, 2, 4, 8, 16, 32, 64, 128])
    }

    @Test("take about a tenth of a second each where there are many rows")
    func manyRows() {
        let sizes = steps(fixed: .milliseconds(2), part: .microseconds(2_500))
        #expect(sizes.max() == 32, "82 ms")
        #expect(sizes.dropFirst(6).allSatisfy { $0 == 32 })
    }

    @Test("are as small as possible where one part takes longer, but for one in three")
    func hugeParts() {
        let sizes = steps(fixed: .milliseconds(2), part: .milliseconds(300))
        #expect(sizes.max() == 2)
        #expect(sizes.count { $0 == 1 } >= sizes.count / 2)
    }

    @Test("are large where each takes long, whatever its size")
    func busyMachine() {
        let sizes = steps(fixed: .milliseconds(250), part: .microseconds(200))
        #expect(sizes.count < 40)
        #expect(steps(fixed: .seconds(2), part: .zero).count < 14)
    }

    @Test("are shorter after one that took long")
    func shrinking() {
        var size = UserDivision.StepSize()
        for _ in 0..<6 { size.adapt(to: .milliseconds(3)) }
        #expect(size.parts == 64)
        size.adapt(to: .milliseconds(51))
        #expect(size.parts == 64)
        size.adapt(to: .milliseconds(140))
        #expect(size.parts == 32)
        size.adapt(to: .milliseconds(60))
        #expect(size.parts == 32)
    }
}
