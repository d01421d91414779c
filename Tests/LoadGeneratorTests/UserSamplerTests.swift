import Testing

@testable import LoadGenerator

@Suite("The sampler of users")
struct UserSamplerTests {
    private func counts(_ distribution: Distribution, users: Int, draws: Int, seed: UInt64 = 7) -> [Int] {
        var random = SeededRandom(seed: seed)
        let sampler = UserSampler(distribution, users: users, random: &random)
        var counts = Array(repeating: 0, count: users)
        for _ in 0..<draws { counts[Int(sampler.draw(&random))] += 1 }
        return counts
    }

    /// How far counts lie from what is expected, in standard deviations of the chi-squared distribution.
    private func deviation(_ counts: [Int], expected: [Double]) -> Double {
        let squares = zip(counts, expected).map { (Double($0) - $1) * (Double($0) - $1) / $1 }.reduce(0, +)
        let freedom = Double(counts.count - 1)
        return (squares - freedom) / (2 * freedom).squareRoot()
    }

    @Test("draws Zipf's ranks with their exact probabilities", arguments: [0, 0.5, 0.99, 1, 1.5])
    func zipf(_ exponent: Double) {
        let users = 1_000
        let draws = 1_000_000
        let counts = counts(.zipf(exponent: exponent), users: users, draws: draws)
        // Who has which rank is the first thing that the generator decides.
        var random = SeededRandom(seed: 7)
        var byRank = (0..<UInt32(users)).map(\.self)
        byRank.shuffle(using: &random)
        let expected = UserSampler.zipf(exponent, count: users).map { $0 * Double(draws) }
        #expect(abs(deviation(byRank.map { counts[Int($0)] }, expected: expected)) < 4)
    }

    @Test("gives the k-th rank the k-th part of the first one's probability")
    func probabilities() {
        let ranks = UserSampler.zipf(1, count: 100_000)
        #expect(abs(ranks.reduce(0, +) - 1) < 1e-9)
        #expect(abs(ranks[0] / ranks[99_999] - 100_000) < 1e-6)
        // The sum of 1/k for k up to 100,000.
        #expect(abs(1 / ranks[0] - 12.090146129863428) < 1e-9)
    }

    @Test("scatters the popular users")
    func scattered() {
        let counts = counts(.zipf(exponent: 1.2), users: 10_000, draws: 100_000)
        let popular = counts.indices.sorted { counts[$0] > counts[$1] }.prefix(10).sorted()
        #expect(zip(popular, popular.dropFirst()).allSatisfy { $1 - $0 > 1 })
        #expect(popular[9] - popular[0] > 1_000)
    }

    @Test("draws all users alike")
    func uniform() {
        let counts = counts(.uniform, users: 1_000, draws: 1_000_000)
        #expect(abs(deviation(counts, expected: Array(repeating: 1_000, count: 1_000))) < 4)
    }

    @Test("draws one user only")
    func one() {
        #expect(counts(.one, users: 3, draws: 1_000) == [1_000, 0, 0])
    }

    @Test("never leaves the range, with one user too", arguments: [Distribution.uniform, .zipf(exponent: 1), .one])
    func singleUser(_ distribution: Distribution) {
        #expect(counts(distribution, users: 1, draws: 100) == [100])
    }

    @Test("draws the same users for the same seed, and others for another")
    func seeds() {
        let distribution = Distribution.zipf(exponent: 1)
        #expect(counts(distribution, users: 50, draws: 500) == counts(distribution, users: 50, draws: 500))
        #expect(counts(distribution, users: 50, draws: 500) != counts(distribution, users: 50, draws: 500, seed: 8))
    }

    @Test("reads the names of distributions")
    func names() {
        #expect(Distribution("uniform") == .uniform)
        #expect(Distribution("one") == .one)
        #expect(Distribution("zipf") == .zipf(exponent: 1))
        #expect(Distribution("zipf:0.8") == .zipf(exponent: 0.8))
        for text in ["", "zipf:", "zipf:-1", "zipf:11", "zipf:nan", "zipf:inf", "Zipf", "normal"] {
            #expect(Distribution(text) == nil, "\(text)")
        }
        #expect(Distribution.zipf(exponent: 1).description == "zipf:1.0")
    }
}
