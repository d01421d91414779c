import ArgumentParser
import AsyncHTTPClient
import Foundation
import HeadroomClient
import Logging
import NIOCore
import NIOPosix

/// Headroom's webhook. This example posts to it what RevenueCat posts when a user buys in a store; a product has no
/// such code.
struct StoreWebhook: Sendable {
    private let url: String
    private let authorization: String

    private struct Answer: Decodable {
        var outcome: String
    }

    init(_ url: String, authorization: String?) throws {
        guard let authorization, URL(string: url)?.host != nil else {
            throw ValidationError("--webhook must be a URL, and needs CHAT_WEBHOOK_AUTHORIZATION in the environment")
        }
        self.url = url
        self.authorization = authorization
    }

    /// - Throws: `Problem`: 502 when Headroom has not applied the event, 504 when it may have.
    func post(_ event: StoreEvent, _ logger: Logger) async throws {
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "Authorization", value: authorization)
        request.headers.add(name: "Content-Type", value: "application/json")
        request.body = .bytes(ByteBuffer(data: try JSONEncoder.snakeCase.encode(event)))
        let response: HTTPClientResponse
        let body: ByteBuffer
        do {
            response = try await HTTPClient.shared.execute(request, timeout: .seconds(5))
            body = try await response.body.collect(upTo: 65_536)
        } catch let error as CancellationError {
            throw error
        } catch {
            logger.error("the webhook did not answer", metadata: ["error": "\(type(of: error))"])
            if StoreWebhook.isConnectFailure(error) {
                throw Problem(.badGateway, code: "WEBHOOK", "the webhook is unreachable; nothing has changed")
            }
            throw Problem(.gatewayTimeout, code: "UNKNOWN", "the webhook did not answer in time; check the usage first")
        }
        // 200 is also the answer to an event that Headroom stores but cannot apply, because the store need not repeat
        // it.
        let answer = try? JSONDecoder().decode(Answer.self, from: Data(buffer: body))
        guard response.status == .ok, let answer, answer.outcome != "failed" else {
            logger.error("the webhook did not apply an event", metadata: ["status": "\(response.status.code)"])
            throw Problem(.badGateway, code: "WEBHOOK", "Headroom did not apply the event; are the products mapped?")
        }
    }

    /// Whether the event cannot have arrived, because there was no connection.
    private static func isConnectFailure(_ error: any Error) -> Bool {
        error is NIOConnectionError || (error as? HTTPClientError) == .connectTimeout
            || (error as? IOError)?.errnoCode == ECONNREFUSED
    }
}

enum Product: String, Encodable, CaseIterable {
    case premium = "premium_monthly"
    case pro = "pro_monthly"

    /// - Parameter plan: the plan to which `headroom product map` maps the product.
    init?(plan: String) {
        guard let product = Product.allCases.first(where: { $0.plan == plan }) else { return nil }
        self = product
    }

    var plan: String { self == .premium ? "paid" : "pro" }
}

/// An event of a subscription in RevenueCat's format.
struct StoreEvent: Encodable, Sendable {
    enum Kind: String, Encodable {
        case initialPurchase = "INITIAL_PURCHASE"
        case renewal = "RENEWAL"
        case cancellation = "CANCELLATION"
        case uncancellation = "UNCANCELLATION"
        case productChange = "PRODUCT_CHANGE"
    }

    struct Event: Encodable, Sendable {
        var id = UUID().uuidString
        var type: Kind
        var eventTimestampMs: Int64
        var appUserId: String
        var environment = "PRODUCTION"
        var store = "APP_STORE"
        var productId: Product
        var newProductId: Product?
        var periodType = "NORMAL"
        var purchasedAtMs: Int64
        var expirationAtMs: Int64?
        var originalTransactionId: String
        var cancelReason: String?
    }

    var apiVersion = "1.0"
    var event: Event

    private static let monthMilliseconds: Int64 = 30 * 86_400_000

    /// - Parameters:
    ///   - expires: the end of the paid time, where the event does not change it.
    ///   - next: the product from the next renewal on, of a product change.
    init(_ kind: Kind, of product: Product, by user: UserID, expires: Instant?, next: Product? = nil) {
        let now = Int64(Date().timeIntervalSince1970 * 1_000)
        let isPayment = kind == .initialPurchase || kind == .renewal
        event = Event(
            type: kind,
            eventTimestampMs: now,
            appUserId: "\(user)",
            productId: product,
            newProductId: next,
            purchasedAtMs: now,
            expirationAtMs: isPayment
                ? now + StoreEvent.monthMilliseconds : expires.map { $0.microsecondsSince1970 / 1_000 },
            // One subscription per user and product.
            originalTransactionId: "\(product.rawValue).\(user)",
            cancelReason: kind == .cancellation ? "UNSUBSCRIBE" : nil
        )
    }
}
