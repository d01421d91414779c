import HeadroomClient
import Synchronization
import TestSupport
import Testing

/// The statuses that a follower has received so far.
private final class Heard: Sendable {
    private final class States: Sendable {
        private let states = Mutex<[UsageStatus]>([])

        var all: [UsageStatus] { states.withLock { $0 } }
        func append(_ status: UsageStatus) { states.withLock { $0.append(status) } }
    }

    private let states = States()
    private let task: Task<Void, Never>

    init(_ changes: UsageChanges) {
        task = Task { [states] in
            for await status in changes { states.append(status) }
        }
    }

    var all: [UsageStatus] { states.all }
    var last: UsageStatus? { all.last }

    func stop() async {
        task.cancel()
        await task.value
    }

    /// Returns when the sequence has ended.
    func ended() async { await task.value }
}

@Suite("Following a user", .serialized)
struct ChangesTests {
    @Test("The current usage arrives first, then each change of any origin")
    func changes() async throws {
        let service = try await ServiceProcess.start()
        let other = try await ServiceProcess.start(databaseURL: service.conninfo)
        try await HeadroomClient.with(service) { client in
            let user = UserID.random
            _ = try await client.consume(user, messages: 3)
            let heard = Heard(client.changes(of: user))
            try await waitUntil("the usage arrives") { heard.last?.used == 3 }
            try await HeadroomClient.with(other) { _ = try await $0.consume(user) }
            try await waitUntil("a message through another instance arrives") { heard.last?.used == 4 }
            _ = try await client.setPlan(PlanChange(user: user, plan: "paid"))
            try await waitUntil("a new plan arrives") { heard.last?.plan == "paid" }
            #expect(heard.last?.label == "Premium")
            #expect(zip(heard.all, heard.all.dropFirst()).allSatisfy { $0 != $1 })
            await heard.stop()
        }
    }

    @Test("After a lost connection only changed usage arrives again")
    func loss() async throws {
        let service = try await ServiceProcess.start()
        let other = try await ServiceProcess.start(databaseURL: service.conninfo)
        let proxy = try await service.proxy()
        defer { proxy.close() }
        let client = HeadroomClient(.withTestTimeouts(proxy.endpoint))
        let (changing, still) = (UserID.random, UserID.random)
        // The end of a trial that has not begun moves with the clock.
        _ = try await client.consume(still)
        let (heard, quiet) = (Heard(client.changes(of: changing)), Heard(client.changes(of: still)))
        try await waitUntil("both usages arrive") { heard.last != nil && quiet.last != nil }
        try await service.crash()
        proxy.cutAll()
        try await HeadroomClient.with(other) { _ = try await $0.consume(changing, messages: 7) }
        try await service.restart()
        try await waitUntil("the change during the loss arrives") { heard.last?.used == 7 }
        _ = try await client.consume(still)
        try await waitUntil("changes arrive again") { quiet.last?.used == 2 }
        #expect(quiet.all.map(\.used) == [1, 2])
        await client.shutDown()
        await heard.ended()
        await quiet.ended()
    }

    @Test(
        "Over broken, delayed and split connections the latest usage always arrives",
        arguments: SeededGenerator.seeds(always: [1])
    )
    func faults(seed: UInt64) async throws {
        print("seed \(seed)")
        let service = try await ServiceProcess.start()
        let faults = Proxy.Faults(cutAfterBytes: 600...4_000, delayMilliseconds: 0...3, chunkBytes: 1...80)
        let proxy = try await service.proxy(faults, seed: seed)
        defer { proxy.close() }
        let client = HeadroomClient(.withTestTimeouts(proxy.endpoint))
        let users = (0..<3).map { UserID(high: seed, low: UInt64($0)) }
        let heard = users.map { Heard(client.changes(of: $0)) }
        try await HeadroomClient.with(service) { direct in
            for number in 0..<30 { _ = try await direct.consume(users[number % 3]) }
        }
        try await waitUntil("the last state of each is heard") { heard.allSatisfy { $0.last?.used == 10 } }
        await client.shutDown()
    }

    @Test("More users can be followed than one connection can subscribe to")
    func many() async throws {
        // On a busy machine, 1,100 readings at once take longer than the service's limits, and would begin again.
        let service = try await ServiceProcess.start("--request-timeout-ms", "60000", "--queue-wait-ms", "30000")
        try await HeadroomClient.with(service) { client in
            let heard = (0..<1_100).map { _ in Heard(client.changes(of: .random)) }
            try await waitUntil("all usages arrive") { heard.allSatisfy { $0.last != nil } }
        }
    }

    @Test("A follower that ends and follows again at once receives the usage")
    func comingBack() async throws {
        let service = try await ServiceProcess.start()
        let other = try await ServiceProcess.start(databaseURL: service.conninfo)
        try await HeadroomClient.with(service, other) { client in
            let user = UserID.random
            _ = try await client.consume(user)
            for _ in 0..<30 {
                let left = Heard(client.changes(of: user))
                let leaving = Task { await left.stop() }
                let heard = Heard(client.changes(of: user))
                try await waitUntil("the usage arrives") { heard.last != nil }
                let status = try await client.consume(user).status
                try await waitUntil("the change arrives") { heard.last?.used == status.used }
                await leaving.value
                await heard.stop()
            }
        }
    }

    @Test("The changes end when the client shuts down")
    func shutDown() async throws {
        let service = try await ServiceProcess.start()
        let client = HeadroomClient(.withTestTimeouts(service.endpoint))
        let heard = Heard(client.changes(of: .random))
        try await waitUntil("the usage arrives") { heard.last != nil }
        await client.shutDown()
        await heard.ended()
        for await _ in client.changes(of: .random) { Issue.record("a change arrives after the shutdown") }
    }
}
