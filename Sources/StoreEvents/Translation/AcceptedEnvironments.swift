import Billing

/// The store environments whose events are accepted. Sandbox purchases cost nothing, and any tester can make them.
public enum AcceptedEnvironments: String, Sendable, CaseIterable {
    case production, sandbox, any

    public func check(_ environment: BillingEvent.Environment?) throws(BillingError) {
        guard self == .any || rawValue == environment?.rawValue else {
            let what = environment.map { "is of the \($0.rawValue) environment" } ?? "does not name its environment"
            throw BillingError(.elsewhere, "the event \(what), and store-environment is \(rawValue)")
        }
    }
}
