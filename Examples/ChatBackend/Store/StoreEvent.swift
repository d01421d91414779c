import Foundation
import HeadroomClient

/// What a store tells when somebody subscribes, in RevenueCat's shape. A product has no such code: its users buy in the App
/// Store, say, and RevenueCat posts this.
struct StoreEvent: Encodable, Sendable {
    enum Kind: String, Encodable {
        case initialPurchase = "INITIAL_PURCHASE"
        case renewal = "RENEWAL"
        case cancellation = "CANCELLATION"
        case uncancellation = "UNCANCELLATION"
        case productChange = "PRODUCT_CHANGE"
    }

    enum Product: String, Encodable, CaseIterable {
        case premium = "premium_monthly"
        case pro = "pro_monthly"

        /// - Parameter plan: to which `headroom product map` maps it.
        init?(plan: String) {
            guard let product = Product.allCases.first(where: { $0.plan == plan }) else { return nil }
            self = product
        }

        var plan: String {
            switch self {
            case .premium: "paid"
            case .pro: "pro"
            }
        }
    }

    private struct Event: Encodable {
        var id = UUID().uuidString
        var type: Kind
        var eventTimestampMs: Int64
        var appUserId: String
        var originalAppUserId: String
        var aliases: [String]
        var environment = "PRODUCTION"
        var store = "APP_STORE"
        var productId: Product
        var newProductId: Product?
        var periodType = "NORMAL"
        var purchasedAtMs: Int64
        var expirationAtMs: Int64?
        var originalTransactionId: String
        var transactionId: String
        var cancelReason: String?
    }

    private let apiVersion = "1.0"
    private let event: Event

    private static let monthMilliseconds: Int64 = 30 * 86_400_000

    /// - Parameters:
    ///   - expires: until when what was bought before lasts, where the kind does not change it.
    ///   - next: the product from the next renewal on, where that changes.
    ///   - now: when it happens; what is bought lasts a month from then.
    init(
        _ kind: Kind,
        of product: Product,
        by user: UserID,
        expires: Instant?,
        next: Product? = nil,
        now: Date = Date()
    ) {
        let milliseconds = Int64(now.timeIntervalSince1970 * 1_000)
        // One subscription per user and product, known again without being remembered.
        let transaction = "\(product.rawValue).\(user)"
        let isPayment = kind == .initialPurchase || kind == .renewal
        event = Event(
            type: kind,
            eventTimestampMs: milliseconds,
            appUserId: "\(user)",
            originalAppUserId: "\(user)",
            aliases: ["\(user)"],
            productId: product,
            newProductId: next,
            purchasedAtMs: milliseconds,
            expirationAtMs: isPayment
                ? milliseconds + StoreEvent.monthMilliseconds : expires.map { $0.microsecondsSince1970 / 1_000 },
            originalTransactionId: transaction,
            transactionId: isPayment ? "\(transaction).\(milliseconds)" : transaction,
            cancelReason: kind == .cancellation ? "UNSUBSCRIBE" : nil
        )
    }
}
