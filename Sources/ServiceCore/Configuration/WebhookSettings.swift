/// The settings of the stores' webhooks; docs/app-store-and-revenuecat.md and docs/stripe.md set them up step by step.
package struct WebhookSettings: SettingGroup {
    package let revenueCatAuthorizations = Setting<Secrets>("revenuecat-authorization", file: "values") {
        "the Authorization header that RevenueCat sends; several values are separated by commas"
    }
    package let revenueCatSigningSecrets = Setting<Secrets>("revenuecat-signing-secret", file: "secrets") {
        "the secret of RevenueCat's signatures, which are then required; several are separated by commas"
    }
    package let revenueCatWindowSeconds =
        Setting("revenuecat-signature-window-seconds", default: 300, .number(1...3_600, "s")) {
            "maximum difference between the time in RevenueCat's signature and this machine's clock"
        }
    package let appStoreBundleID = Setting("appstore-bundle-id", .text("text")) {
        "the bundle ID of the app whose App Store notifications are accepted. Requires appstore-root-certificate"
    }
    package let appStoreAppleID = Setting("appstore-app-apple-id", .number(1...999_999_999_999_999)) {
        "the Apple ID of the app; notifications with another one are refused"
    }
    package let appStoreRootCertificate = Setting<SettingFile?>(file: "appstore-root-certificate") {
        "file, PEM or DER, with the root certificate of App Store notifications: Apple Root CA - G3"
    }
    package let stripeSigningSecrets = Setting<Secrets>("stripe-signing-secret", file: "secrets") {
        "the signing secret of Stripe's webhook endpoint, whsec_…; several are separated by commas"
    }
    package let stripeWindowSeconds =
        Setting("stripe-signature-window-seconds", default: 300, .number(1...3_600, "s")) {
            "maximum difference between the time in Stripe's signature and this machine's clock"
        }
    package let stripeRefundRevokes =
        Setting("stripe-refund-revokes", default: "on", .words([("on", true), ("off", false)])) {
            "whether a full refund of a subscription's charge ends access. off: only the subscription's state does"
        }
    package let environment = Setting<StoreEnvironment>("store-environment", default: "production", .cases) {
        "the environment of the stores whose events are accepted. Purchases in a sandbox cost nothing"
    }

    package static func check(_ values: SettingValues<WebhookSettings>) throws(InvalidSetting) {
        guard (values.appStoreBundleID == nil) == (values.appStoreRootCertificate == nil) else {
            throw InvalidSetting(
                text: "appstore-bundle-id and appstore-root-certificate go together: set both, or neither"
            )
        }
    }
}

package enum StoreEnvironment: String, Sendable, CaseIterable {
    case production, sandbox, any
}
