/// Delivers the outcomes of a lane's requests, and counts those that are unknown.
struct OutcomeDelivery {
    let laneConnection: LaneConnection
    let mailboxes: MailboxRegistry
    let metrics: LaneMetrics
    /// The users to notify; nil if the service sends no notifications.
    var crossedUsers: CrossedUsers?
    /// The trace of the batch; nil if the service traces nothing.
    var trace: LaneTrace?

    /// Delivers outcomes, between two statements of the lane: it reads words at least as new as the answers, if
    /// necessary.
    func deliver(_ completions: [Completion]) {
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
