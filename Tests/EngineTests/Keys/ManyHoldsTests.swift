import TestSupport
import Testing
import Usage

@testable import Engine

@Suite("Ten thousand holds")
struct ManyHoldsTests {
    private static let limit = 800
    private static let users = (0..<20).map { user(UInt64($0)) }
    private static let holdsPerUser = 500
    private let start = at("2026-11-10T12:00:00Z")

    /// The used and held messages of each user, as simple sums.
    private struct Tally {
        var used: [UserID: Int] = [:]
        var held: [UserID: Int] = [:]

        mutating func apply(_ operation: EngineOperation, of user: UserID) {
            switch operation {
            case .batched(.reserve): held[user, default: 0] += 1
            case .batched(.commit):
                held[user, default: 0] -= 1
                used[user, default: 0] += 1
            case .batched(.release): held[user, default: 0] -= 1
            default: break
            }
        }

        /// Checks one answer's numbers; false ends the test.
        func agrees(with answer: Answer?, of user: UserID, seed: UInt64) -> Bool {
            guard let snapshot = answer?.snapshot else {
                Issue.record("seed \(seed): no answer")
                return false
            }
            let sum = snapshot.used + snapshot.held + (snapshot.remaining ?? 0)
            let agrees =
                sum == ManyHoldsTests.limit && snapshot.used == used[user, default: 0]
                && snapshot.held == held[user, default: 0]
            #expect(agrees, "seed \(seed): used \(snapshot.used), held \(snapshot.held), of \(user)")
            return agrees
        }
    }

    @Test("add up at every step when a third is committed, a third released and a third expires")
    func addUp() async throws {
        let seed = SeededGenerator.newSeed()
        print("ten thousand holds, seed \(seed)")
        try await EngineHarness.serving(.fresh(at: start)) { database, harness in
            for user in Self.users {
                _ = try await harness.execute(user, .setPlan(PlanChange(user: user, plan: "paid")))
            }
            var generator = SeededGenerator(seed: seed)
            var tally = Tally()
            var waiting = requests(&generator)[...]
            while !waiting.isEmpty {
                let load = waiting.prefix(Int.random(in: 1...500, using: &generator))
                waiting = waiting.dropFirst(load.count)
                let outcomes = try await harness.execute(Array(load))
                for ((user, operation), outcome) in zip(load, outcomes) {
                    tally.apply(operation, of: user)
                    guard tally.agrees(with: outcome.answer, of: user, seed: seed) else { return }
                }
            }
            try await expectEnd(database, harness, tally, seed: seed)
        }
    }

    /// Ten thousand reserves with the commits and releases of two thirds of them, each somewhere after its reserve.
    private func requests(_ generator: inout SeededGenerator) -> [(user: UserID, operation: EngineOperation)] {
        var requests: [(place: Double, user: UserID, operation: EngineOperation)] = []
        for user in Self.users {
            for number in 0..<Self.holdsPerUser {
                let key = messageKey("hold \(number)")
                let place = Double.random(in: 0..<1, using: &generator)
                let later = Double.random(in: place..<1.2, using: &generator)
                requests.append((place, user, .reserve(1, key: key, ttlSeconds: 3_600)))
                switch number % 3 {
                case 0: requests.append((later, user, .commit(key: key)))
                case 1: requests.append((later, user, .release(key)))
                default: break
                }
            }
        }
        return requests.sorted { $0.place < $1.place }.map { ($0.user, $0.operation) }
    }

    /// Before the holds end, at the instant at which they end, and in the database.
    private func expectEnd(
        _ database: TestDatabase,
        _ harness: EngineHarness,
        _ tally: Tally,
        seed: UInt64
    ) async throws {
        let end = start.advanced(bySeconds: 3_600)
        for instant in [Instant(microsecondsSince1970: end.microsecondsSince1970 - 1), end] {
            try await database.moveClock(to: instant)
            for user in Self.users {
                var expected = tally
                if instant == end { expected.held[user] = 0 }
                #expect(expected.used[user] == 167 && tally.held[user] == 166)
                let answer = try await harness.execute(user, .usage).answer
                guard expected.agrees(with: answer, of: user, seed: seed) else { return }
            }
        }
        let user = Self.users[0]
        #expect(try await harness.execute(user, .commit(key: messageKey("hold 2"))) == .failure(.holdExpired))
        let last = try await harness.execute(user, .consume(633)).answer
        #expect(last?.status == .allowed && last?.snapshot.remaining == 0, "all that expired can be sent again")
        let sums = "select concat_ws(' ', sum(message_count), count(*)) from message_usage"
        #expect(try await database.psql.text(sums) == "\(20 * 167 + 633) 20")
        let states =
            "select string_agg(number::text, ' ' order by status) from "
            + "(select status, count(*) as number from headroom.message_keys group by status) as counts"
        #expect(try await database.psql.text(states) == "3340 3320 3340")
    }
}
