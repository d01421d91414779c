import Billing
import JSON
import Usage

/// App Store Server Notifications V2 (https://developer.apple.com/documentation/appstoreservernotifications), as they
/// are stored, and translated.
public enum AppStoreNotification: StoreAdapter {
    public static let source = BillingEvent.Source.appstore
    public static let typesWithEffects: Set = [
        "DID_CHANGE_RENEWAL_PREF", "DID_CHANGE_RENEWAL_STATUS", "DID_FAIL_TO_RENEW", "DID_RENEW", "EXPIRED",
        "GRACE_PERIOD_EXPIRED", "OFFER_REDEEMED", "ONE_TIME_CHARGE", "REFUND", "REFUND_REVERSED", "RENEWAL_EXTENDED",
        "REVOKE", "SUBSCRIBED",
    ]
    public static let eventTypes = typesWithEffects.union([
        "CONSUMPTION_REQUEST", "EXTERNAL_PURCHASE_TOKEN", "METADATA_UPDATE", "MIGRATION", "PRICE_CHANGE",
        "PRICE_INCREASE",
        "REFUND_DECLINED", "RENEWAL_EXTENSION", "RESCIND_CONSENT", "TEST",
    ])

    private static let storedFields: KeyValuePairs<String, PayloadFields.Format> = [
        "notificationUUID": .text, "notificationType": .word, "subtype": .word, "version": .word,
        "signedDate": .instant,
    ]
    /// The stored fields of `data`, or of the object in its place (`appObjects`).
    private static let storedAppFields: KeyValuePairs<String, PayloadFields.Format> = [
        "appAppleId": .integer, "bundleId": .text, "environment": .text, "status": .integer,
        "consumptionRequestReason": .text, "externalPurchaseId": .text, "productId": .text, "requestIdentifier": .text,
        "succeededCount": .integer, "failedCount": .integer,
    ]
    /// Storefronts and offer identifiers, and the prices of renewals to come, are not stored.
    private static let storedTransactionFields: KeyValuePairs<String, PayloadFields.Format> = [
        "originalTransactionId": .text, "transactionId": .text, "webOrderLineItemId": .text, "bundleId": .text,
        "productId": .text, "subscriptionGroupIdentifier": .text, "purchaseDate": .instant,
        "originalPurchaseDate": .instant, "expiresDate": .instant, "quantity": .integer, "type": .text,
        "appAccountToken": .identity, "inAppOwnershipType": .text, "signedDate": .instant,
        "revocationReason": .integer, "revocationDate": .instant, "isUpgraded": .flag, "offerType": .integer,
        "offerDiscountType": .text, "environment": .text, "transactionReason": .text, "price": .integer,
        "currency": .word,
    ]
    private static let storedRenewalFields: KeyValuePairs<String, PayloadFields.Format> = [
        "originalTransactionId": .text, "productId": .text, "autoRenewProductId": .text, "autoRenewStatus": .integer,
        "expirationIntent": .integer, "isInBillingRetryPeriod": .flag, "gracePeriodExpiresDate": .instant,
        "priceIncreaseStatus": .integer, "offerType": .integer, "offerDiscountType": .text,
        "recentSubscriptionStartDate": .instant, "renewalDate": .instant, "signedDate": .instant,
        "environment": .text, "appAccountToken": .identity,
    ]
    /// Fields that no effect depends on. If one has a wrong format, it is dropped; any other field is an error.
    private static let informativeFields: Set = [
        "version", "consumptionRequestReason", "externalPurchaseId", "productId", "requestIdentifier", "succeededCount",
        "failedCount",
    ]
    private static let informativeTransactionFields: Set = [
        "transactionId", "webOrderLineItemId", "subscriptionGroupIdentifier", "originalPurchaseDate", "type",
        "inAppOwnershipType", "signedDate", "revocationReason", "revocationDate", "isUpgraded", "transactionReason",
        "price", "currency",
    ]
    private static let informativeRenewalFields: Set = [
        "productId", "autoRenewStatus", "expirationIntent", "isInBillingRetryPeriod", "priceIncreaseStatus",
        "offerType", "offerDiscountType", "recentSubscriptionStartDate", "renewalDate", "signedDate",
    ]
    /// One of these names the app; a payload has only one of them.
    private static let appObjects = ["data", "summary", "externalPurchaseToken", "appData"]

    /// An object within `data` with a signature of its own.
    private struct SignedPart {
        let name: String
        let storedName: String
        let fields: KeyValuePairs<String, PayloadFields.Format>
        let informativeFields: Set<String>
    }

    private static let signedParts = [
        SignedPart(
            name: "signedTransactionInfo",
            storedName: "transaction",
            fields: storedTransactionFields,
            informativeFields: informativeTransactionFields
        ),
        SignedPart(
            name: "signedRenewalInfo",
            storedName: "renewal",
            fields: storedRenewalFields,
            informativeFields: informativeRenewalFields
        ),
    ]

