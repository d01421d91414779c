import LineProtocol
import Usage

/// The settings of the stores' webhooks, before any file is read.
package struct WebhookConfiguration: Sendable {
    /// Secrets in the setting itself, and a file with more of them.
    package struct Secrets: Sendable {
        package var values: [Secret]
        package var file: String?

        package var isEmpty: Bool { values.isEmpty && file == nil }
    }

    package struct AppStore: Sendable {
        package var bundleID: String
        package var appleID: Int64?
        /// Path.
        package var rootCertificate: String
    }

    package struct Stripe: Sendable {
        /// Empty: its events are not accepted.
        package var signingSecrets: Secrets
        package var windowSeconds: Int
        /// Whether a full refund ends the access that it paid for.
        package var refundRevokes: Bool
    }

    package enum Environments: String, Sendable, CaseIterable {
        case production, sandbox, any
    }

    package var revenueCatAuthorizations: Secrets
    package var revenueCatSigningSecrets: Secrets
    package var revenueCatWindowSeconds: Int
    /// nil: its notifications are not accepted.
    package var appStore: AppStore?
    package var stripe: Stripe
    package var environments: Environments
    /// Of users' names; nil where users are UUIDs only.
    package var userNamespace: UserNamespace?

    init(_ settings: SettingsReader) throws(InvalidSetting) {
        revenueCatAuthorizations = Secrets(
            values: try settings.value(Settings.revenueCatAuthorization),
            file: try settings.value(Settings.revenueCatAuthorizationFile)
        )
        revenueCatSigningSecrets = Secrets(
            values: try settings.value(Settings.revenueCatSigningSecret),
            file: try settings.value(Settings.revenueCatSigningSecretFile)
        )
        revenueCatWindowSeconds = try settings.value(Settings.revenueCatSignatureWindow)
        stripe = Stripe(
            signingSecrets: Secrets(
                values: try settings.value(Settings.stripeSigningSecret),
                file: try settings.value(Settings.stripeSigningSecretFile)
            ),
            windowSeconds: try settings.value(Settings.stripeSignatureWindow),
            refundRevokes: try settings.value(Settings.stripeRefundRevokes)
        )
        environments = try settings.value(Settings.storeEnvironment)
        userNamespace = try settings.value(Settings.userNamespace)
        appStore = try WebhookConfiguration.appStore(settings)
    }

    private static func appStore(_ settings: SettingsReader) throws(InvalidSetting) -> AppStore? {
        let appleID = try settings.value(Settings.appStoreAppleID).map { Int64($0) }
        switch (try settings.value(Settings.appStoreBundleID), try settings.value(Settings.appStoreRootCertificate)) {
        case (let bundleID?, let root?):
            return AppStore(bundleID: bundleID, appleID: appleID, rootCertificate: root)
        case (nil, nil):
            return nil
        default:
            throw InvalidSetting(
                text: "appstore-bundle-id and appstore-root-certificate go together: set both, or neither"
            )
        }
    }
}

extension Secret {
    /// The parts between separators, without the space around them; empty ones are left out.
    package static func split(_ text: String, at separator: Character) -> [Secret] {
        text.split(separator: separator).compactMap { part in
            let trimmed = part.drop { $0.isWhitespace }
            guard let end = trimmed.lastIndex(where: { !$0.isWhitespace }) else { return nil }
            return Secret(String(trimmed[...end]))
        }
    }
}
