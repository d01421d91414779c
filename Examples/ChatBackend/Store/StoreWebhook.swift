import Foundation

/// Where subscriptions are told, and what shows that we may.
struct StoreWebhook: Sendable {
    let url: URL
    let authorization: String
}
