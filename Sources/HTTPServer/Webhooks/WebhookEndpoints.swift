import Billing
import ServiceCore
import StoreEvents

/// The webhook endpoints of the stores that the settings configure. A store (App Store, Stripe or RevenueCat) reports
/// subscriptions and purchases to its endpoint.
package struct WebhookEndpoints: Sendable {
    /// The endpoint types of all stores. A store without settings has a path too, whose response names the missing
    /// settings.
    static let types: [any WebhookEndpoint.Type] = [
        RevenueCatEndpoint.self, AppStoreEndpoint.self, StripeEndpoint.self,
    ]

    /// The endpoints of the stores that have settings.
    private let endpoints: [any WebhookEndpoint]

    /// Reads the files that the settings name.
    package init(_ settings: SettingValues<Settings>) throws(SettingFile.Unusable) {
        var endpoints: [any WebhookEndpoint] = []
        for type in WebhookEndpoints.types {
            if let endpoint = try type.init(settings) { endpoints.append(endpoint) }
        }
        self.endpoints = endpoints
    }

    /// - Returns: nil for a store without settings.
    func endpoint(of source: BillingEvent.Source) -> (any WebhookEndpoint)? {
        endpoints.first { type(of: $0).source == source }
    }
}

extension SettingValues<WebhookSettings> {
    var acceptedEnvironments: AcceptedEnvironments {
        switch self.environment {
        case .production: .production
        case .sandbox: .sandbox
        case .any: .any
        }
    }
}
