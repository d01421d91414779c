import Billing
import Foundation
import Postgres
import TestSupport
import Testing
import Usage

@testable import Engine

/// A direct event, which names the plan itself.
struct StoreEvent: Sendable {
    var fields: [String: String]

    /// - Parameters:
    ///   - at: when it happened.
    ///   - id: unique within the source; by default the kind and the instant.
    ///   - more: further fields; `anchor` is a number.
    init(
        _ kind: String,
        _ at: String,
        _ more: [String: String] = [:],
        of user: UserID = user(1),
        transaction: String = "transaction 1",
        source: String = "revenuecat",
        id: String? = nil
    ) {
        fields = [
            "kind": kind, "at": at, "user": "\(user)", "transaction": transaction, "source": source,
            "id": id ?? "\(kind) \(at) \(transaction)",
        ]
        fields.merge(more) { $1 }
    }

    /// The same event for another user, with its own id and transaction.
    func of(_ user: UserID) -> StoreEvent {
        var event = self
        event.fields["user"] = "\(user)"
        event.fields["transaction"] = "\(user) \(fields["transaction"] ?? "")"
        event.fields["id"] = "\(user) \(fields["id"] ?? "")"
        return event
    }

    var instant: Instant { TestSupport.at(fields["at"] ?? "") }

    /// The event as the service applies it.
    var event: BillingEvent {
        get throws {
            func instant(_ name: String) -> Instant? { fields[name].map { TestSupport.at($0) } }
            var effect = BillingEffect(
                try #require(BillingEffect.Kind(rawValue: fields["kind"] ?? "")),
                transaction: fields["transaction"],
                product: fields["product"],
                nextProduct: fields["next_product"],
                started: instant("started"),
                expires: instant("expires"),
                graceUntil: instant("grace_until")
            )
            effect.plan = fields["plan"]
            effect.nextPlan = fields["next_plan"]
            effect.anchorDay = fields["anchor"].flatMap { Int($0) }
            return BillingEvent(
                source: BillingEvent.Source(rawValue: fields["source"] ?? ""),
                id: fields["id"] ?? "",
                type: effect.kind.rawValue,
                at: self.instant,
                environment: fields["environment"].map { BillingEvent.Environment(rawValue: $0) },
                identities: fields["user"].map { [$0] } ?? [],
                effects: [effect],
                payload: .object([:])
            )
        }
    }
}

extension Session {
    @discardableResult
    func apply(_ event: StoreEvent) async throws -> [String: String] { try await apply(try event.event) }
}

extension TestDatabase {
    /// Applies events, each at the instant at which it happened.
    func report(_ events: StoreEvent...) async throws {
        for event in events {
            try await moveClock(to: event.instant)
            try await psql.apply(event)
        }
    }

    func sessions(_ count: Int) async throws -> [Session] {
        var sessions: [Session] = []
        for _ in 0..<count { sessions.append(try await Session.open(conninfo)) }
        return sessions
    }

    /// Applies an event, and another one before the first is committed.
    ///
    /// - Returns: both answers.
    func overlapping(
        _ first: BillingEvent,
        _ second: BillingEvent
    ) async throws -> (first: [String: String], second: [String: String]) {
        let holder = try await Session.open(conninfo)
        let sessions = [try await Session.open(conninfo), try await Session.open(conninfo)]
        // Every applied event is audited.
        try await holder.execute("begin; lock table headroom.audit_log in share mode")
        let one = Task { try await sessions[0].apply(first) }
        try await waitUntilBlocked(1)
        let two = Task { try await sessions[1].apply(second) }
        try await waitUntilBlocked(2)
        try await holder.execute("commit")
        return (try await one.value, try await two.value)
    }

    /// Whether `headroom.chosen_plan`, from which the audit log has the plan before an event, agrees with the
    /// entitlement.
    func hasChosenPlan(_ user: UserID) async throws -> Bool {
        let number = try await psql.number(
            """
            select count(*) where headroom.plan_record(headroom.chosen_plan('\(user)', headroom.now()), 1, null)
                is not distinct from headroom.plan_record(
                    headroom.entitlement('\(user)', headroom.now(), 'deny'), 1, null
                )
            """
        )
        return number == 1
    }

    /// The fields of SQL's usage function.
    func usage(_ user: UserID) async throws -> SQLAnswer.Fields {
        try await SQLAnswer.read(
            "select answer.* from headroom.format_answer('\(user)', headroom.read_usage_snapshot('\(user)', 'trial'), 0) as answer",
            from: psql
        )
    }

    func consume(_ user: UserID, _ messages: Int = 1) async throws -> SQLAnswer.Fields {
        try await SQLAnswer.read("select * from increment_and_check_usage('\(user)', \(messages))", from: psql)
    }
}

extension Instant {
    var justBefore: Instant { Instant(microsecondsSince1970: microsecondsSince1970 - 1) }
    var justAfter: Instant { Instant(microsecondsSince1970: microsecondsSince1970 + 1) }
}
