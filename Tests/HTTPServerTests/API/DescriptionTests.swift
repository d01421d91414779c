import Engine
import Foundation
import Hummingbird
import Logging
import Postgres
import TestSupport
import Testing

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
            webhookEndpoints: try WebhookEndpoints(configuration.webhooks),
            logger: logger
        )
        return try dependencies.router().routes
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
