import JSON
import Usage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a user's requests take from balances, and give back to them.
///
/// The slow path takes messages from the balances in the transaction that counts them, so that the keys of messages
/// know from which. The fast path counts under a limit that includes them (`headroom.attach_balances`).
struct UserBalances {
    /// A balance that has not ended.
    struct Balance: Decodable {
        /// The key of `headroom.grants`.
        var key: String
        /// The messages that are left.
        var messages: Int
        /// In microseconds since 1970; nil is never.
        var expiresAt: Int64?

        enum CodingKeys: String, CodingKey {
            case key, messages
            case expiresAt = "expires_at"
        }
    }

    /// A balance and the period whose messages it pays.
    struct Charge: Hashable {
        var period: BillingPeriod
        var key: String
    }

    /// In the order in which messages are taken from them; nil if the user had none.
    private(set) var all: [Balance]?
    /// The limit of the open period without what is left in balances; nil is unlimited.
    private(set) var plainLimit: Int?
    /// What was taken since the transaction began; what was given back is subtracted.
    private(set) var charges: [Charge: Int] = [:]

    init(_ balances: [Balance]?, plainLimit: Int?) {
        all = balances
        self.plainLimit = plainLimit
    }

    /// - Throws: if the text is not that of `lock_and_read_users.sql`.
    static func decode(_ json: String) throws -> [Balance] {
        try JSONDecoder().decode([Balance].self, from: Data(json.utf8))
    }

    var isEmpty: Bool { all == nil }

    /// What is left.
    var left: Balances? {
        guard let all, let first = all.first(where: { $0.messages > 0 }) else { return nil }
        return Balances(
            messages: min(all.reduce(0) { $0 + $1.messages }, UsageSnapshot.countMaximum),
            expiresAt: first.expiresAt.map { Instant(microsecondsSince1970: $0) }
        )
    }

    /// The limit with what is left. If more is counted than the limit without that, it can be sent beyond that count.
    func limit(counted: Int) -> Int? {
        plainLimit.map { plain in
            guard let left else { return plain }
            return min(max(plain, counted) + left.messages, UsageSnapshot.countMaximum)
        }
    }

    /// Takes those of the newest `messages` of the open period that are beyond the limit without balances.
    ///
    /// - Parameter counted: what is counted and held, with these messages.
    /// - Returns: the messages by the key of the balance.
    mutating func take(_ messages: Int, counted: Int, in period: BillingPeriod) -> [String: Int] {
        guard let plainLimit, var all else { return [:] }
        var beyond = min(max(counted - plainLimit, 0), messages)
        var taken: [String: Int] = [:]
        for index in all.indices where beyond > 0 && all[index].messages > 0 {
            let (key, charged) = (all[index].key, min(beyond, all[index].messages))
            all[index].messages -= charged
            beyond -= charged
            taken[key] = charged
            charge(charged, to: Charge(period: period, key: key), isOpen: true)
        }
        self.all = all
        return taken
    }

    /// Gives back messages that a key has taken.
    ///
    /// - Parameters:
    ///   - taken: the messages by the key of the balance. What is given back is subtracted.
    ///   - messages: give back at most so many, of the balance that ends last first.
    mutating func giveBack(_ taken: inout [String: Int], atMost messages: Int, in period: BillingPeriod, isOpen: Bool) {
        var left = messages
        // A balance that has ended is not among them, and comes first in the order.
        let order = Dictionary(uniqueKeysWithValues: (all ?? []).enumerated().map { ($1.key, $0) })
        for key in taken.keys.sorted(by: { (order[$0] ?? -1, $0) > (order[$1] ?? -1, $1) }) where left > 0 {
            let given = min(taken[key] ?? 0, left)
            left -= given
            taken[key] = taken[key] == given ? nil : (taken[key] ?? 0) - given
            if let index = order[key] { all?[index].messages += given }
            charge(-given, to: Charge(period: period, key: key), isOpen: isOpen)
        }
    }

    private mutating func charge(_ messages: Int, to charge: Charge, isOpen: Bool) {
        charges[charge, default: 0] += messages
        if isOpen { plainLimit = plainLimit.map { max($0 + messages, 0) } }
    }
}

/// What the answers to a key showed of balances.
struct KeyBalances: Codable, Equatable {
    var messages: Int
    /// In microseconds since 1970; nil is never.
    var expiresAt: Int64?

    enum CodingKeys: String, CodingKey {
        case messages
        case expiresAt = "expires_at"
    }

    init?(_ balances: Balances?) {
        guard let balances else { return nil }
        messages = balances.messages
        expiresAt = balances.expiresAt?.microsecondsSince1970
    }

    var balances: Balances {
        Balances(messages: messages, expiresAt: expiresAt.map { Instant(microsecondsSince1970: $0) })
    }
}
