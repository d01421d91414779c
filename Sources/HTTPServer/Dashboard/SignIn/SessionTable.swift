import Crypto
import Synchronization

/// The sessions of this process; a restart ends them all.
///
/// A browser has a random identifier as its cookie. The table is keyed by the identifier's digest, so that the time of
/// a lookup reveals nothing about the identifier.
final class SessionTable: Sendable {
    /// A working day.
    static let lifetime = Duration.seconds(8 * 3_600)
    /// When exceeded, the oldest session ends. Only a valid token opens a session.
    static let capacity = 1_024

    private struct Session {
        var tokenID: Int64
        var expiresAt: ContinuousClock.Instant
    }

    private let sessions = Mutex<[SHA256.Digest: Session]>([:])

    /// - Returns: the session's identifier.
    func open(tokenID: Int64, at now: ContinuousClock.Instant = .now) -> String {
        let identifier = RandomIdentifier.make()
        sessions.withLock { sessions in
            sessions = sessions.filter { $0.value.expiresAt > now }
            if sessions.count >= SessionTable.capacity,
                let oldest = sessions.min(by: { $0.value.expiresAt < $1.value.expiresAt })?.key
            {
                sessions[oldest] = nil
            }
            sessions[SessionTable.digest(identifier)] = Session(
                tokenID: tokenID,
                expiresAt: now + SessionTable.lifetime
            )
        }
        return identifier
    }

    /// The token that opened the session, which may have been revoked since.
    func tokenID(of identifier: String, at now: ContinuousClock.Instant = .now) -> Int64? {
        guard RandomIdentifier.isWellFormed(identifier) else { return nil }
        let digest = SessionTable.digest(identifier)
        return sessions.withLock { sessions in
            guard let session = sessions[digest], session.expiresAt > now else { return nil }
            return session.tokenID
        }
    }

    func close(_ identifier: String) {
        sessions.withLock { $0[SessionTable.digest(identifier)] = nil }
    }

    private static func digest(_ identifier: String) -> SHA256.Digest {
        SHA256.hash(data: Array(identifier.utf8))
    }
}
