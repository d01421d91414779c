import Foundation
import HeadroomClient
import TestSupport
import Testing

@Suite("Conversions from and to Foundation's types")
struct FoundationValuesTests {
    @Test("A UUID converts to a user and to a key with the same lower-case text", arguments: SeededGenerator.seeds)
    func uuids(seed: UInt64) {
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<100 {
            let uuid = UUID.random(using: &generator)
            let text = uuid.uuidString.lowercased()
            #expect(UserID(uuid).description == text && UUID(UserID(uuid)) == uuid)
            #expect(MessageKey(uuid).text == text)
        }
    }

    @Test("An instant converts to a date and back to the microsecond", arguments: SeededGenerator.seeds)
    func dates(seed: UInt64) {
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        // The years 2000 to 2100.
        for _ in 0..<1_000 {
            let microseconds = Int64.random(in: 946_684_800_000_000...4_102_444_800_000_000, using: &generator)
            let instant = Instant(microsecondsSince1970: microseconds)
            #expect(Instant(Date(instant)) == instant, "seed \(seed)")
        }
        #expect(Instant(Date(timeIntervalSince1970: 1_795_512_600)).description == "2026-11-24T09:30:00Z")
    }

    @Test("A date beyond the range becomes the nearest instant, and a date that is not a number the earliest")
    func strangeDates() {
        #expect(Instant(Date(timeIntervalSince1970: .infinity)) == Instant(microsecondsSince1970: .max))
        #expect(Instant(Date(timeIntervalSince1970: -.infinity)) == Instant(microsecondsSince1970: .min))
        #expect(Instant(Date(timeIntervalSince1970: .nan)) == Instant(microsecondsSince1970: .min))
        #expect(Instant(Date(timeIntervalSince1970: 1e300)) == Instant(microsecondsSince1970: .max))
    }

    @Test("A plan change accepts and returns dates")
    func planChange() {
        let (start, end) = (Date(timeIntervalSince1970: 1_795_512_600), Date(timeIntervalSince1970: 1_800_000_000))
        var change = PlanChange(user: .random, plan: "paid", state: .cancelled, startedAt: start, expiresAt: end)
        #expect(change.state == .cancelled && change.startedAt == Instant(start) && change.expiresAt == Instant(end))
        #expect(change.startDate == start && change.expirationDate == end && change.graceEndDate == nil)
        (change.startDate, change.expirationDate, change.graceEndDate) = (nil, nil, end)
        #expect(change.startedAt == nil && change.expiresAt == nil && change.graceUntil == Instant(end))
        #expect(PlanChange(user: .random, plan: "paid", expiresAt: end).state == nil)
    }

    @Test("A status has its instants as dates, and distinguishes an unlimited from an unknown limit")
    func status() {
        var status = UsageStatus.degraded(.random)
        #expect(status.limit == nil && !status.isUnlimited && status.resetDate == nil)
        status.isDegraded = false
        #expect(status.isUnlimited)
        (status.resets, status.expires, status.renews) = (at("2026-12-01"), at("2026-12-02"), at("2026-12-03"))
        #expect(status.resetDate.map { Instant($0) } == status.resets)
        #expect(status.expirationDate.map { Instant($0) } == status.expires)
        #expect(status.renewalDate.map { Instant($0) } == status.renews)
        status.graceUntil = at("2026-12-04")
        #expect(status.graceEndDate.map { Instant($0) } == status.graceUntil)
    }

    @Test("The error of an invalid key has a localized description")
    func localized() throws {
        let error = try #require(throws: InvalidMessageKey.self) { try MessageKey(String(repeating: "k", count: 200)) }
        #expect(error.localizedDescription == error.description)
    }
}

extension UUID {
    fileprivate static func random(using generator: inout SeededGenerator) -> UUID {
        UUID(UserID(high: generator.next(), low: generator.next()))
    }
}
