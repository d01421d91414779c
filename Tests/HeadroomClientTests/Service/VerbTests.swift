import HeadroomClient
import Testing

@Suite("Each request against the real service")
struct VerbTests {
    @Test("A new user's messages are counted, held, committed and given back")
    func counting() async throws {
        let service = try await ServiceProcess.start()
        try await HeadroomClient.with(service) { client in
            let user = UserID.random
            let first = try await client.consume(user)
            #expect(first.isAllowed && first.status.used == 1 && first.status.remaining == 99)
            #expect(first.status.display == .trial && first.status.day == 1 && first.status.days == 3)
            #expect(first.status.banner == "99 of 100 trial messages remaining")
            #expect(try await client.check(user, messages: 99).isAllowed)
            let key = try #require(MessageKey("draft 1"))
            let held = try await client.reserve(user, messages: 2, key: key)
            #expect(held.isAllowed && held.status.held == 2 && held.status.used == 1)
            #expect(try await client.commit(user, key: key).status.used == 3)
            #expect(try await client.release(user, key: key).messages == 2)
            let usage = try await client.usage(of: user)
            #expect(usage.used == 1 && usage.label == "Trial — Day 1 of 3")
            guard case .blocked(_, .trialLimitReached) = try await client.consume(user, messages: 100) else {
                Issue.record("more than the trial has was allowed")
                return
            }
        }
    }
}
