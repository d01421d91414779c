import DequeModule
import NIOCore

/// The requests of a run.
public enum LoadRequest: Sendable, Equatable {
    public enum Verb: String, Sendable, CaseIterable {
        case consume, check, usage
        /// Each connection alternates between RESERVEs and a COMMIT for each of them.
        case reserve
    }

    /// - Parameter keyShare: the share of CONSUMEs with a key, 0 to 1.
    case verb(Verb, messages: Int, keyShare: Double)
    /// A command for any RESP2 server, with the placeholders `{user}` and `{key}`.
    case command([String])
}

/// Chooses and writes the next request of a connection.
struct RequestWriter: Sendable {
    /// The reservations of a connection that it has not committed yet, the oldest first.
    struct Reservations {
        fileprivate struct Reservation {
            var user: UInt64
            var key: UInt64
        }

        fileprivate var open = Deque<Reservation>()
        fileprivate var isCommitting = false
        /// How many RESERVEs come before their COMMITs; 0 before the first.
        fileprivate var length = 0
    }

    private var random: SeededRandom
    private let sampler: UserSampler
    private let plain: RequestTemplate
    private let keyed: RequestTemplate
    private let keyShare: Double
    private let commit: RequestTemplate?
    private let reservationsInRow: Int
    private var nextKey: UInt64

    /// - Parameters:
    ///   - reservationsInRow: how many RESERVEs a connection sends before their COMMITs. If it is the number of
    ///     requests in flight, each RESERVE is answered before its COMMIT is sent.
    ///   - worker: makes the keys of different workers unique.
    init(
        _ request: LoadRequest,
        reservationsInRow: Int = 1,
        userPrefix: String,
        keyPrefix: String,
        worker: Int,
        sampler: UserSampler,
        random: SeededRandom
    ) {
        func template(_ words: [String]) -> RequestTemplate {
            RequestTemplate(words: words, userPrefix: userPrefix, keyPrefix: keyPrefix)
        }
        self.sampler = sampler
        self.random = random
        self.reservationsInRow = reservationsInRow
        nextKey = UInt64(worker) << 48
        switch request {
        case .command(let words):
            plain = template(words)
            keyed = plain
            keyShare = 0
            commit = nil
        case .verb(let verb, let messages, let share):
            // One message is the default of every verb.
            let words = [verb.rawValue.uppercased(), "{user}"] + (messages == 1 ? [] : ["\(messages)"])
            plain = template(words)
            keyed = template(words + ["key={key}"])
            keyShare = verb == .reserve ? 1 : share
            commit = verb == .reserve ? template(["COMMIT", "{user}", "key={key}"]) : nil
        }
    }

    mutating func write(into buffer: inout ByteBuffer, reservations: inout Reservations) {
        if reservations.isCommitting { return writeCommit(into: &buffer, reservations: &reservations) }
        let user = sampler.draw(&random)
        nextKey += 1
        if keyShare > 0, keyShare == 1 || random.unit() < keyShare {
            keyed.write(user: user, key: nextKey, into: &buffer)
            if commit != nil { note(user, nextKey, in: &reservations) }
        } else {
            plain.write(user: user, key: nextKey, into: &buffer)
        }
    }

    private mutating func note(_ user: UInt64, _ key: UInt64, in reservations: inout Reservations) {
        if reservations.length == 0 {
            // The first row has a random length, so that the connections do not all reserve, and then all commit.
            reservations.length = reservationsInRow + Int.random(in: 0..<reservationsInRow, using: &random)
        }
        reservations.open.append(.init(user: user, key: key))
        reservations.isCommitting = reservations.open.count == reservations.length
    }

    private func writeCommit(into buffer: inout ByteBuffer, reservations: inout Reservations) {
        guard let commit, let oldest = reservations.open.popFirst() else { return }
        commit.write(user: oldest.user, key: oldest.key, into: &buffer)
        if reservations.open.isEmpty {
            reservations.isCommitting = false
            reservations.length = reservationsInRow
        }
    }

    /// Writes COMMITs for open reservations, at most as many as there are requests in flight.
    ///
    /// - Returns: their number.
    func writeCommits(into buffer: inout ByteBuffer, reservations: inout Reservations) -> Int {
        let count = min(reservations.open.count, reservationsInRow)
        for _ in 0..<count { writeCommit(into: &buffer, reservations: &reservations) }
        return count
    }
}
