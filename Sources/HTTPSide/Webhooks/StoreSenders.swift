import Billing
import Foundation
import HeadroomServer

/// Who the stores are: what shows that a request is theirs, as the settings say it.
package struct StoreSenders: Sendable {
    /// A file that a setting names cannot be used. The text holds nothing of its contents.
    package struct Unusable: Error, CustomStringConvertible {
        package let description: String
    }

    /// nil: its events are not taken.
    let revenueCat: RevenueCatSender?
    let appStore: AppStoreVerifier?
    let environments: AcceptedEnvironments

    /// Far more than any secret or certificate needs.
    private static let fileBytesMaximum = 65_536

    /// Reads the files that the settings name.
    package init(_ configuration: WebhookConfiguration) throws(Unusable) {
        environments = StoreSenders.environments(configuration.environments)
        let authorizations = try StoreSenders.read(
            configuration.revenueCatAuthorizations,
            setting: .revenueCatAuthorizationFile
        )
        let secrets = try StoreSenders.read(
            configuration.revenueCatSigningSecrets,
            setting: .revenueCatSigningSecretFile
        )
        revenueCat =
            authorizations.isEmpty && secrets.isEmpty
            ? nil
            : RevenueCatSender(
                authorizations: authorizations,
                signingSecrets: secrets,
                windowSeconds: configuration.revenueCatWindowSeconds
            )
        guard let app = configuration.appStore else {
            appStore = nil
            return
        }
        let root: PinnedRoot
        do {
            root = try PinnedRoot(file: try StoreSenders.read(app.rootCertificate, setting: .appStoreRoot))
        } catch let error as BillingError {
            throw Unusable(description: "\(app.rootCertificate) cannot be appstore-root-certificate: \(error)")
        } catch let error as Unusable {
            throw error
        } catch {
            throw Unusable(description: "\(app.rootCertificate) cannot be read")
        }
        appStore = AppStoreVerifier(
            app: AppStoreVerifier.App(bundleID: app.bundleID, appleID: app.appleID, environments: environments),
            root: root
        )
    }

    private static func environments(_ environments: WebhookConfiguration.Environments) -> AcceptedEnvironments {
        switch environments {
        case .production: .production
        case .sandbox: .sandbox
        case .any: .any
        }
    }

    private static func read(
        _ secrets: WebhookConfiguration.Secrets,
        setting: Setting
    ) throws(Unusable) -> [String] {
        var texts = secrets.values.map(\.text)
        guard let path = secrets.file else { return texts }
        guard let text = String(validating: try read(path, setting: setting), as: UTF8.self) else {
            throw Unusable(description: "\(path) cannot be \(setting.name): it is not UTF-8")
        }
        let lines = WebhookConfiguration.Secrets.split(text.replacing("\r\n", with: "\n"), at: "\n")
        guard !lines.isEmpty else { throw Unusable(description: "\(path) cannot be \(setting.name): it is empty") }
        texts += lines.map(\.text)
        return texts
    }

    private static func read(_ path: String, setting: Setting) throws(Unusable) -> [UInt8] {
        do {
            guard let file = FileHandle(forReadingAtPath: path) else {
                throw Unusable(description: "\(path) cannot be read; \(setting.name) names it")
            }
            defer { try? file.close() }
            let data = try file.read(upToCount: fileBytesMaximum + 1) ?? Data()
            guard data.count <= fileBytesMaximum else {
                throw Unusable(
                    description: "\(path) cannot be \(setting.name): it has more than \(fileBytesMaximum) bytes"
                )
            }
            return Array(data)
        } catch let error as Unusable {
            throw error
        } catch {
            throw Unusable(description: "\(path) cannot be read; \(setting.name) names it")
        }
    }
}
