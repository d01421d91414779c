import LineProtocol

/// The stores' webhooks; docs/app-store-and-revenuecat.md and docs/stripe.md set them up step by step.
extension Settings {
    static let revenueCatAuthorization = Setting<[Secret]>(
        "revenuecat-authorization",
        "the Authorization header that RevenueCat sends; several values are separated by commas"
    )
    package static let revenueCatAuthorizationFile = Setting<String?>(
        "revenuecat-authorization-file",
        "path",
        "file with the values of revenuecat-authorization, one per line"
    )
    static let revenueCatSigningSecret = Setting<[Secret]>(
        "revenuecat-signing-secret",
        "the secret of RevenueCat's signatures, which are then required; several are separated by commas"
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
        "maximum difference between the time in RevenueCat's signature and this machine's clock"
    )
    static let appStoreBundleID = Setting<String?>(
        "appstore-bundle-id",
        "text",
        "the bundle ID of the app whose App Store notifications are accepted. Requires appstore-root-certificate"
    )
    static let appStoreAppleID = Setting<Int?>(
        "appstore-app-apple-id",
        1...999_999_999_999_999,
        "the Apple ID of the app; notifications with another one are refused"
    )
    package static let appStoreRootCertificate = Setting<String?>(
        "appstore-root-certificate",
        "path",
        "file, PEM or DER, with the root certificate of App Store notifications: Apple Root CA - G3"
    )
    static let stripeSigningSecret = Setting<[Secret]>(
        "stripe-signing-secret",
        "the signing secret of Stripe's webhook endpoint, whsec_…; several are separated by commas"
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
        "maximum difference between the time in Stripe's signature and this machine's clock"
    )
    static let stripeRefundRevokes = Setting<Bool>(
        "stripe-refund-revokes",
        (true, "on"),
        (false, "off"),
        "whether a full refund of a subscription's charge ends access. off: only the subscription's state does"
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
