import HeadroomClient
import TestSupport
import Testing

/// Kills and restarts the service at the same address repeatedly while a body runs.
private func whileKilling<Result: Sendable>(
    _ service: ServiceProcess,
    times: Int,
    _ body: @escaping @Sendable () async throws -> Result
) async throws -> Result {
    try await withThrowingTaskGroup(of: Result?.self) { group in
        group.addTask { try await body() }
        group.addTask {
            for _ in 0..<times {
                try await service.crash()
                try await service.restart()
            }
            return nil
        }
        // If a restart fails, the group cancels the body, whose requests would never be answered.
        let results = try await group.reduce(into: [Result?]()) { $0.append($1) }
        return try #require(results.compactMap { $0 }.first)
    }
}

@Suite("However the connection breaks, every message counts once", .serialized)
struct ExactlyOnceTests {
    private static let faults = Proxy.Faults(
        cutAfterBytes: 1_000...20_000,
        delayMilliseconds: 0...1,
        chunkBytes: 1...400
    )
    private static let seeds = SeededGenerator.seeds(always: [1])

    private static func client(_ endpoint: HeadroomClient.Endpoint) -> HeadroomClient {
        var configuration = HeadroomClient.Configuration(endpoints: [endpoint])
        // Longer than a service takes to start on a busy machine.
        configuration.deadline = .seconds(120)
        configuration.attemptTimeout = .seconds(5)
        configuration.backoff = .milliseconds(5)...(.milliseconds(200))
        return HeadroomClient(configuration)
    }

    @Test(
        "Over broken, delayed and split connections and kill -9, the count equals the allowed messages",
        arguments: seeds
    )
    func counting(seed: UInt64) async throws {
        print("seed \(seed)")
        let service = try await ServiceProcess.start()
        let proxy = try await service.proxy(ExactlyOnceTests.faults, seed: seed)
        defer { proxy.close() }
        let client = ExactlyOnceTests.client(proxy.endpoint)
        let users = (0..<4).map { UserID(high: seed, low: UInt64($0)) }
        // Requests that cannot be sent again do not use the proxy.
        try await HeadroomClient.with(service) { direct in
            for user in users { _ = try await direct.setPlan(PlanChange(user: user, plan: "pro")) }
        }
        let allowed = try await whileKilling(service, times: 2) {
            try await withThrowingTaskGroup(of: [UserID: Int].self) { group in
                for task in 0..<24 {
                    group.addTask {
                        var allowed: [UserID: Int] = [:]
                        for number in 0..<40 {
                            let user = users[(task + number) % users.count]
                            let messages = 1 + (task + number) % 3
                            guard try await client.consume(user, messages: messages).isAllowed else { continue }
                            allowed[user, default: 0] += messages
                        }
                        return allowed
                    }
                }
                return try await group.reduce(into: [:]) { $0.merge($1, uniquingKeysWith: +) }
            }
        }
        print("\(proxy.cuts) cuts, \(proxy.connections) connections")
        #expect(proxy.cuts > 5, "the proxy has cut hardly anything")
        for user in users { #expect(try await client.usage(of: user).used == allowed[user], "seed \(seed)") }
        let requested = (0..<24 * 40).reduce(0) { sum, index in sum + 1 + (index / 40 + index % 40) % 3 }
        #expect(allowed.values.reduce(0, +) == requested)
        await client.shutDown()
    }

    private struct BodyFailed: Error {}

    @Test("Under the same faults, withHold counts completed bodies and leaves no hold", arguments: seeds)
    func holding(seed: UInt64) async throws {
        print("seed \(seed)")
        let service = try await ServiceProcess.start()
        let proxy = try await service.proxy(ExactlyOnceTests.faults, seed: seed)
        defer { proxy.close() }
        let client = ExactlyOnceTests.client(proxy.endpoint)
        let user = UserID(high: seed, low: 99)
        try await HeadroomClient.with(service) { _ = try await $0.setPlan(PlanChange(user: user, plan: "pro")) }
        let completed = try await whileKilling(service, times: 1) {
            try await withThrowingTaskGroup(of: Int.self) { group in
                for task in 0..<16 {
                    group.addTask {
                        var completed = 0
                        for number in 0..<12 {
                            // Longer than the test, so that no hold expires.
                            let outcome = try? await client.withHold(user, ttl: .seconds(3_600)) { hold in
                                if (task + number) % 3 == 0 { throw BodyFailed() }
                                return hold.key
                            }
                            if case .completed = outcome { completed += 1 }
                        }
                        return completed
                    }
                }
                return try await group.reduce(0, +)
            }
        }
        #expect(completed == 16 * 12 * 2 / 3)
        let status = try await client.usage(of: user)
        #expect(status.used == completed && status.held == 0, "seed \(seed)")
        #expect(proxy.cuts > 2, "the proxy has cut hardly anything")
        await client.shutDown()
    }
}
