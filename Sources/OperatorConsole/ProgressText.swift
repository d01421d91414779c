/// How far a long piece of work has come, as a line of text.
public struct ProgressText: Sendable {
    /// Of what the work consists of, in units of its own.
    public var total: Int
    /// What was done before this run, and says nothing about its rate.
    public var doneBefore: Int

    public init(total: Int, doneBefore: Int = 0) {
        self.total = total
        self.doneBefore = doneBefore
    }

    /// `37 %, 1200 rows moved, 0:42 left`.
    ///
    /// - Parameters:
    ///   - done: how much of `total`.
    ///   - detail: what to say of it.
    ///   - elapsed: since this run began.
    public func line(done: Int, _ detail: String, elapsed: Duration) -> String {
        let percent = total > 0 ? done * 100 / total : 100
        return "\(percent) %, \(detail)" + (timeLeft(done, elapsed).map { ", \($0) left" } ?? "")
    }

    /// Nil before there is a rate to compute it by.
    private func timeLeft(_ done: Int, _ elapsed: Duration) -> String? {
        let doneNow = done - doneBefore
        guard doneNow > 0, done < total else { return nil }
        let seconds = Int((elapsed / Double(doneNow) * Double(total - done)).components.seconds)
        let minutes = seconds / 60 % 60
        let digits = seconds % 60 < 10 ? "0\(seconds % 60)" : "\(seconds % 60)"
        guard seconds >= 3_600 else { return "\(minutes):\(digits)" }
        return "\(seconds / 3_600):" + (minutes < 10 ? "0" : "") + "\(minutes):\(digits)"
    }
}
