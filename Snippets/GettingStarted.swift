import Foundation
import HeadroomClient
import Logging
import ServiceLifecycle

// The code of the article GettingStarted, line for line. Every build compiles it, and DocumentationTests compares it
// with the article.

/// A model that answers in pieces.
protocol Model: Sendable {
    func answer(to text: String) -> AsyncThrowingStream<String, any Error>
}

/// The product's user interface.
protocol Screen: Sendable {
    func show(_ text: String)
    func showCounter(_ status: UsageStatus)
    func askToSubscribe(_ status: UsageStatus)
    func offer(_ model: ModelName, saying text: String)
}

/// The product's messages and their answers.
protocol Store: Sendable {
    /// Nil until the answer is complete.
    func answer(to message: UUID) async throws -> String?
}

private enum FirstLines {
    static func count() async throws {
        let headroom = HeadroomClient(.init(host: "127.0.0.1", port: 6747))
        let user = UserID("7f1c0a52-3a51-4a7e-9d55-0b6a3f1f7c11")!
        switch try await headroom.consume(user) {
        case .allowed(let status):
            print("send it;", status.banner ?? "nothing to say")
        case .repeated:
            print("sent before; show the stored answer")
        case .blocked(let status, let reason):
            print("not now:", reason, status.banner ?? "")
        }
        await headroom.shutDown()
    }
}

private enum Serving {
    static func run(chat: any Service) async throws {
        var configuration = HeadroomClient.Configuration(
            endpoints: [.init(host: "headroom-1.internal"), .init(host: "headroom-2.internal")],
            tls: try .init(ca: "/etc/headroom/ca.pem"),
            credentials: .init(tokenFile: "/run/secrets/headroom-token")
        )
        configuration.deadline = .seconds(1)
        let headroom = HeadroomClient(configuration)
        let group = ServiceGroup(
            services: [headroom, chat],
            gracefulShutdownSignals: [.sigterm],
            logger: Logger(label: "chat")
        )
        try await group.run()
    }
}

private struct Chat {
    let headroom: HeadroomClient
    let model: any Model
    let screen: any Screen
    let store: any Store

    func send(_ text: String, from user: UserID) async throws {
        let outcome = try await headroom.withHold(user) { hold in
            screen.showCounter(hold.status)
            for try await piece in model.answer(to: text) {
                screen.show(piece)
            }
        }
        switch outcome {
        case .completed(_, let decision):
            screen.showCounter(decision.status)
        case .blocked(let status, _):
            screen.askToSubscribe(status)
        case .expired, .uncommitted:
            // The user has the answer, and was not charged for it, or not yet.
            break
        }
    }

    func send(from member: UserID, of account: UserID) async throws {
        let decision = try await headroom.consume(account, model: "gpt-5", member: member)
        if let fallback = decision.status.fallback {
            screen.offer(fallback, saying: decision.status.banner ?? "")
        }
    }

    func show(_ status: UsageStatus) {
        switch status.display {
        case .hidden:
            screen.show("")
        case .compact, .trial:
            screen.show(status.banner ?? "")
        case .blocked:
            screen.askToSubscribe(status)
        }
        if let crossed = status.crossed {
            screen.show("You have just come into the tier \(crossed).")
        }
    }

    func follow(_ user: UserID) async {
        for await status in headroom.changes(of: user) {
            screen.showCounter(status)
        }
    }

    func sendWithoutService(_ user: UserID) async throws {
        var configuration = HeadroomClient.Configuration(host: "headroom.internal")
        configuration.whenUnreachable = .allow
        let lenient = HeadroomClient(configuration)
        let decision = try await lenient.consume(user)
        if decision.isDegraded {
            screen.show(decision.status.banner ?? "")
        }
    }

    func send(_ text: String, from user: UserID, message: UUID) async throws {
        do {
            switch try await headroom.consume(user, key: MessageKey(message)) {
            case .allowed:
                for try await piece in model.answer(to: text) { screen.show(piece) }
            case .repeated:
                screen.show(try await store.answer(to: message) ?? "Your answer is being written …")
            case .blocked(let status, _):
                screen.askToSubscribe(status)
            }
        } catch let error as HeadroomError where error.isTransient {
            // Send it again later with the same key: it counts once, whatever the outcome of this call.
            screen.show("One moment …")
        }
    }
}
