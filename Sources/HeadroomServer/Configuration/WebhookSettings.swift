/// What the stores' webhooks need: see docs/operations.md, which sets them up step by step.
extension Setting {
    public static let revenueCatAuthorization = Setting(
        "revenuecat-authorization",
        default: nil,
        "text",
        "what RevenueCat sends as its Authorization header; several with commas between, of which any will do, to replace "
            + "one. A secret: prefer the environment, or a file"
    )
    public static let revenueCatAuthorizationFile = Setting(
        "revenuecat-authorization-file",
        default: nil,
        "path",
        "file with revenuecat-authorization, one a line"
    )
    public static let revenueCatSigningSecret = Setting(
        "revenuecat-signing-secret",
        default: nil,
        "text",
        "the secret by which RevenueCat signs; then a signature is required. Several with commas between, of which any "
            + "will do. Prefer the environment, or a file"
    )
    public static let revenueCatSigningSecretFile = Setting(
        "revenuecat-signing-secret-file",
        default: nil,
        "path",
        "file with revenuecat-signing-secret, one a line"
    )
    public static let revenueCatSignatureWindow = Setting(
        "revenuecat-signature-window-seconds",
        default: "300",
        "1 to 3600 s",
        "how far the time in RevenueCat's signature may be from this machine's clock, in either direction"
    )
    public static let appStoreBundleID = Setting(
        "appstore-bundle-id",
        default: nil,
        "text",
        "bundle id of the app whose App Store notifications are taken; goes with appstore-root-certificate"
    )
    public static let appStoreAppleID = Setting(
        "appstore-app-apple-id",
        default: nil,
        "1 to 999999999999999",
        "the app's Apple id; notifications that name another one are refused"
    )
    public static let appStoreRoot = Setting(
        "appstore-root-certificate",
        default: nil,
        "path",
        "file with the certificate that App Store notifications must be signed under, PEM or DER: Apple Root CA - G3"
    )
    public static let stripeSigningSecret = Setting(
        "stripe-signing-secret",
        default: nil,
        "text",
        "the signing secret of the endpoint at Stripe, whsec_…; several with commas between, of which any will do, to roll "
            + "one. Prefer the environment, or a file"
    )
    public static let stripeSigningSecretFile = Setting(
        "stripe-signing-secret-file",
        default: nil,
        "path",
        "file with stripe-signing-secret, one a line"
    )
    public static let stripeSignatureWindow = Setting(
        "stripe-signature-window-seconds",
        default: "300",
        "1 to 3600 s",
        "how far the time in Stripe's signature may be from this machine's clock, in either direction"
    )
    public static let stripeRefundRevokes = Setting(
        "stripe-refund-revokes",
        default: "on",
        "on or off",
        "whether a charge of a subscription that Stripe refunds in full ends the access; off: only Stripe's subscription does"
    )
    public static let storeEnvironment = Setting(
        "store-environment",
        default: "production",
        "production, sandbox or any",
        "which of the stores' environments are taken; purchases in a sandbox cost nothing"
    )

    public static let billingSessions = Setting(
        "billing-sessions",
        default: "4",
        "1 to 64",
        "database sessions that apply billing events, so many side by side; opened when needed, closed after 30 s without work"
    )

    static let webhooks: [Setting] = [
        revenueCatAuthorization, revenueCatAuthorizationFile, revenueCatSigningSecret, revenueCatSigningSecretFile,
        revenueCatSignatureWindow, appStoreBundleID, appStoreAppleID, appStoreRoot, stripeSigningSecret,
        stripeSigningSecretFile, stripeSignatureWindow, stripeRefundRevokes, storeEnvironment, billingSessions,
    ]

    /// What no log and no dump may show.
    static let secretNames: Set<String> = [
        databaseURL.name, revenueCatAuthorization.name, revenueCatSigningSecret.name,
        stripeSigningSecret.name,
    ]

    public var isSecret: Bool { Setting.secretNames.contains(name) }
}
