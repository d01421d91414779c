import Foundation
import TestSupport
import Testing
import Usage

@testable import Engine

/// Random histories of a few customers: every order of arrival ends in the same state.
@Suite("The order in which billing events arrive", .serialized)
struct NotificationOrderTests {
    private static let customers = 4
    private static let orders = 6
    /// The ids of each delivery are its own, in the same order.
    private struct Delivery {
        var number: Int
        func user(_ index: Int) -> String { "\(TestSupport.user(UInt64(number * 16 + index)))" }
        func digest(_ index: Int) -> String { EngineTests.digest(number * 16 + index) }
        func name(_ name: String) -> String { "\(1000 + number) \(name)" }
    }

    /// Placeholders for ids in a history, so that each delivery has its own ids.
    private enum CustomerID: Sendable, CustomStringConvertible {
        case user(Int)
        case digest(Int)

        var description: String {
            switch self {
            case .user(let index): "user \(index)"
            case .digest(let index): "digest \(index)"
            }
        }
    }

    private struct Step: Sendable, CustomStringConvertible {
        var id: String
        var at: String
        var identities: [CustomerID]
        var kind: String
        var transaction = ""
        var product = "monthly"
        var period = "normal"
        var expires: String?
        var from: [CustomerID] = []

        var description: String {
            let subject =
                kind == "transferred" || kind == "merged" ? "\(from) to" : "\(transaction) \(product) \(period)"
            return "\(id): \(at) \(kind) \(subject) \(identities) \(expires ?? "")"
        }
    }

    private func instant(_ random: inout SeededGenerator) -> String {
        let day = Int.random(in: 1...18, using: &random)
        // Some instants coincide.
        return "2026-11-\(day < 10 ? "0" : "")\(day)T0\(Int.random(in: 0...3, using: &random)):00:00Z"
    }

    private func identities(_ random: inout SeededGenerator) -> [CustomerID] {
        let user = CustomerID.user(Int.random(in: 0..<NotificationOrderTests.customers, using: &random))
        let digest = CustomerID.digest(Int.random(in: 0..<3, using: &random))
        return switch Int.random(in: 0..<10, using: &random) {
        case 0..<5: [user]
        case 5..<7: [digest]
        case 7: [digest, user]
        case 8: [user, digest, .user(Int.random(in: 0..<NotificationOrderTests.customers, using: &random))]
        default: []
        }
    }

    /// With trials, transfers, and digests that are identified later.
    private func history(_ random: inout SeededGenerator) -> [Step] {
        let kinds = [
            "purchased", "purchased", "purchased", "renewed", "renewed", "cancelled", "grace_period", "expired",
            "revoked", "reinstated", "extended", "transferred", "transferred", "transferred", "merged",
        ]
        var steps = (0..<Int.random(in: 5...11, using: &random)).map { number in
            var step = Step(
                id: "\(number)",
                at: instant(&random),
                identities: identities(&random),
                kind: random.element(of: kinds),
                transaction: "T\(Int.random(in: 0..<3, using: &random))"
            )
            step.product = random.element(of: ["monthly", "monthly", "large"])
            if random.chance(25) { step.period = "trial" }
            if random.chance(70) || ["renewed", "extended"].contains(step.kind) {
                step.expires = random.element(of: ["2026-11-19", "2026-12-05", "2026-12-24", "2027-02-01"])
            }
            if step.kind == "transferred" {
                step.from = identities(&random)
                if step.identities.isEmpty { step.identities = [.user(0)] }
            }
            return step
        }
        // A grant applies to the period at its arrival, so its user's period must not depend on other events.
        let buyer = CustomerID.user(NotificationOrderTests.customers)
        for kind in ["granted", "revoked", "reinstated"].prefix(Int.random(in: 0...3, using: &random)) {
            steps.append(
                Step(id: "G \(kind)", at: instant(&random), identities: [buyer], kind: kind, transaction: "G")
            )
        }
        return steps
    }

    private func event(_ step: Step, _ delivery: Delivery) -> Event {
        func ids(_ identities: [CustomerID]) -> [String] {
            identities.map { identity in
                switch identity {
                case .user(let index): delivery.user(index)
                case .digest(let index): delivery.digest(index)
                }
            }
        }
        let identities = ids(step.identities)
        var effect: [String: Any & Sendable] = ["kind": step.kind]
        switch step.kind {
        case "transferred":
            effect["from"] = ids(step.from)
            effect["to"] = identities
        case "merged":
            effect["identities"] = identities
        case "granted":
            effect["transaction"] = delivery.name(step.transaction)
            effect["product"] = "pack"
            effect["quantity"] = 2
        default:
            effect["transaction"] = delivery.name(step.transaction)
            effect["product"] = step.product
            effect["period"] = step.period
            effect["expires"] = step.expires
        }
        let hasLists = step.kind == "transferred" || step.kind == "merged"
        return Event(delivery.name(step.id), step.at, by: hasLists ? [] : identities, type: step.kind, effect)
    }

