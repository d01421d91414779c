import Billing
import Foundation
import JSON
import StoreEvents
import Usage

/// A notification like the App Store's, with changes by tests. Signed by a `TestAuthority`.
struct AppStorePayload {
    static let bundleID = "com.example.chat"
    static let user = "7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11"
    static let at = Instant(microsecondsSince1970: Int64(TestAuthority.now) * 1_000_000 + 123_000)
    static let purchased = at.advanced(bySeconds: -60)
    static let expires = at.advanced(bySeconds: 30 * 86_400)
    static let grace = at.advanced(bySeconds: 46 * 86_400)

    var outer: [String: JSONValue]
    var data: [String: JSONValue]? = [
        "appAppleId": .integer(6_447_000_001), "bundleId": .string(bundleID), "bundleVersion": "1.2.3",
        "environment": "Production",
    ]
    var transaction: [String: JSONValue]? = [
        "transactionId": "2000000000000002", "originalTransactionId": "2000000000000001",
        "webOrderLineItemId": "2000000000000003", "bundleId": .string(bundleID), "productId": "com.example.premium",
        "subscriptionGroupIdentifier": "20000001", "purchaseDate": .integer(purchased.milliseconds),
        "originalPurchaseDate": .integer(purchased.milliseconds), "expiresDate": .integer(expires.milliseconds),
        "quantity": .integer(1), "type": "Auto-Renewable Subscription", "appAccountToken": .string(user.uppercased()),
        "inAppOwnershipType": "PURCHASED", "signedDate": .integer(at.milliseconds), "environment": "Production",
        "transactionReason": "PURCHASE", "storefront": "USA", "storefrontId": "143441", "price": .integer(4_990),
        "currency": "USD",
    ]
    var renewal: [String: JSONValue]? = [
        "originalTransactionId": "2000000000000001", "autoRenewProductId": "com.example.basic",
        "productId": "com.example.premium", "autoRenewStatus": .integer(1), "renewalPrice": .integer(4_990),
        "currency": "USD", "signedDate": .integer(at.milliseconds), "environment": "Production",
        "recentSubscriptionStartDate": .integer(purchased.milliseconds), "renewalDate": .integer(expires.milliseconds),
    ]

    init(_ type: String, _ subtype: String? = nil, status: Int64? = nil) {
        outer = [
            "notificationType": .string(type), "notificationUUID": "002e14d5-51f5-4503-b5a8-c3a1af68eb20",
            "version": "2.0", "signedDate": .integer(AppStorePayload.at.milliseconds),
        ]
        if let subtype { outer["subtype"] = .string(subtype) }
        if let status { data?["status"] = .integer(status) }
    }

    func with(
        transaction changes: [String: JSONValue] = [:],
        renewal renewalChanges: [String: JSONValue] = [:]
    ) -> AppStorePayload {
        var changed = self
        changed.transaction?.merge(changes) { $1 }
        changed.renewal?.merge(renewalChanges) { $1 }
        return changed
    }

    /// - Parameter inner: signs the inner parts, if it is another authority.
    func signed(by authority: TestAuthority, inner: TestAuthority? = nil) throws -> String {
        var outer = outer
        if var data {
            let inner = inner ?? authority
            if let transaction { data["signedTransactionInfo"] = .string(try inner.sign(.object(transaction))) }
            if let renewal { data["signedRenewalInfo"] = .string(try inner.sign(.object(renewal))) }
            outer["data"] = .object(data)
        }
        return try authority.sign(.object(outer))
    }

    static func body(_ signed: String) -> [UInt8] {
        Array(JSONValue.object(["signedPayload": .string(signed)]).jsonText.utf8)
    }

    /// Verifies the notification, and translates its stored payload.
    func notification() async throws -> BillingEvent {
        let authority = try TestAuthority()
        let body = AppStorePayload.body(try signed(by: authority))
        let stored = try await AppStoreNotification.sanitized(body: body, verifier: authority.verifier())
        return try AppStoreNotification.translate(payload: stored)
    }
}
