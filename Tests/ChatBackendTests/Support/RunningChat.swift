import AsyncHTTPClient
import Foundation
import HeadroomClient
import Logging
import NIOCore
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

@testable import chat_backend

/// The chat within this process, on a free port, so that a test can be its model.
final class RunningChat: Sendable {
    let address: String
    let model: GatedModel
    private let group: ServiceGroup

    private init(_ address: String, _ model: GatedModel, _ group: ServiceGroup) {
        self.address = address
        self.model = model
        self.group = group
    }

    /// For tests in which Headroom is there: a machine that is busy testing is slow.
    static let patient = ChatConfiguration.Patience(
        answer: waitLimit,
        reading: waitLimit,
        look: waitLimit
    )

    /// Runs a chat upon a service for as long as the body takes.
    static func with(
        _ service: ServiceProcess,
        _ arguments: String...,
        environment: [String: String] = [:],
        patience: ChatConfiguration.Patience = patient,
        _ body: (RunningChat) async throws -> Void
    ) async throws {
        let options = try ChatOptions.parse(
            ["--listen", "127.0.0.1:0", "--headroom", "\(service.endpoint)", "--log-level", "critical"] + arguments
        )
        var configuration = try ChatConfiguration(options, environment: environment)
        configuration.patience = patience
        let model = GatedModel()
        let logger = Logger.silent
        let (opened, open) = AsyncStream.makeStream(of: String.self)
        let part = Part(chat: ChatService(configuration, model: model, logger: logger)) { open.yield("http://\($0)") }
        let group = ServiceGroup(services: [part], logger: logger)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                defer { open.finish() }
                try await group.run()
            }
            var addresses = opened.makeAsyncIterator()
            let address = try #require(await addresses.next(), "the chat did not start")
            do {
                try await body(RunningChat(address, model, group))
            } catch {
                await group.triggerGracefulShutdown()
                throw error
            }
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
    }

    private struct Part: Service {
        let chat: ChatService
        let whenOpen: @Sendable (HeadroomClient.Endpoint) -> Void

        func run() async throws {
            try await chat.run(stoppedBy: [], whenOpen: whenOpen)
        }
    }

    func shutDown() async {
        await group.triggerGracefulShutdown()
    }

    func request(
        _ method: String = "GET",
        _ path: String,
        _ body: String? = nil,
        headers: [(String, String)] = []
    ) async throws -> HTTPClientResponse {
        var request = HTTPClientRequest(url: address + path)
        request.method = .RAW(value: method)
        if let body {
            request.body = .bytes(ByteBuffer(string: body))
            if !headers.contains(where: { $0.0 == "Content-Type" }) {
                request.headers.add(name: "Content-Type", value: "application/json")
            }
        }
        for (name, value) in headers { request.headers.replaceOrAdd(name: name, value: value) }
        return try await HTTPClient.shared.execute(request, timeout: TimeAmount(waitLimit))
    }

    /// A message, and its events up to the end.
    func send(_ user: UserID, id: UUID = UUID(), _ text: String = "Hello there") async throws -> [Event] {
        try await events(user, id: id, text).rest()
    }

    /// A message, and its events as they come.
    func events(_ user: UserID, id: UUID = UUID(), _ text: String = "Hello there") async throws -> EventReader {
        let response = try await post(user, id: id, text)
        try #require(response.status == .ok)
        return EventReader(response)
    }

    func post(_ user: UserID, id: UUID = UUID(), _ text: String = "Hello there") async throws -> HTTPClientResponse {
        try await request("POST", "/users/\(user)/messages", #"{"id": "\#(id)", "text": "\#(text)"}"#)
    }

    /// What the page begins with.
    func page(_ user: UserID) async throws -> Event {
        Event(name: "page", body: try await request("GET", "/users/\(user)").bytes())
    }

    /// The question that is to be answered now.
    func question(_ number: Int = 0) async throws -> GatedModel.Question {
        try await waitUntil("the model is asked") { self.model.questions.count > number }
        return model.questions[number]
    }
}

extension HTTPClientResponse {
    func bytes() async throws -> Data {
        Data(buffer: try await body.collect(upTo: 1_048_576))
    }

    func text() async throws -> String {
        String(decoding: try await bytes(), as: UTF8.self)
    }

    /// Of `{"error": {"code", "message"}}`.
    func problem() async throws -> (code: String, message: String) {
        let body = Event(name: "problem", body: try await bytes())
        return (body["error", "code"] as? String ?? "", body["error", "message"] as? String ?? "")
    }
}
