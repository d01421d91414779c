import Billing
import Foundation
import JSON
import Postgres
import TestSupport
import Usage

@testable import Engine

/// A short form of a billing event.
struct Event: Sendable {
    var id: String
    var type: String
    var at: String
    var identities: [String]
    var effects: [[String: Any & Sendable]]
    var source = "revenuecat"
    var problem: String?

    /// - Parameters:
    ///   - at: when it happened.
    ///   - identities: UUIDs and digests, best first.
    ///   - effects: each with `kind` and its fields.
    init(
        _ id: String,
        _ at: String,
        by identities: [String] = [],
        type: String = "TEST",
        _ effects: [String: Any & Sendable]...
    ) {
        self.id = id
        self.at = at
        self.identities = identities
        self.type = type
        self.effects = effects
    }

    static func purchased(
        _ transaction: String,
        _ product: String = "monthly",
        expires: String = "2027-01-01",
        period: String = "normal"
    ) -> [String: Any & Sendable] {
        ["kind": "purchased", "transaction": transaction, "product": product, "expires": expires, "period": period]
    }

    static func transferred(from: [String], to: [String]) -> [String: Any & Sendable] {
        ["kind": "transferred", "from": from, "to": to]
    }
}

/// The digest of a store's customer id.
func digest(_ number: Int) -> String {
    let digits = String(number, radix: 16)
    return "sha256:" + String(repeating: "0", count: 64 - digits.count) + digits
}

extension Event {
    /// The event as the service applies it.
    var billingEvent: BillingEvent {
        get throws {
            let json = try JSONSerialization.data(withJSONObject: effects, options: [.sortedKeys])
            return BillingEvent(
                source: BillingEvent.Source(rawValue: source),
                id: id,
                type: type,
                at: TestSupport.at(at),
                environment: .production,
                identities: identities,
                effects: try JSONDecoder().decode([BillingEffect].self, from: json),
                payload: .object(["type": .string(type), "ids": .array(identities.map { .string($0) })]),
                problem: problem
            )
        }
    }
}

extension TestDatabase {
    /// With the products of `mapProducts`.
    static func withProducts(at instant: Instant) async throws -> TestDatabase {
        let database = try await fresh(at: instant)
        try await database.psql.mapProducts()
        return database
    }
}

extension Session {
    /// Applies an event. Returns the fields of the answer, each as text.
    @discardableResult
    func ingest(_ event: Event) async throws -> [String: String] { try await apply(try event.billingEvent) }

    /// Replays an event. Empty where it was applied before and could not be now: then nothing changes.
    @discardableResult
    func replay(_ event: Event) async throws -> [String: String] { try await replay(try event.billingEvent) }

    @discardableResult
    func replay(_ event: BillingEvent) async throws -> [String: String] {
        let answer = try await run { connection in
            try BillingLedger(connection, deadline: .now + waitLimit).replay(event)
        }
        return try answer.map(fields) ?? [:]
    }

    @discardableResult
    func apply(_ event: BillingEvent) async throws -> [String: String] {
        try fields(
            try await run { connection in try BillingLedger(connection, deadline: .now + waitLimit).apply(event) }
        )
    }

    private func fields(_ answer: String) throws -> [String: String] {
        guard case .object(let members) = try JSONValue(parsing: Array(answer.utf8)) else { return [:] }
        return members.mapValues { value in
            switch value {
            case .string(let text): text
            default: value.jsonText
            }
        }
    }

    /// The products of these tests: `monthly`, `large` (no limit), and `pack` (50 messages).
    func mapProducts() async throws {
        for source in ["revenuecat", "appstore"] {
            try await execute(
                """
                select headroom.map_product('\(source)', 'monthly', 'paid');
                select headroom.map_product('\(source)', 'large', 'pro');
                select headroom.map_product('\(source)', 'pack', null, p_messages => 50);
                """
            )
        }
    }
}
