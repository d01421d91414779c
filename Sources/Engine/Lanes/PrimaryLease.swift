/// When the lane's server was last certainly the primary.
///
/// A synchronous standby confirms a commit only while it follows the server. So the server was not yet superseded when
/// the commit was sent, if the manager promotes the one standby that commits wait for, or stops the others first.
/// Answers that need no commit (CHECK, USAGE, refusals) are delivered for a short time after that; later the lane
/// commits something first. Without this rule, a primary that was cut off from its standbys would answer with old
/// counts for as long as the service reaches it.
struct PrimaryLease {
    private let length: Duration
    private var confirmedAt: ContinuousClock.Instant?

    /// - Parameter length: how old a confirmation may be.
    init(length: Duration) {
        self.length = length
    }

    /// - Parameter sentAt: when a commit was sent that a standby has confirmed.
    mutating func confirm(sentAt: ContinuousClock.Instant) {
        confirmedAt = max(sentAt, confirmedAt ?? sentAt)
    }

    /// Ends the lease, because the next connection may be to another server.
    mutating func end() {
        confirmedAt = nil
    }

    /// Whether a confirmation is new enough. It is false before the first commit of a connection, too.
    func isValid(at now: ContinuousClock.Instant) -> Bool {
        confirmedAt.map { now - $0 <= length } ?? false
    }
}
