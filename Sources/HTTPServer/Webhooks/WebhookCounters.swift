import Billing
import Synchronization

/// Counts the requests of stores by their outcome since the service started, for `/metrics`.
package final class WebhookCounters: Sendable {
    /// Bounded in number: types are those in the stores' documentation, or `other`; outcomes are the database's, and
    /// one for each reason of a rejection.
    package struct Key: Hashable, Sendable, Comparable {
        /// The store: `revenuecat`.
        package var source: String
        /// The store's name for it without subtype or reason: `RENEWAL`, `DID_RENEW`; `none` if it was not decoded.
        package var type: String
        /// Stored events have `applied`, `duplicate`, `ignored`, `waiting`, `outdated` or `failed`. Others have
        /// `malformed`, `too_large`, `unverified`, `elsewhere`, `unavailable`, `gone` if the peer closed the connection
        /// before the response, and `error` for an internal error.
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

    /// Sorted by source, type and outcome.
    package var snapshot: [(key: Key, requests: Int)] {
        counts.withLock { $0.map { (key: $0.key, requests: $0.value) } }.sorted { $0.key < $1.key }
    }
}
