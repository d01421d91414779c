import HeadroomClient

/// Checks whether Headroom and its database answer. All open pages share one request a second.
actor Reachability {
    private static let interval = Duration.seconds(1)
    private static let deadline = Duration.milliseconds(800)

    private let headroom: HeadroomClient
    private var latest: (startedAt: ContinuousClock.Instant, result: Task<Bool, Never>)?

    init(_ headroom: HeadroomClient) {
        self.headroom = headroom
    }

    private func isReachable() async -> Bool {
        if let latest, latest.startedAt.duration(to: .now) < Reachability.interval { return await latest.result.value }
        let result = Task { [headroom] in
            // A service without its database still answers INFO.
            guard let info = try? await headroom.info(deadline: Reachability.deadline) else { return false }
            return info["database"] != "down"
        }
        latest = (.now, result)
        return await result.value
    }

    /// The current state first, then each change, until the consumer stops reading.
    nonisolated func changes() -> AsyncStream<Bool> {
        AsyncStream { continuation in
            let task = Task {
                var last: Bool?
                while !Task.isCancelled {
                    let isReachable = await isReachable()
                    if isReachable != last { continuation.yield(isReachable) }
                    last = isReachable
                    try? await Task.sleep(for: Reachability.interval)
                }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }
}