    /// The rows of a delivery's users, with placeholders instead of ids. Without counts, because the usage that a
    /// transfer moves depends on its time of arrival.
    private func state(_ delivery: Delivery, isUsed: Bool) -> String {
        """
        select jsonb_agg(jsonb_build_object(
            'person', person.number,
            'subscriptions', (
                select jsonb_agg(
                    to_jsonb(s) - '{user_id,original_transaction_id}'::text[]
                        || jsonb_build_object('transaction', substr(s.original_transaction_id, 6))
                    order by s.original_transaction_id
                )
                from headroom.subscriptions as s where s.user_id = person.id
            ),
            'anchor', coalesce((select s.anchor_day from headroom.subscribers as s where s.user_id = person.id), 1),
            'previous', (select s.previous_plan from headroom.subscribers as s where s.user_id = person.id),
            'store trial', (
                select s.store_trial_started_at from headroom.subscribers as s where s.user_id = person.id
            ),
            'rows', (
                select jsonb_agg(
                    to_jsonb(u) - '{user_id,updated_at,generation,entitlement_version}'::text[] order by u.billing_period
                )
                from message_usage as u where u.user_id = person.id and \(isUsed ? "u.granted > 0" : "true")
            ),
            'purchases', (
                select jsonb_agg(jsonb_build_array(substr(p.transaction, 6), p.messages, p.granted_messages, p.is_refunded))
                from headroom.message_purchases as p where p.user_id = person.id
            ),
            'now', to_jsonb(headroom.entitlement(person.id, headroom.now(), 'deny')) - 'user_id',
            'events', (
                select jsonb_agg(jsonb_build_array(substr(e.id, 6), e.outcome, e.missing_prerequisite) order by e.id)
                from headroom.billing_events as e where e.user_id = person.id
            )
        ) order by person.number)
        from (values \((0...NotificationOrderTests.customers).map { "(\($0), '\(delivery.user($0))'::uuid)" }
            .joined(separator: ", "))) as person (number, id)
        """
    }

    /// The differences of two states, user by user.
    private func difference(_ one: String, _ other: String) -> String {
        func users(_ text: String) -> [[String: NSObject]] {
            (try? JSONSerialization.jsonObject(with: Data(text.utf8))) as? [[String: NSObject]] ?? []
        }
        return zip(users(one), users(other)).enumerated().flatMap { number, states in
            states.0.keys.sorted().filter { states.0[$0] != states.1[$0] }.map { key in
                "user \(number), \(key): \(states.0[key] ?? NSNull()) and not \(states.1[key] ?? NSNull())"
            }
        }.joined(separator: "\n")
    }

    private func before(_ delivery: Delivery, isUsed: Bool) -> String {
        (0..<(isUsed ? NotificationOrderTests.customers : 0)).map { index in
            """
            insert into message_usage (user_id, billing_period, message_count, "limit")
            values ('\(delivery.user(index))', '2026-11', \(100 + 10 * index), 800),
                ('\(delivery.user(index))', 'trial', \(1 + index), 100);
            """
        }.joined() + "select set_plan('\(delivery.user(NotificationOrderTests.customers))', 'paid')"
    }

    @Test(
        "does not matter, also with transfers, aliases and repetitions",
        arguments: SeededGenerator.seeds(always: [1_625_235_126_949_334_864])
    )
    func orders(seed: UInt64) async throws {
        print("histories of billing events with seed \(seed)")
        var random = SeededGenerator(seed: seed)
        let database = try await TestDatabase.fresh(at: at("2026-11-20T12:00:00Z"))
        try await database.psql.mapProducts()
        var number = 0
        for turn in 0..<8 {
            let history = history(&random)
            let isUsed = turn.isMultiple(of: 2)
            var states: [String] = []
            for order in 0..<NotificationOrderTests.orders {
                let delivery = Delivery(number: number)
                number += 1
                try await database.psql.execute(before(delivery, isUsed: isUsed))
                let steps = order == 0 ? history : history.shuffled(using: &random)
                for (index, step) in steps.enumerated() {
                    let answer = try await database.psql.ingest(event(step, delivery))
                    #expect(answer["outcome"] != nil && answer["outcome"] != "duplicate")
                    if random.chance(30) {
                        try await database.psql.ingest(event(random.element(of: Array(steps[...index])), delivery))
                    }
                }
                let state = try #require(try await database.psql.text(state(delivery, isUsed: isUsed)))
                states.append(state)
                guard state == states[0] else {
                    let history = steps.map(\.description).joined(separator: "\n")
                    Issue.record(
                        "seed \(seed), history \(turn), order \(order)\n\(history)\n\(difference(state, states[0]))"
                    )
                    return
                }
            }
        }
    }
}
