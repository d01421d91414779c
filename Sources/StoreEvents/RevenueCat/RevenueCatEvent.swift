import Billing
import JSON
import Usage

/// RevenueCat's webhook events (https://www.revenuecat.com/docs/integrations/webhooks/event-types-and-fields), as they
/// are stored, and translated.
public enum RevenueCatEvent: StoreAdapter {
    public static let source = BillingEvent.Source.revenuecat
    public static let typesWithEffects: Set = [
        "BILLING_ISSUE", "CANCELLATION", "EXPIRATION", "INITIAL_PURCHASE", "NON_RENEWING_PURCHASE", "PRODUCT_CHANGE",
        "REFUND_REVERSED", "RENEWAL", "SUBSCRIBER_ALIAS", "SUBSCRIPTION_EXTENDED", "TEMPORARY_ENTITLEMENT_GRANT",
        "TRANSFER", "UNCANCELLATION",
    ]
    public static let eventTypes = typesWithEffects.union([
        "EXPERIMENT_ENROLLMENT", "INVOICE_ISSUANCE", "SUBSCRIPTION_PAUSED", "TEST", "VIRTUAL_CURRENCY_TRANSACTION",
    ])
    /// RevenueCat's events of these types name no environment. Those without effects need none.
    private static let typesWithoutEnvironment: Set = ["SUBSCRIBER_ALIAS", "TEMPORARY_ENTITLEMENT_GRANT", "TRANSFER"]
    /// Events about virtual currencies have the second one.
    private static let environmentFields = ["environment", "purchase_environment"]

    /// subscriber_attributes (names, addresses), other prices and countries are not stored.
    private static let storedFields: KeyValuePairs<String, PayloadFields.Format> = [
        "id": .text, "type": .word, "event_timestamp_ms": .instant, "app_id": .text, "environment": .word,
        "purchase_environment": .word, "store": .word, "app_user_id": .identity, "original_app_user_id": .identity,
        "aliases": .identities,
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
    ///   - body: the body of a verified request.
    ///   - namespace: the namespace of users' names; nil where users are UUIDs only.
    /// - Returns: the payload to store, which `translate` accepts.
    /// - Throws: malformed or too large, with the field's name.
    public static func sanitized(
        body: [UInt8],
        in namespace: UserNamespace? = nil
    ) throws(BillingError) -> JSONValue {
        let fields = try PayloadFields(try JSONValue(received: body), path: "")
        let received = try PayloadFields(fields.members["event"], path: "event", in: namespace)
        let event = readable(received, type: try received.required("type", PayloadFields.word))
        var stored: [String: JSONValue] = [
            "event": .object(try event.stored(storedFields, informative: informativeFields))
        ]
        if let version = (try? fields.text("api_version")) ?? nil { stored["api_version"] = .string(version) }
        let payload = JSONValue.object(stored)
        // This checks the required fields, so that every stored payload can be translated again.
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
            environment: try environment(of: kind, event),
            identities: CustomerIdentity.distinct(identities),
            payload: payload
        )
        try notification.translate { translated in
            translated.effects = try RevenueCatTranslation(event, translated).effects(of: kind)
        }
        return notification
    }

    /// Returns the environment; nil if the event should name it and does not.
    private static func environment(
        of kind: String,
        _ event: PayloadFields
    ) throws(BillingError) -> BillingEvent.Environment? {
        for name in environmentFields {
            if let word = try event.text(name) { return word == "PRODUCTION" ? .production : .sandbox }
        }
        return typesWithEffects.subtracting(typesWithoutEnvironment).contains(kind) ? nil : .production
    }

    /// - Throws: elsewhere, if the event is of an environment that is not accepted. Accepted anyway: the test event of
    ///   RevenueCat's dashboard, which has the sandbox's environment and changes nothing, and an event of a type that
    ///   names no environment, because it can concern either.
    public static func check(
        _ event: BillingEvent,
        environments: AcceptedEnvironments
    ) throws(BillingError) {
        let isNamed = environmentFields.contains { event.payload["event"]?[$0] != nil }
        guard event.typeClass != "TEST", isNamed || event.environment == nil else { return }
        try environments.check(event.environment)
    }
}

extension BillingEvent.Source {
    public static let revenuecat = BillingEvent.Source(rawValue: "revenuecat")
}
