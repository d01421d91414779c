import Engine
import LineProtocol
import NIOCore
import Usage

/// The counters of one event loop. Written on that loop only; read from any thread.
package final class LoopMetrics: Sendable {
    /// The outcomes that are counted.
    package enum Status: Int, CaseIterable, Sendable {
        case allowed, blocked, held, ok
    }

    let verbs = CounterCells(count: Verb.allCases.count)
    /// Each status has a counter for each tier.
    let answers = CounterCells(count: Status.allCases.count << tierBits)
    /// Answers with `shadow`.
    let shadows = CounterCells(count: 1)
    let errors = CounterCells(count: ReplyError.Code.allCases.count)
    package let latencies = LatencyRecorder()

    @inline(__always)
    package func count(_ request: DecodedRequest) {
        switch request {
        case .command(let command): verbs.increment(command.verb.ordinal)
        case .failure(let error), .fatal(let error): count(error.code)
        }
    }

    @inline(__always)
    package func count(_ outcome: Outcome) {
        switch outcome {
        case .answer(let answer): count(answer)
        case .failure(let error): count(ReplyError(error).code)
        default: break
        }
    }

    @inline(__always)
    package func count(_ answer: Answer) {
        answers.increment(LoopMetrics.ordinal(Status(answer.status), answer.snapshot.tier))
        if answer.isShadow { countShadow() }
    }

    /// Such answers are rare; a call keeps this out of the code of every answer.
    @inline(never)
    private func countShadow() {
        shadows.increment(0)
    }

    func count(_ code: ReplyError.Code) {
        if let ordinal = ReplyError.Code.allCases.firstIndex(of: code) { errors.increment(ordinal) }
    }

    /// The bits are enough for all tiers. It is a literal, because `allCases` makes an array each time.
    private static var tierBits: Int { 2 }

    @inline(__always)
    static func ordinal(_ status: Status, _ tier: Tier) -> Int {
        status.rawValue << tierBits | tier.ordinal
    }

    /// The time in microseconds, which wraps after an hour; never 0.
    package static func microseconds(_ time: NIODeadline) -> UInt32 {
        max(1, UInt32(truncatingIfNeeded: time.uptimeNanoseconds / 1_000))
    }

    /// The time in seconds; never 0.
    package static func second(_ time: NIODeadline) -> UInt64 {
        time.uptimeNanoseconds / 1_000_000_000 + 1
    }
}

extension LoopMetrics.Status {
    @inline(__always)
    init(_ status: Answer.Status) {
        self =
            switch status {
            case .allowed: .allowed
            case .blocked: .blocked
            case .held: .held
            case .ok: .ok
            }
    }
}
