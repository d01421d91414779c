/// The numbers beside a chart: 0, and steps of 1, 2 or 5 times a power of ten up to one that nothing passes.
struct ValueAxis: Equatable {
    let step: Int
    let top: Int

    /// - Parameters:
    ///   - maximum: the largest value that is shown; counts are never negative.
    ///   - steps: how many there may be.
    init(upTo maximum: Int, steps: Int = 4) {
        precondition(maximum >= 0 && steps > 0, "an axis shows counts, with a step at least")
        var power = 1
        while true {
            if let factor = [1, 2, 5].first(where: { power * $0 * steps >= maximum }) {
                step = power * factor
                break
            }
            power *= 10
        }
        top = max(1, (maximum + step - 1) / step) * step
    }

    var marks: [Int] { Array(stride(from: 0, through: top, by: step)) }
}
