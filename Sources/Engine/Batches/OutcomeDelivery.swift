/// Delivers the outcomes of a lane's requests, and counts those that are unknown.
struct OutcomeDelivery {
    let mailboxes: MailboxRegistry
    let metrics: LaneMetrics

    func deliver(_ completions: [Completion]) {
        mailboxes.deliver(completions)
    }

    /// Answers all requests that have not expired.
    func fail(_ requests: some PendingRequests, _ error: EngineError) {
        var completions: [Completion] = []
        requests.fail(error, into: &completions)
        deliverFailures(completions, error)
    }

    /// Answers the requests whose deadline has passed.
    ///
    /// - Returns: the next deadline; nil when all have expired.
    func expire(_ requests: some PendingRequests, _ error: EngineError) -> ContinuousClock.Instant? {
        var completions: [Completion] = []
        requests.expire(at: Deadline(.now), error, into: &completions)
        deliverFailures(completions, error)
        return requests.nextDeadline?.instant
    }

    private func deliverFailures(_ completions: [Completion], _ error: EngineError) {
        metrics.countUnknownOutcomes(completions.count, after: error)
        deliver(completions)
    }
}
