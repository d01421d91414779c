import Foundation

/// The distribution of requests over users.
public enum Distribution: Sendable, Equatable, CustomStringConvertible {
    case uniform
    /// The share of the k-th most popular user is proportional to 1 / k^exponent.
    case zipf(exponent: Double)
    /// All requests are for user 0.
    case one

    public static let exponents = 0.0...10.0

    /// `uniform`, `zipf`, `zipf:0.8` or `one`.
    public init?(_ text: String) {
        switch text {
        case "uniform": self = .uniform
        case "one": self = .one
        case "zipf": self = .zipf(exponent: 1)
        case _ where text.hasPrefix("zipf:"):
            guard let exponent = Double(text.dropFirst(5)), Distribution.exponents.contains(exponent) else {
                return nil
            }
            self = .zipf(exponent: exponent)
        default: return nil
        }
    }

    public var description: String {
        switch self {
        case .uniform: "uniform"
        case .zipf(let exponent): "zipf:\(exponent)"
        case .one: "one"
        }
    }
}

/// Draws user numbers, each in constant time with one random number.
public struct UserSampler: Sendable {
    /// One column of Walker's alias table. It has users instead of ranks, so that the permutation of the users is
    /// applied when the table is made, not for each request.
    private struct Column {
        var user: UInt32
        var alias: UInt32
        /// The share of the column that belongs to `user`, times 2^32.
        var threshold: UInt64
    }

    private let count: UInt64
    private let columns: [Column]

    /// - Parameter random: selects the popular users.
    public init(_ distribution: Distribution, users: Int, random: inout SeededRandom) {
        switch distribution {
        case .one:
            count = 1
            columns = []
        case .uniform:
            count = UInt64(users)
            columns = []
        case .zipf(let exponent):
            count = UInt64(users)
            var byRank = (0..<UInt32(users)).map(\.self)
            byRank.shuffle(using: &random)
            columns = UserSampler.columns(UserSampler.zipf(exponent, count: users), users: byRank)
        }
    }

    /// The probability of each rank, the most popular first.
    static func zipf(_ exponent: Double, count: Int) -> [Double] {
        let weights = (1...count).map { pow(Double($0), -exponent) }
        // The small ones first, for precision.
        let sum = weights.reversed().reduce(0, +)
        return weights.map { $0 / sum }
    }

    /// Vose's construction: columns below the average height are filled up from columns above it.
    private static func columns(_ probabilities: [Double], users: [UInt32]) -> [Column] {
        let count = probabilities.count
        var heights = probabilities.map { $0 * Double(count) }
        var columns = users.map { Column(user: $0, alias: $0, threshold: 1 << 32) }
        var small = heights.indices.filter { heights[$0] < 1 }
        var large = heights.indices.filter { heights[$0] >= 1 }
        while let low = small.popLast(), let high = large.last {
            columns[low].threshold = UInt64((heights[low] * 0x1p32).rounded())
            columns[low].alias = users[high]
            heights[high] -= 1 - heights[low]
            if heights[high] < 1 {
                large.removeLast()
                small.append(high)
            }
        }
        return columns
    }

    @inline(__always)
    public func draw(_ random: inout SeededRandom) -> UInt64 {
        let (index, fraction) = count.multipliedFullWidth(by: random.next())
        guard !columns.isEmpty else { return index }
        let column = columns[Int(index)]
        return UInt64(fraction >> 32 < column.threshold ? column.user : column.alias)
    }
}
