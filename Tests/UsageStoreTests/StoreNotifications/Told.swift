import Foundation
import Postgres
import TestSupport
import Usage

@testable import UsageStore

/// A notification as an adapter hands it to `headroom.take_store_notification`.
struct Told: Sendable {
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
    ///   - effects: each with `kind` and what belongs to it.
    init(
        _ id: String,
        _ at: String,
        by identities: [String] = [],
        type: String = "TOLD",
        _ effects: [String: Any & Sendable]...
    ) {
        self.id = id
        self.at = at
        self.identities = identities
        self.type = type
        self.effects = effects
    }

    var json: String {
        var object: [String: Any] = [
            "source": source, "id": id, "type": type, "at": at, "environment": "production", "identities": identities,
            "effects": effects, "payload": ["type": type, "ids": identities],
        ]
        if let problem { object["problem"] = problem }
        guard let data = try? JSONSerialization.data(withJSONObject: object, options: [.sortedKeys]) else {
            preconditionFailure("no JSON: \(object)")
        }
        return String(decoding: data, as: UTF8.self)
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

/// What stands for an id of a store that is no UUID.
func digest(_ number: Int) -> String {
    let digits = String(number, radix: 16)
    return "sha256:" + String(repeating: "0", count: 64 - digits.count) + digits
}

extension Session {
    /// What `headroom.take_store_notification` answers, each field as text.
    @discardableResult
    func take(_ told: Told, with function: String = "take_store_notification") async throws -> [String: String] {
        try await takeText(told.json, with: function)
    }

    func takeText(_ json: String, with function: String = "take_store_notification") async throws -> [String: String] {
        try await run { connection in
            var parameters = Parameters()
            parameters.append(text: json)
            let result = try connection.query(
                "select key, value from jsonb_each_text(headroom.\(function)($1::jsonb))",
                parameters,
                deadline: .now + waitLimit
            )
            let fields = (0..<result.rowCount).map { (result.text($0, 0), result.text($0, 1)) }
            return Dictionary(uniqueKeysWithValues: fields)
        }
    }

    /// The products of these tests: `monthly`, `large` (no limit), and `pack`, 50 messages.
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
