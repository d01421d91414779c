import AsyncHTTPClient
import Foundation
import Logging
import NIOCore
import NIOPosix

/// Where subscriptions are told, and what shows that we may.
struct StoreWebhook: Sendable {
    let url: URL
    let authorization: String
}

/// Subscribes, as a store would: by telling Headroom's webhook. Whether and how it changes what a user may do is Headroom's
/// to say, and comes back as a change.
struct Store: Sendable {
    let webhook: StoreWebhook
    let client: HTTPClient
    let logger: Logger

    private static let timeout = TimeAmount.seconds(5)
    private static let connectTimeout = TimeAmount.seconds(2)
    private static let answerBytesMaximum = 65_536

    private struct Answer: Decodable {
        var outcome: String
        var problem: String?
    }

    /// A client for it, which the caller shuts down.
    static func makeClient() -> HTTPClient {
        // Where to the authorization goes is a setting, and no other server's to say.
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        // The buyer waits, so an unreachable webhook is reported at once.
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.timeout.connect = connectTimeout
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    /// - Throws: `Problem`: 502 when the webhook refuses or cannot be reached, 504 when it may have taken the event.
    func tell(_ event: StoreEvent) async throws {
        var request = HTTPClientRequest(url: webhook.url.absoluteString)
        request.method = .POST
        request.headers.add(name: "Authorization", value: webhook.authorization)
        request.headers.add(name: "Content-Type", value: "application/json")
        request.body = .bytes(JSONAnswer.data(event))
        let (status, body): (UInt, Data)
        do {
            let response = try await client.execute(request, timeout: Store.timeout)
            let bytes = try await response.body.collect(upTo: Store.answerBytesMaximum)
            (status, body) = (response.status.code, Data(buffer: bytes))
        } catch let error as CancellationError {
            throw error
        } catch {
            logger.error("the webhook did not answer", metadata: ["error.type": "\(type(of: error))"])
            guard Store.neverConnected(error) else { throw Store.unknown }
            throw Store.failed("Headroom's webhook cannot be reached; nothing has changed, try again")
        }
        guard status == 200 else {
            logger.error("the webhook refused a store's event", metadata: ["status": "\(status)"])
            throw Store.failed(
                "Headroom's webhook answered \(status); are --webhook and CHAT_WEBHOOK_AUTHORIZATION right?"
            )
        }
        // 200 is also what it answers to an event that it keeps for later, because a store need not send that again.
        if let answer = try? JSONDecoder().decode(Answer.self, from: body), answer.outcome == "failed" {
            logger.error(
                "the webhook could not apply a store's event",
                metadata: ["problem": "\(answer.problem ?? "")"]
            )
            throw Store.failed(
                "Headroom keeps the event but cannot apply it; is the product mapped? (headroom product map)"
            )
        }
    }

    /// Nothing can have arrived where no connection came about.
    private static func neverConnected(_ error: any Error) -> Bool {
        switch error {
        case is NIOConnectionError: true
        case let error as HTTPClientError: error == .connectTimeout
        case let error as IOError: [ECONNREFUSED, EHOSTUNREACH, ENETUNREACH].contains(error.errnoCode)
        default: false
        }
    }

    /// The connection was open, so the event may have arrived.
    private static let unknown = Problem(
        status: .gatewayTimeout,
        code: "UNKNOWN",
        message: "Headroom's webhook did not answer in time; look at the usage before you try again"
    )

    private static func failed(_ message: String) -> Problem {
        Problem(status: .badGateway, code: "WEBHOOK", message: message)
    }
}
