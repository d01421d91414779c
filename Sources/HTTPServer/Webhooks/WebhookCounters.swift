import Billing
import Synchronization

/// What became of the requests of stores since the service started, for `/metrics`.
package final class WebhookCounters: Sendable {
    /// Bounded in number: types are those that the documentation of the stores names, or `other`; outcomes are the
    /// database's, and one for each way to be refused.
    package struct Key: Hashable, Sendable, Comparable {
        /// The store's: `revenuecat`.
        package var source: String
        /// The store's word without subtype or reason: `RENEWAL`, `DID_RENEW`; `none` where it was not read.
        package var type: String
        /// `applied`, `duplicate`, `ignored`, `waiting`, `outdated`, `failed`; of requests of which nothing is kept:
        /// `malformed`, `too_large`, `unverified`, `elsewhere`, `unknown_user`, `unavailable`, `gone` where the peer
        /// closed the connection before the answer, and `error` for a fault of ours.
        package var outcome: String

        package static func < (lhs: Key, rhs: Key) -> Bool {
            (lhs.source, lhs.type, lhs.outcome) < (rhs.source, rhs.type, rhs.outcome)
        }
    }

    private let counts = Mutex<[Key: Int]>([:])

    package init() {}

    package func count(_ source: BillingEvent.Source, type: String?, outcome: String) {
        let key = Key(source: source.rawValue, type: type ?? "none", outcome: outcome)
        counts.withLock { $0[key, default: 0] += 1 }
    }

    /// In the order of source, type and outcome.
    package var snapshot: [(key: Key, requests: Int)] {
        counts.withLock { $0.map { (key: $0.key, requests: $0.value) } }.sorted { $0.key < $1.key }
    }
}
