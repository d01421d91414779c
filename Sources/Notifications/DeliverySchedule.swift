import Engine

/// When a notification is tried again, and when no more.
///
/// Standard Webhooks recommends this schedule: three days in all, so that a receiver that is broken on a Friday gets
/// what it has missed.
enum DeliverySchedule {
    /// The time from each attempt that failed to the next one. No attempt follows that after the last delay.
    static let delays: [Duration] = [
        .seconds(5), .seconds(5 * 60), .seconds(30 * 60), .seconds(2 * 3_600), .seconds(5 * 3_600),
        .seconds(10 * 3_600), .seconds(14 * 3_600), .seconds(20 * 3_600), .seconds(24 * 3_600),
    ]

    /// - Parameters:
    ///   - attempts: the number of attempts, with the one that has failed just now.
    ///   - retryAfter: what the receiver asked for. It may extend the delay as far as the schedule's next one.
    ///   - jitter: 0 to 1, at random: a tenth of the delay at most is added, so that not all come back at once.
    /// - Returns: nil if there is no further attempt.
    static func delay(afterAttempts attempts: Int, retryAfter: Duration?, jitter: Double) -> Duration? {
        guard delays.indices.contains(attempts - 1) else { return nil }
        let scheduled = delays[attempts - 1]
        let longest = delays.indices.contains(attempts) ? delays[attempts] : scheduled
        return max(scheduled, min(retryAfter ?? .zero, longest)) + scheduled * (jitter / 10)
    }
}

/// How an attempt ended.
enum AttemptResult: Sendable, Equatable {
    case delivered
    /// - Parameter problem: what is wrong, without the receiver's words.
    case failed(problem: String, retryAfter: Duration? = nil)

    /// Judges the receiver's answer. A redirect is not followed, because the answer to a POST would be lost.
    ///
    /// - Parameter retryAfter: the field of the answer; a number of seconds, or a date, which is not read.
    init(status: Int, retryAfter: String?) {
        switch status {
        case 200..<300: self = .delivered
        case 300..<400: self = .failed(problem: "HTTP \(status): redirects are not followed; set the final URL")
        case 429, 503:
            let seconds = retryAfter.flatMap { Int64($0) }.flatMap { (0...86_400).contains($0) ? $0 : nil }
            self = .failed(problem: "HTTP \(status)", retryAfter: seconds.map { .seconds($0) })
        default: self = .failed(problem: "HTTP \(status)")
        }
    }
}

extension NotificationOutbox.Attempt {
    init(_ due: NotificationOutbox.Due, _ result: AttemptResult, jitter: Double) {
        switch result {
        case .delivered:
            self.init(id: due.id, attemptsBefore: due.attempts, problem: nil, delay: nil)
        case .failed(let problem, let retryAfter):
            self.init(
                id: due.id,
                attemptsBefore: due.attempts,
                problem: problem,
                delay: DeliverySchedule.delay(
                    afterAttempts: due.attempts + 1,
                    retryAfter: retryAfter,
                    jitter: jitter
                )
            )
        }
    }
}
