import Billing
import Foundation
import LineProtocol
import ServiceCore
import StoreEvents

/// The webhook endpoints of the stores that the settings configure. A store (App Store, Stripe or RevenueCat) reports
/// subscriptions and purchases to its endpoint.
package struct WebhookEndpoints: Sendable {
    /// A file that a setting names cannot be used. The description never quotes its contents, which may be secret.
    package struct UnusableFile: Error, CustomStringConvertible {
        package let description: String
    }

    /// The endpoint types of all stores. A store without settings has a path too, whose response names the missing
    /// settings.
    static let types: [any WebhookEndpoint.Type] = [
        RevenueCatEndpoint.self, AppStoreEndpoint.self, StripeEndpoint.self,
    ]

    /// The size limit of a file: far more than any secret or certificate needs.
    private static let fileBytesMaximum = 65_536

    /// The endpoints of the stores that have settings.
    private let endpoints: [any WebhookEndpoint]

    /// Reads the files that the settings name.
    package init(_ configuration: WebhookConfiguration) throws(UnusableFile) {
        var endpoints: [any WebhookEndpoint] = []
        for type in WebhookEndpoints.types {
            if let endpoint = try type.init(configuration) { endpoints.append(endpoint) }
        }
        self.endpoints = endpoints
    }

    /// - Returns: nil for a store without settings.
    func endpoint(of source: BillingEvent.Source) -> (any WebhookEndpoint)? {
        endpoints.first { type(of: $0).source == source }
    }

    /// - Returns: the secrets of the setting itself, then those of its file, one a line.
    static func texts(
        _ secrets: WebhookConfiguration.Secrets,
        setting: some SettingDefinition
    ) throws(UnusableFile) -> [String] {
        var texts = secrets.values.map(\.text)
        guard let path = secrets.file else { return texts }
        guard let text = String(validating: try bytes(path, setting: setting), as: UTF8.self) else {
            throw UnusableFile(description: "\(path) cannot be \(setting.name): it is not UTF-8")
        }
        let lines = Secret.split(text.replacing("\r\n", with: "\n"), at: "\n")
        guard !lines.isEmpty else { throw UnusableFile(description: "\(path) cannot be \(setting.name): it is empty") }
        texts += lines.map(\.text)
        return texts
    }

    /// Reads a file that a setting names.
    static func bytes(_ path: String, setting: some SettingDefinition) throws(UnusableFile) -> [UInt8] {
        do {
            guard let file = FileHandle(forReadingAtPath: path) else {
                throw UnusableFile(description: "\(path) cannot be read; \(setting.name) names it")
            }
            defer { try? file.close() }
            let data = try file.read(upToCount: fileBytesMaximum + 1) ?? Data()
            guard data.count <= fileBytesMaximum else {
                throw UnusableFile(
                    description: "\(path) cannot be \(setting.name): it has more than \(fileBytesMaximum) bytes"
                )
            }
            return Array(data)
        } catch let error as UnusableFile {
            throw error
        } catch {
            throw UnusableFile(description: "\(path) cannot be read; \(setting.name) names it")
        }
    }
}

extension WebhookConfiguration {
    var acceptedEnvironments: AcceptedEnvironments {
        switch environments {
        case .production: .production
        case .sandbox: .sandbox
        case .any: .any
        }
    }
}
