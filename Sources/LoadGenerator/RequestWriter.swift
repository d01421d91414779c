import NIOCore

/// The requests of a run.
public enum LoadRequest: Sendable, Equatable {
    public enum Verb: String, Sendable, CaseIterable {
        case consume, check, usage
        /// RESERVE and COMMIT of the same user and key alternate on each connection.
        case reserve
    }

    /// - Parameter keyShare: the share of CONSUMEs with a key, 0 to 1.
    case verb(Verb, messages: Int, keyShare: Double)
    /// A command for any RESP2 server, with the placeholders `{user}` and `{key}`.
    case command([String])
}

/// Chooses and writes the next request of a connection.
struct RequestWriter: Sendable {
    /// A reservation of a connection, which its next request commits.
    struct Reservation {
        var user: UInt64
        var key: UInt64
    }

    private var random: SeededRandom
    private let sampler: UserSampler
    private let plain: RequestTemplate
    private let keyed: RequestTemplate
    private let keyShare: Double
    private let commit: RequestTemplate?
    private var nextKey: UInt64

    /// - Parameter worker: makes the keys of different workers unique.
    init(
        _ request: LoadRequest,
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

    mutating func write(into buffer: inout ByteBuffer, reservation: inout Reservation?) {
        if let commit, let reserved = reservation {
            commit.write(user: reserved.user, key: reserved.key, into: &buffer)
            reservation = nil
            return
        }
        let user = sampler.draw(&random)
        nextKey += 1
        if keyShare > 0, keyShare == 1 || random.unit() < keyShare {
            keyed.write(user: user, key: nextKey, into: &buffer)
            if commit != nil { reservation = Reservation(user: user, key: nextKey) }
        } else {
            plain.write(user: user, key: nextKey, into: &buffer)
        }
    }
}
