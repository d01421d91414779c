import Crypto
import Synchronization

/// Who has signed in with which token, in this process: a restart ends all sessions, and so does signing out.
///
/// A browser holds a random name and nothing else. Here that name is kept as its digest, so that looking it up takes a
/// time which tells nothing about it.
final class SessionTable: Sendable {
    /// A working day.
    static let lifetime = Duration.seconds(8 * 3_600)
    /// Far more than people who look; with one more the oldest ends. Each takes a live token to make.
    static let capacity = 1_024

    private struct Session {
        var tokenID: Int64
        var expiresAt: ContinuousClock.Instant
    }

    private let sessions = Mutex<[SHA256.Digest: Session]>([:])

    /// - Returns: the session's name, for its browser alone.
    func open(tokenID: Int64, at now: ContinuousClock.Instant = .now) -> String {
        let name = RandomName.make()
        sessions.withLock { sessions in
            sessions = sessions.filter { $0.value.expiresAt > now }
            if sessions.count >= SessionTable.capacity,
                let oldest = sessions.min(by: { $0.value.expiresAt < $1.value.expiresAt })?.key
            {
                sessions[oldest] = nil
            }
            sessions[SessionTable.digest(name)] = Session(tokenID: tokenID, expiresAt: now + SessionTable.lifetime)
        }
        return name
    }

    /// The token that opened the session; whether that is live still, the caller has to ask.
    func tokenID(of name: String, at now: ContinuousClock.Instant = .now) -> Int64? {
        guard RandomName.isOne(name) else { return nil }
        let digest = SessionTable.digest(name)
        return sessions.withLock { sessions in
            guard let session = sessions[digest], session.expiresAt > now else { return nil }
            return session.tokenID
        }
    }

    func close(_ name: String) {
        sessions.withLock { $0[SessionTable.digest(name)] = nil }
    }

    private static func digest(_ name: String) -> SHA256.Digest {
        SHA256.hash(data: Array(name.utf8))
    }
}
