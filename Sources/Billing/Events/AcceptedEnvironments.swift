/// Which of a store's environments are taken: purchases in a sandbox cost nothing, and anybody can test with them.
public enum AcceptedEnvironments: String, Sendable, CaseIterable {
    case production, sandbox, any

    public func check(_ environment: BillingEvent.Environment?) throws(BillingError) {
        guard self == .any || rawValue == environment?.rawValue else {
            throw BillingError(
                .elsewhere,
                "the event is of the \(environment?.rawValue ?? "unnamed") environment, and store-environment is \(rawValue)"
            )
        }
    }
}
