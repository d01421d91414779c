/// Delivers the outcomes of a lane's requests, and counts those that are unknown.
struct OutcomeDelivery {
    let laneConnection: LaneConnection
    let mailboxes: MailboxRegistry
    let metrics: LaneMetrics
    /// Nil where no notifications are sent.
    var crossedUsers: CrossedUsers?
    /// Nil where nothing is traced.
    var trace: LaneTrace?

    /// Between two statements of the lane: answers are written with words at least as new as what they say.
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
