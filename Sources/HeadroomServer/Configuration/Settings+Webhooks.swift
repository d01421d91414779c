import LineProtocol

/// The stores' webhooks; docs/operations.md sets them up step by step.
extension Settings {
    static let revenueCatAuthorization = Setting<[Secret]>(
        "revenuecat-authorization",
        "the Authorization header that RevenueCat sends; several, separated by commas, are all accepted, to replace one. "
            + "A secret: prefer the environment, or a file"
    )
    package static let revenueCatAuthorizationFile = Setting<String?>(
        "revenuecat-authorization-file",
        "path",
        "file with revenuecat-authorization, one a line"
    )
    static let revenueCatSigningSecret = Setting<[Secret]>(
        "revenuecat-signing-secret",
        "the secret with which RevenueCat signs; if set, a signature is required. Several, separated by commas, are all "
            + "accepted. Prefer the environment, or a file"
    )
    package static let revenueCatSigningSecretFile = Setting<String?>(
        "revenuecat-signing-secret-file",
        "path",
        "file with revenuecat-signing-secret, one a line"
    )
    static let revenueCatSignatureWindow = Setting<Int>(
        "revenuecat-signature-window-seconds",
        default: 300,
        1...3_600,
        unit: "s",
        "how far the time in RevenueCat's signature may be from this machine's clock, in either direction"
    )
    static let appStoreBundleID = Setting<String?>(
        "appstore-bundle-id",
        "text",
        "bundle id of the app whose App Store notifications are accepted; requires appstore-root-certificate"
    )
    static let appStoreAppleID = Setting<Int?>(
        "appstore-app-apple-id",
        1...999_999_999_999_999,
        "the app's Apple id; notifications with another one are refused"
    )
    package static let appStoreRootCertificate = Setting<String?>(
        "appstore-root-certificate",
        "path",
        "file with the certificate that App Store notifications must be signed under, PEM or DER: Apple Root CA - G3"
    )
    static let stripeSigningSecret = Setting<[Secret]>(
        "stripe-signing-secret",
        "the signing secret of the endpoint at Stripe, whsec_…; several, separated by commas, are all accepted, to roll "
            + "one. Prefer the environment, or a file"
    )
    package static let stripeSigningSecretFile = Setting<String?>(
        "stripe-signing-secret-file",
        "path",
        "file with stripe-signing-secret, one a line"
    )
    static let stripeSignatureWindow = Setting<Int>(
        "stripe-signature-window-seconds",
        default: 300,
        1...3_600,
        unit: "s",
        "how far the time in Stripe's signature may be from this machine's clock, in either direction"
    )
    static let stripeRefundRevokes = Setting<Bool>(
        "stripe-refund-revokes",
        (true, "on"),
        (false, "off"),
        "whether a full refund of a subscription's charge at Stripe ends the access; off: only the subscription's state does"
    )
    static let storeEnvironment = Setting<WebhookConfiguration.Environments>(
        "store-environment",
        default: .production,
        "which of the stores' environments are accepted; purchases in a sandbox cost nothing"
    )

    static let ofWebhooks: [any SettingDefinition] = [
        revenueCatAuthorization, revenueCatAuthorizationFile, revenueCatSigningSecret, revenueCatSigningSecretFile,
        revenueCatSignatureWindow, appStoreBundleID, appStoreAppleID, appStoreRootCertificate, stripeSigningSecret,
        stripeSigningSecretFile, stripeSignatureWindow, stripeRefundRevokes, storeEnvironment,
    ]
}
