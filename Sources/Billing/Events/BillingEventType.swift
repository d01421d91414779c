extension BillingEvent {
    /// The store's word without subtype or reason, where its documentation has it, else `other`: a bounded number of
    /// words, for counting by.
    public var typeClass: String {
        let word = String(type.prefix { $0 != ":" })
        let known = source == .revenuecat ? BillingEvent.revenueCatTypes : BillingEvent.appStoreTypes
        return known.contains(word) ? word : "other"
    }

    private static let revenueCatTypes: Set<String> = [
        "BILLING_ISSUE", "CANCELLATION", "EXPERIMENT_ENROLLMENT", "EXPIRATION", "INITIAL_PURCHASE", "INVOICE_ISSUANCE",
        "NON_RENEWING_PURCHASE", "PRODUCT_CHANGE", "REFUND_REVERSED", "RENEWAL", "SUBSCRIBER_ALIAS",
        "SUBSCRIPTION_EXTENDED", "SUBSCRIPTION_PAUSED", "TEMPORARY_ENTITLEMENT_GRANT", "TEST", "TRANSFER",
        "UNCANCELLATION", "VIRTUAL_CURRENCY_TRANSACTION",
    ]

    private static let appStoreTypes: Set<String> = [
        "CONSUMPTION_REQUEST", "DID_CHANGE_RENEWAL_PREF", "DID_CHANGE_RENEWAL_STATUS", "DID_FAIL_TO_RENEW",
        "DID_RENEW", "EXPIRED", "EXTERNAL_PURCHASE_TOKEN", "GRACE_PERIOD_EXPIRED", "METADATA_UPDATE", "MIGRATION",
        "OFFER_REDEEMED", "ONE_TIME_CHARGE", "PRICE_INCREASE", "REFUND", "REFUND_DECLINED", "REFUND_REVERSED",
        "RENEWAL_EXTENDED", "RENEWAL_EXTENSION", "RESCIND_CONSENT", "REVOKE", "SUBSCRIBED", "TEST",
    ]
}
