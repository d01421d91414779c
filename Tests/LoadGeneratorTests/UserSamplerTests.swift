import Testing

@testable import LoadGenerator

@Suite("User sampler")
struct UserSamplerTests {
    private func counts(_ distribution: Distribution, users: Int, draws: Int, seed: UInt64 = 7) -> [Int] {
        var random = SeededRandom(seed: seed)
        let sampler = UserSampler(distribution, users: users, random: &random)
        var counts = Array(repeating: 0, count: users)
        for _ in 0..<draws { counts[Int(sampler.draw(&random))] += 1 }
        return counts
    }

    /// The deviation of counts from the expected ones, in standard deviations of the chi-squared distribution.
    private func deviation(_ counts: [Int], expected: [Double]) -> Double {
        let squares = zip(counts, expected).map { (Double($0) - $1) * (Double($0) - $1) / $1 }.reduce(0, +)
        let freedom = Double(counts.count - 1)
        return (squares - freedom) / (2 * freedom).squareRoot()
    }

    @Test("Zipf's ranks are drawn with their exact probabilities", arguments: [0, 0.5, 0.99, 1, 1.5])
    func zipf(_ exponent: Double) {
        let users = 1_000
        let draws = 1_000_000
        let counts = counts(.zipf(exponent: exponent), users: users, draws: draws)
        // The generator chooses the ranks of the users first.
        var random = SeededRandom(seed: 7)
        var byRank = (0..<UInt32(users)).map(\.self)
        byRank.shuffle(using: &random)
        let expected = UserSampler.zipf(exponent, count: users).map { $0 * Double(draws) }
        #expect(abs(deviation(byRank.map { counts[Int($0)] }, expected: expected)) < 4)
    }

    @Test("The k-th rank has the k-th part of the first one's probability")
    func probabilities() {
        let ranks = UserSampler.zipf(1, count: 100_000)
        #expect(abs(ranks.reduce(0, +) - 1) < 1e-9)
        #expect(abs(ranks[0] / ranks[99_999] - 100_000) < 1e-6)
        // The sum of 1/k for k up to 100,000.
        #expect(abs(1 / ranks[0] - 12.090146129863428) < 1e-9)
    }

    @Test("The popular users are scattered")
    func scattered() {
        let counts = counts(.zipf(exponent: 1.2), users: 10_000, draws: 100_000)
        let popular = counts.indices.sorted { counts[$0] > counts[$1] }.prefix(10).sorted()
        #expect(zip(popular, popular.dropFirst()).allSatisfy { $1 - $0 > 1 })
        #expect(popular[9] - popular[0] > 1_000)
    }

    @Test("The uniform distribution draws all users equally often")
    func uniform() {
        let counts = counts(.uniform, users: 1_000, draws: 1_000_000)
        #expect(abs(deviation(counts, expected: Array(repeating: 1_000, count: 1_000))) < 4)
    }

    @Test("The distribution of one draws one user only")
    func one() { #expect(counts(.one, users: 3, draws: 1_000) == [1_000, 0, 0]) }

    @Test(
        "Users are within the range, also with a single user",
        arguments: [Distribution.uniform, .zipf(exponent: 1), .one]
    )
    func singleUser(_ distribution: Distribution) { #expect(counts(distribution, users: 1, draws: 100) == [100]) }

    @Test("The same seed draws the same users, and another seed others")
    func seeds() {
        let distribution = Distribution.zipf(exponent: 1)
        #expect(counts(distribution, users: 50, draws: 500) == counts(distribution, users: 50, draws: 500))
        #expect(counts(distribution, users: 50, draws: 500) != counts(distribution, users: 50, draws: 500, seed: 8))
    }

    @Test("Distributions are parsed by name")
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
