import LineProtocol

/// Of the stores' webhooks: what is said, before any file is read.
package struct WebhookConfiguration: Sendable {
    /// Values, and a file with more of them.
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
        /// Empty: its events are not taken.
        package var signingSecrets: Secrets
        package var windowSeconds: Int
        /// Whether a full refund ends the access that it paid for.
        package var refundRevokes: Bool
    }

    package enum Environments: String, Sendable {
        case production, sandbox, any
    }

    package var revenueCatAuthorizations: Secrets
    package var revenueCatSigningSecrets: Secrets
    package var revenueCatWindowSeconds: Int
    /// nil: its notifications are not taken.
    package var appStore: AppStore?
    package var stripe: Stripe
    package var environments: Environments

    init(_ settings: SettingsReader) throws(SettingsReader.Invalid) {
        revenueCatAuthorizations = try WebhookConfiguration.secrets(
            settings,
            .revenueCatAuthorization,
            file: .revenueCatAuthorizationFile
        )
        revenueCatSigningSecrets = try WebhookConfiguration.secrets(
            settings,
            .revenueCatSigningSecret,
            file: .revenueCatSigningSecretFile
        )
        revenueCatWindowSeconds = try settings.number(.revenueCatSignatureWindow, 1...3_600)
        let refundRevokes: Switch = try settings.choice(.stripeRefundRevokes)
        stripe = Stripe(
            signingSecrets: try WebhookConfiguration.secrets(
                settings,
                .stripeSigningSecret,
                file: .stripeSigningSecretFile
            ),
            windowSeconds: try settings.number(.stripeSignatureWindow, 1...3_600),
            refundRevokes: refundRevokes == .on
        )
        environments = try settings.choice(.storeEnvironment)
        let appleID =
            settings.text(.appStoreAppleID) == nil
            ? nil : try settings.number(.appStoreAppleID, 1...999_999_999_999_999)
        switch (settings.text(.appStoreBundleID), settings.text(.appStoreRoot)) {
        case (let bundleID?, let root?):
            appStore = AppStore(bundleID: bundleID, appleID: appleID.map { Int64($0) }, rootCertificate: root)
        case (nil, nil):
            appStore = nil
        default:
            throw SettingsReader.Invalid(
                text:
                    "appstore-bundle-id and appstore-root-certificate go together: set both, or neither"
            )
        }
    }

    private enum Switch: String {
        case on, off
    }

    private static func secrets(
        _ settings: SettingsReader,
        _ setting: Setting,
        file: Setting
    ) throws(SettingsReader.Invalid) -> Secrets {
        let values = Secrets.split(settings.text(setting) ?? "", at: ",")
        // Only commas: whoever set that meant a secret.
        guard settings.text(setting) == nil || !values.isEmpty else { throw SettingsReader.Invalid(setting) }
        return Secrets(values: values, file: settings.text(file))
    }
}

extension WebhookConfiguration.Secrets {
    package static func split(_ text: String, at separator: Character) -> [Secret] {
        text.split(separator: separator).compactMap { part in
            let trimmed = part.drop { $0.isWhitespace }
            guard let end = trimmed.lastIndex(where: { !$0.isWhitespace }) else { return nil }
            return Secret(String(trimmed[...end]))
        }
    }
}
