import TestSupport
import Testing
import Usage

@testable import Engine

extension TestDatabase {
    /// RESERVE for a minute, with the key "k".
    func hold(_ messages: Int, of user: UserID) async throws {
        let engine = EngineHarness(conninfo, lanes: 1)
        try await engine.running {
            let outcome = try await engine.execute(user, .reserve(messages, key: messageKey("k"), ttlSeconds: 60))
            #expect(outcome.answer?.status == .held)
        }
    }
}
