import AsyncHTTPClient
import Foundation
import HeadroomClient
import Logging
import NIOCore
import ServiceLifecycle
import TestSupport
import Testing

@testable import chat_backend

/// The chat within this process, on a free port. The test is its model.
final class RunningChat: Sendable {
    let address: String
    let model: ManualModel
    private let services: ServiceGroup

    private init(_ address: String, _ model: ManualModel, _ services: ServiceGroup) {
        self.address = address
        self.model = model
        self.services = services
    }

    /// Runs a chat with a Headroom service for as long as the body takes.
    ///
    /// - Parameter deadline: long by default, because a machine that runs tests is slow.
    static func with(
        _ service: ServiceProcess,
        _ arguments: String...,
        environment: [String: String] = [:],
        deadline: Duration = waitLimit,
        _ body: (RunningChat) async throws -> Void
    ) async throws {
        let command = try ChatBackend.parse(
            ["--listen", "127.0.0.1:0", "--headroom", "\(service.endpoint)"] + arguments
        )
        let model = ManualModel()
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let services = try command.services(
            environment: environment,
            model: model,
            deadline: deadline,
            logger: .silent
        ) { port.yield($0) }
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                defer { port.finish() }
                try await services.run()
            }
            var iterator = ports.makeAsyncIterator()
            let number = try #require(await iterator.next(), "the chat did not start")
            do {
                try await body(RunningChat("http://127.0.0.1:\(number)", model, services))
            } catch {
                await services.triggerGracefulShutdown()
                throw error
            }
            await services.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }

    func shutDown() async { await services.triggerGracefulShutdown() }

    func get(_ path: String) async throws -> HTTPClientResponse {
        try await HTTPClient.shared.execute(HTTPClientRequest(url: address + path), timeout: TimeAmount(waitLimit))
    }

    func post(_ path: String, _ body: String, type: String = "application/json") async throws -> HTTPClientResponse {
        var request = HTTPClientRequest(url: address + path)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: type)
        request.body = .bytes(ByteBuffer(string: body))
        return try await HTTPClient.shared.execute(request, timeout: TimeAmount(waitLimit))
    }

    /// Sends a message; returns its events as they come.
    func send(
        _ user: UserID,
        id: UUID = UUID(),
        model: String? = nil,
        _ text: String = "Hello there"
    ) async throws -> EventReader {
        let model = model.map { #", "model": "\#($0)""# } ?? ""
        let response = try await post("/users/\(user)/messages", #"{"id": "\#(id)", "text": "\#(text)"\#(model)}"#)
        try #require(response.status == .ok)
        return EventReader(response)
    }

    /// The stream of an open page.
    func changes(_ user: UserID) async throws -> EventReader { EventReader(try await get("/users/\(user)/changes")) }

    /// Requests a change of the subscription.
    func change(_ user: UserID, _ action: String, plan: String? = nil) async throws -> HTTPClientResponse {
        let plan = plan.map { #", "plan": "\#($0)""# } ?? ""
        return try await post("/users/\(user)/subscription", #"{"action": "\#(action)"\#(plan)}"#)
    }

    /// The data with which the page starts.
    func page(_ user: UserID) async throws -> Event {
        Event(name: "page", body: Data(buffer: try await get("/users/\(user)").body.collect(upTo: 1_048_576)))
    }

    /// How many messages and answers the conversation has.
    func messageCount(_ user: UserID) async throws -> Int { (try await page(user)["messages"] as? [Any])?.count ?? -1 }

    /// The model's question of this number, counted from 0.
    func question(_ number: Int = 0) async throws -> ManualModel.Question {
        try await waitUntil("the model has the question") { self.model.questions.count > number }
        return model.questions[number]
    }

    /// Answers the question of this number.
    func answer(_ number: Int = 0, _ pieces: String...) async throws {
        let question = try await question(number)
        for piece in pieces { question.send(piece) }
        question.finish()
    }
}

extension ServiceProcess {
    func request<Result: Sendable>(_ body: (HeadroomClient) async throws -> Result) async throws -> Result {
        try await HeadroomClient.with(self) { try await body($0) }
    }

    func usage(of user: UserID) async throws -> UsageStatus { try await request { try await $0.usage(of: user) } }

    /// A new user on a plan.
    func user(_ plan: String = "paid") async throws -> UserID {
        let user = UserID.random
        _ = try await request { try await $0.setPlan(PlanChange(user: user, plan: plan)) }
        return user
    }

    /// Waits until the user has this count and no hold.
    func settled(_ user: UserID, used: Int) async throws {
        try await waitUntil("\(used) counted, nothing held") {
            let status = try await self.usage(of: user)
            return status.used == used && status.held == 0
        }
    }
}
