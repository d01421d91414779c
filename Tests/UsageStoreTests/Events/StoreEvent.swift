import Foundation
import Postgres
import TestSupport
import Usage

@testable import UsageStore

/// An event as an adapter for a store hands it to `apply_store_event`.
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

    /// The same event of somebody else, with an id of its own.
    func of(_ user: UserID) -> StoreEvent {
        var event = self
        event.fields["user"] = "\(user)"
        event.fields["id"] = "\(user) \(fields["id"] ?? "")"
        return event
    }

    var instant: Instant { TestSupport.at(fields["at"] ?? "") }

    var json: String {
        let members = fields.sorted { $0.key < $1.key }.map { name, value in
            let quoted = value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
            return name == "anchor" ? "\"anchor\": \(value)" : "\"\(name)\": \"\(quoted)\""
        }
        return "{" + members.joined(separator: ", ") + "}"
    }
}

extension Session {
    /// What `apply_store_event` answers, each field as text.
    func apply(_ json: String) async throws -> [String: String] {
        try await run { connection in
            var parameters = Parameters()
            parameters.append(text: json)
            let result = try connection.query(
                "select key, value from jsonb_each_text(apply_store_event($1::jsonb))",
                parameters,
                deadline: .now + waitLimit
            )
            let fields = (0..<result.rowCount).map { (result.text($0, 0), result.text($0, 1)) }
            return Dictionary(uniqueKeysWithValues: fields)
        }
    }

    @discardableResult
    func apply(_ event: StoreEvent) async throws -> [String: String] {
        try await apply(event.json)
    }
}

extension TestDatabase {
    /// Applies events, each at the instant at which it happened.
    func tell(_ events: StoreEvent...) async throws {
        for event in events {
            try await moveClock(to: event.instant)
            try await psql.apply(event)
        }
    }

    /// `USAGE` as SQL tells it.
    func usage(_ user: UserID) async throws -> SQLAnswer.Fields {
        try await SQLAnswer.read(
            "select answer.* from headroom.answer_to('\(user)', headroom.peek('\(user)', 'trial'), 0) as answer",
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
