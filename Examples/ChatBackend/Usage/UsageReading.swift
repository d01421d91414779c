import HeadroomClient

/// Reads where users stand, for the page to show.
struct UsageReading: Sendable {
    let headroom: HeadroomClient
    let deadline: Duration

    /// - Returns: nil when nobody can be asked.
    func usage(of user: UserID) async -> UsageStatus? {
        try? await headroom.usage(of: user, deadline: deadline)
    }

    /// Adds the label and the sentence for screen readers, which an answer to a message does not have. If they cannot be
    /// read now, it stays as it is.
    func complete(_ status: UsageStatus) async -> UsageStatus {
        guard !status.isDegraded, status.label == nil || status.accessible == nil else { return status }
        guard var newer = await usage(of: status.user) else { return status }
        // Told once, to whom the message belongs.
        newer.crossed = status.crossed
        newer.reason = newer.reason ?? status.reason
        newer.retryAfter = newer.retryAfter ?? status.retryAfter
        return newer
    }
}
