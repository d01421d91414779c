import HeadroomClient
import TestSupport

/// What tests ask the service itself.
extension ServiceProcess {
    func ask<Result: Sendable>(_ body: (HeadroomClient) async throws -> Result) async throws -> Result {
        try await HeadroomClient.with(self) { try await body($0) }
    }

    func usage(of user: UserID) async throws -> UsageStatus {
        try await ask { try await $0.usage(of: user) }
    }

    /// A user on a plan.
    func user(_ plan: String = "paid") async throws -> UserID {
        let user = UserID.random
        _ = try await ask { try await $0.setPlan(PlanChange(user: user, plan: plan)) }
        return user
    }

    /// What was held for a user has been counted or given back.
    func settled(_ user: UserID, used: Int) async throws {
        try await waitUntil("\(used) counted, nothing held") {
            let status = try await self.usage(of: user)
            return status.used == used && status.held == 0
        }
    }
}
