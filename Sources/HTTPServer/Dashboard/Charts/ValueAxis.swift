/// The numbers of a chart's axis: from 0 in steps of 1, 2 or 5 times a power of ten, up to at least the maximum.
struct ValueAxis: Equatable {
    let step: Int
    let top: Int

    /// - Parameters:
    ///   - maximum: the largest value of the chart, at least 0.
    ///   - steps: the maximum number of steps.
    init(upTo maximum: Int, steps: Int = 4) {
        precondition(maximum >= 0 && steps > 0, "the maximum is a count, and there is at least one step")
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
