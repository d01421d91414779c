import Foundation
import HeadroomClient

/// What a store tells when somebody subscribes, in RevenueCat's shape. A real product has no such code: its users buy in the
/// App Store or in a browser, and RevenueCat posts this.
struct StoreEvent: Encodable {
    enum Kind: String, Encodable {
        case initialPurchase = "INITIAL_PURCHASE"
        case renewal = "RENEWAL"
        case cancellation = "CANCELLATION"
        case uncancellation = "UNCANCELLATION"
    }

    enum Product: String, Encodable, CaseIterable {
        case premium = "premium_monthly"
        case pro = "pro_monthly"
    }

    private struct Event: Encodable {
        var id: String
        var type: Kind
        var event_timestamp_ms: Int64
        var app_user_id: String
        var original_app_user_id: String
        var aliases: [String]
        var environment = "PRODUCTION"
        var store = "APP_STORE"
        var product_id: Product
        var period_type = "NORMAL"
        var purchased_at_ms: Int64
        var expiration_at_ms: Int64
        var original_transaction_id: String
        var transaction_id: String
        var cancel_reason: String?
    }

    private var api_version = "1.0"
    private var event: Event

    private static let month_ms: Int64 = 30 * 86_400_000

    /// - Parameter now: when it happens; what is bought lasts a month from then.
    init(_ kind: Kind, of product: Product, by user: UserID, now: Date = Date()) {
        let now_ms = Int64(now.timeIntervalSince1970 * 1_000)
        let transaction = StoreEvent.originalTransaction(of: user, product)
        event = Event(
            id: UUID().uuidString,
            type: kind,
            event_timestamp_ms: now_ms,
            app_user_id: "\(user)",
            original_app_user_id: "\(user)",
            aliases: ["\(user)"],
            product_id: product,
            purchased_at_ms: now_ms,
            expiration_at_ms: now_ms + StoreEvent.month_ms,
            original_transaction_id: transaction,
            transaction_id: "\(transaction).\(now_ms)",
            cancel_reason: kind == .cancellation ? "UNSUBSCRIBE" : nil
        )
    }

    /// One subscription per user and product, known again without being remembered.
    static func originalTransaction(of user: UserID, _ product: Product) -> String {
        "\(product.rawValue).\(user)"
    }
}
