import AsyncHTTPClient
import Foundation
import HTTPTypes
import HeadroomClient
import Logging
import NIOCore

/// Subscribes, as a store would: by telling Headroom's webhook. Whether and how it changes what a user may do is Headroom's
/// to say, and comes back as a change.
struct Store: Sendable {
    enum Action: String, Decodable {
        case subscribe, cancel, resume, pay
    }

    let webhook: StoreWebhook
    let client: HTTPClient
    let logger: Logger

    private static let timeout = TimeAmount.seconds(5)

    /// - Throws: `Problem`, 502, when the webhook refuses or cannot be reached.
    func tell(_ event: StoreEvent) async throws {
        var request = HTTPClientRequest(url: webhook.url.absoluteString)
        request.method = .POST
        request.headers.add(name: "Authorization", value: webhook.authorization)
        request.headers.add(name: "Content-Type", value: "application/json")
        request.body = .bytes(JSONAnswer.data(event))
        let response: HTTPClientResponse
        do {
            response = try await client.execute(request, timeout: Store.timeout)
        } catch {
            logger.error("the webhook cannot be reached", metadata: ["error": "\(error)"])
            throw Store.failed("the store's message did not reach Headroom; try again")
        }
        guard response.status == .ok else {
            logger.error("the webhook refused a store's event", metadata: ["status": "\(response.status.code)"])
            throw Store.failed("Headroom did not take the store's message; the chat's log says why")
        }
        // Read to its end, so that the connection serves the next one.
        _ = try? await response.body.collect(upTo: 65_536)
    }

    private static func failed(_ message: String) -> Problem {
        Problem(status: .badGateway, code: "WEBHOOK", message: message)
    }
}
