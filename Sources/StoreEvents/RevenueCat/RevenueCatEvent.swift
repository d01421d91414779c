import Billing
import Usage

/// RevenueCat's webhook events (https://www.revenuecat.com/docs/integrations/webhooks/event-types-and-fields), as they
/// are stored, and translated.
public enum RevenueCatEvent: StoreAdapter {
    public static let source = BillingEvent.Source.revenuecat
    public static let eventTypes: Set = [
        "BILLING_ISSUE", "CANCELLATION", "EXPERIMENT_ENROLLMENT", "EXPIRATION", "INITIAL_PURCHASE", "INVOICE_ISSUANCE",
        "NON_RENEWING_PURCHASE", "PRODUCT_CHANGE", "REFUND_REVERSED", "RENEWAL", "SUBSCRIBER_ALIAS",
        "SUBSCRIPTION_EXTENDED", "SUBSCRIPTION_PAUSED", "TEMPORARY_ENTITLEMENT_GRANT", "TEST", "TRANSFER",
        "UNCANCELLATION", "VIRTUAL_CURRENCY_TRANSACTION",
    ]

    /// Not stored: subscriber_attributes (names, addresses), other prices, countries.
    private static let storedFields: KeyValuePairs<String, PayloadFields.Format> = [
        "id": .text, "type": .word, "event_timestamp_ms": .instant, "app_id": .text, "environment": .word,
        "store": .word, "app_user_id": .identity, "original_app_user_id": .identity, "aliases": .identities,
        "transferred_from": .identities, "transferred_to": .identities, "product_id": .text,
        "new_product_id": .text, "period_type": .word, "purchased_at_ms": .instant,
        "expiration_at_ms": .instant, "grace_period_expiration_at_ms": .instant, "auto_resume_at_ms": .instant,
        "transaction_id": .text, "original_transaction_id": .text, "cancel_reason": .word,
        "expiration_reason": .word, "is_trial_conversion": .flag, "is_family_share": .flag,
        "renewal_number": .integer, "entitlement_ids": .texts,
        "price_in_purchased_currency": .number, "currency": .word,
    ]

    private static let informativeFields: Set = [
        "app_id", "store", "auto_resume_at_ms", "is_family_share", "renewal_number", "entitlement_ids",
        "price_in_purchased_currency", "currency",
    ]

    /// - Parameters:
    ///   - body: of a verified request.
    ///   - namespace: of users' names; nil where users are UUIDs only.
    /// - Returns: the payload to store, which `translate` accepts.
    /// - Throws: malformed or too large, with the field's name.
    public static func sanitized(
        body: [UInt8],
        in namespace: UserNamespace? = nil
    ) throws(BillingError) -> JSONValue {
        let fields = try PayloadFields(try JSONValue(parsing: body), path: "")
        let event = try PayloadFields(fields.members["event"], path: "event", in: namespace)
        var stored: [String: JSONValue] = [
            "event": .object(try event.stored(storedFields, informative: informativeFields))
        ]
        if let version = (try? fields.text("api_version")) ?? nil { stored["api_version"] = .string(version) }
        let payload = JSONValue.object(stored)
        // Checks the required fields, so that every stored payload can be translated again.
        _ = try translate(payload: payload)
        return payload
    }

    public static func translate(payload: JSONValue) throws(BillingError) -> BillingEvent {
        let event = try PayloadFields(payload["event"], path: "event")
        let kind = try event.required("type", PayloadFields.word)
        var reason = try event.word("cancel_reason")
        if reason == nil { reason = try event.word("expiration_reason") }
        var identities: [String] = []
        for name in ["app_user_id", "original_app_user_id"] {
            if let identity = try event.text(name) { identities.append(identity) }
        }
        identities += try event.texts("aliases")
        if identities.isEmpty { identities = try event.texts("transferred_to") }
        var notification = BillingEvent(
            source: .revenuecat,
            id: try event.required("id", PayloadFields.text),
            type: reason.map { "\(kind): \($0)" } ?? kind,
            at: try event.required("event_timestamp_ms", PayloadFields.instant),
            environment: try environment(of: event),
            identities: CustomerIdentity.distinct(identities),
            payload: payload
        )
        try notification.translate { translated in
            translated.effects = try RevenueCatTranslation(event, translated).effects(of: kind)
        }
        return notification
    }

    /// Transfers and temporary grants may lack it, because they can concern both.
    private static func environment(
        of event: PayloadFields
    ) throws(BillingError) -> BillingEvent.Environment {
        switch try event.text("environment") {
        case nil, "PRODUCTION": .production
        default: .sandbox
        }
    }
}

extension BillingEvent.Source {
    public static let revenuecat = BillingEvent.Source(rawValue: "revenuecat")
}
