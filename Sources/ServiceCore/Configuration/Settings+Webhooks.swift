import LineProtocol

/// The stores' webhooks; docs/app-store-and-revenuecat.md and docs/stripe.md set them up step by step.
extension Settings {
    static let revenueCatAuthorization = Setting<[Secret]>(
        "revenuecat-authorization",
        "the value of the Authorization header that RevenueCat sends. To change it, set the old and the new value, "
            + "separated by a comma: both are accepted. It is a secret, so set the environment variable or "
            + "revenuecat-authorization-file instead of the flag"
    )
    package static let revenueCatAuthorizationFile = Setting<String?>(
        "revenuecat-authorization-file",
        "path",
        "file with the values of revenuecat-authorization, one per line"
    )
    static let revenueCatSigningSecret = Setting<[Secret]>(
        "revenuecat-signing-secret",
        "the secret with which RevenueCat signs its requests. If it is set, a signature is required. To change it, set "
            + "the old and the new secret, separated by a comma: both are accepted. Set the environment variable or "
            + "revenuecat-signing-secret-file instead of the flag"
    )
    package static let revenueCatSigningSecretFile = Setting<String?>(
        "revenuecat-signing-secret-file",
        "path",
        "file with the secrets of revenuecat-signing-secret, one per line"
    )
    static let revenueCatSignatureWindow = Setting<Int>(
        "revenuecat-signature-window-seconds",
        default: 300,
        1...3_600,
        unit: "s",
        "maximum difference between the time in RevenueCat's signature and this machine's clock, in either direction"
    )
    static let appStoreBundleID = Setting<String?>(
        "appstore-bundle-id",
        "text",
        "the bundle ID of the app whose App Store notifications are accepted. Requires appstore-root-certificate"
    )
    static let appStoreAppleID = Setting<Int?>(
        "appstore-app-apple-id",
        1...999_999_999_999_999,
        "the Apple ID of the app, a number. If it is set, notifications with another one are refused"
    )
    package static let appStoreRootCertificate = Setting<String?>(
        "appstore-root-certificate",
        "path",
        "file, PEM or DER, with the root certificate by which App Store notifications are verified: Apple Root CA - G3"
    )
    static let stripeSigningSecret = Setting<[Secret]>(
        "stripe-signing-secret",
        "the signing secret of the webhook endpoint at Stripe, whsec_…. To change it, set the old and the new secret, "
            + "separated by a comma: both are accepted. Set the environment variable or stripe-signing-secret-file "
            + "instead of the flag"
    )
    package static let stripeSigningSecretFile = Setting<String?>(
        "stripe-signing-secret-file",
        "path",
        "file with the secrets of stripe-signing-secret, one per line"
    )
    static let stripeSignatureWindow = Setting<Int>(
        "stripe-signature-window-seconds",
        default: 300,
        1...3_600,
        unit: "s",
        "maximum difference between the time in Stripe's signature and this machine's clock, in either direction"
    )
    static let stripeRefundRevokes = Setting<Bool>(
        "stripe-refund-revokes",
        (true, "on"),
        (false, "off"),
        "whether a full refund of a subscription's charge at Stripe ends the user's access. off: only the state of the "
            + "subscription at Stripe ends it"
    )
    static let storeEnvironment = Setting<WebhookConfiguration.Environments>(
        "store-environment",
        default: .production,
        "the environment of the stores whose events are accepted. Purchases in a sandbox cost nothing"
    )

    public static let ofWebhooks: [any SettingDefinition] = [
        revenueCatAuthorization, revenueCatAuthorizationFile, revenueCatSigningSecret, revenueCatSigningSecretFile,
        revenueCatSignatureWindow, appStoreBundleID, appStoreAppleID, appStoreRootCertificate, stripeSigningSecret,
        stripeSigningSecretFile, stripeSignatureWindow, stripeRefundRevokes, storeEnvironment,
    ]
}