    /// - Parameter body: `{"signedPayload": "…"}`.
    /// - Returns: the payload to store, verified including its signed parts; `translate` accepts it.
    /// - Throws: malformed, not UTF-8 or too large; unverified, if it does not come from the App Store; elsewhere, if
    ///   it is for another app or environment.
    public static func sanitized(
        body: [UInt8],
        verifier: AppStoreVerifier
    ) async throws(BillingError) -> JSONValue {
        let notification = try readable(
            try await verifier.payload(of: try signedPayload(of: body), name: "signedPayload")
        )
        var parts: [String: PayloadFields] = [:]
        if let data = try notification.object("data") {
            // This comes first, to save verifying the parts of another app's notification.
            try verifier.app.check(data)
            for part in signedParts {
                guard let compact = try signedText(part.name, of: data) else { continue }
                parts[part.name] = try await verifier.payload(of: compact, name: "data.\(part.name)")
            }
        }
        return try stored(of: notification, parts: parts, app: verifier.app)
    }

    /// The JWS in the body, unverified.
    static func signedPayload(of body: [UInt8]) throws(BillingError) -> String {
        let posted = try PayloadFields(try JSONValue(received: body), path: "")
        guard let compact = posted.members["signedPayload"]?.string else {
            throw .malformed("signedPayload is missing, or not a text: it must be a JWS")
        }
        return compact
    }

    private static func signedText(_ name: String, of data: PayloadFields) throws(BillingError) -> String? {
        guard let value = data.members[name], value != .null else { return nil }
        if let compact = value.string { return compact }
        guard data.isLenient else { throw .malformed("data.\(name) must be a text") }
        return nil
    }

    private static func readable(_ notification: PayloadFields) throws(BillingError) -> PayloadFields {
        readable(notification, type: try notification.required("notificationType", PayloadFields.word))
    }

    /// - Parameters:
    ///   - notification: the notification, which is verified, as are the parts.
    ///   - parts: the signed objects within `data`, by name.
    static func stored(
        of notification: PayloadFields,
        parts: [String: PayloadFields],
        app expected: AppStoreVerifier.App
    ) throws(BillingError) -> JSONValue {
        let notification = try readable(notification)
        var stored = try notification.stored(storedFields, informative: informativeFields)
        for name in appObjects {
            guard let app = try notification.object(name) else { continue }
            try expected.check(app)
            var storedApp = try app.stored(storedAppFields, informative: informativeFields)
            for part in signedParts where name == "data" {
                guard let fields = parts[part.name] else { continue }
                // The part is signed separately, so it could belong to another app.
                try expected.check(fields)
                let readable = notification.isLenient ? fields.lenient : fields
                storedApp[part.storedName] = .object(
                    try readable.stored(part.fields, informative: part.informativeFields)
                )
            }
            stored[name] = .object(storedApp)
        }
        let payload = JSONValue.object(stored)
        // This checks the required fields, so that every stored payload can be translated again.
        try expected.environments.check(try translate(payload: payload).environment)
        return payload
    }

    public static func translate(payload: JSONValue) throws(BillingError) -> BillingEvent {
        let fields = try PayloadFields(payload, path: "")
        let type = try fields.required("notificationType", PayloadFields.word)
        let subtype = try fields.word("subtype")
        let data = try fields.object("data")
        let transaction = try data?.object("transaction")
        let renewal = try data?.object("renewal")
        var identities: [String] = []
        if let token = try transaction?.text("appAccountToken") { identities.append(token) }
        if let token = try renewal?.text("appAccountToken") { identities.append(token) }
        var notification = BillingEvent(
            source: .appstore,
            id: try fields.required("notificationUUID", PayloadFields.text),
            type: subtype.map { "\(type): \($0)" } ?? type,
            at: try fields.required("signedDate", PayloadFields.instant),
            environment: try environment(of: type, fields),
            identities: CustomerIdentity.distinct(identities),
            payload: payload
        )
        try notification.translate { event in
            event.effects = try AppStoreTranslation(
                name: event.type,
                at: event.at,
                status: try data?.integer("status"),
                transaction: transaction,
                renewal: renewal
            ).effects(of: type, subtype)
        }
        return notification
    }

    /// Returns the environment; nil if the notification should name it and does not.
    private static func environment(
        of type: String,
        _ fields: PayloadFields
    ) throws(BillingError) -> BillingEvent.Environment? {
        for name in appObjects {
            guard let app = try fields.object(name) else { continue }
            for named in [app, try app.object("transaction"), try app.object("renewal")] {
                if let word = try named?.text("environment") { return environment(word) }
            }
            // https://developer.apple.com/documentation/appstoreservernotifications/externalpurchaseid
            if try app.text("externalPurchaseId")?.hasPrefix("SANDBOX") == true { return .sandbox }
        }
        return typesWithEffects.contains(type) ? nil : .production
    }

    static func environment(_ word: String) -> BillingEvent.Environment {
        word == "Production" ? .production : .sandbox
    }
}

extension BillingEvent.Source {
    public static let appstore = BillingEvent.Source(rawValue: "appstore")
}

extension AppStoreVerifier.App {
    /// - Throws: elsewhere, if an object names another app or environment. Missing fields are not compared.
    func check(_ fields: PayloadFields) throws(BillingError) {
        if let bundle = try fields.text("bundleId"), bundle != bundleID {
            throw BillingError(.elsewhere, "the notification is for another app; see appstore-bundle-id")
        }
        if let appleID, let other = try fields.integer("appAppleId"), other != appleID {
            throw BillingError(.elsewhere, "the notification is for another app; see appstore-app-apple-id")
        }
        if let word = try fields.text("environment") { try environments.check(AppStoreNotification.environment(word)) }
    }
}
