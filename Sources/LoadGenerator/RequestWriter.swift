import NIOCore

/// What is asked for.
public enum LoadRequest: Sendable, Equatable {
    public enum Verb: String, Sendable, CaseIterable {
        case consume, check, usage
        /// RESERVE and COMMIT of the same user and key by turns on each connection.
        case reserve
    }

    /// - Parameter keyShare: the part of the CONSUMEs that carry a key of their own.
    case verb(Verb, messages: Int, keyShare: Double)
    /// Words for whatever server it is; `{user}` and `{key}` are replaced.
    case command([String])
}

/// Decides what the next request of a connection is, and writes it.
struct RequestWriter: Sendable {
    /// What a connection has reserved and will commit with its next request.
    struct Held {
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

    /// - Parameter worker: keys of different workers differ by it.
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
            // One message is what every verb means without a number.
            let words = [verb.rawValue.uppercased(), "{user}"] + (messages == 1 ? [] : ["\(messages)"])
            plain = template(words)
            keyed = template(words + ["key={key}"])
            keyShare = verb == .reserve ? 1 : share
            commit = verb == .reserve ? template(["COMMIT", "{user}", "key={key}"]) : nil
        }
    }

    mutating func write(into buffer: inout ByteBuffer, held: inout Held?) {
        if let commit, let reserved = held {
            commit.write(user: reserved.user, key: reserved.key, into: &buffer)
            held = nil
            return
        }
        let user = sampler.draw(&random)
        nextKey += 1
        if keyShare > 0, keyShare == 1 || random.unit() < keyShare {
            keyed.write(user: user, key: nextKey, into: &buffer)
            if commit != nil { held = Held(user: user, key: nextKey) }
        } else {
            plain.write(user: user, key: nextKey, into: &buffer)
        }
    }
}
