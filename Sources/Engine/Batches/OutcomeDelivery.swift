/// Delivers the outcomes of a lane's requests, and counts those that are unknown.
///
/// A class, as the parts that execute batches, because copies of a struct with many references cost some microseconds.
final class OutcomeDelivery {
    let laneConnection: LaneConnection
    let mailboxes: MailboxRegistry
    let metrics: LaneMetrics
    private let crossedUsers: CrossedUsers?
    let trace: LaneTrace?

    /// - Parameters:
    ///   - crossedUsers: the users to notify; nil if the service sends no notifications.
    ///   - trace: the trace of the batch; nil if the service traces nothing.
    init(
        laneConnection: LaneConnection,
        mailboxes: MailboxRegistry,
        metrics: LaneMetrics,
        crossedUsers: CrossedUsers? = nil,
        trace: LaneTrace? = nil
    ) {
        self.laneConnection = laneConnection
        self.mailboxes = mailboxes
        self.metrics = metrics
        self.crossedUsers = crossedUsers
        self.trace = trace
    }

    /// Delivers outcomes, between two statements of the lane: it reads words at least as new as the answers, if
    /// necessary.
    func deliver(_ completions: consuming [Completion]) {
        laneConnection.refreshWords()
        crossedUsers?.add(completions)
        trace?.answered(completions)
        mailboxes.deliver(completions)
    }

    /// Answers all requests that have not expired.
    func fail(_ requests: some Expirable, _ error: EngineError) {
        var completions: [Completion] = []
        requests.fail(error, into: &completions)
        deliverFailures(completions, error)
    }

    /// Answers the requests whose deadline has passed.
    ///
    /// - Returns: the next deadline; nil when all have expired.
    func expire(_ requests: some Expirable, _ error: EngineError) -> ContinuousClock.Instant? {
        var completions: [Completion] = []
        let error = laneConnection.judged(error)
        requests.expire(at: Deadline(.now), error, into: &completions)
        deliverFailures(completions, error)
        return requests.nextDeadline?.instant
    }

    private func deliverFailures(_ completions: [Completion], _ error: EngineError) {
        metrics.countUnknownOutcomes(completions.count, after: error)
        trace?.answered(completions)
        mailboxes.deliver(completions)
    }
}
