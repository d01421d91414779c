/// How far a long piece of work has come, as a line of text.
public struct ProgressText: Sendable {
    /// The size of the whole work in its own units, such as rows; nil if it is not known.
    public var total: Int?
    /// The part that earlier runs have done. It does not count for the rate.
    public var doneBefore: Int

    public init(total: Int?, doneBefore: Int = 0) {
        self.total = total
        self.doneBefore = doneBefore
    }

    /// `37 %, 1200 rows moved, 0:42 left`, and without a total `1200 rows moved`.
    ///
    /// - Parameters:
    ///   - done: how much of `total`.
    ///   - detail: what to say of it.
    ///   - elapsed: since this run began.
    public func line(done: Int, _ detail: String, elapsed: Duration) -> String {
        guard let total else { return detail }
        let percent = total > 0 ? done * 100 / total : 100
        return "\(percent) %, \(detail)" + (timeLeft(done, of: total, elapsed).map { ", \($0) left" } ?? "")
    }

    /// `37 %, 3700 of 10000 rows, 88 a second, 1:11 left`, and without a total `3700 rows, 88 a second`.
    ///
    /// - Parameter units: of what the work consists of, such as `rows`.
    public func line(done: Int, of units: String, elapsed: Duration) -> String {
        let amount = total.map { "\(done) of \($0) \(units)" } ?? "\(done) \(units)"
        let rate = rate(done, elapsed).map { ", \($0) a second" } ?? ""
        return line(done: done, amount + rate, elapsed: elapsed)
    }

    /// The rate of this run; nil before it is known, and if less than one is done in a second.
    private func rate(_ done: Int, _ elapsed: Duration) -> Int? {
        let milliseconds = elapsed.components.seconds * 1_000 + elapsed.components.attoseconds / 1_000_000_000_000_000
        guard milliseconds > 0, done > doneBefore else { return nil }
        let rate = (done - doneBefore) * 1_000 / Int(milliseconds)
        return rate > 0 ? rate : nil
    }

    /// The time that is left; nil before there is a rate to compute it by.
    private func timeLeft(_ done: Int, of total: Int, _ elapsed: Duration) -> String? {
        let doneNow = done - doneBefore
        guard doneNow > 0, done < total else { return nil }
        return ProgressText.clock(elapsed / Double(doneNow) * Double(total - done))
    }

    /// `0:09`, `1:05`, `2:16:30`.
    public static func clock(_ duration: Duration) -> String {
        let seconds = Int(duration.components.seconds)
        let minutes = seconds / 60 % 60
        let digits = seconds % 60 < 10 ? "0\(seconds % 60)" : "\(seconds % 60)"
        guard seconds >= 3_600 else { return "\(minutes):\(digits)" }
        return "\(seconds / 3_600):" + (minutes < 10 ? "0" : "") + "\(minutes):\(digits)"
    }
}
