import Engine
import Foundation
import Hummingbird
import Logging
import Postgres
import TestSupport
import Testing
import Usage

@testable import HTTPServer
@testable import ServiceCore

@Suite("The description of the API")
struct DescriptionTests {
    private struct Document: Decodable {
        struct Operation: Decodable {
            var operationId: String
            var responses: [String: Value]
        }

        struct Value: Decodable {}

        var openapi: String
        var paths: [String: [String: Operation]]
    }

    /// All routes of the port. No database is needed.
    private func routes() throws -> [Router<HTTPContext>.RouteDescription] {
        let configuration = try ServerConfiguration(SettingsReader(flags: [:], environment: [:]))
        let logger = Logger.silent
        let service = ServiceDependencies(
            configuration,
            database: DatabaseTopology(""),
            access: AccessControl(.off, connectionsPerTokenMaximum: 1, logger: logger),
            tls: nil,
            logger: logger
        )
        let dependencies = HTTPServerDependencies(
            service,
            configuration: try #require(configuration.http),
            webhookEndpoints: try WebhookEndpoints(configuration.settings),
            logger: logger
        )
        return try dependencies.router().routes
    }

    @Test("describes every field with its type, and no other")
    func fields() throws {
        let root = try JSONSerialization.jsonObject(with: Data(EmbeddedTexts["openapi.json"].utf8)) as? [String: Any]
        let components = try #require(root?["components"] as? [String: Any])
        let schemas = try #require(components["schemas"] as? [String: Any])
        func properties(_ schema: String) throws -> [String: [String: Any]] {
            try #require((schemas[schema] as? [String: Any])?["properties"] as? [String: [String: Any]])
        }
        let (usage, answer) = (try properties("Usage"), try properties("Answer"))
        for field in AnswerField.allCases {
            // A change is answered with what is only of USAGE left out; USAGE is not about a message.
            let isOfMessages = [.crossed, .retryAfter, .fallback, .shadow, .released, .replayed, .degraded].contains(
                field
            )
            #expect((usage[field.name] == nil) == isOfMessages, "\(field)")
            #expect((answer[field.name] == nil) == field.isOnlyOfUsage, "\(field)")
            for described in [usage[field.name], answer[field.name]].compactMap(\.self) {
                let types = described["type"] as? [String] ?? (described["type"] as? String).map { [$0] }
                let reference = (described["$ref"] as? String)?.split(separator: "/").last
                switch field.kind {
                case .user: #expect(reference == "UserID")
                case .instant: #expect(reference == "Instant", "\(field)")
                case .number: #expect(types == ["integer"], "\(field)")
                case .limit: #expect(types == ["integer", "null"], "\(field)")
                case .flag: #expect(described["const"] as? Bool == true, "\(field)")
                case .name: #expect(types == ["string"], "\(field)")
                case .text:
                    let isText = types == ["string"] || ["Price", "Currency", "Model"].contains(reference)
                    #expect(isText, "\(field)")
                }
            }
        }
        let names = Set(AnswerField.allCases.map(\.name))
        #expect(Set(usage.keys).subtracting(names) == ["unlimited"])
        #expect(Set(answer.keys).subtracting(names) == ["allowed", "unlimited"])
    }

    @Test("describes every route except webhooks and the dashboard, and no other")
    func paths() throws {
        let document = try JSONDecoder().decode(Document.self, from: Data(EmbeddedTexts["openapi.json"].utf8))
        #expect(document.openapi.hasPrefix("3.1."))
        let described = document.paths.flatMap { path, operations in
            operations.keys.map { "\($0.uppercased()) \(path)" }
        }
        let routes = try self.routes().map { "\($0.method.rawValue) \($0.path.description)" }.filter { route in
            !["/webhooks/", "/dashboard"].contains { route.contains(" \($0)") } && route != "GET /"
        }
        #expect(described.sorted() == routes.sorted())
        let operations = document.paths.values.flatMap(\.values)
        #expect(Set(operations.map(\.operationId)).count == operations.count)
        #expect(operations.allSatisfy { $0.responses["200"] != nil && $0.responses["405"] != nil })
    }
}
